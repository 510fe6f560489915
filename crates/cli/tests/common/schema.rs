//! A small validator for the part of JSON Schema that the schemas of ringwise use.

use serde_json::Value;

/// Every place where `value` violates `schema`.
pub(crate) fn check(schema: &Value, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    walk(schema, schema, value, "", &mut out);
    out
}

fn is(kind: &str, v: &Value) -> bool {
    match kind {
        "string" => v.is_string(),
        "integer" => v.is_i64() || v.is_u64(),
        "number" => v.is_number(),
        "boolean" => v.is_boolean(),
        "null" => v.is_null(),
        "array" => v.is_array(),
        "object" => v.is_object(),
        other => panic!("the checker does not know type {other}"),
    }
}

fn walk(root: &Value, s: &Value, v: &Value, at: &str, out: &mut Vec<String>) {
    let known = [
        "$schema",
        "$id",
        "title",
        "description",
        "$defs",
        "$ref",
        "type",
        "required",
        "properties",
        "items",
        "enum",
        "const",
        "oneOf",
        "anyOf",
        "additionalProperties",
        "minimum",
        "maximum",
        "pattern",
    ];
    for k in s.as_object().expect("a schema is an object").keys() {
        assert!(known.contains(&k.as_str()), "the checker does not know {k}");
    }
    if let Some(r) = s["$ref"].as_str() {
        let target = root.pointer(r.strip_prefix('#').unwrap()).unwrap_or_else(|| panic!("{r} is not there"));
        return walk(root, target, v, at, out);
    }
    if let Some(kind) = s["type"].as_str()
        && !is(kind, v)
    {
        out.push(format!("{at}: {v} is no {kind}"));
        return;
    }
    if let Some(c) = s.get("const")
        && c != v
    {
        out.push(format!("{at}: {v} is not {c}"));
    }
    if let Some(list) = s["enum"].as_array()
        && !list.contains(v)
    {
        out.push(format!("{at}: {v} is not one of {list:?}"));
    }
    if s["minimum"].as_i64().is_some_and(|m| v.as_i64().is_some_and(|n| n < m)) {
        out.push(format!("{at}: {v} is too small"));
    }
    if s["maximum"].as_f64().is_some_and(|m| v.as_f64().is_some_and(|n| n > m)) {
        out.push(format!("{at}: {v} is too large"));
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(list) = s[key].as_array() {
            let fits = list.iter().filter(|o| {
                let mut inner = Vec::new();
                walk(root, o, v, at, &mut inner);
                inner.is_empty()
            });
            let n = fits.count();
            if n == 0 || (key == "oneOf" && n > 1) {
                out.push(format!("{at}: {n} of {key} fit {v}"));
            }
        }
    }
    if let Some(map) = v.as_object() {
        for r in s["required"].as_array().into_iter().flatten() {
            if !map.contains_key(r.as_str().unwrap()) {
                out.push(format!("{at}: {r} is missing"));
            }
        }
        for (k, x) in map {
            let sub = s["properties"].get(k).or_else(|| s.get("additionalProperties"));
            if let Some(sub) = sub {
                walk(root, sub, x, &format!("{at}/{k}"), out);
            }
        }
    }
    if let (Some(list), Some(items)) = (v.as_array(), s.get("items")) {
        for (i, x) in list.iter().enumerate() {
            walk(root, items, x, &format!("{at}/{i}"), out);
        }
    }
}
