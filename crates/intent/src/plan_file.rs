//! Plan files: what `plan --out FILE` writes, and `apply FILE` does exactly or refuses.

use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringwise_model::fnv::Fnv;
use ringwise_model::words::visible;
use ringwise_model::{Fact, Host, JsonFault};
use ringwise_plan::Plan;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, PlanMismatch, Result};

/// When and by what the file was written. Files of 0.1.0 and of `plan -o json` do not have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    tool: String,
    /// Seconds since 1970.
    made_at: u64,
    /// None: never.
    expires_at: Option<u64>,
    /// Digest of everything else in the file. It detects an edit, but does not protect against a forged file.
    digest: String,
}

/// A plan as read from a file.
#[derive(Debug)]
pub struct PlanFile {
    path: PathBuf,
    /// The plan as it was written. [`PlanFile::check`] decides whether it may be applied.
    pub plan: Plan,
    stamp: Option<Stamp>,
    edited: bool,
}

/// Writes a plan that can be applied from `unix_time` for `expiry`; `None`: without a limit.
///
/// Errors: the file cannot be written.
pub fn write(file: &Path, plan: &Plan, expiry: Option<Duration>, unix_time: u64) -> Result<()> {
    let broken = Error::Json;
    let mut doc = serde_json::to_value(plan).map_err(broken)?;
    let mut stamp = Stamp {
        tool: env!("CARGO_PKG_VERSION").into(),
        made_at: unix_time,
        expires_at: expiry.map(|d| unix_time.saturating_add(d.as_secs())),
        digest: String::new(),
    };
    doc["file"] = serde_json::to_value(&stamp).map_err(broken)?;
    stamp.digest = digest(&doc);
    doc["file"] = serde_json::to_value(&stamp).map_err(broken)?;
    let mut text = serde_json::to_string_pretty(&doc).map_err(broken)?;
    text.push('\n');
    Ok(ringwise_sys::store::write_atomic(file, text.as_bytes())?)
}

/// Reads a plan file. It is not checked against a host yet.
///
/// Errors: the file cannot be read, is not a plan, or is a plan of a later version.
pub fn load(file: &Path) -> Result<PlanFile> {
    let text = std::fs::read_to_string(file).map_err(|error| Error::PlanUnreadable { path: file.into(), error })?;
    parse(file, &text)
}

fn parse(file: &Path, text: &str) -> Result<PlanFile> {
    let name = file.display();
    let value: Value = serde_json::from_slice(text.as_bytes())
        .map_err(|e| Error::NotAPlan(format!("{name} is not a plan: {}", JsonFault::from(e))))?;
    let schema = value["schema"].as_str().unwrap_or("none");
    if schema != ringwise_plan::SCHEMA {
        let text = format!("{name} is not a plan: its schema is {schema}, expected {}", ringwise_plan::SCHEMA);
        return Err(Error::NotAPlan(text));
    }
    let version = value["version"].as_u64().unwrap_or(0);
    // Reasons of version 1 are texts; they are read as reasons without a code.
    if !(1..=u64::from(ringwise_plan::VERSION)).contains(&version) {
        let by = value["file"]["tool"].as_str().map(|t| format!(", written by ringwise {t}")).unwrap_or_default();
        let text = format!("{name} has plan version {version}{by}; expected 1 to {}", ringwise_plan::VERSION);
        return Err(Error::NotAPlan(text));
    }
    let whole =
        |e: serde_json::Error| Error::NotAPlan(format!("{name} is not a complete plan: {}", JsonFault::from(e)));
    let stamp = match value.get("file") {
        Some(f) => Some(serde_json::from_value::<Stamp>(f.clone()).map_err(whole)?),
        None => None,
    };
    let edited = stamp.as_ref().is_some_and(|s| s.digest != digest(&value));
    // The text is parsed a second time: reading a plan out of a `Value` would double the generated code.
    let plan = serde_json::from_slice(text.as_bytes()).map_err(whole)?;
    Ok(PlanFile { path: file.to_path_buf(), plan, stamp, edited })
}

impl PlanFile {
    /// Whether the plan may be applied: the file was not edited, it was made for this boot of this machine, and it has not
    /// expired.
    ///
    /// Errors: the first of these that does not hold.
    pub fn check(&self, here: &Host, unix_time: u64) -> Result<()> {
        let no = |why: PlanMismatch| Err(Error::PlanRefused { path: self.path.clone(), why });
        if self.edited {
            return no(PlanMismatch::Edited);
        }
        let of = &self.plan.host;
        let say = |name: &Fact<String>, id: &Fact<String>| {
            format!("{} ({})", name.known().map_or("of unknown name", String::as_str), text(id, "no machine id"))
        };
        if let (Some(a), Some(b)) = (of.machine_id.known(), here.machine_id.known())
            && a != b
        {
            let (was, is) = (say(&of.name, &of.machine_id), say(&here.name, &here.machine_id));
            return no(PlanMismatch::OtherMachine { was, is });
        }
        match (of.boot_id.known(), here.boot_id.known()) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => {
                let host = of.name.known().map(|n| visible(n).to_string());
                return no(PlanMismatch::OtherBoot { host, was: a.clone(), is: b.clone() });
            }
            (None, _) => return no(PlanMismatch::BootNotRecorded),
            (_, None) => return no(PlanMismatch::BootUnknown { id: text(&here.boot_id, "absent") }),
        }
        match self.stamp.as_ref().and_then(|s| s.expires_at) {
            Some(end) if unix_time >= end => Err(Error::PlanExpired { path: self.path.clone(), end, now: unix_time }),
            _ => Ok(()),
        }
    }

    /// Whether the file contains the time when it was made. `false`: an earlier version wrote it, and it does not expire.
    pub fn is_dated(&self) -> bool {
        self.stamp.is_some()
    }
}

fn text(f: &Fact<String>, absent: &str) -> String {
    match f {
        Fact::Known(s) => s.clone(),
        Fact::Absent => absent.into(),
        Fact::Unknown(u) => format!("unknown: {}", u.why),
    }
}

/// FNV-1a over the values. White space and the order of members do not change it.
fn digest(doc: &Value) -> String {
    let mut h = Fnv::default();
    feed(&mut h, doc, true);
    format!("fnv1a64:{:016x}", h.finish())
}

fn feed(h: &mut Fnv, v: &Value, top: bool) {
    match v {
        Value::Null => h.text("null"),
        Value::Bool(b) => h.text(if *b { "true" } else { "false" }),
        // A fraction may differ in its last digits after it was read from text.
        Value::Number(n) if n.is_f64() => h.text(&format!("{:.9e}", n.as_f64().unwrap_or_default())),
        Value::Number(n) => h.text(&n.to_string()),
        Value::String(s) => {
            h.text("\"");
            h.text(s);
        }
        Value::Array(list) => {
            h.text(&format!("[{}", list.len()));
            list.iter().for_each(|v| feed(h, v, false));
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            h.text(&format!("{{{}", keys.len()));
            for k in keys {
                h.text(k);
                match (top && k == "file", &map[k]) {
                    (true, Value::Object(stamp)) => {
                        let mut stamp = stamp.clone();
                        stamp.remove("digest");
                        feed(h, &Value::Object(stamp), false);
                    }
                    (_, v) => feed(h, v, false),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;

    fn plan() -> Plan {
        let known = |t: &str| serde_json::json!({ "known": t });
        serde_json::from_value(serde_json::json!({
            "schema": "ringwise.plan", "version": 1,
            "host": { "name": known("edge3"), "kernel": known("6.12"), "boot_id": known("b1"), "machine_id": known("m1") },
            "intent": { "goal": "balanced" }, "devices": [], "considered": ["eth1"], "left_alone": [], "bystanders": {},
            "steps": [], "already": 0, "target": [], "layout": [], "left_out": [], "refused": [], "warnings": [],
            "expected": [{ "text": "x", "before": 8.333333333333334, "after": 100.0 / 7.0, "unit": "%" }],
        }))
        .unwrap()
    }

    fn here() -> Host {
        serde_json::from_value(serde_json::json!({
            "name": { "known": "edge3" }, "kernel": { "known": "6.12" }, "boot_id": { "known": "b1" },
            "machine_id": { "known": "m1" }, "rps_sock_flow_entries": "absent", "rps_default_mask": "absent",
            "rivals": "absent", "forwarding": "absent", "read_only": "absent",
        }))
        .unwrap()
    }

    fn written(expiry: Option<Duration>) -> String {
        let thread = std::thread::current();
        let name = format!("ringwise-reviewed-{}-{:?}", std::process::id(), thread.id());
        let dir = std::env::temp_dir().join(name);
        write(&dir, &plan(), expiry, 1_000_000).unwrap();
        let text = std::fs::read_to_string(&dir).unwrap();
        std::fs::remove_file(&dir).unwrap();
        text
    }

    fn refusal(text: &str, here: &Host, now: u64) -> Error {
        let e = parse(Path::new("x.plan"), text).unwrap().check(here, now).unwrap_err();
        assert_eq!(e.class(), Class::Refused);
        e
    }

    fn misfit(text: &str, here: &Host, now: u64) -> PlanMismatch {
        match refusal(text, here, now) {
            Error::PlanRefused { why, .. } => why,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_file_holds_in_its_time_on_its_boot_and_as_it_was_written() {
        let text = written(Some(Duration::from_secs(3600)));
        let ok = |text: &str, now| parse(Path::new("x.plan"), text).unwrap().check(&here(), now);
        ok(&text, 1_000_000).unwrap();
        ok(&text, 1_003_599).unwrap();
        let expired = refusal(&text, &here(), 1_003_600);
        assert!(matches!(expired, Error::PlanExpired { end: 1_003_600, now: 1_003_600, .. }), "{expired}");
        ok(&written(None), u64::MAX / 2).unwrap();
        // A different layout is the same plan; a different value is another plan.
        let value: Value = serde_json::from_str(&text).unwrap();
        ok(&serde_json::to_string(&value).unwrap(), 1_000_000).unwrap();
        for (a, b) in [("\"eth1\"", "\"eth2\""), ("\"x\"", "\"y\""), ("1003600", "9003600"), ("8.33333", "8.43333")] {
            assert!(text.contains(a), "{a}");
            assert_eq!(misfit(&text.replace(a, b), &here(), 1_000_000), PlanMismatch::Edited, "{a}");
        }
        let mut other = here();
        other.machine_id = Fact::Known("m2".into());
        other.name = Fact::Known("edge4".into());
        let why = refusal(&text, &other, 1_000_000).to_string();
        assert_eq!(why, "x.plan was made for another machine: edge3 (m1); this machine is edge4 (m2)");
        let mut other = here();
        other.boot_id = Fact::Known("b2".into());
        let boot = PlanMismatch::OtherBoot { host: Some("edge3".into()), was: "b1".into(), is: "b2".into() };
        assert_eq!(misfit(&text, &other, 1_000_000), boot);
        other.boot_id = Fact::unknown("boot_id", "needs root");
        assert_eq!(misfit(&text, &other, 1_000_000), PlanMismatch::BootUnknown { id: "unknown: needs root".into() });
    }

    #[test]
    fn a_file_of_the_first_release_has_no_date() {
        let old = serde_json::to_string(&plan()).unwrap();
        let r = parse(Path::new("x.plan"), &old).unwrap();
        r.check(&here(), u64::MAX / 2).unwrap();
        assert!(!r.is_dated());
        let mut value = serde_json::to_value(plan()).unwrap();
        value["host"]["boot_id"] = serde_json::json!("absent");
        assert_eq!(misfit(&value.to_string(), &here(), 0), PlanMismatch::BootNotRecorded);
    }

    #[test]
    fn a_file_of_a_later_version_is_refused_by_name() {
        let text = written(None).replace("\"version\": 1", "\"version\": 3").replace(env!("CARGO_PKG_VERSION"), "9.0");
        let e = parse(Path::new("x.plan"), &text).err().unwrap();
        assert_eq!(e.to_string(), "x.plan has plan version 3, written by ringwise 9.0; expected 1 to 2");
    }
}
