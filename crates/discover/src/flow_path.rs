//! The path of one flow beyond the device: routes down to interfaces with queues, and sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ringwise_kfmt::inet_diag::{self, ConnectedSocket};
use ringwise_kfmt::sockets::{self, Connected};
use ringwise_model::errno::{ENOENT, ESRCH};
use ringwise_model::{ControlReason, CpuId, CpuSet, Fact, Unread};
use ringwise_sys::Host;

use crate::control::LinkTopology;
use crate::read::Reader;

/// The path to one address, as the kernel would choose it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowPath {
    /// It is an address of this host.
    pub local: bool,
    /// The interface that the route names.
    pub out: Option<String>,
    /// The route's interface and the interfaces below it, from the top.
    pub via: Vec<String>,
    /// Interfaces with queues at the bottom; several for a bond.
    pub members: Fact<Vec<String>>,
}

/// Requests the route from the kernel (RTM_GETROUTE) and follows its interface down. What cannot be read becomes an
/// unknown fact of the path.
pub fn path_to(host: &dyn Host, to: IpAddr) -> FlowPath {
    let mut r = Reader::new(host);
    let ports = crate::links::ports(&mut r);
    let path = LinkTopology::new(&ports).to(&mut r, ControlReason::DefaultRoute { gateway: None }, to);
    let local = path.out.is_none() && path.members.known().is_some_and(Vec::is_empty);
    FlowPath { local, out: path.out, via: path.via, members: path.members }
}

/// The hash key that the kernel provides for drivers without one of their own.
pub fn host_key(host: &dyn Host) -> Fact<String> {
    Reader::new(host).text("/proc/sys/net/core/netdev_rss_key")
}

/// Protocol number and connection. Missing files (no IPv6) are skipped.
pub fn connections(host: &dyn Host) -> Result<Vec<(u8, Connected)>, String> {
    let mut out = Vec::new();
    for (file, protocol) in [("tcp", 6), ("tcp6", 6), ("udp", 17), ("udp6", 17)] {
        let path = format!("/proc/net/{file}");
        match host.read_text(&path) {
            Ok(text) => {
                let all = sockets::connected(&text).map_err(|e| format!("{path}: {e}"))?;
                out.extend(all.into_iter().map(|c| (protocol, c)));
            }
            Err(e) if e.is_absent() => {}
            Err(e) => return Err(format!("{path}: {}", e.reason())),
        }
    }
    Ok(out)
}

/// Local addresses of the connections of these processes, without those of loopback addresses and those from an address of the host to
/// itself, which no NIC carries. A process that has ended has none.
///
/// Errors: the connections, or the open files of a process, cannot be read.
pub fn connected_addresses(host: &dyn Host, pids: &BTreeSet<u32>) -> Result<BTreeMap<u32, BTreeSet<IpAddr>>, Unread> {
    let mut out = BTreeMap::new();
    if pids.is_empty() {
        return Ok(out);
    }
    let all = connections(host).map_err(|why| Unread::new("/proc/net", None, why))?;
    let outside = all.iter().filter(|(_, c)| c.local.0 != c.peer.0);
    let by_inode: BTreeMap<u64, IpAddr> = outside.map(|(_, c)| (c.inode, c.local.0)).collect();
    for pid in pids {
        let inodes = match crate::sockets::inodes_of(host, *pid) {
            Ok(inodes) => inodes,
            Err(e) if matches!(e.errno, Some(ENOENT | ESRCH)) => continue,
            Err(e) => return Err(Unread::new(e.what.clone(), e.errno, e.reason())),
        };
        let addresses = inodes.iter().filter_map(|i| by_inode.get(i)).copied().filter(|a| !a.is_loopback());
        out.insert(*pid, addresses.collect());
    }
    Ok(out)
}

/// Connections with their protocol and received packets so far, if the kernel counts them (TCP).
#[derive(Debug, Clone, Default)]
pub struct OpenConnections {
    /// IP protocol number (6 TCP, 17 UDP), and the connection; packets of UDP are never counted.
    pub all: Vec<(u8, ConnectedSocket)>,
    /// Why they come from `/proc`, which does not count packets.
    pub uncounted: Option<String>,
}

/// Of this machine, by sock_diag; where the kernel has none, from `/proc/net`.
pub fn open_connections(host: &dyn Host) -> Result<OpenConnections, String> {
    let asked = || -> Result<Vec<_>, String> {
        let mut all = Vec::new();
        for (protocol, v6) in [(6, false), (6, true), (17, false), (17, true)] {
            match ringwise_sys::connections::dump(protocol, v6) {
                Ok(messages) => {
                    for m in messages {
                        all.push((protocol, inet_diag::connected_socket(&m).map_err(|e| e.to_string())?));
                    }
                }
                // The kernel has no IPv6.
                Err(e) if v6 && e.is_absent() => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(all)
    };
    match asked() {
        Ok(all) => Ok(OpenConnections { all, uncounted: None }),
        Err(why) => {
            let all =
                connections(host)?.into_iter().map(|(p, ends)| (p, ConnectedSocket { ends, received: None })).collect();
            Ok(OpenConnections { all, uncounted: Some(why) })
        }
    }
}

/// A socket that waits for such packets.
pub fn waiting_socket(host: &dyn Host, protocol: u8, to: (IpAddr, u16)) -> Result<Option<u64>, String> {
    let files = match protocol {
        6 => ["tcp", "tcp6"],
        17 => ["udp", "udp6"],
        _ => return Ok(None),
    };
    for f in files {
        let path = format!("/proc/net/{f}");
        let text = match host.read_text(&path) {
            Ok(text) => text,
            Err(e) if e.is_absent() => continue,
            Err(e) => return Err(format!("{path}: {}", e.reason())),
        };
        let all = if protocol == 6 { sockets::tcp(&text) } else { sockets::udp(&text) };
        let all = all.map_err(|e| format!("{path}: {e}"))?;
        if let Some(mine) = all.iter().find(|w| w.port == to.1 && (w.address.is_unspecified() || w.address == to.0)) {
            return Ok(Some(mine.inode));
        }
    }
    Ok(None)
}

/// Who holds a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketHolder {
    /// Process ID in the namespace of this `/proc`.
    pub pid: u32,
    /// None: it ended meanwhile.
    pub name: Option<String>,
    /// The CPU that its main thread ran on last.
    pub last_cpu: Option<CpuId>,
}

/// CPUs that the process may use. Absent: it has ended.
pub fn cpus_allowed(host: &dyn Host, pid: u32) -> Fact<CpuSet> {
    Reader::new(host).parse(&ringwise_knob::path::of_task(pid, "status"), ringwise_kfmt::task::cpus_allowed)
}

/// `None`: no process that can be examined holds it.
pub fn holder(host: &dyn Host, inode: u64) -> Option<SocketHolder> {
    let mut pids: Vec<u32> = host.list("/proc").ok()?.iter().filter_map(|n| n.parse().ok()).collect();
    pids.sort();
    let pid = pids.into_iter().find(|p| crate::sockets::inodes_of(host, *p).is_ok_and(|all| all.contains(&inode)))?;
    let name = host.read_text(&format!("/proc/{pid}/comm")).ok();
    // After the name, which may contain any character; `processor` is the 39th field (proc(5)).
    let stat = host.read_text(&format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let last_cpu = after.split_ascii_whitespace().nth(36).and_then(|w| w.parse().ok()).map(CpuId);
    Some(SocketHolder { pid, name, last_cpu })
}
