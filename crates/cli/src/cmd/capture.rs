//! `ringwise capture`

use std::sync::Arc;

use ringwise_discover::{Options, Parts};
use ringwise_intent::{AppliedRecord, STANDING_FILE};
use ringwise_model::Snapshot;
use ringwise_observe::{Layout, Sampler};
use ringwise_sys::{CaptureRecorder, Host, Real, Redacted};

use super::transaction::store;
use super::{progress, redaction};
use crate::args::{CaptureArgs, Common};
use crate::exit::{Fail, Result, Status};
use crate::out;
use ringwise_text::{plural, thousands};

/// Files that are recorded in addition to those of discovery: for `verify --for`, and the RSS hash key for `explain`.
const ALSO: [&str; 7] = [
    "/proc/net/softnet_stat",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/proc/cpuinfo",
    "/proc/sys/net/core/netdev_rss_key",
];

/// Where a recording stores the counters of two moments. No path of a host begins like this.
pub(super) const SAMPLES: &str = "/samples/counters";

pub(super) fn run(a: &CaptureArgs, common: &Common) -> Result<Status> {
    let (s, answers, redacted) = to_file(a, common)?;
    if common.json {
        out::json(&serde_json::json!({
            "schema": "ringwise.capture", "version": 1, "file": a.file.display().to_string(),
            "answers": answers, "interfaces": s.nics.len(), "redacted": redacted,
        }))?;
        return Ok(Status::Ok);
    }
    let mut text = format!(
        "{}: {}, {} answers of the kernel, including refusals\n",
        a.file.display(),
        plural(s.nics.len(), "interface"),
        thousands(answers as u64)
    );
    if a.redact {
        text.push_str(&redaction::summary(&redacted));
    } else {
        text.push_str("The file contains addresses and names of this host and of its users; --redact replaces them.\n");
    }
    if ringwise_sys::proc::euid() != 0 {
        text.push_str("Not recorded as root: values that need root are recorded as refused.\n");
    }
    text.push_str(&format!("Next: ringwise show --from {}\n", a.file.display()));
    out::answer(&text)?;
    Ok(Status::Ok)
}

/// Records the host. Returns how many answers the recording holds, and what was replaced.
pub(super) fn to_file(a: &CaptureArgs, common: &Common) -> Result<(Snapshot, usize, Vec<Redacted>)> {
    if a.file.exists() {
        return Err(Fail::error(format!("{} exists already; capture never overwrites a file", a.file.display()))
            .code("file_exists")
            .file(&a.file));
    }
    // Reading the host takes seconds, so what prevents the file is reported before.
    if let Some(dir) = a.file.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists()) {
        return Err(Fail::error(format!("{}: its directory does not exist; nothing was recorded", a.file.display()))
            .code("io")
            .errno(Some(ringwise_model::errno::ENOENT))
            .file(&a.file)
            .next(format!("mkdir -p {}", ringwise_model::shell::quote(&dir.display().to_string()))));
    }
    let real = Real::new().map_err(Fail::from)?;
    let recorder = Arc::new(CaptureRecorder::new(real));
    let host: Arc<dyn Host> = match a.passive {
        true => ringwise_discover::passive(recorder.clone()),
        false => recorder.clone(),
    };
    let s = record(&host)?;
    let samples = a.r#for.map(|time| {
        let layout = Layout::of(&s, &[]);
        // The recorder is bypassed: these files are read twice, and only the numbers are kept.
        let host: &dyn Host = recorder.host();
        let mut sampler = Sampler::new(host, &layout, true);
        let first = sampler.read(host);
        progress::wait(host, time, "counting packets, interrupts and losses", common);
        let second = sampler.read(host);
        [layout.to_line(), first.to_line(), second.to_line()].join("\n") + "\n"
    });
    let mut recording = recorder.finish();
    ringwise_discover::forget_others(&mut recording);
    if let Some(text) = samples {
        recording.files.insert(SAMPLES.into(), Ok(text.into_bytes()));
    }
    if let Some(text) = AppliedRecord::text(&s, &store(common)) {
        recording.files.insert(STANDING_FILE.into(), Ok(text.into_bytes()));
    }
    let redacted = if a.redact { recording.redact_with(&redaction::knowledge(&s, Vec::new())) } else { Vec::new() };
    recording.write_tar(&a.file).map_err(Fail::from)?;
    Ok((s, recording.len(), redacted))
}

/// Reads everything once.
pub(super) fn record(host: &Arc<dyn Host>) -> Result<Snapshot> {
    let options = Options { parts: Parts::ALL, ..Options::all() };
    let s = ringwise_discover::snapshot(host, &options).map_err(Fail::from)?;
    // Only `check` reads these. A missing answer is part of the recording as well.
    let _ = ringwise_discover::extra(host, &s, options.deadline);
    for path in ALSO {
        // An error is part of the recording.
        let _ = host.read(path);
    }
    Ok(s)
}
