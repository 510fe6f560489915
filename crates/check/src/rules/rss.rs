//! Rules about how the device distributes flows to queues, and about requested or possible numbers of queues.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Setting, rss as knob_rss};
use ringwise_model::{Action, Goal, Knob, NicKind, User};
use ringwise_plan::NotPossible;

use crate::fix::PlanArguments;
use crate::found::RssFound;
use crate::needs::RequiredFact;
use crate::planned;
use crate::rule::Rule;
use crate::rule_context::RuleContext;
use crate::severity::{Confidence, Severity};

const SCALING: &str = "kernel documentation, networking/scaling";

/// The number of receive queues that the plan would set if it could interrupt traffic.
fn fewer_planned(cx: &RuleContext, dev: &str) -> Option<u32> {
    let skipped = cx.i.plan.iter().flat_map(|p| &p.left_out);
    skipped.into_iter().find_map(|l| match &l.setting {
        Setting::Channels { dev: d, rx, combined, .. } if d == dev => combined.or(*rx),
        _ => None,
    })
}

/// The number of table entries of each queue. `None`: there is no table, or it is uneven on purpose.
fn table<'a>(
    cx: &RuleContext<'a>,
    n: &'a ringwise_model::Nic,
    say: &mut crate::finding_sink::FindingSink,
) -> Option<BTreeMap<u32, u32>> {
    let rss = say.get(&n.rss)?;
    if rss.table.is_empty() || cx.planned_groups.contains(n.name()) || cx.goal_of(n) == Goal::Mixed {
        return None;
    }
    let configured = cx.wishes.of(n.name()).iter().any(|w| matches!(&w.knob, Knob::RssTable { context: None, .. }));
    let mut by: BTreeMap<u32, u32> = BTreeMap::new();
    rss.table.iter().for_each(|q| *by.entry(*q).or_default() += 1);
    (!configured && !planned_uneven(cx, n)).then_some(by)
}

/// Whether the plan has an uneven table for this interface.
fn planned_uneven(cx: &RuleContext, n: &ringwise_model::Nic) -> bool {
    let mut target = cx.i.plan.iter().flat_map(|p| &p.target);
    let even = |t: &[u32]| knob_rss::is_even(t, cx.rx_queues(n));
    target.any(|t| matches!(t, Setting::RssTable { dev, table } if dev == n.name() && !even(table)))
}

/// Drivers that are known to support a symmetric hash; the kernel does not report this.
pub(crate) const SYMMETRIC: &[&str] = &["ice", "iavf"];

/// Whether the table names as many queues as it can with this driver, although the device has more.
fn table_reaches(cx: &RuleContext, n: &ringwise_model::Nic, named: u32) -> bool {
    match cx.driver(n) {
        // 82599 and X540: a table names up to 16 queues; the driver's own steering uses the others.
        "ixgbe" => named == 16,
        // A table names a power of two of the queues.
        "mlx4_en" | "mlx4_core" => named.is_power_of_two() && named * 2 > cx.rx_queues(n),
        _ => false,
    }
}

/// An even table over some of the queues, as the configuration writes it.
fn weights(queues: u32, serves: impl Fn(u32) -> bool) -> String {
    let each: Vec<&str> = (0..queues).map(|q| if serves(q) { "1" } else { "0" }).collect();
    format!("weight {}", each.join(" "))
}

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "Q18",
        title: "UDP hashed by addresses only",
        reads: "hash fields of udp4 and udp6, /proc/net/snmp",
        guard: "more than one receive queue; more than 20 % of the received packets are UDP; no fragments arrive",
        condition: "the UDP ports are not hashed",
        confirm: "ethtool -n DEV rx-flow-hash udp4; ringwise watch --per-flow DEV samples packets and predicts the share of the busiest queue with the ports hashed",
        why: "All UDP packets between two hosts go to one queue. Many drivers have this default, because fragments of a datagram carry no ports and would arrive out of order.",
        source: SCALING,
        rates: true,
        ours: Some("--set DEV.rss.fields.udp4=sdfn"),
        also: &["R2.09"],
        more: "Published: the load of two queues differed by a factor of 10 to 20 until the ports were hashed.",
        judge: |cx, say| {
            cx.each_rate(say, |n, _, t, say| {
                if cx.rx_queues(n) < 2 {
                    return None;
                }
                let fields = &say.get(&n.rss)?.fields;
                let share = t.udp_percent()?;
                if t.protocol("Ip:ReasmReqds") > 0 {
                    return None;
                }
                let lacks = |flow: &&str| {
                    fields.get(*flow).is_some_and(|f| !(f.contains('f') && f.contains('n')) && f.contains('d'))
                };
                let without: Vec<&str> = ["udp4", "udp6"].into_iter().filter(|f| lacks(f)).collect();
                if share > 20.0 && without.contains(&"udp4") {
                    let sets = without.iter().map(|f| PlanArguments::set(n.name(), format!("rss.fields.{f}"), "sdfn"));
                    let fix = PlanArguments::all(sets);
                    say.found(RssFound::UdpByAddresses { udp_percent: share }).fix(cx, fix);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q19",
        title: "the RSS table is uneven",
        reads: "RSS table",
        guard: "the table is not uneven on purpose (groups, configuration, weights by the capacity of CPUs with goal forward)",
        condition: "one queue in the table has at least two entries more than another",
        confirm: "ethtool -x DEV",
        why: "Each entry receives an equal share of the flows: twice the entries are twice the packets.",
        source: "ethtool(8)",
        ours: Some("--set DEV.rss.table=\"equal N\""),
        under: &["Q20"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let by = table(cx, n, say)?;
                let (min, max) = (by.values().min()?, by.values().max()?);
                if *max > min + 1 && by.len() > 1 {
                    let worst = by.iter().max_by_key(|(_, c)| **c)?;
                    let sum: u32 = by.values().sum();
                    // If the table size is not a multiple of the queues, a small difference cannot be avoided.
                    if f64::from(*max) * by.len() as f64 / f64::from(sum) < 1.25 && sum >= 4 * by.len() as u32 {
                        return Some(());
                    }
                    let (queue, entries) = (*worst.0, *worst.1);
                    say.found(RssFound::TableUneven { queue, entries, of: sum, queues: by.len() as u32 })
                        .fix(cx, PlanArguments::set(n.name(), "rss.table", format!("equal {}", cx.rx_queues(n))));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q20",
        title: "queues missing from the RSS table",
        reads: "RSS table, channels",
        guard: "the table is not configured on purpose (groups, configuration); it has at least as many entries as queues; the driver's table can name every queue (ixgbe: 16 queues, mlx4: a power of two)",
        condition: "a queue in use has no entry in the table",
        confirm: "ethtool -x DEV; ethtool -l DEV",
        why: "No flow reaches such a queue, and its CPU is idle. This happens when queues are added after the table was set by a user or a program.",
        source: "ethtool(8)",
        ours: Some("--set DEV.rss.table=\"equal N\""),
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let by = table(cx, n, say)?;
                let total: u32 = by.values().sum();
                let used = cx.rx_queues(n);
                if used < 2 || total < used {
                    return None;
                }
                let named = |q: u32| {
                    n.rules.known().is_some_and(|r| r.rules.values().any(|r| r.action == Action::Queue(q)))
                        || n.rss
                            .known()
                            .and_then(|r| r.contexts.known())
                            .is_some_and(|c| c.values().any(|c| c.table.contains(&q)))
                };
                // A program that holds a queue keeps the flows of others away from it.
                let held: Vec<u32> = n.queue_users().filter_map(User::queue).collect();
                let free = |q: &u32| !by.contains_key(q) && !named(*q) && !held.contains(q);
                let idle: Vec<u32> = (0..used).filter(free).collect();
                let named = by.len() as u32;
                if table_reaches(cx, n, named) && idle.iter().all(|q| *q >= named) {
                    return None;
                }
                if !idle.is_empty() {
                    let table = match held.is_empty() {
                        true => format!("equal {used}"),
                        false => weights(used, |q| by.contains_key(&q) || idle.contains(&q)),
                    };
                    say.found(RssFound::QueuesWithoutEntries { queues: idle, of: used, named })
                        .fix(cx, PlanArguments::set(n.name(), "rss.table", table));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q21",
        title: "the RSS table is small",
        reads: "RSS table, channels",
        guard: "the device has an RSS table, and at least two receive queues are in use",
        condition: "the table has fewer than four entries per queue",
        confirm: "ethtool -x DEV; ethtool -l DEV",
        severity: Severity::Info,
        why: "With four entries per queue, the busiest queue gets about 16 to 24 % more than its share even with very many flows; with two entries, about half more.",
        source: SCALING,
        by_hand: &[
            "use fewer queues (plan DEV --queues N --allow-disruption; without --queues, a goal such as balanced keeps their number), or a driver and device with a larger table",
        ],
        ours: Some("--goal GOAL --allow-disruption"),
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let rss = say.get(&n.rss)?;
                let used = cx.rx_queues(n) as usize;
                if rss.table.is_empty() || used < 2 {
                    return None;
                }
                if rss.table.len() < 4 * used {
                    let found =
                        say.found(RssFound::TableSmall { entries: rss.table.len() as u32, queues: used as u32 });
                    if fewer_planned(cx, n.name()).is_some_and(|queues| rss.table.len() >= 4 * queues as usize) {
                        found.fix(cx, PlanArguments::planned().disruptive());
                    }
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q22",
        title: "flow rules prevent fewer queues",
        reads: "flow rules, obstacles of the plan",
        guard: "the goal uses fewer queues",
        condition: "flow rules name queues that would be removed",
        confirm: "ethtool -n DEV",
        severity: Severity::Info,
        why: "The kernel refuses to remove queues that flow rules select, or that an RSS table set by the user names.",
        source: "kernel source, net/ethtool/channels.c: ethnl_set_channels",
        by_hand: &["ethtool -N DEV delete ID, ethtool -X DEV default, then ethtool -L DEV combined N"],
        judge: |cx, say| {
            let plan = cx.i.plan.as_ref().ok()?;
            let mut refused: BTreeMap<&str, &NotPossible> = BTreeMap::new();
            for r in &plan.refused {
                if let Some(Address::FlowRule { dev, .. }) = &r.blocked_by {
                    refused.entry(dev).or_insert(r);
                }
            }
            cx.each(say, |n, say| {
                if say.get(&n.rules)?.rules.is_empty() {
                    return None;
                }
                if let Some(r) = refused.get(n.name()) {
                    say.found(RssFound::FewerRefused { obstacle: r.why.clone() });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q23",
        title: "flows are spread unevenly",
        reads: "packets by receive queue",
        guard: "more than one receive queue, and more than 1,000 packets per second",
        condition: "one queue gets more than one and a half times the mean",
        confirm: "ringwise watch --queues",
        severity: Severity::Info,
        why: "The cause is a few large flows, an uneven table, or fields that are not hashed. A single flow cannot be split.",
        source: SCALING,
        rates: true,
        confidence: Confidence::Likely,
        by_hand: &[
            "find the queue with ringwise watch --queues; add a flow rule for the large flow, or a table that gives its queue fewer entries",
        ],
        under: &["Q20", "Q19", "Q18", "Q28"],
        judge: |cx, say| {
            cx.each_rate(say, |n, l, t, say| {
                if cx.rx_queues(n) < 2 || t.per_second(l.rx_packets?) < 1000.0 {
                    return None;
                }
                let by = l.rx_max_over_mean?;
                if by > 1.5 {
                    say.found(RssFound::FlowsUneven { times: by, queues: cx.rx_queues(n) });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q25",
        title: "weak hash key",
        reads: "RSS key",
        guard: "the hash function is toeplitz",
        condition: "all bytes of the key are 0, or the key repeats two bytes",
        confirm: "ethtool -x DEV (RSS hash key)",
        severity: Severity::Info,
        why: "With a key of zeros, every flow has the same hash. A key that repeats two bytes (6d5a) sends both directions of a flow to one queue, and spreads flows a little worse.",
        source: SCALING,
        by_hand: &["ethtool -X DEV hkey KEY with random bytes, unless you want a symmetric hash"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let rss = say.get(&n.rss)?;
                let key = rss.key.known()?;
                if key.len() < 16 || rss.function.known().is_some_and(|f| f != "toeplitz") || cx.rx_queues(n) < 2 {
                    return None;
                }
                if key.bytes().all(|b| b == b'0') {
                    say.found(RssFound::KeyOfZeros).severity(Severity::Warning);
                } else if key.as_bytes().chunks(4).all(|c| key.as_bytes().starts_with(c)) {
                    say.found(RssFound::KeyRepeats { bytes: key[..4].to_string() });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q26",
        title: "directions of a connection on two queues",
        reads: "nf_conntrack_count, RSS input transform and key",
        guard: "the host forwards and tracks connections; kernel 6.8 or later; the driver is known to support a symmetric hash (ice, iavf)",
        condition: "the hash is not symmetric",
        confirm: "ethtool -x DEV (RSS input transformation); ringwise explain FLOW shows both directions",
        severity: Severity::Info,
        why: "Two CPUs process the two directions of a connection, and its entry moves between their caches. A symmetric hash helps if both directions arrive with the same addresses (no address translation) and the queues of both interfaces are on the same CPUs.",
        source: "kernel documentation, networking/scaling: RSS input transform",
        ours: Some("--set DEV.rss.symmetric=symmetric-xor"),
        judge: |cx, say| {
            if !cx.forwards() {
                return None;
            }
            let tracked = say.take(cx.i.extra.number("/proc/sys/net/netfilter/nf_conntrack_count"))?;
            if tracked < 1000 {
                return None;
            }
            cx.each(say, |n, say| {
                let rss = say.get(&n.rss)?;
                if !SYMMETRIC.contains(&cx.driver(n)) {
                    return None;
                }
                // An absent value means that the kernel does not support the transform, so it cannot be proposed.
                let now = rss.symmetric.known()?;
                if now == "none" && cx.rx_queues(n) > 1 {
                    say.found(RssFound::TwoQueuesAConnection { tracked })
                        .fix(cx, PlanArguments::set(n.name(), "rss.symmetric", "symmetric-xor"));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q27",
        title: "flow rules without ntuple",
        reads: "flow rules, feature rx-ntuple-filter",
        guard: "the device has flow rules, or the user configured some",
        condition: "the feature is off; an error if the user configured rules",
        confirm: "ethtool -k DEV | grep ntuple; ethtool -n DEV",
        severity: Severity::Error,
        why: "Most drivers accept flow rules only while the feature is on, and delete them when it is turned off. If rules exist without the feature, the driver does not need it or does not use the rules.",
        source: "ethtool(8)",
        ours: Some("--set DEV.features.ntuple=true"),
        under: &["R1.10"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let present = n.rules.known().map_or(0, |r| r.rules.len());
                let configured = cx.wishes.of(n.name()).iter().any(|w| matches!(&w.knob, Knob::FlowRule { .. }));
                if present == 0 && !configured {
                    return None;
                }
                let f = cx.feature(n, "rx-ntuple-filter", say)?;
                if !f.on && !f.fixed {
                    let (found, severity) = match configured {
                        true => (RssFound::RulesConfiguredFeatureOff, Severity::Error),
                        false => (RssFound::RulesFeatureOff { rules: present as u32 }, Severity::Info),
                    };
                    say.found(found).severity(severity).fix(cx, PlanArguments::ntuple(n));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q28",
        title: "flow rule to a missing queue",
        reads: "flow rules, channels, RSS contexts",
        guard: "the device has flow rules",
        condition: "a rule names a queue that is not in use, or a context that does not exist",
        confirm: "ethtool -n DEV; ethtool -l DEV",
        severity: Severity::Error,
        why: "Matching packets go to a queue that no CPU polls: they are lost, or the device counts them as dropped.",
        source: "ethtool(8)",
        by_hand: &["ethtool -N DEV delete ID, or use more queues (ethtool -L DEV combined N)"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let rules = say.get(&n.rules)?;
                if rules.rules.is_empty() {
                    return None;
                }
                let used = cx.rx_queues(n);
                let contexts = n.rss.known().and_then(|r| r.contexts.known());
                for (id, r) in &rules.rules {
                    let (location, flow) = (*id, r.flow.clone());
                    let found = match (r.context, r.action) {
                        (Some(context), _) if contexts.is_some_and(|all| !all.contains_key(&context)) => {
                            RssFound::RuleToGoneContext { location, flow, context }
                        }
                        (None, Action::Queue(queue)) if queue >= used => {
                            RssFound::RuleToGoneQueue { location, flow, queue, of: used }
                        }
                        _ => continue,
                    };
                    say.found(found).manual_command(format!("ethtool -N {} delete {id}", n.name()));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q30",
        title: "the driver's own steering reorders packets",
        reads: "driver, feature rx-ntuple-filter, /proc/net/netstat TCPOFOQueue, /proc/net/snmp InReceives",
        guard: "the driver is ixgbe, and ntuple is off: the driver then samples flows and steers them itself (ATR)",
        condition: "more than 10 segments per second, and more than one in a hundred packets, arrive out of order",
        confirm: "nstat -az TcpExtTCPOFOQueue; ethtool -k DEV | grep ntuple",
        why: "When a thread moves to another CPU, the device moves its flow to another queue while packets are still in the old one. Packet loss on the path looks the same in this counter.",
        source: "Why Does Flow Director Cause Packet Reordering? (arXiv 1106.0443)",
        rates: true,
        confidence: Confidence::Likely,
        ours: Some("--set DEV.features.ntuple=true --allow-disruption"),
        also: &["R2.13", "R2.14"],
        judge: |cx, say| {
            cx.each_rate(say, |n, _, t, say| {
                if cx.driver(n) != "ixgbe" {
                    return None;
                }
                let f = cx.feature(n, "rx-ntuple-filter", say)?;
                // TCPSACKReorder counts segments that this host sent, so it shows nothing about received segments.
                let seen = t.protocol("TcpExt:TCPOFOQueue");
                let share = seen * 100 > t.protocol("Ip:InReceives");
                if !f.on && !f.fixed && share && t.per_second(seen) > 10.0 {
                    say.found(RssFound::OwnSteeringReorders { per_second: t.per_second(seen) })
                        .fix(cx, PlanArguments::ntuple(n));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "F13",
        title: "virtual function with few queues",
        reads: "channels, cpu/online",
        guard: "the interface is a virtual function",
        condition: "the function uses as many queues as it can have, and these are fewer than half of the CPUs",
        confirm: "ethtool -l DEV (pre-set maximums); nproc",
        severity: Severity::Info,
        why: "The physical function determines the queues of a virtual function; more cannot be created here.",
        source: "kernel documentation, networking/devlink: resources of functions",
        by_hand: &["assign more queues to the function on the host (devlink port function, or the driver's own tool)"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                if n.kind != NicKind::Vf {
                    return None;
                }
                let c = say.get(&n.channels)?;
                let max = c.combined.or(c.rx)?.max;
                let cpus = cx.s.topology.online.len() as u32;
                if max * 2 < cpus && cx.rx_queues(n) == max {
                    say.found(RssFound::FunctionFewQueues { most: max, cpus });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "F21",
        title: "few queues beside virtual functions",
        reads: "device/sriov_numvfs, device/virtfn*, channels, cpu/online",
        guard: "driver igb or ixgbe, which limit the queues of the physical function while virtual functions exist",
        condition: "the interface has virtual functions, uses as many queues as it can have, and these are fewer than half of the CPUs",
        confirm: "cat /sys/class/net/DEV/device/sriov_numvfs; ethtool -l DEV (pre-set maximums); ip link show DEV",
        severity: Severity::Info,
        why: "The device divides its queues among its functions. The physical function is left with one or two queues (igb), or with two or four (ixgbe), and shares the link with the virtual functions.",
        source: "kernel source, drivers/net/ethernet/intel/igb/igb_main.c: igb_get_max_rss_queues; drivers/net/ethernet/intel/ixgbe/ixgbe_lib.c: ixgbe_set_sriov_queues",
        by_hand: &[
            "if nothing uses the virtual functions, remove all of them: echo 0 > /sys/class/net/DEV/device/sriov_numvfs (the link goes down for seconds)",
            "otherwise move the traffic of this host to a port without virtual functions",
        ],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                if !["igb", "ixgbe"].contains(&cx.driver(n)) {
                    return None;
                }
                let c = say.get(&n.channels)?;
                let most = c.combined.or(c.rx)?.max;
                let cpus = cx.s.topology.online.len() as u32;
                if most.saturating_mul(2) >= cpus || cx.rx_queues(n) != most {
                    return Some(());
                }
                let list = &say.get(&n.virtual_functions)?.list;
                if !list.is_empty() {
                    let unused = list.iter().filter(|f| f.holder.is_absent()).count() as u32;
                    say.found(RssFound::FewQueuesBesideFunctions { functions: list.len() as u32, unused, most, cpus });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q33",
        title: "RSS table not weighted by core capacity",
        reads: "RSS table, topology",
        needs: &[RequiredFact::RssTable],
        guard: "goal forward, and the CPUs of the queues differ: some share their core with another CPU that has queues of an interface of the plan or is kept free for other work, or have more queues than others",
        condition: "a weighted table lowers the load of the busiest CPU, relative to its capacity, by at least 5 %",
        confirm: "ethtool -x DEV; lscpu -e shows which CPUs share a core",
        severity: Severity::Info,
        ours: Some("--goal forward"),
        judge: |cx, say| planned::judge("Q33", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "Q34",
        title: "flows of other sockets reach a zero-copy queue",
        reads: "RSS table, users of queues (netdev queue-get)",
        guard: "io_uring zero copy or a DMA buffer (devmem TCP) has a receive queue",
        condition: "the RSS table has entries for this queue",
        confirm: "ethtool -x DEV; ynl --family netdev --dump queue-get",
        severity: Severity::Error,
        why: "The driver places the payload of packets of this queue in memory that the kernel does not read. TCP sockets of other programs cannot receive it: recv() fails with EFAULT. The program that holds the queue steers its own flows there with flow rules.",
        source: "kernel documentation, networking/devmem and networking/iou-zcrx; net/ipv4/tcp.c, tcp_recvmsg_locked (Linux 6.12)",
        ours: Some("--set DEV.rss.table=\"weight 1 1 … 0\""),
        judge: |cx, say| {
            cx.each(say, |n, say| {
                say.get(&n.users)?;
                let held: Vec<u32> = n.queue_users().filter(|u| u.hides_data()).filter_map(User::queue).collect();
                if held.is_empty() {
                    return None;
                }
                let table = &say.get(&n.rss)?.table;
                let reached: Vec<u32> = held.iter().copied().filter(|q| table.contains(q)).collect();
                if reached.is_empty() {
                    return Some(());
                }
                let entries = table.iter().filter(|q| reached.contains(q)).count() as u32;
                let used = cx.rx_queues(n);
                let serves = |q: u32| !n.queue_users().any(|u| u.queue() == Some(q));
                let found = RssFound::ReachesHeldQueues { queues: reached, entries, of: table.len() as u32 };
                let found = say.found(found);
                if (0..used).any(serves) {
                    found.fix(cx, PlanArguments::set(n.name(), "rss.table", weights(used, serves)));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "R0.11",
        title: "number of queues differs from the request",
        reads: "channels",
        needs: &[RequiredFact::Channels],
        guard: "a number of queues is requested, and disruption is allowed",
        condition: "the number of queues in use is different",
        confirm: "ethtool -l DEV",
        ours: Some(""),
        judge: |cx, say| planned::judge("R0.11", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R3.16",
        title: "more queues than the load needs",
        reads: "channels, topology",
        needs: &[RequiredFact::Channels],
        guard: "the goal is latency, and disruption is allowed",
        condition: "the plan has fewer queues",
        confirm: "ethtool -l DEV; ringwise plan --goal latency --allow-disruption",
        ours: Some("--goal latency --allow-disruption"),
        judge: |cx, say| planned::judge("R3.16", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R1.10",
        title: "flow rules need ntuple",
        reads: "feature rx-ntuple-filter",
        guard: "flow rules are configured",
        condition: "the plan turns the feature on",
        confirm: "ethtool -k DEV | grep ntuple",
        ours: Some(""),
        judge: |cx, say| planned::judge("R1.10", cx, say),
        ..Rule::BASE
    },
];
