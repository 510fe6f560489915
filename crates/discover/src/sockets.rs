//! Where a program or a systemd unit listens, for the flows of a group.
//!
//! ```text
//!   name ─► processes (/proc/PID/comm, exe, cgroup) ─► their sockets (/proc/PID/fd) ─► addresses and ports (/proc/net)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use ringwise_kfmt::sockets::{self, UnconnectedSocket};
use ringwise_kfmt::task;
use ringwise_model::errno::{ENOENT, ESRCH};
use ringwise_model::words::visible;
use ringwise_model::{CpuSet, Flow, FlowsUnknown, Unread};
use ringwise_sys::{Error, Host};

/// Whether a process has this name or belongs to this unit.
type Belongs<'a> = Box<dyn Fn(&str) -> bool + 'a>;

/// The kernel truncates names of processes.
const COMM: usize = 15;

/// A port on which a socket waits for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    /// Determines, together with the address, which flow types match: `tcp4`, `udp6`.
    pub protocol: Protocol,
    /// `0.0.0.0`: any IPv4 address; `::`: any address, IPv4 too where the program did not ask for IPv6 only.
    pub address: IpAddr,
    /// Local port, 1 to 65,535.
    pub port: u16,
}

/// The sockets in `/proc/net` that are examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Sockets in state LISTEN, of `/proc/net/tcp` and `tcp6`.
    Tcp,
    /// Sockets that are bound and not connected, of `/proc/net/udp` and `udp6`.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

impl Listener {
    /// Packets for it, as flow types and fields of rules. `None`: they never arrive over a wire.
    pub fn matches(&self) -> Vec<(String, BTreeMap<String, String>)> {
        let fields = |address: Option<IpAddr>| {
            let port = [("dst-port".to_string(), self.port.to_string())];
            port.into_iter().chain(address.map(|a| ("dst-ip".to_string(), a.to_string()))).collect::<BTreeMap<_, _>>()
        };
        let (four, six) = (format!("{}4", self.protocol), format!("{}6", self.protocol));
        match self.address {
            a if a.is_loopback() => Vec::new(),
            IpAddr::V4(a) if a.is_unspecified() => vec![(four, fields(None))],
            IpAddr::V6(a) if a.is_unspecified() => vec![(four, fields(None)), (six, fields(None))],
            a @ IpAddr::V4(_) => vec![(four, fields(Some(a)))],
            a @ IpAddr::V6(_) => vec![(six, fields(Some(a)))],
        }
    }
}

/// Why there is nothing to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotListening {
    /// `program "nginx"`
    pub who: String,
    /// What was found instead of a listening socket, or what could not be read.
    pub why: FlowsUnknown,
}

impl fmt::Display for NotListening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.who, self.why)
    }
}

impl std::error::Error for NotListening {}

fn unit_of(name: &str) -> String {
    if name.contains('.') { name.to_string() } else { format!("{name}.service") }
}

/// `program "nginx"`, `unit "nginx.service"`. `None`: the flow names its fields itself.
pub fn who(flow: &Flow) -> Option<String> {
    match flow {
        Flow::Match { .. } => None,
        Flow::Program(name) => Some(format!("program \"{}\"", visible(name))),
        Flow::Unit(name) => Some(format!("unit \"{}\"", visible(&unit_of(name)))),
    }
}

/// Where the program or unit listens now. Empty for flows that name their fields themselves.
pub fn listeners(host: &dyn Host, flow: &Flow) -> Result<Vec<Listener>, NotListening> {
    let Some(who) = who(flow) else { return Ok(Vec::new()) };
    let belongs: Belongs<'_> = match flow {
        Flow::Match { .. } => return Ok(Vec::new()),
        Flow::Program(name) => Box::new(move |pid| is_program(host, pid, name)),
        Flow::Unit(name) => {
            let unit = unit_of(name);
            let cgroup = move |pid: &str| host.read_text(&format!("/proc/{pid}/cgroup"));
            Box::new(move |pid| cgroup(pid).is_ok_and(|text| sockets::in_unit(&text, &unit)))
        }
    };
    sockets_of(host, &belongs).map_err(|why| NotListening { who, why })
}

fn sockets_of(host: &dyn Host, belongs: &Belongs<'_>) -> Result<Vec<Listener>, FlowsUnknown> {
    let all = host.list("/proc").map_err(|e| FlowsUnknown::NotReadable { unread: unread(&e) })?;
    let mut all: Vec<u32> = all.iter().filter_map(|n| n.parse().ok()).collect();
    all.sort();
    let pids: Vec<u32> = all.iter().copied().filter(|pid| belongs(&pid.to_string())).collect();
    if pids.is_empty() {
        return Err(FlowsUnknown::NotRunning { processes: all.len() as u32 });
    }
    let here = namespace(host, "self");
    let (near, far): (Vec<u32>, Vec<u32>) = pids.iter().partition(|pid| {
        let there = namespace(host, &pid.to_string());
        here.is_none() || there.is_none() || here == there
    });
    if near.is_empty() {
        return Err(FlowsUnknown::OtherNamespace { process: far[0] });
    }
    let inodes = inodes_of_all(host, &near).map_err(|e| FlowsUnknown::OpenFilesUnread { unread: unread(&e) })?;
    let all = waiting(host).map_err(|unread| FlowsUnknown::NotReadable { unread })?;
    let out: BTreeSet<Listener> = all.into_iter().filter(|(inode, _)| inodes.contains(inode)).map(|(_, l)| l).collect();
    if out.is_empty() {
        return Err(FlowsUnknown::NoPort { process: near[0] });
    }
    Ok(out.into_iter().collect())
}

fn unread(e: &Error) -> Unread {
    Unread::new(e.what.clone(), e.errno, e.reason())
}

/// A process of this network namespace with sockets that wait for packets from a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListeningProcess {
    /// Process ID in the namespace of this `/proc`.
    pub pid: u32,
    /// `/proc/PID/comm`.
    pub name: String,
    /// CPUs that its main thread may use.
    pub cpus_allowed: CpuSet,
    /// Without those of loopback addresses.
    pub listeners: BTreeSet<Listener>,
}

/// The processes that wait for packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListeningProcesses {
    /// By process ID.
    pub all: Vec<ListeningProcess>,
    /// Why a process could not be examined: the first of several reasons.
    pub unread: Option<Unread>,
}

/// All processes of this network namespace that wait for packets from a network.
///
/// Errors: neither the processes nor the sockets can be listed.
pub fn listening_processes(host: &dyn Host) -> Result<ListeningProcesses, Unread> {
    let mut pids: Vec<u32> =
        host.list("/proc").map_err(|e| unread(&e))?.iter().filter_map(|n| n.parse().ok()).collect();
    pids.sort();
    let mut by_inode: BTreeMap<u64, BTreeSet<Listener>> = BTreeMap::new();
    for (inode, l) in waiting(host)?.into_iter().filter(|(_, l)| !l.address.is_loopback()) {
        by_inode.entry(inode).or_default().insert(l);
    }
    let mut out = ListeningProcesses::default();
    if by_inode.is_empty() {
        return Ok(out);
    }
    let here = namespace(host, "self");
    // The first process holds the sockets of units that are started on demand.
    for pid in pids.into_iter().filter(|pid| *pid != 1) {
        match listening_process(host, pid, here.as_ref(), &by_inode) {
            Ok(found) => out.all.extend(found),
            // The process has ended meanwhile.
            Err(u) if matches!(u.errno, Some(ENOENT | ESRCH)) => {}
            Err(u) => _ = out.unread.get_or_insert(u),
        }
    }
    Ok(out)
}

/// `None`: it waits for nothing, or in another network namespace.
fn listening_process(
    host: &dyn Host,
    pid: u32,
    here: Option<&String>,
    by_inode: &BTreeMap<u64, BTreeSet<Listener>>,
) -> Result<Option<ListeningProcess>, Unread> {
    let there = namespace(host, &pid.to_string());
    if here.is_some() && there.is_some() && here != there.as_ref() {
        return Ok(None);
    }
    let inodes = inodes_of(host, pid).map_err(|e| unread(&e))?;
    let listeners: BTreeSet<Listener> = inodes.iter().filter_map(|i| by_inode.get(i)).flatten().copied().collect();
    if listeners.is_empty() {
        return Ok(None);
    }
    let text = |file: &str| host.read_text(&format!("/proc/{pid}/{file}")).map_err(|e| unread(&e));
    let cpus_allowed = task::cpus_allowed(&text("status")?)
        .map_err(|e| Unread::new(format!("/proc/{pid}/status"), None, e.to_string()))?;
    Ok(Some(ListeningProcess { pid, name: text("comm")?, cpus_allowed, listeners }))
}

/// Sockets of these processes. If several processes cannot be examined, the last error is returned.
fn inodes_of_all(host: &dyn Host, pids: &[u32]) -> Result<BTreeSet<u64>, Error> {
    let mut inodes = BTreeSet::new();
    let mut refused = None;
    for pid in pids {
        match inodes_of(host, *pid) {
            Ok(found) => inodes.extend(found),
            // The process has ended meanwhile.
            Err(e) if e.is_absent() => {}
            Err(e) => refused = Some(e),
        }
    }
    refused.map_or(Ok(inodes), Err)
}

/// The sockets that wait for packets, with their inodes.
fn waiting(host: &dyn Host) -> Result<Vec<(u64, Listener)>, Unread> {
    let mut out = Vec::new();
    for (file, protocol) in
        [("tcp", Protocol::Tcp), ("tcp6", Protocol::Tcp), ("udp", Protocol::Udp), ("udp6", Protocol::Udp)]
    {
        let path = format!("/proc/net/{file}");
        let text = match host.read_text(&path) {
            Ok(t) => t,
            // A kernel without IPv6.
            Err(e) if e.is_absent() => continue,
            Err(e) => return Err(unread(&e)),
        };
        let parse: fn(&str) -> Result<Vec<UnconnectedSocket>, _> =
            if protocol == Protocol::Tcp { sockets::tcp } else { sockets::udp };
        let waiting = parse(&text).map_err(|e| Unread::new(path, None, e.to_string()))?;
        out.extend(waiting.into_iter().map(|w| (w.inode, Listener { protocol, address: w.address, port: w.port })));
    }
    Ok(out)
}

/// By the name of the process, the name of its program file, or the file's path.
fn is_program(host: &dyn Host, pid: &str, name: &str) -> bool {
    let comm = || host.read_text(&format!("/proc/{pid}/comm")).is_ok_and(|c| c == name.get(..COMM).unwrap_or(name));
    let exe = || {
        let Ok(path) = host.readlink(&format!("/proc/{pid}/exe")) else { return false };
        let path = path.strip_suffix(" (deleted)").unwrap_or(&path);
        path == name || path.rsplit('/').next() == Some(name)
    };
    !name.is_empty() && ((!name.contains('/') && comm()) || exe())
}

fn namespace(host: &dyn Host, pid: &str) -> Option<String> {
    host.readlink(&format!("/proc/{pid}/ns/net")).ok()
}

pub(crate) fn inodes_of(host: &dyn Host, pid: u32) -> Result<Vec<u64>, Error> {
    let dir = format!("/proc/{pid}/fd");
    let mut inodes = Vec::new();
    for fd in host.list(&dir)? {
        match host.readlink(&format!("{dir}/{fd}")) {
            Ok(target) => inodes.extend(sockets::inode(&target)),
            // Closed meanwhile.
            Err(e) if e.is_absent() => {}
            // Without CAP_SYS_PTRACE the list of another user's process can be read, but not what is open.
            Err(e) => return Err(e),
        }
    }
    Ok(inodes)
}
