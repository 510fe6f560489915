//! Programs that would change the settings of ringwise.

mod irqbalance;
mod others;

use std::time::Duration;

use ringwise_model::errno::ESRCH;
use ringwise_model::order::Order;
use ringwise_model::{Cause, CompetingProgram, Fact, Irqbalance, Unread};
use ringwise_sys::{Host, Recording};

use crate::natural;

pub(crate) use others::{LINKS, PROFILES};

pub use irqbalance::{BANS, DEVICES, POLICY, dropin, irqbalance, run_of, scripts};

/// Names as `/proc/PID/comm` shows them (cut to 15 characters by the kernel): those that move interrupts or queues.
const NAMES: &[&str] =
    &["irqbalance", "irqd", "katalyst-agent", "mlnx_affinity", "mlnx_tune", "set_irq_affinit", "tuned"];
/// Programs that use interfaces without the kernel, or besides it.
const USERS: &[&str] = &["dpdk-testpmd", "ovs-vswitchd", "vpp_main"];

/// All that is known about them.
#[derive(Debug, Clone)]
pub struct CompetingPrograms {
    /// Those that are running and change settings, by name.
    pub names: Fact<Vec<String>>,
    /// Running programs, and files that take effect at boot or when a device appears, with what they set; sorted.
    pub details: Vec<CompetingProgram>,
    /// Its settings and bans. Absent: it does not run.
    pub irqbalance: Fact<Irqbalance>,
}

impl CompetingPrograms {
    /// Unknown for this reason, whatever was to be read.
    pub fn not(why: &Unread) -> Self {
        let of = |what: &str| Unread { what: what.to_string(), ..why.clone() };
        let (names, irqbalance) = (Fact::Unknown(of("/proc/*/comm")), Fact::Unknown(of("irqbalance")));
        Self { names, details: Vec::new(), irqbalance }
    }
}

/// Everything: reads a file of every process, and the files that define what is set and when.
pub fn find(host: &dyn Host) -> CompetingPrograms {
    find_within(host, None)
}

/// The same, but examines no more processes after this time.
pub fn find_within(host: &dyn Host, time: Option<Duration>) -> CompetingPrograms {
    let processes = processes(host, time);
    let names = processes.as_ref().map(|all| {
        let mut names: Vec<String> = all.iter().map(|(_, n)| n.clone()).filter(|n| NAMES.contains(&&**n)).collect();
        names.dedup();
        names
    });
    let by_name = processes.known().map(|all| all.iter().find(|(_, n)| n == "irqbalance").map(|(pid, _)| *pid));
    let mut details = others::details(host, processes.known().map_or(&[], Vec::as_slice));
    details.sort();
    CompetingPrograms { names, details, irqbalance: irqbalance(host, by_name) }
}

/// Only irqbalance, by its socket. No other process is examined.
pub fn irqbalance_alone(host: &dyn Host) -> CompetingPrograms {
    CompetingPrograms {
        irqbalance: irqbalance(host, None),
        ..CompetingPrograms::not(&Unread::new("", None, "not read").because(Cause::NotAsked))
    }
}

/// Names of the competing programs that run now, sorted. Known and empty: none was found. Processes in other
/// PID namespaces cannot be seen.
pub fn competing_programs(host: &dyn Host) -> Fact<Vec<String>> {
    find(host).names
}

/// The first process of each name, sorted by name.
fn processes(host: &dyn Host, time: Option<Duration>) -> Fact<Vec<(u32, String)>> {
    let until = time.map(|t| host.since_boot() + t);
    let what = "/proc/*/comm";
    let names = match host.list("/proc") {
        Ok(names) => names,
        Err(e) => return Fact::Unknown(crate::read::unread(what, &e)),
    };
    let mut pids = natural::numbers(&names, "");
    if pids.is_empty() {
        return Fact::Unknown(Unread::new(what, None, "no processes are visible here"));
    }
    // In the order of PIDs, because services are older than programs that users start.
    pids.sort();
    let mut out: Vec<(u32, String)> = Vec::new();
    let mut refused = None;
    let of = pids.len();
    for (n, pid) in pids.into_iter().enumerate() {
        if n % 64 == 63 && until.is_some_and(|u| host.since_boot() > u) {
            refused = Some(Unread::new(what, None, format!("only {n} of {of} processes were examined")));
            break;
        }
        let path = format!("/proc/{pid}/comm");
        match host.read_text(&path) {
            Ok(comm) if is_one(&comm) && !out.iter().any(|(_, n)| *n == comm) => out.push((pid, comm)),
            Ok(_) => {}
            // A process may end between the two calls.
            Err(e) if e.is_absent() || e.errno == Some(ESRCH) => {}
            Err(e) => refused = Some(crate::read::unread(&path, &e)),
        }
    }
    out.order_by(|a, b| a.1.cmp(&b.1));
    match refused {
        // A competing program that was found counts even if other processes are hidden. If none was found, a hidden
        // process may be one: unknown, not "none".
        Some(why) if out.is_empty() => Fact::Unknown(why),
        _ => Fact::Known(out),
    }
}

fn is_one(comm: &str) -> bool {
    NAMES.contains(&comm) || USERS.contains(&comm)
}

/// Removes the names of all other processes from a recording, and from scripts and tables of other programs all but
/// the words that identify a competing program: the recording must not reveal what else runs on the host. Process 1
/// stays, so that "none found" differs from "not searched".
pub fn forget_others(recording: &mut Recording) {
    let pid = |path: &str| natural::number(path.strip_suffix("/comm")?, "/proc/");
    let mut kept = vec!["1".to_string()];
    recording.files.retain(|path, content| {
        let Some(pid) = pid(path) else { return true };
        let name = content.as_ref().map(|b| String::from_utf8_lossy(b).trim().to_string());
        let rival = name.is_ok_and(|n| is_one(&n));
        if rival {
            kept.push(pid.to_string());
        }
        rival || pid == 1
    });
    for (path, content) in &mut recording.files {
        if let Ok(bytes) = content
            && others::is_script(path)
        {
            *bytes = others::words(&String::from_utf8_lossy(bytes)).into_bytes();
        }
    }
    // Of directories with many files, only those in which something was found, because their names also show what runs
    // here.
    for dir in others::script_dirs() {
        let tells = |name: &str| {
            let content = recording.files.get(&format!("{dir}/{name}"));
            content.is_some_and(|c| c.as_ref().is_ok_and(|b| !b.is_empty())) || name.starts_with("irqbalance")
        };
        let Some(Ok(names)) = recording.dirs.get(dir) else { continue };
        let (kept, gone): (Vec<String>, Vec<String>) = names.iter().cloned().partition(|n| tells(n));
        for name in gone {
            recording.files.remove(&format!("{dir}/{name}"));
        }
        recording.dirs.insert(dir.to_string(), Ok(kept));
    }
    if let Some(Ok(names)) = recording.dirs.get_mut("/proc") {
        names.retain(|n| natural::number(n, "").is_none() || kept.contains(n));
    }
}
