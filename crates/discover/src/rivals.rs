//! Programs that would move our settings behind our back.

use ringwise_model::{Fact, Unread};
use ringwise_sys::{Host, Recording};

use crate::natural;

const ESRCH: i32 = 3;

/// Names as `/proc/PID/comm` shows them (cut to 15 characters by the kernel).
const NAMES: &[&str] = &["irqbalance", "irqd", "tuned", "katalyst-agent"];

/// Rivals that run now, by name, sorted. Known and empty: looked, none there. Processes of other
/// process namespaces cannot be seen.
pub fn rivals(host: &dyn Host) -> Fact<Vec<String>> {
    let what = "/proc/*/comm";
    let names = match host.list("/proc") {
        Ok(names) => names,
        Err(e) => return Fact::Unknown(crate::read::unread(what, &e)),
    };
    let mut pids = natural::numbers(&names, "");
    if pids.is_empty() {
        return Fact::Unknown(Unread::new(what, None, "no process is shown here"));
    }
    // Services are older than what people start, and kernel threads are the most: first found, first counted.
    pids.sort_unstable();
    let mut out = Vec::new();
    let mut refused = None;
    for pid in pids {
        let path = format!("/proc/{pid}/comm");
        match host.read_text(&path) {
            Ok(comm) if NAMES.contains(&comm.as_str()) && !out.contains(&comm) => out.push(comm),
            Ok(_) => {}
            // A process may end between the two calls.
            Err(e) if e.is_absent() || e.errno == Some(ESRCH) => {}
            Err(e) => refused = Some(crate::read::unread(&path, &e)),
        }
    }
    out.sort();
    match refused {
        // One that is seen is a rival whatever the others are; none seen among hidden ones is not "none".
        Some(why) if out.is_empty() => Fact::Unknown(why),
        _ => Fact::Known(out),
    }
}

/// Takes the names of all other processes out of a recording: what runs on a host is nobody else's
/// business. Process 1 stays, so that "none found" can be told from "not looked".
pub fn forget_others(recording: &mut Recording) {
    let pid = |path: &str| natural::number(path.strip_suffix("/comm")?, "/proc/");
    let mut kept = vec!["1".to_string()];
    recording.files.retain(|path, content| {
        let Some(pid) = pid(path) else { return true };
        let name = content.as_ref().map(|b| String::from_utf8_lossy(b).trim().to_string());
        let rival = name.is_ok_and(|n| NAMES.contains(&n.as_str()));
        if rival {
            kept.push(pid.to_string());
        }
        rival || pid == 1
    });
    if let Some(Ok(names)) = recording.dirs.get_mut("/proc") {
        names.retain(|n| natural::number(n, "").is_none() || kept.contains(n));
    }
}
