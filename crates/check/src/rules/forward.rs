//! Rules about forwarding, upper interfaces and members, links, and old kernels.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{Count, Dir, Goal, Nic, NicKind};

use crate::fix::PlanArguments;
use crate::found::ForwardFound;
use crate::rule::Rule;
use crate::rule_context::RuleContext;
use crate::severity::{Confidence, Severity};

const XDP: &str = "The eXpress Data Path (CoNEXT 2018), public measurements";
const HTTP: &str = "Extreme HTTP performance tuning (talawah.io, 2021)";
const IPSYS: &str = "kernel documentation, networking/ip-sysctl";
const CONNTRACK: &str = "kernel documentation, networking/nf_conntrack-sysctl";
const ROUTER: &str = "Multi-queue network interfaces with SMP on Linux (Greenhost)";

const TRACKED: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// A value of a member of a bond; `None`: unknown, or not supported by the driver.
type MemberValue<'a> = &'a dyn Fn(&Nic) -> Option<String>;

/// The bonds and teams, each with its listed members.
fn bonds<'a>(cx: &RuleContext<'a>) -> impl Iterator<Item = (&'a Nic, Vec<&'a Nic>)> {
    let s = cx.s;
    s.nics.iter().filter_map(move |b| {
        b.bond.as_ref()?;
        let members: Vec<&Nic> = s.nics.iter().filter(|n| n.master.is_some() && n.master == b.dev.ifindex).collect();
        (!members.is_empty()).then_some((b, members))
    })
}

fn modules(cx: &RuleContext) -> Option<BTreeSet<String>> {
    let text = cx.i.extra.file("/proc/modules");
    Some(text.known()?.split_ascii_whitespace().map(str::to_string).collect::<BTreeSet<_>>())
}

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "F01",
        title: "connection tracking uses much CPU time",
        reads: "nf_conntrack_count, /proc/stat",
        guard: "the host forwards and tracks connections",
        condition: "more than 1,000 connections are tracked, and a CPU is above 80 % interrupt time",
        confirm: "cat /proc/sys/net/netfilter/nf_conntrack_count; perf top shows nf_conntrack functions",
        why: "Every packet needs a lookup in the connection table and a change of its entry. Measured by others on one core: 1.8 million packets per second with tracking, 4.8 million without.",
        source: XDP,
        rates: true,
        confidence: Confidence::Likely,
        by_hand: &[
            "use nft notrack for traffic that needs no tracking, and a flowtable for traffic that is only forwarded; ringwise does not change firewall rules",
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
        guard: "the host tracks connections",
        condition: "the table is more than four fifths full",
        confirm: "sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max",
        severity: Severity::Error,
        why: "When the table is full, the kernel drops packets of new connections.",
        source: CONNTRACK,
        by_hand: &["sysctl net.netfilter.nf_conntrack_max=N, or use shorter timeouts"],
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
        title: "iptables tables are loaded",
        reads: "/proc/net/ip_tables_names",
        guard: "the host forwards; needs root",
        condition: "tables of iptables are loaded",
        confirm: "cat /proc/net/ip_tables_names",
        severity: Severity::Info,
        why: "Every packet passes the chains of every loaded table, even empty ones. You decide whether the rules are needed: ringwise changes and proposes nothing here.",
        source: HTTP,
        by_hand: &[
            "iptables-save shows the rules of the tables; use notrack in the table raw for traffic that needs no tracking",
        ],
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
        title: "no flowtable for forwarded flows",
        reads: "/proc/modules, nf_conntrack_count",
        guard: "the host forwards with nf_tables and tracks more than 1,000 connections",
        condition: "no flowtable module is loaded",
        confirm: "nft list flowtables; lsmod | grep nf_flow_table",
        severity: Severity::Info,
        why: "A flowtable forwards packets of known connections at ingress, without routing and firewall rules.",
        source: "kernel documentation, networking/nf_flowtable",
        confidence: Confidence::Likely,
        by_hand: &["add a flowtable to the nft ruleset; ringwise does not change firewall rules"],
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
        title: "reverse path filtering is on",
        reads: "rp_filter of conf/all and of the interface",
        guard: "the host forwards",
        condition: "the larger of the two is not 0",
        confirm: "sysctl net.ipv4.conf.all.rp_filter net.ipv4.conf.DEV.rp_filter",
        severity: Severity::Info,
        why: "Each packet needs a second route lookup, for its source address. The filter rejects packets with forged source addresses; whether it is needed depends on the site's policy.",
        source: IPSYS,
        by_hand: &[
            "sysctl net.ipv4.conf.DEV.rp_filter=0 net.ipv4.conf.all.rp_filter=0, if another filter rejects forged packets",
        ],
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
        title: "bridged packets pass the firewall",
        reads: "net.bridge.bridge-nf-call-iptables, bridges",
        guard: "a bridge has a port with queues of its own",
        condition: "bridge-nf-call-iptables is 1",
        confirm: "sysctl net.bridge.bridge-nf-call-iptables",
        why: "Frames that are only switched also pass the rules for routed packets.",
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
        reads: "features rx-vlan-hw-parse, tx-vlan-hw-insert; VLAN interfaces above the device",
        guard: "the interface carries VLANs",
        condition: "one of the features is off and can be turned on",
        confirm: "ethtool -k DEV | grep vlan",
        severity: Severity::Info,
        why: "The CPU removes and inserts the tag by copying headers, and some devices hash fewer fields of such frames.",
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
                    let fix = PlanArguments::all(off.iter().map(|f| PlanArguments::feature(n.name(), f, true)));
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
        title: "bond hashes MAC addresses only",
        reads: "mode and xmit_hash_policy of the bond",
        guard: "a bond that spreads flows (802.3ad, balance-xor) on a host that forwards or serves",
        condition: "the policy is layer2",
        confirm: "cat /sys/class/net/DEV/bonding/xmit_hash_policy",
        severity: Severity::Info,
        why: "Behind a router, all frames have the MAC address of the router, so all of them leave through one member.",
        source: "kernel documentation, networking/bonding",
        by_hand: &["ip link set DEV type bond xmit_hash_policy layer3+4 (with 802.3ad, fragments may take two paths)"],
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
        title: "RPS on an upper interface",
        reads: "rps_cpus of bonds, bridges and other upper interfaces",
        guard: "upper interfaces without queues of their own exist",
        condition: "RPS is set on them",
        confirm: "cat /sys/class/net/DEV/queues/rx-0/rps_cpus",
        why: "The member has already spread the packets; RPS moves each packet a second time.",
        source: "kernel documentation, networking/scaling",
        by_hand: &["echo 0 > /sys/class/net/DEV/queues/rx-0/rps_cpus; tune the members instead"],
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
        condition: "the members differ in the number of queues, ring sizes or moderation",
        confirm: "ethtool -l, -g and -c of each member",
        why: "The number of queues, the ring size and the moderation that a flow gets depend on the member that its hash selects.",
        source: ROUTER,
        by_hand: &[
            "ringwise plan gives the members of a bond one layout; set rings and moderation in the configuration file",
        ],
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
                    // Notes unknown values of a member. An unknown value is not reported as a difference.
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
        condition: "both interfaces have a discipline that queues",
        confirm: "tc qdisc show",
        severity: Severity::Info,
        why: "Sent packets wait in the upper discipline and again in the lower one.",
        source: "flatcar/Flatcar issue 1458",
        by_hand: &["tc qdisc replace dev LOWER root noqueue (LOWER is the member without an address)"],
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
        title: "driver is not part of the kernel",
        reads: "taint of the driver's module",
        guard: "the driver is known and is a module: a driver that is built into the kernel has no such file",
        condition: "the module was built outside of the kernel",
        confirm: "modinfo DRIVER; cat /sys/module/DRIVER/taint (O)",
        severity: Severity::Info,
        why: "It may differ from the kernel's own driver in defaults, names of interrupts and counters, and supported settings.",
        source: "kernel documentation, admin-guide/tainted-kernels",
        by_hand: &["not a fault; compare with the kernel's own driver if something behaves unexpectedly"],
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
        guard: "the link has a duplex mode, and it is known",
        condition: "the link is half duplex",
        confirm: "ethtool DEV (Duplex)",
        severity: Severity::Error,
        why: "The two ends did not agree on the duplex mode: every collision costs time, and frames are lost under load.",
        source: "ethtool(8)",
        by_hand: &["use autonegotiation at both ends, or the same fixed values: ethtool -s DEV autoneg on"],
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
        title: "energy-efficient Ethernet is on",
        reads: "EEE",
        guard: "the goal is latency",
        condition: "energy-efficient Ethernet is active",
        confirm: "ethtool --show-eee DEV",
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
        title: "promiscuous interface",
        reads: "flags of the interface",
        guard: "the interface is not a port of a bridge, bond or switch",
        condition: "the interface is promiscuous",
        confirm: "ip -d link show DEV (promiscuity)",
        severity: Severity::Info,
        why: "The CPU, instead of the device, discards frames for other hosts.",
        source: "ip-link(8)",
        by_hand: &[
            "ip -d link show DEV shows how many programs requested it (promiscuity); ip link set DEV promisc off",
        ],
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
        title: "many fragments arrive",
        reads: "/proc/net/snmp Ip ReasmReqds",
        guard: "the counter is in both samples",
        condition: "more than 10 fragments per second",
        confirm: "nstat -az IpReasmReqds",
        why: "Fragments carry no ports: if ports are hashed, fragments go to another queue than the rest of their flow and arrive out of order. Reassembly also needs a table of its own.",
        source: IPSYS,
        rates: true,
        by_hand: &["correct the MTU along the path; keep UDP hashed by addresses (sd) while fragments arrive"],
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            let rate = t.per_second(*t.protocols.get("Ip:ReasmReqds")?);
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
        reads: "root queueing discipline, its traffic classes",
        guard: "the root queueing discipline is known",
        condition: "the root queueing discipline is mqprio or taprio",
        confirm: "tc qdisc show dev DEV; tc class show dev DEV",
        severity: Severity::Info,
        why: "Transmit queues are assigned to traffic classes: XPS works only within a class, and queues must not move between classes. The plan assigns all CPUs in each class.",
        source: "tc-mqprio(8)",
        by_hand: &["not a fault; change the ranges before the number of queues, so that every class keeps its queues"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let q = cx.qdisc(n, say)?;
                if ["mqprio", "taprio"].contains(&q.root.as_str()) {
                    let queues = cx.tx_queues(n).known().copied();
                    let classes =
                        n.classes.known().map_or_else(Vec::new, |c| c.queues.iter().map(ToString::to_string).collect());
                    say.found(ForwardFound::ClassesOwnQueues { discipline: q.root.clone(), queues, classes });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "F20",
        title: "tunnel offload is off",
        reads: "features for UDP tunnels, VXLAN and Geneve interfaces",
        guard: "the host has VXLAN or Geneve interfaces",
        condition: "rx-udp_tunnel-port-offload is off and can be turned on",
        confirm: "ethtool -k DEV | grep udp_tunnel",
        severity: Severity::Info,
        why: "The device sees one outer flow per peer, and does not verify inner checksums.",
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
                        .fix(cx, PlanArguments::feature(nic.name(), "rx-udp_tunnel-port-offload", true).disruptive());
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
        guard: "the kernel is older than 3.6",
        condition: "the host forwards",
        confirm: "uname -r; sysctl net.ipv4.ip_forward",
        why: "Such kernels keep an entry for every destination. Many destinations fill the cache (\"dst cache overflow\"), and the kernel discards the whole cache.",
        source: ROUTER,
        by_hand: &["use a newer kernel: the cache was removed in 3.6"],
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
        title: "slow route tables of old kernels",
        reads: "kernel version",
        guard: "the kernel is older than 4.0",
        condition: "the host forwards",
        confirm: "uname -r; sysctl net.ipv4.ip_forward",
        severity: Severity::Info,
        why: "The route tree was rewritten in 4.0, and the tables local and main were joined in 4.1. Before, CPUs share the statistics, and every level of the tree costs time.",
        source: "Pushing the Limits of Kernel Networking (Duyck, 2015)",
        more: "Since 4.0 the statistics are per CPU, and depth costs much less; 4.1 saves one lookup. Before: an address like 192.168.122.1 makes the tree deep, addresses from .64 to .191 of the same network save a level, and addresses of 10.0.0.0/8 differ in fewer bits.",
        by_hand: &[
            "use a newer kernel; until then disable CONFIG_IP_FIB_TRIE_STATS, and use addresses that do not deepen the tree (not 192.168.122.1)",
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
