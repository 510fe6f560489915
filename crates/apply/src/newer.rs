//! Journals in the format of a later version. Only what every format guarantees is read: the first line is a JSON object with
//! `format`, `tool`, `machine_id`, `boot_id` and `undo`.
//!
//! Also journals whose first line is damaged, or whose end is damaged although later transactions followed. Their undo commands
//! are shown to the user to judge; ringwise does not run them.

use std::path::Path;

use ringwise_model::Host;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{BEFORE_SUMS, FORMAT, Header};
use crate::{Newer, Refusal};

/// The fields of the first line that are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub tool: String,
    pub format: u64,
    pub machine_id: Option<String>,
    pub boot_id: Option<String>,
    pub unix_time: u64,
    pub undo: Vec<String>,
    pub damage: Option<Damage>,
}

/// Which part of a journal is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Damage {
    /// The checksum of the first line is wrong: nothing in it can be relied on, not even the machine or the boot.
    Begin,
    /// The transaction had an end, because a later one has begun, but no line records it.
    End,
}

#[derive(Deserialize)]
struct FormatOnly {
    #[serde(default)]
    format: Value,
}

impl Head {
    /// `None`: the line is in this version's format, or is not a header.
    pub(crate) fn read(first: &[u8]) -> Option<Self> {
        let foreign = |v: &Value| v.as_u64().filter(|f| ![FORMAT, BEFORE_SUMS].map(u64::from).contains(f));
        // The header of a large host has megabytes, and is nearly always in this version's format: its values are parsed only if
        // they are needed.
        if let Ok(h) = serde_json::from_slice::<FormatOnly>(first) {
            foreign(&h.format)?;
        }
        let v: Value = serde_json::from_slice(first).ok()?;
        Some(Self::of(&v, foreign(&v["format"])?))
    }

    /// What can be read of a damaged first line.
    pub(crate) fn damaged(first: &[u8]) -> Self {
        let v: Value = serde_json::from_slice(first).unwrap_or_default();
        let mut head = Self { damage: Some(Damage::Begin), ..Self::of(&v, 0) };
        if head.undo.is_empty() {
            head.undo = commands(&String::from_utf8_lossy(first));
        }
        head
    }

    fn of(v: &Value, format: u64) -> Self {
        let text = |key: &str| v[key].as_str().map(str::to_string);
        let undo = v["undo"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_string);
        Self {
            tool: text("tool").unwrap_or_else(|| "of unknown version".into()),
            format,
            machine_id: text("machine_id"),
            boot_id: text("boot_id"),
            unix_time: v["unix_time"].as_u64().unwrap_or(0),
            undo: undo.collect(),
            damage: None,
        }
    }

    /// A journal whose header is intact and whose end is lost.
    pub(crate) fn without_end(h: &Header) -> Self {
        Self {
            tool: h.tool.clone(),
            format: h.format.into(),
            machine_id: h.machine_id.clone(),
            boot_id: h.boot_id.clone(),
            unix_time: h.unix_time,
            undo: h.undo.clone(),
            damage: Some(Damage::End),
        }
    }

    pub(crate) fn why(&self) -> String {
        match self.damage {
            Some(Damage::Begin) => return "the first line of its journal is damaged".into(),
            Some(Damage::End) => return "the end of its journal is lost".into(),
            None => {}
        }
        format!("it was written by ringwise {} in another format ({})", self.tool, self.format)
    }

    /// A journal with a damaged first line counts as of this boot: its changes may still be in effect.
    pub(crate) fn elsewhere(&self, host: &Host) -> Option<&'static str> {
        if self.damage == Some(Damage::Begin) {
            return None;
        }
        elsewhere(&self.machine_id, &self.boot_id, host)
    }

    pub(crate) fn report(&self, id: u64, path: &Path) -> Newer {
        let (path, undo) = (path.to_path_buf(), self.undo.clone());
        Newer { transaction: id, why: self.why(), path, undo, damaged: self.damage.is_some() }
    }
}

/// The strings of the list `undo` in a line that is not valid JSON any more, up to the first invalid one.
fn commands(line: &str) -> Vec<String> {
    let mut rest = line.split_once(r#""undo":["#).map_or("", |(_, r)| r);
    let mut all = Vec::new();
    loop {
        let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let Some(Ok(command)) = strings.next() else { return all };
        rest = rest[strings.byte_offset()..].trim_start_matches(',');
        all.push(command);
    }
}

/// Why a journal with these ids does not describe the present host.
pub(crate) fn elsewhere(machine: &Option<String>, boot: &Option<String>, host: &Host) -> Option<&'static str> {
    let differs =
        |a: &Option<String>, b: &ringwise_model::Fact<String>| matches!((a, b.known()), (Some(a), Some(b)) if a != b);
    if differs(machine, &host.machine_id) {
        return Some("it was made on another machine");
    }
    differs(boot, &host.boot_id).then_some("it was made before a reboot, which reset its settings")
}

impl From<Newer> for Refusal {
    fn from(n: Newer) -> Self {
        Self::Newer { transaction: n.transaction, why: n.why, path: n.path, undo: n.undo, damaged: n.damaged }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_every_format_promises_is_read() {
        let h = Head::read(
            br#"{"record":"begin","format":9,"tool":"9.0","boot_id":"b","new":{"a":1},"undo":["echo 1 > /x",{"later":1}]}"#,
        )
        .unwrap();
        assert_eq!((h.tool.as_str(), h.format, h.boot_id.as_deref()), ("9.0", 9, Some("b")));
        assert_eq!(h.undo, ["echo 1 > /x"]);
        assert_eq!(h.why(), "it was written by ringwise 9.0 in another format (9)");
        for ours in [&br#"{"record":"begin","format":1}"#[..], b"{\"record\":", b"", b"[]", b"{\"format\":\"9\"}"] {
            assert_eq!(Head::read(ours), None);
        }
        assert_eq!(Head::read(b"{\"format\":9}").unwrap().tool, "of unknown version");
    }

    #[test]
    fn of_a_damaged_line_the_commands_are_read_that_can_be() {
        let whole = br#"{"record":"begin","tool":"0.2","undo":["echo 1 > /x","ethtool -L eth0 \"a\""],"z":1}"#;
        assert_eq!(Head::damaged(whole).undo, ["echo 1 > /x", r#"ethtool -L eth0 "a""#]);
        let cut = br#"{"record":"begin","tool":"0.2,"undo":["echo 1 > /x","ethtool -L eth0 \"a\"","ech"#;
        assert_eq!(Head::damaged(cut).undo, ["echo 1 > /x", r#"ethtool -L eth0 "a""#]);
        assert_eq!(Head::damaged(b"\xff\x00").undo, [""; 0]);
        assert_eq!(Head::damaged(b"").why(), "the first line of its journal is damaged");
    }
}
