//! The JSON files of a capture: `manifest.json` and `kernel.json`. Unknown fields are ignored.

use std::time::Duration;

use ringwise_model::JsonFault;
use serde::{Deserialize, Serialize};

use super::recording::{
    Info, RecordedAnswer, RecordedRefusal, RecordedReply, Recording, Redacted, RequestKey, from_hex, to_hex,
};

pub(super) const FORMAT: &str = "ringwise.capture";
pub(super) const VERSION: u32 = 1;

#[derive(Deserialize)]
struct Head {
    format: String,
    #[serde(default)]
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    format: String,
    version: u32,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    kernel: Option<String>,
    #[serde(default)]
    unix_time: u64,
    #[serde(default)]
    since_boot_ms: u64,
    #[serde(default)]
    euid: Option<u32>,
    #[serde(default)]
    redacted: Vec<Redacted>,
    #[serde(default)]
    attempted: Vec<Attempt>,
}

#[derive(Serialize, Deserialize)]
struct Attempt {
    /// `file`, `dir`, `link`.
    kind: String,
    path: String,
    /// Its members are flattened into this object. All empty: the host answered.
    #[serde(flatten)]
    refusal: RecordedRefusal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Size of a file that was read: reveals a truncated capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct KernelEntry {
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    dev: String,
    #[serde(default)]
    cmd: u32,
    /// Hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    payload: String,
    /// Its members are flattened into this object. All empty: the host answered.
    #[serde(flatten)]
    refusal: RecordedRefusal,
    /// One string of hexadecimal digits per message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Vec<String>>,
}

/// Empty where the host answered.
fn refusal<T>(answer: &RecordedAnswer<T>) -> RecordedRefusal {
    answer.as_ref().err().cloned().unwrap_or_default()
}

impl Attempt {
    fn new<T>(kind: &str, path: &str, answer: &RecordedAnswer<T>) -> Self {
        let mut refusal = refusal(answer);
        if answer.is_err() && refusal.errno.is_none() && refusal.words.is_none() {
            // At least one is always set, because that distinguishes a refusal from a success.
            refusal.words = Some("no answer".into());
        }
        Self { kind: kind.into(), path: path.into(), refusal, names: None, target: None, size: None }
    }
}

pub(super) fn manifest(r: &Recording) -> String {
    let files = r.files.iter().map(|(path, answer)| Attempt {
        size: answer.as_ref().ok().map(|b| b.len() as u64),
        ..Attempt::new("file", path, answer)
    });
    let dirs = r
        .dirs
        .iter()
        .map(|(path, answer)| Attempt { names: answer.as_ref().ok().cloned(), ..Attempt::new("dir", path, answer) });
    let links = r
        .links
        .iter()
        .map(|(path, answer)| Attempt { target: answer.as_ref().ok().cloned(), ..Attempt::new("link", path, answer) });
    let manifest = Manifest {
        format: FORMAT.into(),
        version: VERSION,
        tool: r.info.tool.clone(),
        note: r.info.note.clone(),
        kernel: r.info.kernel.clone(),
        unix_time: r.info.unix_time,
        since_boot_ms: r.info.since_boot.as_millis() as u64,
        euid: r.info.euid,
        redacted: r.info.redacted.clone(),
        attempted: files.chain(dirs).chain(links).collect(),
    };
    text(&manifest)
}

pub(super) fn kernel(r: &Recording) -> String {
    let entries: Vec<_> = r
        .kernel
        .iter()
        .map(|(asked, reply)| KernelEntry {
            kind: asked.kind.clone(),
            name: reply.name.clone(),
            dev: asked.dev.clone(),
            cmd: asked.cmd,
            payload: to_hex(&asked.payload),
            refusal: refusal(&reply.answer),
            reply: reply.answer.as_ref().ok().map(|m| m.iter().map(|b| to_hex(b)).collect()),
        })
        .collect();
    text(&entries)
}

fn text(value: &impl Serialize) -> String {
    // Only strings, numbers and lists, whose serialization cannot fail.
    let mut text = serde_json::to_string_pretty(value).expect("plain values are always JSON");
    text.push('\n');
    text
}

/// The content of a manifest, before the files are read.
pub(super) struct Listed {
    pub recording: Recording,
    /// Files that were read, with their sizes: the archive must contain them.
    pub files: Vec<(String, Option<u64>)>,
}

/// `None`: JSON, but not the manifest of a capture (other programs have a `manifest.json` too).
pub(super) fn parse_manifest(bytes: &[u8]) -> Result<Option<Listed>, String> {
    // Parses only the head first: it shows whether this is a capture's manifest.
    let head: Head = match serde_json::from_slice(bytes) {
        Ok(head) => head,
        Err(e) if e.is_data() => return Ok(None),
        Err(e) => return Err(format!("manifest.json: {}", JsonFault::from(e))),
    };
    if head.format != FORMAT {
        return Ok(None);
    }
    if head.version != VERSION {
        return Err(format!("the capture has version {}, expected {VERSION}", head.version));
    }
    let m: Manifest = serde_json::from_slice(bytes).map_err(|e| format!("manifest.json: {}", JsonFault::from(e)))?;
    let mut recording = Recording {
        info: Info {
            tool: m.tool,
            unix_time: m.unix_time,
            since_boot: Duration::from_millis(m.since_boot_ms),
            euid: m.euid,
            kernel: m.kernel,
            note: m.note,
            redacted: m.redacted,
        },
        ..Recording::default()
    };
    let mut files = Vec::new();
    for a in m.attempted {
        let refusal = a.refusal;
        let refused = refusal.errno.is_some() || refusal.words.is_some();
        match (a.kind.as_str(), a.names, a.target) {
            ("file", ..) if refused => drop(recording.files.insert(a.path, Err(refusal))),
            ("file", ..) => files.push((a.path, a.size)),
            ("dir", Some(names), _) => drop(recording.dirs.insert(a.path, Ok(names))),
            ("dir", None, _) => drop(recording.dirs.insert(a.path, Err(refusal))),
            ("link", _, Some(target)) => drop(recording.links.insert(a.path, Ok(target))),
            ("link", _, None) => drop(recording.links.insert(a.path, Err(refusal))),
            _ => {} // a kind of a later version
        }
    }
    Ok(Some(Listed { recording, files }))
}

/// Adds the requests of one kernel file to `into`.
pub(super) fn parse_kernel(
    bytes: &[u8],
    into: &mut std::collections::BTreeMap<RequestKey, RecordedReply>,
) -> Result<(), String> {
    let entries: Vec<KernelEntry> = serde_json::from_slice(bytes).map_err(|e| JsonFault::from(e).to_string())?;
    for e in entries {
        let broken = || format!("{} {}: not hexadecimal digits", e.name, e.dev);
        let payload = from_hex(&e.payload).ok_or_else(broken)?;
        let answer = match &e.reply {
            Some(messages) => {
                Ok(messages.iter().map(|m| from_hex(m)).collect::<Option<Vec<_>>>().ok_or_else(broken)?)
            }
            None => Err(e.refusal.clone()),
        };
        into.insert(
            RequestKey { kind: e.kind, dev: e.dev, cmd: e.cmd, payload },
            RecordedReply { name: e.name, answer },
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_among_the_members_of_its_entry() {
        let refusal = RecordedRefusal { errno: Some(2), words: Some("w".into()), late: true };
        let attempt = |answer: RecordedAnswer<()>| serde_json::to_string(&Attempt::new("dir", "/a", &answer)).unwrap();
        assert_eq!(attempt(Err(refusal.clone())), r#"{"kind":"dir","path":"/a","errno":2,"words":"w","late":true}"#);
        assert_eq!(attempt(Err(RecordedRefusal::default())), r#"{"kind":"dir","path":"/a","words":"no answer"}"#);
        assert_eq!(attempt(Ok(())), r#"{"kind":"dir","path":"/a"}"#);
        let mut r = Recording::default();
        let asked = RequestKey { kind: "netdev".into(), dev: "eth0".into(), cmd: 1, payload: vec![255] };
        r.kernel.insert(asked.clone(), RecordedReply { name: "n".into(), answer: Err(refusal) });
        let written = kernel(&r);
        let line: String = written.split_ascii_whitespace().collect();
        assert_eq!(
            line,
            r#"[{"kind":"netdev","name":"n","dev":"eth0","cmd":1,"payload":"ff","errno":2,"words":"w","late":true}]"#
        );
        let mut back = std::collections::BTreeMap::new();
        parse_kernel(written.as_bytes(), &mut back).unwrap();
        assert_eq!(back.get(&asked), r.kernel.get(&asked));
    }
}
