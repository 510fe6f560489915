//! The JSON schema of the file, from the same table that checks it.

use serde_json::{Map, Value, json};

use crate::spec::{COALESCE_WORDS, FILE, Spec, ValueKind};
use crate::{SCHEMA, VERSION};

/// For editors and reviewers: TOML and JSON have the same values here.
pub fn document() -> Value {
    let mut root = table(&FILE);
    if let Some(o) = root.as_object_mut() {
        o.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        o.insert("$id".into(), json!(format!("{SCHEMA}.v{VERSION}")));
        o.insert("title".into(), json!("ringwise.toml: the configuration of this host"));
    }
    root
}

fn table(spec: &'static Spec) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for k in spec.keys {
        let mut v = kind(&k.kind);
        if let Some(o) = v.as_object_mut() {
            o.insert("description".into(), json!(k.about));
        }
        if spec.name == "coalesce"
            && let Some((short, _)) = COALESCE_WORDS.iter().find(|(_, full)| *full == k.name)
        {
            properties.insert((*short).into(), v.clone());
        }
        properties.insert(k.name.into(), v);
        if k.required {
            required.push(json!(k.name));
        }
    }
    let mut out = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !required.is_empty() {
        out["required"] = Value::Array(required);
    }
    out
}

fn kind(k: &ValueKind) -> Value {
    let list =
        |of: Value| json!({ "anyOf": [{ "type": "string", "pattern": "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$" }, of] });
    match k {
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::Int(least, most) if least == most => json!({ "const": least }),
        ValueKind::Int(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        ValueKind::Text => json!({ "type": "string" }),
        ValueKind::Word(all) => json!({ "enum": all }),
        ValueKind::Goal => json!({ "enum": ringwise_model::Goal::ALL.map(|g| g.name()) }),
        ValueKind::Cpus => {
            let mut v = list(json!({ "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 } }));
            if let Some(any) = v["anyOf"].as_array_mut() {
                any.push(json!({ "type": "integer", "minimum": 0 }));
            }
            v
        }
        ValueKind::Queues => {
            list(json!({ "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 } }))
        }
        ValueKind::RssTable => json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 } },
        ] }),
        ValueKind::Key => json!({ "type": "string", "pattern": "^[0-9A-Fa-f:]+$" }),
        ValueKind::Mac => json!({ "type": "string", "pattern": "^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$" }),
        ValueKind::CountRange => json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": "^ *([<>]=?)? *[0-9]+ *(- *[0-9]+ *)?$" },
        ] }),
        ValueKind::Table(spec) => table(spec),
        ValueKind::Map(of) => json!({ "type": "object", "additionalProperties": kind(of) }),
        ValueKind::ByNumber(of) => json!({
            "type": "object", "additionalProperties": false,
            "patternProperties": { "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$": kind(of) },
        }),
        ValueKind::List(of) => json!({ "type": "array", "items": kind(of) }),
        ValueKind::Any(all) => json!({ "anyOf": all.iter().map(kind).collect::<Vec<_>>() }),
    }
}
