//! Journals in a format of a later version. Of such a file only what every format promises is read: the
//! first line is a JSON object with `format`, `tool`, `machine_id`, `boot_id` and `undo`.

use std::path::Path;

use ringwise_model::Host;
use serde_json::Value;

use crate::journal::FORMAT;
use crate::{Newer, Refusal};

/// The first line as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub tool: String,
    pub format: u64,
    pub machine_id: Option<String>,
    pub boot_id: Option<String>,
    pub unix_time: u64,
    pub undo: Vec<String>,
}

impl Head {
    /// None: it is in our format, or no header at all.
    pub fn read(first: &[u8]) -> Option<Self> {
        let v: Value = serde_json::from_slice(first).ok()?;
        let format = v["format"].as_u64().filter(|f| *f != u64::from(FORMAT))?;
        let text = |key: &str| v[key].as_str().map(str::to_string);
        let undo = v["undo"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_string);
        Some(Self {
            tool: text("tool").unwrap_or_else(|| "of unknown version".into()),
            format,
            machine_id: text("machine_id"),
            boot_id: text("boot_id"),
            unix_time: v["unix_time"].as_u64().unwrap_or(0),
            undo: undo.collect(),
        })
    }

    pub fn why(&self) -> String {
        format!("it was written by ringwise {} in another format ({})", self.tool, self.format)
    }

    pub fn elsewhere(&self, host: &Host) -> Option<&'static str> {
        elsewhere(&self.machine_id, &self.boot_id, host)
    }

    pub fn report(&self, id: u64, path: &Path) -> Newer {
        Newer { transaction: id, why: self.why(), path: path.to_path_buf(), undo: self.undo.clone() }
    }
}

/// Why a journal with these ids says nothing about the host as it is now.
pub(crate) fn elsewhere(machine: &Option<String>, boot: &Option<String>, host: &Host) -> Option<&'static str> {
    let differs =
        |a: &Option<String>, b: &ringwise_model::Fact<String>| matches!((a, b.known()), (Some(a), Some(b)) if a != b);
    if differs(machine, &host.machine_id) {
        return Some("it is of another machine");
    }
    differs(boot, &host.boot_id).then_some("it is of an earlier boot; its settings went with that")
}

impl From<Newer> for Refusal {
    fn from(n: Newer) -> Self {
        Self::Newer { transaction: n.transaction, why: n.why, path: n.path, undo: n.undo }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_every_format_promises_is_read() {
        let h = Head::read(
            br#"{"record":"begin","format":2,"tool":"9.0","boot_id":"b","new":{"a":1},"undo":["echo 1 > /x",{"later":1}]}"#,
        )
        .unwrap();
        assert_eq!((h.tool.as_str(), h.format, h.boot_id.as_deref()), ("9.0", 2, Some("b")));
        assert_eq!(h.undo, ["echo 1 > /x"]);
        assert_eq!(h.why(), "it was written by ringwise 9.0 in another format (2)");
        for ours in [&br#"{"record":"begin","format":1}"#[..], b"{\"record\":", b"", b"[]", b"{\"format\":\"2\"}"] {
            assert_eq!(Head::read(ours), None);
        }
        assert_eq!(Head::read(b"{\"format\":2}").unwrap().tool, "of unknown version");
    }
}
