//! `ringwise support`: a redacted capture with the record of what ringwise did on this host, and with the kernel's log.
//! `--from` opens it like any other capture.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ringwise_apply::HistoryEntry;
use ringwise_intent::{AppliedRecord, STANDING_FILE};
use ringwise_kfmt::ethtool_ioctl;
use ringwise_model::{Nic, Snapshot};
use ringwise_sys::{CaptureRecorder, Host, IoctlCmd, Real, RecordedRefusal, Recording, Redacted, Request, kernel_log};

use super::transaction::{store, words};
use super::{capture, redaction, status};
use crate::args::{Common, SupportArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use ringwise_render::status::{self as page, StatusOptions};
use ringwise_text::Style;
use ringwise_text::{pad, plural, right, thousands};

/// Directory of the additional files in the recording. No path of a host begins like this.
const OURS: &str = "/support";
const KERNEL_LOG: &str = "kernel.log";
/// Size limit for each file of the state directory.
const LARGEST: u64 = 64 << 20;

/// An entry of the archive, or why it is missing.
struct Item {
    name: String,
    what: String,
    /// Size in bytes, or why the entry is missing.
    size: std::result::Result<usize, String>,
}

/// The files that are added to the capture.
#[derive(Default)]
pub(super) struct SupportFiles {
    /// The settings in effect, as a capture stores them. `None`: ringwise never changed this host.
    standing: Option<String>,
    /// Name below [`OURS`], description, and content or why it is missing.
    list: Vec<(String, String, std::result::Result<String, String>)>,
}

impl SupportFiles {
    fn add(&mut self, name: &str, what: &str, content: std::result::Result<String, String>) {
        self.list.push((name.to_string(), what.to_string(), content));
    }
}

pub(super) fn run(a: &SupportArgs, common: &Common) -> Result<Status> {
    if !a.dry_run && std::fs::symlink_metadata(&a.file).is_ok() {
        return Err(Fail::error(format!("{} exists already; support never overwrites a file", a.file.display()))
            .code("file_exists")
            .file(&a.file));
    }
    let real = Real::new().map_err(Fail::from)?;
    let recorder = Arc::new(CaptureRecorder::new(real));
    let host: Arc<dyn Host> = match a.passive {
        true => ringwise_discover::passive(recorder.clone()),
        false => recorder.clone(),
    };
    let s = capture::record(&host)?;
    let _ = host.read("/etc/os-release"); // an error is part of the recording
    let (papers, people) = papers(&host, &s, common, kernel_log());
    let mut recording = together(recorder.finish(), &papers);
    let redacted = recording.redact_with(&redaction::knowledge(&s, people));
    let items = items(&recording, &papers, &redacted);
    if !a.dry_run {
        recording.write_tar(&a.file).map_err(Fail::from)?;
    }
    if common.json {
        let list: Vec<_> = items
            .iter()
            .map(|i| match &i.size {
                Ok(n) => serde_json::json!({ "name": i.name, "what": i.what, "bytes": n }),
                Err(why) => serde_json::json!({ "name": i.name, "what": i.what, "missing": why }),
            })
            .collect();
        out::json(&serde_json::json!({
            "schema": "ringwise.support", "version": 1, "file": a.file.display().to_string(),
            "written": !a.dry_run, "contents": list, "redacted": redacted,
        }))?;
        return Ok(Status::Ok);
    }
    let mut text = if a.dry_run {
        format!("{} would contain (nothing is written):\n", a.file.display())
    } else {
        format!("{} contains:\n", a.file.display())
    };
    text.push_str(&listing(&items));
    text.push_str(&redaction::summary(&redacted));
    text.push_str("Read it before you send it.\n");
    if ringwise_sys::proc::euid() != 0 {
        text.push_str("Not made as root: values that need root are missing or recorded as refused.\n");
    }
    if !a.dry_run {
        text.push_str(&format!("Next: ringwise show --from {0}\n      tar tf {0}\n", a.file.display()));
    }
    out::answer(&text)?;
    Ok(Status::Ok)
}

/// Adds the files to the recording, before anything is redacted.
pub(super) fn together(mut recording: Recording, papers: &SupportFiles) -> Recording {
    ringwise_discover::forget_others(&mut recording);
    for (name, _, content) in &papers.list {
        let answer = content.as_ref().map(|t| t.clone().into_bytes());
        let refusal = |why: &String| RecordedRefusal { errno: None, words: Some(why.clone()), late: false };
        recording.files.insert(format!("{OURS}/{name}"), answer.map_err(refusal));
    }
    if let Some(text) = &papers.standing {
        recording.files.insert(STANDING_FILE.into(), Ok(text.clone().into_bytes()));
    }
    recording
}

fn items(recording: &Recording, papers: &SupportFiles, redacted: &[Redacted]) -> Vec<Item> {
    let own = |path: &str| path.starts_with(&format!("{OURS}/")) || path == STANDING_FILE;
    let bytes = |path: &str| recording.files.get(path).and_then(|a| a.as_ref().ok()).map_or(0, Vec::len);
    let host: usize = recording.files.keys().filter(|p| !own(p)).map(|p| bytes(p)).sum();
    let raw = recording.kernel.values().filter_map(|r| r.answer.as_ref().ok()).flatten().map(Vec::len).sum::<usize>();
    let answers = recording.len() - papers.list.len() - usize::from(papers.standing.is_some());
    let capture = Item {
        name: "manifest.json kernel.json fs/".into(),
        what: format!("capture, {} answers, including refusals", thousands(answers as u64)),
        size: Ok(host + raw),
    };
    let rest = papers.list.iter().map(|(name, what, content)| Item {
        name: format!("fs{OURS}/{name}"),
        what: match redaction::kernel_lines_left_out(redacted) {
            n if name == KERNEL_LOG => format!("{what}; {} omitted", plural(n, "other")),
            _ => what.clone(),
        },
        size: content.as_ref().map(|_| bytes(&format!("{OURS}/{name}"))).map_err(String::clone),
    });
    let standing = papers.standing.as_ref().map(|_| Item {
        name: format!("fs{STANDING_FILE}"),
        what: "settings in effect, for check --from".into(),
        size: Ok(bytes(STANDING_FILE)),
    });
    std::iter::once(capture).chain(standing).chain(rest).collect()
}

fn listing(items: &[Item]) -> String {
    let size = |i: &Item| i.size.as_ref().map_or("-".to_string(), |n| thousands(*n as u64));
    let wide = items.iter().map(|i| i.name.len()).max().unwrap_or(0);
    let digits = items.iter().map(|i| size(i).len()).max().unwrap_or(0);
    let mut out = String::new();
    for i in items {
        let why = i.size.as_ref().err().map(|w| format!(": missing: {w}")).unwrap_or_default();
        let line = format!("  {}  {} bytes  {}{why}", pad(&i.name, wide), right(&size(i), digits), i.what);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The additional files, and the user names in them.
pub(super) fn papers(
    host: &Arc<dyn Host>,
    s: &Snapshot,
    common: &Common,
    log: ringwise_sys::Result<String>,
) -> (SupportFiles, Vec<(&'static str, String)>) {
    let mut out = SupportFiles::default();
    let store = store(common);
    let history = ringwise_apply::history(&store, &s.host);
    let verify = ringwise_apply::verify_in(s, &store);
    let pretty = |v: serde_json::Result<String>| v.map_err(|e| e.to_string());
    let how = StatusOptions { all: true, ..StatusOptions::default() };
    let mut standings = status::standings(s, &store, host.since_boot());
    let interfaces: Vec<&str> = s.nics.iter().map(Nic::name).collect();
    for e in standings.last.iter_mut() {
        // Text that a user typed is removed.
        (e.reason, e.title) = (None, e.title.without_names(&interfaces));
    }
    let text = page::page(s, &standings, how, &Style::plain(None));
    out.standing = AppliedRecord::text(s, &store);
    out.add("status.txt", "status", Ok(text));
    out.add(
        "verify.json",
        "verify",
        verify.map_err(|e| words(&e)).and_then(|v| pretty(serde_json::to_string_pretty(&v))),
    );
    out.add(
        "history.json",
        "history",
        history.as_ref().map_err(|e| words(e)).and_then(|h| pretty(serde_json::to_string_pretty(h))),
    );
    for (i, dir) in store.dirs().iter().enumerate() {
        let folder = if i == 0 { "state".to_string() } else { format!("state-{}", i + 1) };
        state(&mut out, &folder, dir);
    }
    // The whole log: the redaction decides which lines are kept.
    out.add(KERNEL_LOG, "kernel lines that begin with an interface or its driver", log.map_err(|e| e.reason()));
    out.add("versions.txt", "versions of ringwise, kernel, distribution, drivers, firmware", Ok(versions(host, s)));
    (out, people(history.as_deref().unwrap_or_default()))
}

/// Adds the journals and what was learned. Usually only one of the two possible directories exists.
fn state(out: &mut SupportFiles, folder: &str, dir: &Path) {
    let shown = dir.display();
    let list = match std::fs::read_dir(dir) {
        Ok(l) => l,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return,
        Err(e) => return out.add(folder, &format!("journals of {shown}"), Err(e.to_string())),
    };
    let mut names: Vec<String> = list.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
    names.retain(|n| is_ours(n));
    names.sort();
    for name in names {
        let path = dir.join(&name);
        let what = if name.ends_with(".jsonl") { "journal of a transaction" } else { "state of ringwise" };
        let content = match std::fs::metadata(&path) {
            Ok(m) if m.len() > LARGEST => Err(format!("{} bytes are above the limit", thousands(m.len()))),
            _ => std::fs::read(&path).map(|b| String::from_utf8_lossy(&b).into_owned()).map_err(|e| e.to_string()),
        };
        out.add(&format!("{folder}/{name}"), what, content);
    }
}

/// Whether ringwise makes files of this name. Other files are skipped, because even their names may be private.
fn is_ours(name: &str) -> bool {
    let one =
        matches!(name, "first-found.json" | "learned.json" | "seen.json" | "boot.json" | "status.json" | "daemon.json");
    let number = |first: &str, last: &str| {
        let digits = name.strip_prefix(first).and_then(|n| n.strip_suffix(last));
        digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    };
    let trial = ["trial-", "confirmed-", "expired-"].iter().any(|first| number(first, ".json"));
    one || trial || number("tx-", ".jsonl")
}

fn versions(host: &Arc<dyn Host>, s: &Snapshot) -> String {
    let line = |path: &str| host.read_text(path).unwrap_or_else(|e| format!("unknown ({})", e.reason()));
    let release = line("/etc/os-release");
    let name = release.lines().find_map(|l| l.strip_prefix("PRETTY_NAME=")).unwrap_or("unknown").trim_matches('"');
    let mut out = format!(
        "ringwise      {}\nkernel        {}\ndistribution  {name}\n",
        env!("CARGO_PKG_VERSION"),
        line("/proc/sys/kernel/osrelease")
    );
    for n in s.nics.iter().filter(|n| n.has_own_queues()) {
        out.push_str(&format!("{}  {}\n", pad(n.name(), 12), driver(host, n)));
    }
    out
}

fn driver(host: &Arc<dyn Host>, n: &Nic) -> String {
    let payload = ethtool_ioctl::drvinfo_request();
    let ask = Request::Ioctl { cmd: IoctlCmd::DrvinfoGet, dev: n.name().to_string(), payload };
    let reply = match host.kernel(&ask) {
        Ok(r) => r,
        Err(e) => return format!("unknown ({})", e.reason()),
    };
    match reply.first().map(|m| ethtool_ioctl::drvinfo(m)) {
        Some(Ok(d)) => {
            let or = |t: &str| if t.is_empty() { "unknown".to_string() } else { t.to_string() };
            format!("driver {} {}, firmware {}", d.driver, or(&d.version), or(&d.fw_version))
        }
        Some(Err(e)) => format!("unknown ({e})"),
        None => "unknown (no answer)".into(),
    }
}

/// User names in the files: users who applied something, and the current user.
fn people(list: &[HistoryEntry]) -> Vec<(&'static str, String)> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let now = ringwise_sys::proc::user_name();
    for text in list.iter().map(|e| e.who.as_str()).chain([now.as_str()]) {
        // `root (sudo: anna)`, `uid 1000`
        let parts = text.split([' ', '(', ')', ':', ',']);
        names.extend(parts.filter(|w| !["", "root", "sudo", "uid"].contains(w)).map(str::to_string));
    }
    names.retain(|n| n.parse::<u64>().is_err());
    names.into_iter().map(|n| ("user name", n)).collect()
}
