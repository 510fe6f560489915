//! Interfaces whose packets most NICs cannot hash by flow, although the kernel can: RPS spreads them.

use std::collections::BTreeMap;

use ringwise_model::{IfIndex, Nic, NicKind, Snapshot};

/// Kinds by `IFLA_INFO_KIND`. `true`: the module creates one interface of the kind in each network namespace
/// (`net/ipv4/ip_tunnel.c`: `ip_tunnel_init_net`; `sit.c`, `ip6_tunnel.c`, `ip6_gre.c` alike), also without
/// traffic. The kernel's hash covers the flow inside each of them (`net/core/flow_dissector.c`), but not inside ESP,
/// WireGuard and L2TP.
const KINDS: [(&str, bool); 8] = [
    ("ppp", false),
    ("gre", true),
    ("gretap", true),
    ("ip6gre", true),
    ("ip6gretap", false),
    ("ipip", true),
    ("sit", true),
    ("ip6tnl", true),
];

/// Kinds of such interfaces of the host that run over this device, or may do so because it is unknown where their
/// packets go.
pub(crate) fn kinds_over(s: &Snapshot, nic: &Nic) -> Vec<&'static str> {
    let by_index = s.by_index();
    let over = |(kind, in_every_namespace): &(&'static str, bool)| {
        let mut unknown = s.bystanders.count.get(*kind).copied().unwrap_or(0);
        for (below, above) in &s.bystanders.above {
            let Some(n) = above.get(*kind) else { continue };
            unknown = unknown.saturating_sub(*n);
            if may_be_below(&by_index, *below, nic) {
                return true;
            }
        }
        let of_kind = |n: &&Nic| matches!(&n.kind, NicKind::Software { kind: k } if k == kind);
        for n in s.nics.iter().filter(of_kind) {
            unknown += u32::from(n.lower.is_empty());
            if n.lower.iter().any(|l| may_be_below(&by_index, *l, nic)) {
                return true;
            }
        }
        unknown > u32::from(*in_every_namespace)
    };
    KINDS.iter().filter(|k| over(k)).map(|(kind, _)| *kind).collect()
}

/// Whether `nic` is this interface or below it, or may be because the way down ends at an interface without queues or
/// without a record.
fn may_be_below(by_index: &BTreeMap<IfIndex, &Nic>, top: IfIndex, nic: &Nic) -> bool {
    let (mut todo, mut seen) = (vec![top], Vec::new());
    while let Some(i) = todo.pop() {
        if seen.contains(&i) {
            continue;
        }
        seen.push(i);
        let Some(at) = by_index.get(&i) else { return true };
        match &at.kind {
            _ if at.name() == nic.name() => return true,
            NicKind::Software { .. } | NicKind::Loopback | NicKind::Unknown if at.lower.is_empty() => return true,
            _ => todo.extend(&at.lower),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::sim::build;

    use super::*;

    fn software(s: &mut Snapshot, name: &str, index: u32, kind: &str, lower: &[u32]) {
        let mut n = s.nics[0].clone();
        (n.dev.name, n.dev.ifindex) = (name.into(), Some(IfIndex(index)));
        n.kind = NicKind::Software { kind: kind.into() };
        n.lower = lower.iter().copied().map(IfIndex).collect();
        (n.rx_queues, n.tx_queues, n.vectors) = (Vec::new(), Vec::new(), Vec::new());
        s.nics.push(n);
    }

    fn two() -> Snapshot {
        let mut s = build::host(8, 1).igb("eth0", 0, 4).igb("eth1", 0, 4).done();
        for (n, i) in s.nics.iter_mut().zip([2, 3]) {
            n.dev.ifindex = Some(IfIndex(i));
        }
        s
    }

    fn of(s: &Snapshot, dev: &str) -> Vec<&'static str> {
        kinds_over(s, s.nic(dev).unwrap())
    }

    #[test]
    fn ppp_may_run_over_any_port() {
        let mut s = two();
        s.bystanders.count = [("vlan".to_string(), 3), ("vxlan".into(), 1), ("wireguard".into(), 1)].into();
        assert_eq!((of(&s, "eth0"), of(&s, "eth1")), (vec![], vec![]));
        s.bystanders.count.insert("ppp".into(), 1);
        assert_eq!((of(&s, "eth0"), of(&s, "eth1")), (vec!["ppp"], vec!["ppp"]));
        // The interface of the default route is in the list of interfaces.
        let mut s = two();
        software(&mut s, "ppp0", 9, "ppp", &[]);
        assert_eq!(of(&s, "eth1"), ["ppp"]);
    }

    #[test]
    fn a_tunnel_over_a_known_port_concerns_only_this_port() {
        let mut s = two();
        software(&mut s, "eth1.7", 8, "vlan", &[3]);
        software(&mut s, "gre1", 9, "gre", &[8]);
        assert_eq!((of(&s, "eth0"), of(&s, "eth1")), (vec![], vec!["gre"]));
        // The same if the tunnels are only counted.
        let mut s = two();
        s.bystanders.count.insert("ipip".into(), 2);
        s.bystanders.above.insert(IfIndex(2), [("ipip".to_string(), 2)].into());
        assert_eq!((of(&s, "eth0"), of(&s, "eth1")), (vec!["ipip"], vec![]));
        // No record of the interface below.
        s.bystanders.above.insert(IfIndex(77), [("sit".to_string(), 1)].into());
        s.bystanders.count.insert("sit".into(), 1);
        assert_eq!(of(&s, "eth1"), ["sit"]);
    }

    #[test]
    fn the_interface_that_the_module_creates_does_not_count() {
        let mut s = two();
        s.bystanders.count = [("sit".to_string(), 1), ("gre".into(), 1), ("gretap".into(), 1)].into();
        assert!(of(&s, "eth0").is_empty());
        s.bystanders.count.insert("gre".into(), 2);
        assert_eq!(of(&s, "eth0"), ["gre"]);
    }
}
