//! irqbalance: what it skips, how it was started, and which bans ringwise gave it.

use std::collections::BTreeMap;

use ringwise_kfmt::irqbalance::parse_setup;
use ringwise_model::{Fact, Irqbalance, Unread};
use ringwise_sys::{Host, Request};

use crate::natural;
use crate::read::{failed, unread};

const SOCKETS: &str = "/run/irqbalance";
/// Bus addresses for which ringwise's policy script bans interrupts, one per line. A reboot removes them, like the
/// settings that they protect.
pub use ringwise_knob::path::IRQBALANCE_DEVICES as DEVICES;
/// Which bans of irqbalance are from ringwise: its process and start time, then bus address and number.
pub const BANS: &str = "/run/ringwise/irqbalance-bans";
/// Name of ringwise's policy script in the state directory.
pub const POLICY: &str = "ringwise-irqbalance-policy";
const DROPIN: &str = "90-ringwise.conf";
/// Where systemd searches for units, in order of precedence.
const UNITS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// ringwise's addition to the unit. It is below `/run`, so a reboot removes it.
pub fn dropin(unit: &str) -> String {
    format!("/run/systemd/system/{unit}.d/{DROPIN}")
}

/// `by_name`: what a search among the processes found, if there was one.
pub fn irqbalance(host: &dyn Host, by_name: Option<Option<u32>>) -> Fact<Irqbalance> {
    let sockets = match host.list(SOCKETS) {
        Ok(names) => names,
        Err(e) => match by_name {
            Some(None) => return Fact::Absent,
            Some(Some(pid)) => return Fact::Known(running(host, pid, failed(SOCKETS, &e))),
            None => return failed(SOCKETS, &e),
        },
    };
    let mut pids: Vec<u32> = sockets
        .iter()
        .filter_map(|n| natural::number(n.strip_suffix(".sock")?, "irqbalance"))
        // If irqbalance is killed, its socket file stays.
        .filter(|pid| host.read_text(&format!("/proc/{pid}/comm")).is_ok_and(|c| c == "irqbalance"))
        .collect();
    pids.sort();
    match (pids.last(), by_name) {
        (Some(pid), _) => Fact::Known(running(host, *pid, Fact::Known(format!("{SOCKETS}/irqbalance{pid}.sock")))),
        (None, Some(Some(pid))) => Fact::Known(running(host, pid, Fact::Absent)),
        (None, _) => Fact::Absent,
    }
}

fn running(host: &dyn Host, pid: u32, socket: Fact<String>) -> Irqbalance {
    let args = arguments(host, pid);
    let unit = unit(host, pid);
    let (interval_s, banned) = match &socket {
        Fact::Known(s) => setup(host, s),
        Fact::Absent => {
            let none = || Fact::unknown("irqbalance setup", format!("it has no control socket in {SOCKETS}"));
            (none(), none().map(|_: u32| Vec::new()))
        }
        Fact::Unknown(u) => (Fact::Unknown(u.clone()), Fact::Unknown(u.clone())),
    };
    let start = unit.known().and_then(|u| start(host, u));
    let addition = unit.known().is_some_and(|u| host.read(&dropin(u)).is_ok());
    let kept = lines(host, DEVICES);
    let by_policy = args.known().and_then(|a| scripts(a).pop()).is_some_and(|s| s.rsplit('/').next() == Some(POLICY));
    Irqbalance { pid, socket, interval_s, args, banned, unit, start, kept, addition, by_policy, ours: ours(host, pid) }
}

/// Policy scripts that the arguments name, in order; the last one counts.
pub fn scripts(args: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    let mut args = args.iter();
    while let Some(a) = args.next() {
        if let Some(s) = a.strip_prefix("--policyscript=") {
            out.push(s.to_string());
        } else if matches!(a.as_str(), "-l" | "--policyscript") {
            out.extend(args.next().cloned());
        } else if let Some(s) = a.strip_prefix("-l") {
            out.push(s.to_string());
        }
    }
    out
}

fn arguments(host: &dyn Host, pid: u32) -> Fact<Vec<String>> {
    let path = format!("/proc/{pid}/cmdline");
    match host.read(&path) {
        Ok(bytes) => {
            let words = bytes.split(|b| *b == 0).filter(|w| !w.is_empty());
            Fact::Known(words.skip(1).map(|w| String::from_utf8_lossy(w).into_owned()).collect())
        }
        Err(e) => failed(&path, &e),
    }
}

/// The last part of the process's control group, if that is a service.
fn unit(host: &dyn Host, pid: u32) -> Fact<String> {
    let path = format!("/proc/{pid}/cgroup");
    match host.read_text(&path) {
        Ok(text) => {
            let last = text.lines().filter_map(|l| l.rsplit('/').next()).find(|n| n.ends_with(".service"));
            last.map_or(Fact::Absent, |n| Fact::Known(n.to_string()))
        }
        Err(e) => failed(&path, &e),
    }
}

fn setup(host: &dyn Host, socket: &str) -> (Fact<u32>, Fact<Vec<u32>>) {
    let ask = Request::Irqbalance { socket: socket.to_string(), command: "setup".into() };
    let what = "irqbalance setup";
    let parsed = match host.kernel(&ask) {
        Err(e) => Err(unread(what, &e)),
        // irqbalance closes the connection without an answer if it cannot see that the sender is root.
        Ok(reply) if reply.iter().all(Vec::is_empty) => {
            Err(Unread::new(what, None, "no answer: irqbalance answers only root"))
        }
        Ok(reply) => {
            parse_setup(&String::from_utf8_lossy(&reply.concat())).map_err(|e| Unread::new(what, None, e.to_string()))
        }
    };
    match parsed {
        Ok(s) => (Fact::Known(s.interval_s), Fact::Known(s.banned)),
        Err(u) => (Fact::Unknown(u.clone()), Fact::Unknown(u)),
    }
}

fn lines(host: &dyn Host, path: &str) -> Vec<String> {
    let text = host.read_text(path).unwrap_or_default();
    let mut out: Vec<String> = text.lines().map(|l| l.trim().to_string()).filter(|l| !l.is_empty()).collect();
    out.sort();
    out.dedup();
    out
}

/// Process and its start time: another irqbalance does not have the bans of this one.
pub fn run_of(host: &dyn Host, pid: u32) -> Option<String> {
    let stat = host.read_text(&format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain any character; the start time is the 20th field after it.
    let start = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?;
    Some(format!("{pid} {start}"))
}

fn ours(host: &dyn Host, pid: u32) -> Vec<(String, u32)> {
    let Ok(text) = host.read_text(BANS) else { return Vec::new() };
    let mut lines = text.lines();
    if lines.next().map(str::to_string) != run_of(host, pid) {
        return Vec::new();
    }
    lines.filter_map(|l| l.split_once(' ')).filter_map(|(b, n)| Some((b.to_string(), n.parse().ok()?))).collect()
}

/// The only command of the service, with all drop-ins except ringwise's. `None`: the service has another form.
fn start(host: &dyn Host, unit: &str) -> Option<String> {
    let fragment = UNITS.iter().find_map(|d| host.read_text(&format!("{d}/{unit}")).ok())?;
    // If several files have the same name, the directory with the highest precedence counts. They are read in the order
    // of their names.
    let mut extra: BTreeMap<String, String> = BTreeMap::new();
    for dir in UNITS.iter().map(|d| format!("{d}/{unit}.d")) {
        for name in host.list(&dir).unwrap_or_default() {
            if name.ends_with(".conf")
                && name != DROPIN
                && !extra.contains_key(&name)
                && let Ok(text) = host.read_text(&format!("{dir}/{name}"))
            {
                extra.insert(name, text);
            }
        }
    }
    let mut commands: Vec<String> = Vec::new();
    for text in std::iter::once(&fragment).chain(extra.values()) {
        for (section, key, value) in super::others::settings(text) {
            match (section.as_str(), key.as_str()) {
                ("Service", "ExecStart") if value.is_empty() => commands.clear(),
                ("Service", "ExecStart") => commands.push(value),
                _ => {}
            }
        }
    }
    let [one] = commands.as_slice() else { return None };
    let program = one.trim_start_matches(['@', '-', ':', '+', '!']).split_whitespace().next()?;
    (program.rsplit('/').next() == Some("irqbalance")).then(|| one.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_script_counts() {
        let args = |s: &str| scripts(&s.split(' ').map(str::to_string).collect::<Vec<_>>());
        assert_eq!(args("--foreground -l /a --policyscript=/b"), ["/a", "/b"]);
        assert_eq!(args("--policyscript /c"), ["/c"]);
        assert!(args("--foreground").is_empty());
    }
}
