//! Paths that must not be interrupted: to the peers of ssh sessions, default routes and network disks. Each is followed
//! from its route down to the devices with queues.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ringwise_kfmt::route::{self, DefaultRoute};
use ringwise_model::order::Order;
use ringwise_model::{ControlPath, ControlReason, Fact, IfIndex, Unread};
use ringwise_sys::{Host, Request, alone_with_deadline};

use crate::links::{self, Port, Sort};
use crate::read::Reader;

/// File systems on another host.
const NETWORK: &[&str] = &["nfs", "nfs4", "cifs", "smb3", "ceph", "afs", "9p", "lustre"];
const ISCSI: &str = "/sys/class/iscsi_connection";

/// The present paths. Unknown: not even the interfaces could be read in time.
pub fn control(host: &Arc<dyn Host>, deadline: Duration) -> Fact<Vec<ControlPath>> {
    let h = host.clone();
    let read = move || {
        let mut r = Reader::new(h.as_ref());
        let ports = links::ports(&mut r);
        paths(h.as_ref(), &ports)
    };
    alone_with_deadline(host, "control path", deadline, read).map_or_else(|| late(deadline), Fact::Known)
}

pub(crate) fn late(deadline: Duration) -> Fact<Vec<ControlPath>> {
    Fact::late("control path", deadline)
}

/// What cannot be determined counts as a path over any interface.
pub(crate) fn paths(host: &dyn Host, ports: &[Port]) -> Vec<ControlPath> {
    let mut r = Reader::new(host);
    let net = LinkTopology::new(ports);
    let mut out: Vec<ControlPath> = Vec::new();
    let mut add = |p: ControlPath| {
        // A path that ends in this host (loopback, dummy) cannot be interrupted.
        if !matches!(&p.members, Fact::Known(m) if m.is_empty()) && !out.contains(&p) {
            out.push(p);
        }
    };
    match r.ask(&Request::Sessions, |m| m.iter().map(|m| route::session(m)).collect::<Result<Vec<_>, _>>()) {
        Fact::Known(list) => {
            for s in list {
                let reason = ControlReason::Ssh { peer: s.peer.to_string(), own: s.own };
                add(match &s.scope {
                    Some(dev) => net.by_name(reason, dev),
                    None => net.to(&mut r, reason, s.peer),
                });
            }
        }
        Fact::Absent => {}
        Fact::Unknown(u) => add(unread("ssh sessions", u)),
    }
    match defaults(&mut r) {
        Fact::Known(list) => list.into_iter().for_each(|d| {
            let reason = ControlReason::DefaultRoute { gateway: d.gateway.map(|g| g.to_string()) };
            add(net.by_name(reason, &d.dev));
        }),
        Fact::Absent => {}
        Fact::Unknown(u) => add(unread("default routes", u)),
    }
    match r.text("/proc/self/mounts") {
        Fact::Known(text) => mounts(&text).into_iter().for_each(|m| add(m.path(&net, &mut r))),
        Fact::Absent => {}
        Fact::Unknown(u) => add(unread("network mounts", u)),
    }
    match r.list(ISCSI) {
        Fact::Known(mut list) => {
            list.sort();
            for c in list {
                let address = r.text(&format!("{ISCSI}/{c}/address"));
                let m = Mount { point: None, kind: "iscsi".into(), server: c, address: server_address(address) };
                add(m.path(&net, &mut r));
            }
        }
        Fact::Absent => {}
        Fact::Unknown(u) => add(unread("iSCSI sessions", u)),
    }
    out
}

fn unread(what: &str, u: Unread) -> ControlPath {
    let reason = ControlReason::Unread { what: what.into() };
    ControlPath { reason, out: None, via: Vec::new(), members: Fact::Unknown(u) }
}

fn server_address(address: Fact<String>) -> Result<IpAddr, Unread> {
    let text = match address {
        Fact::Known(t) => t,
        Fact::Absent => return Err(Unread::new("server", None, "the kernel reports no address for it")),
        Fact::Unknown(u) => return Err(u),
    };
    let plain = text.trim_start_matches('[').split([']', '%']).next().unwrap_or_default();
    plain.parse().map_err(|_| Unread::new("server", None, format!("{text} is not an IP address")))
}

/// The default routes with the lowest metric, for each family.
fn defaults(r: &mut Reader) -> Fact<Vec<DefaultRoute>> {
    let (four, six) = match r.host.kernel(&Request::DefaultRoutes) {
        Ok(m) => {
            let text = |i: usize| m.get(i).map(|b| String::from_utf8_lossy(b).into_owned()).unwrap_or_default();
            (Fact::Known(text(0)), Fact::Known(text(1)))
        }
        // Trees of other programs contain the files.
        Err(e) if e.errno.is_none() => (r.text("/proc/net/route"), r.text("/proc/net/ipv6_route")),
        Err(e) => return crate::read::failed("default routes", &e),
    };
    let parse = |f: Fact<String>, p: fn(&str) -> Result<Vec<DefaultRoute>, ringwise_kfmt::ParseError>| {
        f.and_then(|t| match p(&t) {
            Ok(mut list) => {
                let lowest = list.iter().map(|d| d.metric).min();
                list.retain(|d| Some(d.metric) == lowest);
                Fact::Known(list)
            }
            Err(e) => Fact::unknown("default routes", e.to_string()),
        })
    };
    match (parse(four, route::defaults_v4), parse(six, route::defaults_v6)) {
        (Fact::Known(a), Fact::Known(b)) => Fact::Known([a, b].concat()),
        (Fact::Known(a), Fact::Absent) | (Fact::Absent, Fact::Known(a)) => Fact::Known(a),
        (Fact::Absent, Fact::Absent) => Fact::Absent,
        (Fact::Unknown(u), _) | (_, Fact::Unknown(u)) => Fact::Unknown(u),
    }
}

struct Mount {
    point: Option<String>,
    kind: String,
    server: String,
    address: Result<IpAddr, Unread>,
}

impl Mount {
    fn path(self, net: &LinkTopology, r: &mut Reader) -> ControlPath {
        let reason = ControlReason::NetworkMount { point: self.point, kind: self.kind, server: self.server };
        match self.address {
            Ok(a) => net.to(r, reason, a),
            Err(u) => ControlPath { reason, out: None, via: Vec::new(), members: Fact::Unknown(u) },
        }
    }
}

fn mounts(text: &str) -> Vec<Mount> {
    let mut out = Vec::new();
    for line in text.lines() {
        let w: Vec<&str> = line.split_whitespace().collect();
        let [source, point, kind, options, ..] = w[..] else { continue };
        // 9p of a virtual machine needs no network.
        let local = options.split(',').any(|o| o == "trans=virtio" || o == "trans=xen");
        if !NETWORK.contains(&kind) || local {
            continue;
        }
        let named = options.split(',').find_map(|o| o.strip_prefix("addr="));
        // 10.0.0.1:6789,10.0.0.2:6789:/ of ceph; [2001:db8::1]:/export.
        let host = source.trim_start_matches("//").split([',', '/']).next().unwrap_or_default();
        let host = host.strip_suffix(':').unwrap_or(host);
        let host = host.parse::<std::net::SocketAddr>().map_or_else(|_| host.to_string(), |s| s.ip().to_string());
        let server = named.map_or_else(|| host.clone(), str::to_string);
        out.push(Mount {
            point: Some(point.to_string()),
            kind: kind.to_string(),
            address: server_address(Fact::Known(server.clone())),
            server,
        });
    }
    out
}

/// The interfaces, and how they are stacked.
pub(crate) struct LinkTopology<'a> {
    ports: &'a [Port],
    at: HashMap<IfIndex, usize>,
}

impl<'a> LinkTopology<'a> {
    pub(crate) fn new(ports: &'a [Port]) -> Self {
        let at = ports.iter().enumerate().filter_map(|(i, p)| Some((p.ifindex?, i))).collect();
        Self { ports, at }
    }

    pub(crate) fn to(&self, r: &mut Reader, reason: ControlReason, to: IpAddr) -> ControlPath {
        let lost = |reason, u| ControlPath { reason, out: None, via: Vec::new(), members: Fact::Unknown(u) };
        let request = Request::Route { to };
        let found = r.ask(&request, |m| match m.first() {
            Some(m) => route::route(m),
            None => Err(ringwise_kfmt::ParseError::new("route message", "none", "one")),
        });
        match found {
            Fact::Known(found) if found.local => {
                ControlPath { reason, out: None, via: Vec::new(), members: Fact::Known(Vec::new()) }
            }
            Fact::Known(route::Route { out: Some(i), .. }) => match self.at.get(&IfIndex(i)) {
                Some(i) => self.follow(reason, *i),
                None => lost(reason, Unread::new(request.to_string(), None, format!("no interface has the index {i}"))),
            },
            Fact::Known(_) => lost(reason, Unread::new(request.to_string(), None, "the route names no interface")),
            Fact::Absent => lost(reason, Unread::new(request.to_string(), None, "there is no route to it")),
            Fact::Unknown(u) => lost(reason, u),
        }
    }

    fn by_name(&self, reason: ControlReason, dev: &str) -> ControlPath {
        match self.ports.iter().position(|p| p.name == dev) {
            Some(i) => self.follow(reason, i),
            None => {
                let u = Unread::new(dev, None, format!("there is no interface {dev}"));
                ControlPath { reason, out: None, via: Vec::new(), members: Fact::Unknown(u) }
            }
        }
    }

    /// Follows the path from the interface of the route down to devices with queues of their own.
    fn follow(&self, reason: ControlReason, top: usize) -> ControlPath {
        let mut via: Vec<String> = Vec::new();
        let mut members: Vec<String> = Vec::new();
        let mut lost: Option<Unread> = None;
        let (mut todo, mut seen) = (vec![(top, false)], vec![top]);
        while let Some((i, below_master)) = todo.pop() {
            let p = &self.ports[i];
            let kind = match &p.sort {
                Sort::Own => {
                    members.push(p.name.clone());
                    continue;
                }
                Sort::Loopback => continue,
                Sort::Software(kind) => kind.as_str(),
            };
            // Ports of a bridge that connect guests and containers are end points.
            if below_master && p.lower.is_empty() {
                continue;
            }
            via.push(p.name.clone());
            if p.lower.is_empty() && !matches!(kind, "dummy" | "bridge" | "bond" | "team") {
                let why =
                    format!("it is unknown where packets of {} ({}) go", p.name, ringwise_model::words::article(kind));
                lost.get_or_insert(Unread::new(p.name.clone(), None, why));
            }
            let master = matches!(kind, "bridge" | "bond" | "team");
            for l in p.lower.iter().rev().filter_map(|l| self.at.get(l)) {
                if !seen.contains(l) {
                    seen.push(*l);
                    todo.push((*l, below_master || master));
                }
            }
        }
        members.order_by(|a, b| crate::natural::compare(a, b));
        let out = Some(self.ports[top].name.clone());
        if via.is_empty() {
            via.clone_from(&members);
        }
        let members = match lost {
            Some(u) => Fact::Unknown(u),
            None => Fact::Known(members),
        };
        ControlPath { reason, out, via, members }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, index: u32, sort: Sort, lower: &[u32]) -> Port {
        let lower = lower.iter().copied().map(IfIndex).collect();
        Port { name: name.into(), ifindex: Some(IfIndex(index)), sort, lower, master: None, info: None }
    }

    fn soft(kind: &str) -> Sort {
        Sort::Software(kind.into())
    }

    fn why() -> ControlReason {
        ControlReason::DefaultRoute { gateway: None }
    }

    #[test]
    fn down_to_the_hardware() {
        let ports = [
            port("lo", 1, Sort::Loopback, &[]),
            port("eth1", 2, Sort::Own, &[]),
            port("eth2", 3, Sort::Own, &[]),
            port("bond0", 4, soft("bond"), &[2, 3]),
            port("bond0.100", 5, soft("vlan"), &[4]),
            port("br0", 6, soft("bridge"), &[5, 7, 8]),
            port("vnet3", 7, soft("tun"), &[]),
            port("eth3", 8, Sort::Own, &[]),
            port("wg0", 9, soft("wireguard"), &[]),
            port("dummy0", 10, soft("dummy"), &[]),
        ];
        let net = LinkTopology::new(&ports);
        let text = |dev: &str| net.by_name(why(), dev).to_string();
        assert_eq!(text("bond0.100"), "the default route (over bond0.100 -> bond0 -> eth1 eth2)");
        assert_eq!(text("br0"), "the default route (over br0 -> bond0.100 -> bond0 -> eth1 eth2 eth3)");
        assert_eq!(text("eth3"), "the default route (over eth3)");
        let wg = net.by_name(why(), "wg0");
        assert!(wg.over("eth1").is_err(), "{wg}");
        assert_eq!(net.by_name(why(), "dummy0").members, Fact::Known(vec![]));
        assert!(net.by_name(why(), "gone0").members.unread().is_some());
    }

    #[test]
    fn mounts_of_the_network() {
        let text = "server:/root / nfs4 rw,vers=4.2,addr=192.0.2.7,clientaddr=192.0.2.1 0 0\n\
                    //nas/share /srv cifs rw,addr=2001:db8::7 0 0\n\
                    10.0.0.1:6789,10.0.0.2:6789:/ /c ceph rw 0 0\n\
                    proc /proc proc rw 0 0\n\
                    host /host 9p rw,trans=virtio 0 0\n\
                    fs:/x /x nfs rw 0 0\n";
        let got = mounts(text);
        let got: Vec<_> =
            got.iter().map(|m| (m.point.as_deref(), m.address.as_ref().ok().map(IpAddr::to_string))).collect();
        let ip = |s: &str| Some(s.to_string());
        assert_eq!(
            got,
            [
                (Some("/"), ip("192.0.2.7")),
                (Some("/srv"), ip("2001:db8::7")),
                (Some("/c"), ip("10.0.0.1")),
                (Some("/x"), None),
            ]
        );
    }
}
