//! Checks keys, types and limits of a parsed text against the specification, and reports all errors, not only the
//! first.

use ringwise_model::{Goal, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::Fault;
use crate::spec::{Spec, ValueKind};
use crate::words;

type Value<'a> = Spanned<DeValue<'a>>;

/// Faults are added to `out`.
pub(crate) fn table(t: &DeTable<'_>, at: std::ops::Range<usize>, spec: &'static Spec, out: &mut Vec<Fault>) {
    let mut seen: Vec<&str> = Vec::new();
    let mut meant: Vec<&str> = Vec::new();
    for (k, v) in t {
        let name = k.get_ref().as_ref();
        match spec.key(name) {
            Some(key) if seen.contains(&key.name) => {
                let found = format!("\"{}\" is given under two names", key.name);
                let with =
                    t.iter().map(|(k, _)| k).filter(|o| spec.alias(o.get_ref()) == key.name && o.span() != k.span());
                let with = with.map(Spanned::span).collect();
                out.push(Fault { at: k.span(), with, found, right: Some("only one of them".into()) });
            }
            Some(key) => {
                seen.push(key.name);
                value(v, &key.kind, key.name, out);
            }
            None => {
                let near = nearest(name, spec.keys.iter().map(|k| k.name));
                meant.extend(near);
                let inner = required_table_with(name, spec);
                meant.extend(inner);
                let inside = inner.map(|table| match v.get_ref().as_str() {
                    Some(text) if !t.keys().any(|k| k.get_ref() == table) => {
                        format!("{table} = {{ {name} = {text:?} }}")
                    }
                    _ => format!("\"{name}\" in {table}"),
                });
                let all = || format!("one of {}", spec.keys.iter().map(|k| k.name).collect::<Vec<_>>().join(", "));
                let right = inside
                    .or_else(|| synonym(name, spec))
                    .or_else(|| elsewhere(name))
                    .or_else(|| near.map(|n| format!("\"{n}\"")))
                    .unwrap_or_else(all);
                out.push(Fault {
                    at: k.span(),
                    with: Vec::new(),
                    found: format!("unknown key \"{name}\" in {}", spec.name),
                    right: Some(right),
                });
            }
        }
    }
    for key in spec.keys.iter().filter(|k| k.required && !seen.contains(&k.name) && !meant.contains(&k.name)) {
        let found = format!("{} lacks the key \"{}\"", spec.name, key.name);
        let right = key.if_absent.map_or_else(|| format!("{} = {}", key.name, example(&key.kind)), str::to_string);
        out.push(Fault { at: at.clone(), with: Vec::new(), found, right: Some(right) });
    }
}

/// The required table of this specification that has a key of this name: `name` of an interface belongs in `match`.
fn required_table_with(name: &str, spec: &'static Spec) -> Option<&'static str> {
    let has = |kind: &ValueKind| matches!(kind, ValueKind::Table(inner) if inner.keys.iter().any(|k| k.name == name));
    spec.keys.iter().find(|k| k.required && has(&k.kind)).map(|k| k.name)
}

/// What was meant by a word that is a key elsewhere: the number of queues of an interface is `channels`.
fn synonym(name: &str, spec: &'static Spec) -> Option<String> {
    (name == "queues" && spec.name == crate::spec::INTERFACE.name)
        .then(|| "\"channels\" for the number of queues of this interface".to_string())
}

/// Where a key of this name belongs.
fn elsewhere(name: &str) -> Option<String> {
    use crate::spec::{COALESCE, GROUP, HOST, INTERFACE, NAPI, RSS};
    let of = |s: &&Spec| {
        let key = s.keys.iter().find(|k| k.name == name)?;
        Some(brackets(&key.kind).map_or_else(|| format!("\"{name}\" in {}", s.name), |b| format!("a {b}")))
    };
    let all: Vec<String> = [&HOST, &INTERFACE, &GROUP, &COALESCE, &NAPI, &RSS].iter().filter_map(of).collect();
    (!all.is_empty()).then(|| all.join(", or "))
}

/// The heading, with brackets, of a table that is not inside another one: `[host]`, `[[interface]]`.
fn brackets(kind: &ValueKind) -> Option<&'static str> {
    match kind {
        ValueKind::Table(spec) if spec.name.starts_with('[') => Some(spec.name),
        ValueKind::List(of) | ValueKind::Map(of) => brackets(of),
        ValueKind::Any(all) => all.iter().find_map(brackets),
        _ => None,
    }
}

/// Whether the kind accepts this TOML type.
fn takes(kind: &ValueKind, v: &DeValue<'_>) -> bool {
    use DeValue as V;
    match kind {
        ValueKind::Bool => matches!(v, V::Boolean(_)),
        ValueKind::Int(..) => matches!(v, V::Integer(_)),
        ValueKind::Text | ValueKind::Word(_) | ValueKind::Goal | ValueKind::Key | ValueKind::Mac => {
            matches!(v, V::String(_))
        }
        ValueKind::Cpus => matches!(v, V::String(_) | V::Array(_) | V::Integer(_)),
        ValueKind::CountRange => matches!(v, V::String(_) | V::Integer(_)),
        ValueKind::Queues | ValueKind::RssTable => matches!(v, V::String(_) | V::Array(_)),
        ValueKind::Table(_) | ValueKind::Map(_) | ValueKind::ByNumber(_) => matches!(v, V::Table(_)),
        ValueKind::List(_) => matches!(v, V::Array(_)),
        ValueKind::Any(kinds) => kinds.iter().any(|k| takes(k, v)),
    }
}

/// The name of a sysctl of the network that was written without quotes, so that TOML takes its parts for tables.
fn sysctl_without_quotes(first: &str, v: &DeValue<'_>) -> Option<String> {
    let mut name = first.to_string();
    let mut v = v;
    while let DeValue::Table(t) = v {
        let (key, inner) = t.iter().next().filter(|_| t.len() == 1)?;
        name = format!("{name}.{}", key.get_ref());
        v = inner.get_ref();
    }
    (first == "net" && name != first).then_some(name)
}

fn value(v: &Value<'_>, kind: &'static ValueKind, name: &str, out: &mut Vec<Fault>) {
    let mut wrong = |found: String, right: String| {
        out.push(Fault { at: v.span(), with: Vec::new(), found, right: Some(right) });
    };
    if !takes(kind, v.get_ref()) {
        let found = match (kind, v.get_ref()) {
            // A number in quotes is a string.
            (ValueKind::Int(..), DeValue::String(text)) if text.parse::<i128>().is_err() => {
                format!("{name}: \"{text}\" is not a number")
            }
            (_, v) => format!("{name} is {}", type_name(v)),
        };
        let table = matches!(v.get_ref(), DeValue::Table(_) | DeValue::Array(_));
        if let Some(name) = sysctl_without_quotes(name, v.get_ref()) {
            return wrong(found, format!("quotes around a name with dots: \"{name}\""));
        }
        let right = brackets(kind).filter(|_| table).map_or_else(
            || expected_text(kind),
            |b| format!("{b}, with {}", if b.starts_with("[[") { "two brackets" } else { "one bracket" }),
        );
        return wrong(found, right);
    }
    let text = v.get_ref().as_str().unwrap_or_default();
    match kind {
        ValueKind::Bool | ValueKind::Text => {}
        ValueKind::Int(least, most) => {
            let n = int(v.get_ref());
            if n.is_none_or(|n| n < i128::from(*least) || n > i128::from(*most)) {
                let right = if least == most { least.to_string() } else { format!("{least} to {most}") };
                wrong(format!("{name} = {} is out of range", raw(v.get_ref())), right);
            }
        }
        ValueKind::Word(all) => {
            if !all.contains(&text) {
                let near = nearest(text, all.iter().copied());
                wrong(
                    format!("{name} = \"{text}\" is not known"),
                    near.map_or_else(|| expected_text(kind), |n| format!("\"{n}\"")),
                );
            }
        }
        ValueKind::Goal => {
            if let Err(unknown) = text.parse::<Goal>() {
                let hint = match (text, unknown.meant) {
                    ("auto", _) => " of a file: only --goal auto looks at the host and chooses one".into(),
                    (_, Some(goal)) => format!("; did you mean \"{goal}\"?"),
                    (_, None) => String::new(),
                };
                wrong(format!("\"{text}\" is not a goal{hint}"), expected_text(kind));
            }
        }
        ValueKind::Cpus | ValueKind::Queues | ValueKind::RssTable | ValueKind::Key => {
            if let Err(why) = parsed(v.get_ref(), kind) {
                wrong(format!("{name}: {why}"), expected_text(kind));
            }
        }
        ValueKind::CountRange => {
            let n = v.get_ref().as_integer().map_or(text, |n| n.as_str());
            if crate::host_group::CountRange::parse(n).is_none() {
                wrong(format!("{name}: \"{n}\" is not a count"), expected_text(kind));
            }
        }
        ValueKind::Mac => {
            if !is_mac(text) {
                wrong(format!("\"{text}\" is not a MAC address"), expected_text(kind));
            }
        }
        ValueKind::Table(spec) => {
            if let Some(t) = v.get_ref().as_table() {
                table(t, v.span(), spec, out);
            }
        }
        ValueKind::Map(kind) => {
            for (k, v) in v.get_ref().as_table().into_iter().flatten() {
                value(v, kind, k.get_ref(), out);
            }
        }
        ValueKind::ByNumber(kind) => {
            for (k, v) in v.get_ref().as_table().into_iter().flatten() {
                if let Err(why) = words::numbers(k.get_ref()) {
                    let right = Some("numbers such as \"0-3,8\"".to_string());
                    out.push(Fault { at: k.span(), with: Vec::new(), found: format!("{name}: {why}"), right });
                }
                value(v, kind, name, out);
            }
        }
        ValueKind::List(kind) => {
            for v in v.get_ref().as_array().into_iter().flatten() {
                value(v, kind, name, out);
            }
        }
        ValueKind::Any(kinds) => match kinds.iter().find(|k| takes(k, v.get_ref())) {
            // The key also takes values that are not words.
            Some(ValueKind::Word(all)) if !all.contains(&text) => {
                wrong(format!("{name} = \"{text}\" is not known"), expected_text(kind));
            }
            Some(kind) => value(v, kind, name, out),
            None => {}
        },
    }
}

/// Whether a value of a kind that is parsed can be parsed, and the reason if not.
fn parsed(v: &DeValue<'_>, kind: &ValueKind) -> Result<(), String> {
    match kind {
        ValueKind::Cpus => cpus_of(v).map(drop),
        ValueKind::Queues => numbers_of(v).map(drop),
        ValueKind::RssTable => rss_table_of(v).map(drop),
        ValueKind::Key => hex(v.as_str().unwrap_or_default()).map(drop),
        _ => Ok(()),
    }
}

/// The number, whatever its size in the file.
pub(crate) fn int(v: &DeValue<'_>) -> Option<i128> {
    let i = v.as_integer()?;
    i128::from_str_radix(i.as_str(), i.radix()).ok()
}

fn raw(v: &DeValue<'_>) -> String {
    match v {
        DeValue::Integer(i) => i.as_str().to_string(),
        other => type_name(other).to_string(),
    }
}

fn small(v: &DeValue<'_>) -> Result<u32, String> {
    let n = int(v).ok_or_else(|| format!("the list contains {}", type_name(v)))?;
    u32::try_from(n).map_err(|_| format!("{n} is out of range"))
}

pub(crate) fn cpus_of(v: &DeValue<'_>) -> Result<ringwise_model::CpuSet, String> {
    let one = |v: &DeValue<'_>| match small(v)? {
        n if n > ringwise_model::cpuset::MAX_CPU => Err(format!("{n} is not a CPU number")),
        n => Ok(ringwise_model::CpuId(n)),
    };
    match v {
        DeValue::Integer(_) => one(v).map(ringwise_model::CpuSet::one),
        DeValue::Array(all) if all.is_empty() => Err("the list is empty".into()),
        DeValue::Array(all) => all.iter().map(|v| one(v.get_ref())).collect(),
        v => words::cpus(v.as_str().unwrap_or_default()),
    }
}

pub(crate) fn numbers_of(v: &DeValue<'_>) -> Result<Vec<u32>, String> {
    match v {
        DeValue::Array(_) => {
            let set = cpus_of(v)?;
            words::numbers(&set.to_string())
        }
        v => words::numbers(v.as_str().unwrap_or_default()),
    }
}

pub(crate) fn rss_table_of(v: &DeValue<'_>) -> Result<ringwise_model::Table, String> {
    match v {
        DeValue::Array(all) if all.is_empty() => Err("the table is empty".into()),
        DeValue::Array(all) => {
            let entries = all.iter().map(|v| small(v.get_ref())).collect::<Result<Vec<u32>, String>>()?;
            Ok(ringwise_model::Table::Explicit(entries))
        }
        v => words::table(v.as_str().unwrap_or_default()),
    }
}

/// Bytes in hex with or without colons. Returns the form of the model: without colons, in lower case.
pub(crate) fn hex(text: &str) -> Result<String, String> {
    let plain: String = text.chars().filter(|c| *c != ':').collect::<String>().to_lowercase();
    match () {
        () if plain.is_empty() => Err("the key is empty".into()),
        () if !plain.chars().all(|c| c.is_ascii_hexdigit()) => {
            Err("the key contains characters that are not hex digits".into())
        }
        () if plain.len() % 2 == 1 => Err(format!("the key has {} hex digits, an odd number", plain.len())),
        () => Ok(plain),
    }
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6 && parts.iter().all(|p| p.len() == 2 && p.chars().all(|c| c.is_ascii_hexdigit()))
}

fn type_name(v: &DeValue<'_>) -> &'static str {
    match v {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Describes the values that a kind accepts, for the "expected" part of a message.
pub fn expected_text(kind: &ValueKind) -> String {
    let quoted = |all: &[&str]| match all {
        [most @ .., last] if !most.is_empty() => format!("\"{}\" or \"{last}\"", most.join("\", \"")),
        all => all.iter().map(|w| format!("\"{w}\"")).collect(),
    };
    match kind {
        ValueKind::Bool => "true or false".into(),
        ValueKind::Int(least, most) if least == most => least.to_string(),
        ValueKind::Int(least, most) => format!("a number from {least} to {most}"),
        ValueKind::Text => "a string".into(),
        ValueKind::Word(all) => quoted(all),
        ValueKind::Goal => quoted(&Goal::ALL.iter().map(|g| g.name()).collect::<Vec<_>>()),
        ValueKind::Cpus => "a CPU list such as \"0-3,8\", [0, 1] or 2".into(),
        ValueKind::Queues => "a list of queues such as \"0-3\" or [0, 1]".into(),
        ValueKind::RssTable => words::TABLE_RIGHT.into(),
        ValueKind::Key => "hex bytes such as \"6d:5a:56:da\"".into(),
        ValueKind::Mac => "an address such as 02:00:00:00:00:01".into(),
        ValueKind::CountRange => "a number, \">= 16\", \"<= 8\" or \"8-16\"".into(),
        ValueKind::Table(spec) => {
            let some: Vec<&str> = spec.keys.iter().take(3).map(|k| k.name).collect();
            format!("a table with {}", some.join(", "))
        }
        ValueKind::Map(of) => format!("a table of names, each with {}", expected_text(of)),
        ValueKind::ByNumber(of) => format!("a table of numbers (\"0-3\"), each with {}", expected_text(of)),
        ValueKind::List(of) => format!("a list, each entry {}", expected_text(of)),
        ValueKind::Any(all) => all.iter().map(expected_text).collect::<Vec<_>>().join(", or "),
    }
}

/// An example of a valid value.
fn example(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Int(least, _) => least.to_string(),
        ValueKind::Table(_) => "{ name = \"eth0\" }".into(),
        _ => "\"...\"".into(),
    }
}
