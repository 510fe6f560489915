//! Hosts that forward, interfaces above and beside, links, and rules for old kernels.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{Count, Dir, Goal, Nic, NicKind};

use crate::cx::Cx;
use crate::fix::Fix;
use crate::found::ForwardFound;
use crate::rule::Rule;
use crate::severity::{Confidence, Severity};

const XDP: &str = "The eXpress Data Path (CoNEXT 2018), public measurements";
const HTTP: &str = "Extreme HTTP performance tuning (talawah.io, 2021)";
const IPSYS: &str = "kernel documentation, networking/ip-sysctl";
const CONNTRACK: &str = "kernel documentation, networking/nf_conntrack-sysctl";
const ROUTER: &str = "Multi-queue network interfaces with SMP on Linux (Greenhost)";

const TRACKED: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// A value of a member of a bond; `None`: unknown, or the driver has none.
type MemberValue<'a> = &'a dyn Fn(&Nic) -> Option<String>;

/// The bonds and teams, each with its listed members.
fn bonds<'a>(cx: &Cx<'a>) -> impl Iterator<Item = (&'a Nic, Vec<&'a Nic>)> {
    let s = cx.s;
    s.nics.iter().filter_map(move |b| {
        b.bond.as_ref()?;
        let members: Vec<&Nic> = s.nics.iter().filter(|n| n.master.is_some() && n.master == b.dev.ifindex).collect();
        (!members.is_empty()).then_some((b, members))
    })
}

fn modules(cx: &Cx) -> Option<BTreeSet<String>> {
    let text = cx.i.extra.file("/proc/modules");
    Some(text.known()?.split_ascii_whitespace().map(str::to_string).collect::<BTreeSet<_>>())
}

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "F01",
        title: "connection tracking takes the time",
        reads: "nf_conntrack_count, /proc/stat",
        guard: "a host that forwards and tracks connections",
        condition: "more than 1,000 connections, and a CPU above 80 % interrupt time",
        why: "A look into the table, and a change of the entry, for every packet: measured by others, 1.8 instead of 4.8 million packets a second on a core.",
        source: XDP,
        rates: true,
        confidence: Confidence::Likely,
        by_hand: &[
            "nft notrack for what needs none; a flowtable for what is only forwarded. Rules are yours: nothing is changed here",
        ],
        judge: |cx, say| {
            if !cx.forwards() {
                return None;
            }
            let n = say.take(cx.i.extra.number(TRACKED))?;
            let (cpu, top, _) = cx.traffic(say)?.busiest()?;
            if n > 1000 && top > 80.0 {
                say.found(ForwardFound::TrackingBusyCpu { connections: n, cpu, percent: top });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "F02",
        title: "the connection table is nearly full",
        reads: "nf_conntrack_count, nf_conntrack_max",
        guard: "connections are tracked",
        condition: "above four fifths of the maximum",
        severity: Severity::Error,
        why: "When it is full packets of new connections are dropped.",
        source: CONNTRACK,
        by_hand: &["sysctl net.netfilter.nf_conntrack_max=N, or shorter timeouts"],
        judge: |cx, say| {
            let n = say.take(cx.i.extra.number(TRACKED))?;
            let max = say.take(cx.i.extra.number("/proc/sys/net/netfilter/nf_conntrack_max"))?;
            if max > 0 && n * 5 > max * 4 {
                say.found(ForwardFound::TrackingNearlyFull { connections: n, most: max });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "F03",
        title: "firewall tables in the way",
        reads: "/proc/net/ip_tables_names",
        guard: "a host that forwards; root",
        condition: "tables of iptables are loaded",
        severity: Severity::Info,
        why: "Every packet goes through the chains of every table that is loaded, empty ones too. Whether rules are needed is yours to say: nothing is changed or proposed here.",
        source: HTTP,
        by_hand: &["iptables-save tells what is in them; raw notrack for what needs no tracking"],
        judge: |cx, say| {
            if !cx.forwards() {
                return None;
            }
            let t = say.take(cx.i.extra.file("/proc/net/ip_tables_names"))?;
            if !t.is_empty() {
                let tables = t.split_ascii_whitespace().map(str::to_string).collect();
                say.found(ForwardFound::IptablesTables { tables });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "F04",
        title: "forwarded flows could take the short way",
        reads: "/proc/modules, nf_conntrack_count",
        guard: "a host that forwards with nf_tables and tracks more than 1,000 connections",
        condition: "no flowtable module is loaded",
        severity: Severity::Info,
        why: "A flowtable sends packets of known connections on from the ingress, past routing and rules.",
        source: "kernel documentation, networking/nf_flowtable",
        confidence: Confidence::Likely,
        by_hand: &["a flowtable in the nft ruleset; rules are yours, nothing is changed here"],
        judge: |cx, say| {
            if !cx.forwards() {
                return None;
            }
            let n = say.take(cx.i.extra.number(TRACKED))?;
            let m = modules(cx)?;
            if !m.contains("nf_tables") || n <= 1000 {
                return None;
            }
            if !m.iter().any(|m| m.starts_with("nf_flow_table")) {
                say.found(ForwardFound::NoFlowtable { connections: n });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "F05",
        title: "source addresses are looked up too",
        reads: "rp_filter of all and of the interface",
        guard: "a host that forwards",
        condition: "the larger of the two is not 0",
        severity: Severity::Info,
        why: "Each packet takes a second look into the routes, for its source. It keeps forged packets out: site policy decides.",
        source: IPSYS,
        by_hand: &["sysctl net.ipv4.conf.DEV.rp_filter=0 and conf.all=0, if something else filters"],
        judge: |cx, say| {
            if !cx.forwards() {
                return None;
            }
            let all = say.take(cx.i.extra.number("/proc/sys/net/ipv4/conf/all/rp_filter"))?;
            cx.each(say, |n, say| {
                let own = say.take(cx.i.extra.number(&format!("/proc/sys/net/ipv4/conf/{}/rp_filter", n.name())))?;
                if own.max(all) > 0 {
                    say.found(ForwardFound::ReversePathFilter { value: own.max(all) });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "F07",
        title: "bridged packets go through the firewall",
        reads: "net.bridge.bridge-nf-call-iptables, bridges",
        guard: "a bridge with a port that has queues of its own",
        condition: "it is 1",
        why: "Frames that are only switched climb up to the rules for routed packets and back.",
        source: "kernel documentation, networking/ip-sysctl: bridge-nf",
        by_hand: &["sysctl net.bridge.bridge-nf-call-iptables=0, unless rules rely on it (container networks do)"],
        confidence: Confidence::Likely,
        severity: Severity::Info,
        judge: |cx, say| {
            let by_index = cx.s.by_index();
            let bridge = |n: &&&Nic| {
                let m = n.master.and_then(|m| by_index.get(&m));
                m.is_some_and(|m| matches!(&m.kind, NicKind::Software { kind } if kind == "bridge"))
            };
            let port = cx.nics.iter().find(bridge)?;
            let on = say.take(cx.i.extra.number("/proc/sys/net/bridge/bridge-nf-call-iptables"))?;
            if on > 0 {
                say.found(ForwardFound::BridgeCallsIptables { port: port.name().to_string() });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "F08",
        title: "VLAN tags are handled by the CPU",
        reads: "features rx-vlan-hw-parse, tx-vlan-hw-insert; VLANs above",
        guard: "VLANs lie on the interface",
        condition: "one of them is off and can be switched on",
        severity: Severity::Info,
        why: "The tag is taken out and put in by copying headers, and some devices hash such frames by less.",
        source: "kernel documentation, networking/netdev-features",
        ours: Some("--set DEV.features.rxvlan=true --allow-disruption"),
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let above = n.dev.ifindex.and_then(|i| cx.s.bystanders.above.get(&i));
                let vlans = above.and_then(|k| k.get("vlan"))?;
                let all = say.get(&n.features)?;
                let off: Vec<&str> = ["rx-vlan-hw-parse", "tx-vlan-hw-insert"]
                    .into_iter()
                    .filter(|f| all.get(*f).is_some_and(|f| !f.on && !f.wanted && !f.fixed))
                    .collect();
                if !off.is_empty() {
                    let fix = Fix::all(off.iter().map(|f| Fix::feature(n.name(), f, true)));
                    let features = off.iter().map(|f| f.to_string()).collect();
                    say.found(ForwardFound::VlanOffloadsOff { features, vlans: *vlans }).fix(cx, fix.disruptive());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "F09",
        title: "the bond chooses by MAC address",
        reads: "mode and xmit_hash_policy of the bond",
        guard: "a bond that spreads (802.3ad, balance-xor) on a host that forwards or serves",
        condition: "the policy is layer2",
        severity: Severity::Info,
        why: "Behind a router all frames have the router's address: they leave by one member.",
        source: "kernel documentation, networking/bonding",
        by_hand: &["ip link set DEV type bond xmit_hash_policy layer3+4 (with 802.3ad fragments may take two ways)"],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            let mut any = None;
            for (b, members) in bonds(cx) {
                let spreads =
                    b.bond.as_ref().and_then(|x| x.mode.known()).is_some_and(|m| m == "802.3ad" || m == "balance-xor");
                if !spreads || members.len() < 2 {
                    continue;
                }
                say.at(b.name());
                let Some(p) =
                    say.take(cx.i.extra.file(&format!("/sys/class/net/{}/bonding/xmit_hash_policy", b.name())))
                else {
                    continue;
                };
                any = Some(());
                if p.split_ascii_whitespace().next() == Some("layer2") {
                    say.found(ForwardFound::BondHashesLayer2 { members: members.len() as u32 });
                }
            }
            say.of_host();
            any
        },
        ..Rule::BASE
    },
    Rule {
        id: "F10",
        title: "steered twice",
        reads: "rps_cpus of bonds, bridges and other interfaces above",
        guard: "interfaces without queues of their own lie above",
        condition: "RPS is set there",
        why: "The member has spread the packets already; a second step hands each one on again.",
        source: "kernel documentation, networking/scaling",
        by_hand: &["echo 0 > /sys/class/net/DEV/queues/rx-0/rps_cpus; tune the members"],
        judge: |cx, say| {
            let mut any = None;
            for n in cx.s.nics.iter().filter(|n| !n.has_own_queues() && (n.bond.is_some() || !n.lower.is_empty())) {
                say.at(n.name());
                let Some(mask) =
                    say.take(cx.i.extra.file(&format!("/sys/class/net/{}/queues/rx-0/rps_cpus", n.name())))
                else {
                    continue;
                };
                any = Some(());
                if mask.chars().any(|c| c != '0' && c != ',') {
                    say.found(ForwardFound::RpsWithoutQueues { mask });
                }
            }
            say.of_host();
            any
        },
        ..Rule::BASE
    },
    Rule {
        id: "F11",
        title: "members of a bond differ",
        reads: "channels, rings and moderation of the members",
        guard: "a bond with members of one driver",
        condition: "they differ in the number of queues, ring lengths or moderation",
        why: "Flows fare differently by the member they take, by accident of a hash.",
        source: ROUTER,
        by_hand: &["ringwise plan: members of one bond get one layout; rings and moderation by the configuration file"],
        also: &["R0.13"],
        severity: Severity::Info,
        judge: |cx, say| {
            let mut any = None;
            for (b, members) in bonds(cx) {
                let drivers: BTreeSet<&str> = members.iter().map(|m| cx.driver(m)).collect();
                if members.len() < 2 || drivers.len() != 1 {
                    continue;
                }
                any = Some(());
                say.at(b.name());
                let mut differs = Vec::new();
                let count = |c: Option<Count>| c.map_or_else(|| "-".to_string(), |c| c.now.to_string());
                let kinds: [(&str, MemberValue); 3] = [
                    ("queues", &|n| Some(format!("{}/{}", n.queues_in_use(Dir::Rx)?, n.queues_in_use(Dir::Tx)?))),
                    ("rings", &|n| n.rings.known().map(|r| format!("{}/{}", count(r.rx), count(r.tx)))),
                    ("rx-usecs", &|n| n.coalesce.known()?.0.get("rx-usecs").map(u32::to_string)),
                ];
                for m in &members {
                    // Notes unknown values of a member. An unknown value does not count as a difference.
                    let _ = (say.get(&m.channels), say.get(&m.rings), say.get(&m.coalesce));
                }
                for (what, value) in kinds {
                    let all: BTreeSet<String> = members.iter().filter_map(|m| value(m)).collect();
                    if all.len() > 1 {
                        differs.push((what.to_string(), all.into_iter().collect()));
                    }
                }
                if !differs.is_empty() {
                    say.found(ForwardFound::MembersDiffer { differs });
                }
            }
            say.of_host();
            any
        },
        ..Rule::BASE
    },
    Rule {
        id: "F12",
        title: "two queueing disciplines in a row",
        reads: "queueing disciplines of a hv_netvsc interface and of the function below it",
        guard: "hv_netvsc with a virtual function below it",
        condition: "both have one that queues",
        severity: Severity::Info,
        why: "What is sent waits in the upper one and again in the lower one.",
        source: "flatcar/Flatcar issue 1458",
        by_hand: &["tc qdisc replace dev LOWER root noqueue (the member that is not addressed)"],
        judge: |cx, say| {
            let mut any = None;
            let mut members = BTreeMap::new();
            for o in &cx.s.nics {
                members.entry(o.master).or_insert(o);
            }
            for n in cx.nics.iter().filter(|n| n.dev.ifindex.is_some() && cx.driver(n) == "hv_netvsc") {
                let Some(below) = members.get(&n.dev.ifindex) else { continue };
                say.at(n.name());
                let (Some(a), Some(b)) = (cx.qdisc(n, say), cx.qdisc(below, say)) else { continue };
                any = Some(());
                if a.root != "noqueue" && b.root != "noqueue" {
                    say.found(ForwardFound::TwoDisciplines {
                        here: a.root.clone(),
                        below: b.root.clone(),
                        dev: below.name().to_string(),
                    });
                }
            }
            say.of_host();
            any
        },
        ..Rule::BASE
    },
    Rule {
        id: "F14",
        title: "driver from elsewhere",
        reads: "taint of the driver's module",
        condition: "it was built outside of the kernel",
        severity: Severity::Info,
        why: "It may behave otherwise than the kernel's own: defaults, names of interrupts and counters, what is supported.",
        source: "kernel documentation, admin-guide/tainted-kernels",
        by_hand: &["no fault; compare with the kernel's own when something is strange"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let driver = n.driver.known()?;
                // A driver without this file is built into the kernel.
                let t = say.take(cx.i.extra.file(&format!("/sys/module/{driver}/taint")))?;
                if t.contains('O') {
                    say.found(ForwardFound::ModuleFromElsewhere { module: driver.clone() });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "F15",
        title: "half duplex",
        reads: "duplex",
        condition: "half",
        severity: Severity::Error,
        why: "The two ends did not agree: every collision costs, and frames are lost under load.",
        source: "ethtool(8)",
        by_hand: &["autonegotiation on at both ends, or the same fixed values: ethtool -s DEV autoneg on"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let d = say.get(&n.link.duplex)?;
                if d == "half" {
                    say.found(ForwardFound::HalfDuplex);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "F16",
        title: "the link sleeps between frames",
        reads: "EEE",
        guard: "a goal for latency",
        condition: "energy efficient ethernet is active",
        why: "The first frame after a pause waits until the link is awake, up to tens of microseconds.",
        source: "ethtool(8)",
        by_hand: &["ethtool --set-eee DEV eee off (the link goes down for a moment)"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                if cx.goal_of(n) != Goal::Latency {
                    return None;
                }
                let e = *say.get(cx.i.extra.devs.get(n.name())?.eee.as_ref()?)?;
                if e.active && e.enabled {
                    say.found(ForwardFound::EnergyEfficientEthernet);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "F17",
        title: "takes frames for others",
        reads: "flags of the interface",
        guard: "no port of a bridge, bond or switch",
        condition: "promiscuous",
        severity: Severity::Info,
        why: "Frames that are for other hosts are thrown away by the CPU instead of the device.",
        source: "ip-link(8)",
        by_hand: &["ip -d link show DEV counts who asked (promiscuity); ip link set DEV promisc off"],
        under: &["H18"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                if n.master.is_some() {
                    return None;
                }
                let flags = say.take(cx.i.extra.file(&format!("/sys/class/net/{}/flags", n.name())))?;
                let bits = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
                if bits & 0x100 != 0 {
                    say.found(ForwardFound::Promiscuous);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "F18",
        title: "fragments arrive",
        reads: "/proc/net/snmp Ip ReasmReqds",
        condition: "more than 10 a second",
        why: "Fragments carry no ports: with ports hashed they take another queue than the rest of their flow and arrive out of order. They cost a table of their own besides.",
        source: IPSYS,
        rates: true,
        by_hand: &["the MTU along the way; keep UDP hashed by addresses (sd) while there are fragments"],
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            let rate = t.per_second(t.protocol("Ip:ReasmReqds"));
            if rate > 10.0 {
                say.found(ForwardFound::Fragments { per_second: rate });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "F19",
        title: "queues belong to traffic classes",
        reads: "root queueing discipline",
        condition: "mqprio, taprio or a tree of classes by queue",
        severity: Severity::Info,
        why: "Transmit queues are handed out to classes of traffic: XPS works within a class only, and queues must not be moved between them.",
        source: "tc-mqprio(8)",
        by_hand: &["leave the ranges as they are; lay down XPS within each class by hand"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let q = cx.qdisc(n, say)?;
                if ["mqprio", "taprio"].contains(&q.root.as_str()) {
                    let queues = cx.tx_queues(n).known().copied();
                    say.found(ForwardFound::ClassesOwnQueues { discipline: q.root.clone(), queues });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "F20",
        title: "tunnels are not looked into",
        reads: "features for UDP tunnels, VXLAN and Geneve interfaces",
        guard: "VXLAN or Geneve interfaces are there",
        condition: "rx-udp_tunnel-port-offload is off and can be switched on",
        severity: Severity::Info,
        why: "The device sees one outer flow a peer, and checks no inner checksum.",
        source: "kernel documentation, networking/udp_tunnel",
        ours: Some("--set DEV.features.rx-udp_tunnel-port-offload=true --allow-disruption"),
        judge: |cx, say| {
            let kinds: BTreeMap<&str, u32> = ["vxlan", "geneve"]
                .into_iter()
                .filter_map(|k| Some((k, *cx.s.bystanders.count.get(k)?)))
                .filter(|(_, n)| *n > 0)
                .collect();
            let (kind, n) = kinds.into_iter().next()?;
            cx.each(say, |nic, say| {
                let f = cx.feature(nic, "rx-udp_tunnel-port-offload", say)?;
                if !f.on && !f.fixed && !f.wanted {
                    say.found(ForwardFound::TunnelOffloadOff { kind: kind.to_string(), interfaces: n })
                        .fix(cx, Fix::feature(nic.name(), "rx-udp_tunnel-port-offload", true).disruptive());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "R0.15",
        title: "routing cache",
        reads: "kernel version",
        guard: "kernels before 3.6",
        condition: "the host forwards",
        why: "Such kernels keep an entry for every destination; many destinations fill it (\"dst cache overflow\") and it is thrown away as a whole.",
        source: ROUTER,
        by_hand: &["a newer kernel: there is no such cache since 3.6"],
        judge: |cx, say| {
            if cx.kernel()? >= (3, 6) || !cx.forwards() {
                return None;
            }
            say.found(ForwardFound::RouteCache { kernel: cx.s.host.kernel.known()?.clone() });
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "R1.18",
        title: "route tables of old kernels",
        reads: "kernel version",
        guard: "kernels before 4.0",
        condition: "the host forwards",
        severity: Severity::Info,
        why: "The tree of routes was rewritten in 4.0, and the local and main tables joined in 4.1; before that statistics are shared between CPUs, and every level of the tree counts.",
        source: "Pushing the Limits of Kernel Networking (Duyck, 2015)",
        more: "With 4.0 statistics became those of each CPU and depth costs much less; with 4.1 one look is saved. Before: an address like 192.168.122.1 makes the tree deep, those from .64 to .191 of the same net spare a level, and addresses of 10.0.0.0/8 differ in fewer bits.",
        by_hand: &[
            "a newer kernel; until then without CONFIG_IP_FIB_TRIE_STATS, and addresses that do not deepen the tree (not 192.168.122.1)",
        ],
        judge: |cx, say| {
            if cx.kernel()? >= (4, 0) || !cx.forwards() {
                return None;
            }
            say.found(ForwardFound::OldRouteTree { kernel: cx.s.host.kernel.known()?.clone() });
            Some(())
        },
        ..Rule::BASE
    },
];
