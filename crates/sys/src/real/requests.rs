//! Bodies of the netlink requests, the generic netlink families, and a pool of sockets.
//!
//! `ethtool` replies and requests: `linux/ethtool_netlink.h`; `netdev`: `linux/netdev.h`; `net-shaper`: `linux/net_shaper.h`;
//! links and addresses: `linux/rtnetlink.h`, `linux/if_link.h`.

use std::sync::Mutex;
use std::time::Duration;

use super::netlink::{Fail, NLA_F_NESTED, NLM_F_DUMP, Socket, TIMEOUT, attrs, put_attr};
use crate::host::{Error, Request, Result};
use crate::ifindex::ifindex;

const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;
const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
const RTM_GETQDISC: u16 = 38;
/// `sizeof(struct tcmsg)`.
const TCMSG: usize = 20;
const IFLA_IFNAME: u16 = 3;
const RTA_DST: u16 = 1;
const IFLA_EXT_MASK: u16 = 29;
/// Omits the statistics of the address families, the largest part of a link's message. Newer kernels (seen on 7.3) omit the device's own
/// counters, too.
const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;
/// In every ethtool request the header nest is attribute 1, in it the device name attribute 2.
const ETHTOOL_A_HEADER: u16 = 1;
const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const ETHTOOL_A_HEADER_FLAGS: u16 = 3;
const ETHTOOL_FLAG_STATS: u32 = 1 << 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_CMD_QUEUE_GET: u8 = 10;
const NETDEV_CMD_QSTATS_GET: u8 = 12;
const NETDEV_A_QSTATS_SCOPE: u16 = 4;
const NETDEV_QSTATS_SCOPE_QUEUE: u32 = 1;
const NET_SHAPER_CMD_GET: u8 = 1;
const NET_SHAPER_A_IFINDEX: u16 = 8;
const DUMP_TRIES: u32 = 8;

/// Idle sockets, and the IDs of the families, which do not change until the machine restarts.
#[derive(Default)]
pub(super) struct Pool {
    route: Vec<Socket>,
    generic: Vec<Socket>,
    families: Vec<(&'static str, u16)>,
}

impl Pool {
    fn idle(&mut self, protocol: i32) -> &mut Vec<Socket> {
        if protocol == libc::NETLINK_ROUTE { &mut self.route } else { &mut self.generic }
    }
}

fn lock(pool: &Mutex<Pool>) -> std::sync::MutexGuard<'_, Pool> {
    pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn error(what: &str, fail: Fail) -> Error {
    match fail {
        Fail::Kernel { errno, words } => Error { words, ..Error::errno(what, errno) },
        Fail::Socket(errno) => Error { words: Some("netlink socket".into()), ..Error::errno(what, errno) },
        Fail::Timeout => Error { errno: Some(libc::ETIMEDOUT), ..Error::late(what, TIMEOUT) },
        Fail::Inconsistent => Error::other(what, format!("the list changed during each of {DUMP_TRIES} readings")),
        Fail::Broken(words) => Error::other(what, words),
    }
}

/// A dump on a socket of its own, for families that are queried once.
pub(crate) fn dump_once(what: &str, protocol: i32, kind: u16, body: &[u8]) -> Result<Vec<Vec<u8>>> {
    exchange(&Mutex::default(), protocol, kind, NLM_F_DUMP, body).map_err(|f| error(what, f))
}

/// One exchange on a socket of the pool. The pool is locked only to take a socket and to return it.
fn exchange(
    pool: &Mutex<Pool>,
    protocol: i32,
    kind: u16,
    flags: u16,
    body: &[u8],
) -> std::result::Result<Vec<Vec<u8>>, Fail> {
    let idle = lock(pool).idle(protocol).pop();
    let mut socket = match idle {
        Some(socket) => socket,
        None => Socket::open(protocol)?,
    };
    for attempt in 1.. {
        match socket.request(kind, flags, body) {
            Err(Fail::Inconsistent) if attempt < DUMP_TRIES => {
                std::thread::sleep(Duration::from_millis(u64::from(attempt)));
            }
            answer => {
                if answer.as_ref().err().is_none_or(Fail::in_step) {
                    lock(pool).idle(protocol).push(socket);
                }
                return answer;
            }
        }
    }
    unreachable!("the last attempt returns")
}

/// What the kernel reports about a generic netlink family.
fn described(pool: &Mutex<Pool>, what: &str, name: &str) -> Result<Vec<Vec<u8>>> {
    let mut body = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
    put_attr(&mut body, CTRL_ATTR_FAMILY_NAME, format!("{name}\0").as_bytes());
    exchange(pool, libc::NETLINK_GENERIC, GENL_ID_CTRL, 0, &body).map_err(|fail| {
        let mut e = error(what, fail);
        if e.errno == Some(libc::ENOENT) {
            e.words = Some(format!("this kernel has no generic netlink family \"{name}\""));
        }
        e
    })
}

/// The number of a multicast group of a generic netlink family.
pub(crate) fn group(family: &str, group: &str) -> Result<u32> {
    let what = format!("find group {group} of {family}");
    let replies = described(&Mutex::default(), &what, family)?;
    let groups = replies
        .iter()
        .flat_map(|r| attrs(r.get(4..).unwrap_or_default()))
        .filter(|(kind, _)| *kind == CTRL_ATTR_MCAST_GROUPS)
        .flat_map(|(_, list)| attrs(list));
    let named = groups.filter_map(|(_, one)| {
        let of = |wanted: u16| attrs(one).find(|(kind, _)| *kind == wanted).map(|(_, v)| v);
        let id = u32::from_ne_bytes(of(CTRL_ATTR_MCAST_GRP_ID)?.try_into().ok()?);
        Some((of(CTRL_ATTR_MCAST_GRP_NAME)?.to_vec(), id))
    });
    let found = named.into_iter().find(|(name, _)| name.strip_suffix(b"\0").unwrap_or(name) == group.as_bytes());
    found.map(|(_, id)| id).ok_or_else(|| Error::other(what.clone(), "this kernel has no such group"))
}

fn family(pool: &Mutex<Pool>, what: &str, name: &'static str) -> Result<u16> {
    if let Some((_, id)) = lock(pool).families.iter().find(|(n, _)| *n == name) {
        return Ok(*id);
    }
    let id = described(pool, what, name)?
        .iter()
        .flat_map(|r| attrs(r.get(4..).unwrap_or_default()))
        .find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)
        .and_then(|(_, v)| Some(u16::from_ne_bytes(v.try_into().ok()?)))
        .ok_or_else(|| Error::other(what, format!("the kernel reports no id for the family \"{name}\"")))?;
    lock(pool).families.push((name, id));
    Ok(id)
}

fn generic(pool: &Mutex<Pool>, what: &str, name: &'static str, flags: u16, body: &[u8]) -> Result<Vec<Vec<u8>>> {
    let id = family(pool, what, name)?;
    let mut replies = exchange(pool, libc::NETLINK_GENERIC, id, flags, body).map_err(|f| error(what, f))?;
    for reply in &mut replies {
        reply.drain(..reply.len().min(4)); // genlmsghdr
    }
    Ok(replies)
}

fn ethtool_body(cmd: u8, dev: &str, rest: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    put_attr(&mut header, ETHTOOL_A_HEADER_DEV_NAME, format!("{dev}\0").as_bytes());
    let mut body = vec![cmd, 1, 0, 0];
    put_attr(&mut body, ETHTOOL_A_HEADER | NLA_F_NESTED, &header);
    body.extend_from_slice(rest);
    body
}

fn ethtool_stats_body(cmd: u8, dev: &str) -> Vec<u8> {
    let mut header = Vec::new();
    put_attr(&mut header, ETHTOOL_A_HEADER_DEV_NAME, format!("{dev}\0").as_bytes());
    put_attr(&mut header, ETHTOOL_A_HEADER_FLAGS, &ETHTOOL_FLAG_STATS.to_ne_bytes());
    let mut body = vec![cmd, 1, 0, 0];
    put_attr(&mut body, ETHTOOL_A_HEADER | NLA_F_NESTED, &header);
    body
}

fn netdev_body(cmd: u8, index: u32) -> Vec<u8> {
    let mut body = vec![cmd, 1, 0, 0];
    let attr = if cmd == NETDEV_CMD_QUEUE_GET { 2 } else { 1 };
    put_attr(&mut body, attr, &index.to_ne_bytes());
    if cmd == NETDEV_CMD_QSTATS_GET {
        // Without a scope the kernel returns only one sum per device.
        put_attr(&mut body, NETDEV_A_QSTATS_SCOPE, &NETDEV_QSTATS_SCOPE_QUEUE.to_ne_bytes());
    }
    body
}

fn net_shaper_body(index: u32) -> Vec<u8> {
    let mut body = vec![NET_SHAPER_CMD_GET, 1, 0, 0];
    put_attr(&mut body, NET_SHAPER_A_IFINDEX, &index.to_ne_bytes());
    body
}

fn links_body() -> Vec<u8> {
    let mut body = vec![0; 16]; // ifinfomsg: any family, any index
    put_attr(&mut body, IFLA_EXT_MASK, &RTEXT_FILTER_SKIP_STATS.to_ne_bytes());
    body
}

/// With the counters of the device.
fn link_body(dev: &str) -> Vec<u8> {
    let mut body = vec![0; 16];
    put_attr(&mut body, IFLA_IFNAME, format!("{dev}\0").as_bytes());
    body
}

/// `rtmsg` (family, destination length; the rest 0) and the destination.
fn route_body(to: std::net::IpAddr) -> Vec<u8> {
    let (family, bytes) = match to {
        std::net::IpAddr::V4(a) => (libc::AF_INET, a.octets().to_vec()),
        std::net::IpAddr::V6(a) => (libc::AF_INET6, a.octets().to_vec()),
    };
    let mut body = vec![0; 12];
    (body[0], body[1]) = (family as u8, bytes.len() as u8 * 8);
    put_attr(&mut body, RTA_DST, &bytes);
    body
}

pub(super) fn netlink(pool: &Mutex<Pool>, request: &Request) -> Result<Vec<Vec<u8>>> {
    let what = request.to_string();
    let route =
        |kind, body: &[u8]| exchange(pool, libc::NETLINK_ROUTE, kind, NLM_F_DUMP, body).map_err(|f| error(&what, f));
    match request {
        Request::Links => route(RTM_GETLINK, &links_body()),
        Request::Addrs => route(RTM_GETADDR, &[0; 8]),
        Request::Qdiscs => route(RTM_GETQDISC, &[0; TCMSG]),
        Request::Link { dev } => {
            exchange(pool, libc::NETLINK_ROUTE, RTM_GETLINK, 0, &link_body(dev)).map_err(|f| error(&what, f))
        }
        Request::EthtoolStats { cmd, dev, .. } => generic(pool, &what, "ethtool", 0, &ethtool_stats_body(*cmd, dev)),
        Request::Route { to } => {
            exchange(pool, libc::NETLINK_ROUTE, RTM_GETROUTE, 0, &route_body(*to)).map_err(|f| error(&what, f))
        }
        Request::DefaultRoutes | Request::Sessions => Err(Error::other(what, "not a netlink request")),
        Request::EthtoolGet { cmd, dev, .. } => generic(pool, &what, "ethtool", 0, &ethtool_body(*cmd, dev, &[])),
        Request::EthtoolDump { cmd, dev, .. } => {
            generic(pool, &what, "ethtool", NLM_F_DUMP, &ethtool_body(*cmd, dev, &[]))
        }
        Request::EthtoolSet { cmd, dev, attrs, .. } => {
            generic(pool, &what, "ethtool", 0, &ethtool_body(*cmd, dev, attrs))
        }
        Request::NetdevDump { cmd, dev, .. } => {
            let index = ifindex(&what, dev)?;
            let flags = if *cmd == NETDEV_CMD_DEV_GET { 0 } else { NLM_F_DUMP };
            generic(pool, &what, "netdev", flags, &netdev_body(*cmd, index))
        }
        Request::NetShaperDump { dev } => {
            let body = net_shaper_body(ifindex(&what, dev)?);
            generic(pool, &what, "net-shaper", NLM_F_DUMP, &body)
        }
        Request::NetdevSet { cmd, attrs, .. } => {
            generic(pool, &what, "netdev", 0, &[&[*cmd, 1, 0, 0][..], attrs].concat())
        }
        Request::Ioctl { .. }
        | Request::StatNames { .. }
        | Request::StatValues { .. }
        | Request::ThreadCpus { .. }
        | Request::Sleep { .. }
        | Request::Irqbalance { .. }
        | Request::Place { .. }
        | Request::DaemonReload => Err(Error::other(what, "not a netlink request")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_byte_exact() {
        // ringwise is built for little-endian hosts only
        let body = ethtool_body(17, "eth1", &[]);
        let want = b"\x11\x01\0\0\x10\0\x01\x80\x09\0\x02\0eth1\0\0\0\0";
        assert_eq!(body, want);
        assert_eq!(netdev_body(10, 3), b"\x0a\x01\0\0\x08\0\x02\0\x03\0\0\0");
        assert_eq!(netdev_body(11, 3), b"\x0b\x01\0\0\x08\0\x01\0\x03\0\0\0");
        assert_eq!(netdev_body(12, 3), b"\x0c\x01\0\0\x08\0\x01\0\x03\0\0\0\x08\0\x04\0\x01\0\0\0");
        assert_eq!(net_shaper_body(3), b"\x01\x01\0\0\x08\0\x08\0\x03\0\0\0");
        assert_eq!(links_body()[16..], *b"\x08\0\x1d\0\x08\0\0\0");
        assert_eq!(link_body("lo")[16..], *b"\x07\0\x03\0lo\0\0");
        let want = b"\x15\x01\0\0\x14\0\x01\x80\x07\0\x02\0lo\0\0\x08\0\x03\0\x04\0\0\0";
        assert_eq!(ethtool_stats_body(21, "lo"), want);
        assert_eq!(route_body([192, 0, 2, 1].into()), b"\x02\x20\0\0\0\0\0\0\0\0\0\0\x08\0\x01\0\xc0\0\x02\x01");
    }
}
