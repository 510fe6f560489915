//! Redacts what ringwise wrote itself: journals, state, the reports of `support` about them, and the settings in effect as a
//! capture contains them. JSON is redacted key by key, everything else as prose.

use ringwise_model::Title;
use serde_json::{Map, Value};

use super::command::{self, Grammar, Left};
use super::names::Pseudonyms;
use super::strings::{Strings, TextKind};
use super::text;

/// Replaces a text that a person typed.
const LEFT_OUT: &str = "(left out)";
/// Words of `who` and `by` that identify no person.
const NOBODY: [&str; 9] = ["", "root", "sudo", "uid", "timer", "guard", "health", "command", "somebody"];
/// Values of `by` for trials that end automatically, whose reasons no person has typed.
const ITSELF: [&str; 2] = ["timer", "guard"];

/// Group and policy names of ringwise itself; a person chose all others.
const OWN_NAMES: [&str; 3] = ["latency", "bulk", "cpu"];

/// What is needed to redact the texts.
pub(super) struct DocumentRedaction<'a> {
    pub grammar: &'a Grammar,
    pub interfaces: &'a [String],
    /// Keeps what a plan needs: the settings in effect.
    pub intent: bool,
}

/// The documents of a file: one in all, or one per line.
fn documents(bytes: &[u8]) -> (bool, Vec<Option<Value>>) {
    if let Ok(whole) = serde_json::from_slice(bytes) {
        return (false, vec![Some(whole)]);
    }
    let lines = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    (true, lines.map(|l| serde_json::from_slice(l).ok()).collect())
}

/// Collects names of people and typed texts, which may occur anywhere else as well.
pub(super) fn collect(bytes: &[u8], names: &mut Pseudonyms) {
    for document in documents(bytes).1.into_iter().flatten() {
        collect_from(&document, names);
    }
}

fn collect_from(value: &Value, names: &mut Pseudonyms) {
    match value {
        Value::Array(all) => all.iter().for_each(|v| collect_from(v, names)),
        Value::Object(object) => {
            for (key, value) in object {
                match (key.as_str(), value) {
                    ("who" | "by", Value::String(t)) => drop(who(t, names)),
                    ("reason" | "why", Value::String(t)) if is_typed(object, key) && !t.is_empty() => {
                        names.string("reason", t);
                    }
                    _ => {}
                }
                collect_from(value, names);
            }
        }
        _ => {}
    }
}

/// Whether the key is the `--reason` of a transaction, or why a person or a health command has undone one.
fn is_typed(object: &Map<String, Value>, key: &str) -> bool {
    match key {
        "reason" => object.contains_key("command") || object.contains_key("who"),
        _ => object.get("by").and_then(Value::as_str).is_some_and(|by| !ITSELF.contains(&by)),
    }
}

/// Whether the reason of a step names something that a person typed: a file, a group, a policy.
fn is_reason_with_typed_text(object: &Map<String, Value>) -> bool {
    const TYPED: [&str; 5] = ["by", "group", "policy", "when", "reason"];
    let facts = object.get("facts").filter(|_| object.contains_key("code"));
    facts.is_some_and(|facts| TYPED.iter().any(|key| facts.get(key).is_some_and(|v| !v.is_null())))
}

/// A file of ringwise with everything private replaced. Lines that are not valid JSON are removed: they are torn.
pub(super) fn clean(bytes: &[u8], p: &DocumentRedaction, names: &mut Pseudonyms, strings: &Strings) -> Vec<u8> {
    let (by_line, documents) = documents(bytes);
    let trial = documents.iter().flatten().any(on_trial);
    let mut out = Vec::new();
    for document in documents {
        let Some(mut document) = document else {
            names.count("left out");
            continue;
        };
        let mut walk = DocumentWalker { p, names: &mut *names, strings, trial, chosen: false };
        walk.value(&mut document, "", &Map::new());
        let text = if by_line { serde_json::to_vec(&document) } else { serde_json::to_vec_pretty(&document) };
        // Serializing a value cannot fail.
        out.extend(text.unwrap_or_default());
        out.push(b'\n');
    }
    out
}

/// Whether a health command may have written a part of it.
fn on_trial(value: &Value) -> bool {
    match value {
        Value::Array(all) => all.iter().any(on_trial),
        Value::Object(o) => {
            let record = o.get("record").and_then(Value::as_str);
            matches!(record, Some("trial" | "trial_over"))
                || o.get("trial").is_some_and(|t| !t.is_null())
                || o.values().any(on_trial)
        }
        _ => false,
    }
}

fn who(text: &str, names: &mut Pseudonyms) -> String {
    let mut out = String::new();
    for part in text.split_inclusive([' ', '(', ')', ':', ',']) {
        let name = part.trim_end_matches([' ', '(', ')', ':', ',']);
        let number = name.bytes().all(|b| b.is_ascii_digit());
        if NOBODY.contains(&name) || number {
            out.push_str(part);
        } else {
            out.push_str(&names.string("user name", name));
            out.push_str(&part[name.len()..]);
        }
    }
    out
}

struct DocumentWalker<'a> {
    p: &'a DocumentRedaction<'a>,
    names: &'a mut Pseudonyms,
    strings: &'a Strings,
    /// Reasons may contain text of a health command.
    trial: bool,
    /// Inside requested groups and policies, whose names a person chose.
    chosen: bool,
}

impl DocumentWalker<'_> {
    fn value(&mut self, value: &mut Value, key: &str, object: &Map<String, Value>) {
        match value {
            Value::String(text) => *text = self.text(text, key, object),
            Value::Array(all) => {
                let chosen = self.chosen;
                self.chosen = chosen || matches!(key, "groups" | "policies");
                all.iter_mut().for_each(|v| self.value(v, key, object));
                self.chosen = chosen;
            }
            Value::Object(inner) => {
                if matches!(key, "intent" | "flags") {
                    inner.remove("config");
                }
                // A file and a line, or an argument.
                if key == "by" && inner.contains_key("kind") {
                    *inner = [("kind".to_string(), "unknown".into())].into_iter().collect();
                    return;
                }
                if key == "params_by" {
                    inner.values_mut().for_each(|by| *by = serde_json::json!({ "kind": "unknown" }));
                    return;
                }
                if is_reason_with_typed_text(inner) {
                    inner.remove("facts");
                    inner.insert("text".into(), self.left_out("text").into());
                    return;
                }
                let was = inner.clone();
                let mut new = self.title(inner);
                for (key, value) in inner.iter_mut() {
                    // It is the checksum of the original line, and could confirm a guess at a name.
                    if key == "crc32" {
                        continue;
                    }
                    self.value(value, key, &was);
                    new.insert(self.scrub(key, TextKind::Tables), value.take());
                }
                *inner = new;
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, key: &str, object: &Map<String, Value>) -> String {
        match key {
            "command" => {
                let left = if self.p.intent { Left::Intent } else { Left::Names };
                command::line(text, self.p.grammar, left, self.p.interfaces, self.names)
            }
            "name" | "policy" if self.chosen && !OWN_NAMES.iter().any(|own| text.eq_ignore_ascii_case(own)) => {
                self.names.string("name", text)
            }
            "program" | "unit" if self.chosen => self.names.string("program", text),
            "when" if self.chosen => self.left_out(text),
            // The flags are in `requested`.
            "argv" => self.left_out(text),
            // A file and a line.
            "said" => String::new(),
            "who" | "by" => who(text, self.names),
            "reason" | "why" if is_typed(object, key) => self.left_out(text),
            "why" if object.get("record").and_then(Value::as_str) == Some("put_back") && self.trial => {
                self.left_out(text)
            }
            "words" if object.get("errno").is_none_or(Value::is_null) && self.trial => self.left_out(text),
            "raw" => self.digits(text),
            "path" | "config" | "file" if text.starts_with('/') && text.matches('/').count() == 1 => {
                format!("/{}", self.names.string("path", &text[1..]))
            }
            _ => self.scrub(text, if self.p.intent { TextKind::Tables } else { TextKind::Prose }),
        }
    }

    fn scrub(&mut self, text: &str, care: TextKind) -> String {
        String::from_utf8_lossy(&text::text(text.as_bytes(), self.names, self.strings, care)).into_owned()
    }

    fn left_out(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        self.names.count("reason");
        LEFT_OUT.into()
    }

    /// Removes the title and the purpose of a transaction from `object`, and returns both with private parts replaced.
    fn title(&mut self, object: &mut Map<String, Value>) -> Map<String, Value> {
        let taken = ["title", "purpose"].into_iter().filter_map(|k| Some((k.to_string(), object.remove(k)?)));
        let taken: Map<String, Value> = taken.collect();
        let Ok(title) = serde_json::from_value::<Title>(Value::Object(taken)) else { return Map::new() };
        let clean = title.without_names(self.p.interfaces);
        if clean != title {
            self.names.count("title");
        }
        match serde_json::to_value(&clean) {
            Ok(Value::Object(mut parts)) => {
                parts.values_mut().for_each(|v| self.scrub_all(v));
                parts
            }
            _ => Map::new(),
        }
    }

    /// Interface names stay but may contain addresses: `enx` and a MAC address.
    fn scrub_all(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.scrub(text, TextKind::Tables),
            Value::Array(all) => all.iter_mut().for_each(|v| self.scrub_all(v)),
            Value::Object(inner) => inner.values_mut().for_each(|v| self.scrub_all(v)),
            _ => {}
        }
    }

    /// The bytes of a flow rule without a textual form: they contain addresses at unknown positions.
    fn digits(&mut self, text: &str) -> String {
        self.names.count("left out");
        "0".repeat(text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{Flag, FlagValue};

    fn go(text: &str, intent: bool) -> String {
        let flag = |name: &str, value| Flag { name: name.into(), value };
        let grammar = Grammar {
            program: "ringwise".into(),
            commands: vec!["apply".into()],
            flags: vec![flag("--goal", FlagValue::Plain), flag("--health", FlagValue::Private)],
        };
        let interfaces = ["eth0".to_string()];
        let mut names = Pseudonyms::default();
        collect(text.as_bytes(), &mut names);
        let strings = names.all();
        let p = DocumentRedaction { grammar: &grammar, interfaces: &interfaces, intent };
        String::from_utf8(clean(text.as_bytes(), &p, &mut names, &strings)).unwrap()
    }

    #[test]
    fn journals_keep_what_was_done_and_not_what_was_typed() {
        let journal = concat!(
            r#"{"record":"begin","command":"ringwise apply --goal forward --health curl","reason":"for ACME bank","#,
            r#""who":"root (sudo: anna)","title":"goal forward","path":"/srv","steps":[{"reason":"one CPU a queue"}],"#,
            r#""undo":["ip addr add 10.1.2.3/24 dev eth0"],"crc32":"0a1b2c3d"}"#,
            "\n",
            r#"{"record":"trial_over","by":"health command","why":"it said: hunter2"}"#,
            "\n",
            r#"{"record":"put_back","why":"it said: hunter2"}"#,
            "\n",
            r#"{"record":"end","outcome":{"failed":{"errno":null,"words":"it said: hunter2"},"note":"anna: it said: hunter2"}}"#,
            "\n{torn anna\n",
        );
        let got = go(journal, false);
        for gone in ["curl", "ACME", "anna", "hunter2", "/srv", "10.1.2.3", "crc32", "torn"] {
            assert!(!got.contains(gone), "{gone} in {got}");
        }
        for kept in [
            "apply --goal --health",
            "root (sudo: user-name-1)",
            "goal forward",
            "one CPU a queue",
            "198.18.0.1/24",
            "health command",
        ] {
            assert!(got.contains(kept), "{kept} in {got}");
        }
        assert_eq!(got.lines().count(), 4);
    }

    #[test]
    fn reasons_of_the_kernel_and_of_the_guard_stay() {
        let text = r#"{"by":"timer","why":"it was not confirmed in time","failed":{"errno":22,"words":"EINVAL: too many"},"x":{"what":"a","why":"needs root"}}"#;
        let got = go(text, false);
        for kept in ["not confirmed in time", "too many", "needs root"] {
            assert!(got.contains(kept), "{kept} in {got}");
        }
    }

    #[test]
    fn what_a_plan_is_made_of_stays() {
        let text = concat!(
            r#"{"applied":[{"command":"ringwise apply eth0 --goal rpc --health x","title":"plan /home/anna/x.json","#,
            r#""purpose":{"code":"plan","facts":{"file":"/home/anna/x.json"}}}]}"#
        );
        let got = go(text, true);
        assert!(
            got.contains("ringwise apply eth0 --goal=rpc --health=") && got.contains(r#""title": "plan""#),
            "{got}"
        );
    }
}
