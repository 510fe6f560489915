//! Properties that hold on every machine, tested on thousands of generated ones. Every run of `cargo test` uses the same
//! machines (the seed is in `.cargo/config.toml`); `make test-all` uses new and more of them. A failure prints the
//! smallest machine that shows it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ringwise_knob::{Reason, Setting};
use ringwise_model::{Coalesce, CpuId, CpuSet, Fact, FarNode, Feature, Goal, Intent, NodeId, Pause, Smt, Snapshot};
use ringwise_plan::{Plan, plan};
use ringwise_testkit::machines::{self, HostSpec, Irqs, NicSpec, Vectors};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::{CpuSpec, Numbering};

/// `PROPTEST_CASES` increases the number.
fn config() -> ProptestConfig {
    let c = ProptestConfig::default();
    ProptestConfig { cases: c.cases.max(1500), failure_persistence: None, ..c }
}

fn cpus() -> impl Strategy<Value = CpuSpec> {
    let numbering = prop_oneof![Just(Numbering::Adjacent), Just(Numbering::ThreadsLast), Just(Numbering::RoundRobin)];
    let size = (1u32..=3, 0u32..=2, 1u32..=3, 1u32..=4, 1u32..=2, numbering);
    let odd = (any::<u32>(), any::<u32>(), 0u32..=4, prop_oneof![Just(12u32), Just(16u32)], 0u32..=3);
    (size, odd).prop_map(|((packages, nodes, l3s, cores, threads, numbering), (off, iso, how, distance, small))| {
        let mut c =
            CpuSpec { packages, nodes, l3s, numbering, socket_distance: distance, ..CpuSpec::flat(cores, threads) };
        let all = c.topology().online;
        // A few CPUs are offline, a few isolated; the first one stays usable.
        let some =
            |bits: u32| -> CpuSet { all.iter().skip(1).filter(|c| (bits.rotate_left(c.0 * 7) & 7) == 0).collect() };
        if how & 1 == 1 {
            c.offline = some(off);
        }
        if how & 2 == 2 {
            c.isolated = some(iso).difference(&c.offline);
        }
        if how == 4 {
            c.small_cores = small;
        }
        c
    })
}

fn nic() -> impl Strategy<Value = NicSpec> {
    let vectors = prop_oneof![4 => Just(Vectors::Paired), 2 => Just(Vectors::Split), 1 => Just(Vectors::Twos), 1 => Just(Vectors::Shared)];
    let irqs = prop_oneof![Just(Irqs::AllOnFirst), Just(Irqs::Round), Just(Irqs::NoneYet)];
    let driver = prop_oneof![Just("igb"), Just("ice"), Just("virtio_net")];
    (driver, prop::option::of(0u32..6), 1u32..=12, 0u32..=12, vectors, irqs, any::<bool>(), any::<bool>()).prop_map(
        |(driver, node, queues, more, vectors, irqs, rps, managed)| NicSpec {
            vectors,
            irqs,
            rps: if rps { CpuSet::range(0, 0) } else { CpuSet::new() },
            rps_flow_cnt: if rps { 256 } else { 0 },
            managed: managed && more % 4 == 0,
            ..NicSpec::new("", driver, node, queues, if more == 0 { 0 } else { queues + more - 1 })
        },
    )
}

fn host() -> impl Strategy<Value = HostSpec> {
    (cpus(), prop::collection::vec(nic(), 1..=4), prop_oneof![Just(0u32), Just(65_536u32)]).prop_map(
        |(cpu, mut nics, rfs)| {
            let nodes: Vec<u32> =
                cpu.topology().nodes.known().map_or_else(Vec::new, |n| n.keys().map(|n| n.0).collect());
            for (i, n) in nics.iter_mut().enumerate() {
                n.name = format!("eth{i}");
                n.node = n.node.filter(|_| !nodes.is_empty()).map(|at| nodes[at as usize % nodes.len()]);
            }
            HostSpec { rps_sock_flow_entries: rfs, ..machines::host("generated", cpu, nics) }
        },
    )
}

/// Sets moderation, features, pause frames and wake-up latencies from `bits`: present, absent, unknown, fixed, on, off.
fn dressed(mut s: Snapshot, bits: u64) -> Snapshot {
    fn unknown<T>(what: &str) -> Fact<T> {
        Fact::unknown(what, "no answer")
    }
    for (i, n) in s.nics.iter_mut().enumerate() {
        let bits = bits.rotate_right(i as u32 * 13);
        let bit = |at: u32| bits >> at & 1 == 1;
        let param = |at: u32, name: &str, value: u32| bit(at).then(|| (name.to_string(), value));
        let all = [
            param(0, "rx-usecs", if bit(1) { 3 } else { 62 }),
            param(2, "tx-usecs", 50),
            param(3, "use-adaptive-rx", u32::from(bit(4))),
            param(5, "use-adaptive-tx", u32::from(bit(6))),
        ];
        let device = Coalesce(all.into_iter().flatten().collect());
        n.coalesce = match (bit(7), bit(8)) {
            (false, false) => Fact::Absent,
            (false, true) => unknown("moderation"),
            _ => Fact::Known(device.clone()),
        };
        if bit(9) && n.coalesce.is_known() {
            let queues = n.rx_queues.len() as u32;
            let of = |q: u32| {
                let mut c = device.clone();
                c.0.entry("rx-usecs".into()).and_modify(|v| *v += if bit(10) { q } else { 0 });
                (q, c)
            };
            n.queue_coalesce = Fact::Known((0..queues).map(of).collect());
        }
        let feature =
            |at: u32| Feature { on: bit(at), wanted: bit(at) || (bit(at + 1) && bit(11)), fixed: bit(at + 1) };
        let names = [("rx-lro", 12), ("rx-gro", 14), ("tx-tcp-segmentation", 16), ("tx-tcp6-segmentation", 18)];
        let features = names.into_iter().filter(|(_, at)| bit(at + 8)).map(|(k, at)| (k.to_string(), feature(at)));
        n.features = if bit(28) { Fact::Known(features.collect()) } else { unknown("features") };
        let on = |at: u32| (!bit(at) || bit(at + 1)).then(|| bit(at + 1));
        n.pause = match (bit(29), bit(30)) {
            (false, false) => Fact::Absent,
            (false, true) => unknown("pause frames"),
            _ => Fact::Known(Pause { autoneg: on(31), rx: on(33), tx: on(35) }),
        };
    }
    let sleep = ["0", "n/a", "3", "5", "100"][(bits >> 40) as usize % 5];
    if bits >> 39 & 1 == 1 {
        let cpus = s.topology.online.iter();
        s.host.cpu_latency = cpus.map(|c| (c, Fact::Known(sleep.to_string()))).collect();
    }
    s
}

fn intent() -> impl Strategy<Value = Intent> {
    let goal = (0..Goal::ALL.len()).prop_map(|i| Goal::ALL[i]);
    let smt = prop::option::of(prop_oneof![Just(Smt::OnePerCore), Just(Smt::All)]);
    let far = prop::option::of(prop_oneof![Just(FarNode::Last), Just(FarNode::Ok)]);
    (goal, smt, far, any::<bool>(), prop::option::weighted(0.2, 1u32..=4), any::<bool>()).prop_map(
        |(goal, smt, far_node, allow_disruption, queues, reserve)| Intent {
            goal,
            smt,
            far_node,
            allow_disruption,
            queues,
            reserve: if reserve { CpuSet::one(CpuId(0)) } else { CpuSet::new() },
            ..Intent::default()
        },
    )
}

/// Every CPU that gets work from the plan: interrupts and RPS. XPS only selects the queue that a CPU sends through.
fn workers(p: &Plan) -> CpuSet {
    p.target.iter().fold(CpuSet::new(), |all, s| match s {
        Setting::IrqCpus { cpus, .. } | Setting::RpsCpus { cpus, .. } => all.union(cpus),
        _ => all,
    })
}

/// CPUs near the device: its node, for `forward` also nodes up to distance 12, all CPUs if the node is unknown.
fn near(s: &Snapshot, node: Option<NodeId>, goal: Goal) -> CpuSet {
    let Some(node) = node.filter(|n| s.topology.node(*n).is_some()) else { return s.topology.online.clone() };
    let nodes = s.topology.nodes.known().expect("a node is known");
    let has_cpus = !nodes[&node].cpus.is_empty();
    let close = nodes
        .values()
        .filter(|n| s.topology.distance(node, n.id).is_some_and(|d| d <= if goal == Goal::Forward { 12 } else { 10 }));
    if has_cpus { close.fold(CpuSet::new(), |all, n| all.union(&n.cpus)) } else { CpuSet::new() }
}

fn cores(s: &Snapshot, cpus: &CpuSet) -> Vec<CpuSet> {
    let mut out: Vec<CpuSet> = cpus.iter().map(|c| s.topology.siblings_of(c)).collect();
    out.sort();
    out.dedup();
    out
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn only_usable_cpus_and_queues_that_exist(host in host(), intent in intent(), bits in any::<u64>()) {
        let s = dressed(host.snapshot(), bits);
        let Ok(p) = plan(&s, &intent, &[]) else { return Ok(()) };
        let bad = s.topology.isolated_all().union(&intent.reserve);
        prop_assert!(!workers(&p).intersects(&bad), "{} meets {bad}", workers(&p));
        for setting in &p.target {
            if let Setting::XpsCpus { cpus, .. } = setting {
                prop_assert!(cpus.is_subset(&s.topology.online));
            }
        }
        prop_assert!(workers(&p).is_subset(&s.topology.online));
        prop_assert_eq!(p.already + p.steps.len(), p.target.len());
        prop_assert!(intent.allow_disruption || !p.interrupts_traffic());
        // Panics if a step names a queue or vector that does not exist at that point.
        project(&s, &p.target);
    }

    #[test]
    fn nothing_to_do_afterwards(host in host(), intent in intent(), bits in any::<u64>()) {
        let s = dressed(host.snapshot(), bits);
        let Ok(p) = plan(&s, &intent, &[]) else { return Ok(()) };
        // The kernel chooses the CPUs of managed interrupts after a channel change: they are known only then.
        if p.interrupts_traffic() && host.nics.iter().any(|n| n.managed) {
            return Ok(());
        }
        let after = project(&s, &p.target);
        let again = plan(&after, &intent, &[]).expect("a plan was possible before");
        prop_assert!(again.steps.is_empty(), "{:?}", again.steps);
        prop_assert_eq!(&again.layout, &p.layout);
        // All settings of the first plan are in effect, by every one of their addresses.
        let map = p.target.iter().filter_map(|t| t.address().map(|a| (a, t.clone()))).collect();
        prop_assert!(ringwise_knob::diff(&after, &map).is_empty());
    }

    /// The same CPUs in another order are as good, unless the goal depends on the order.
    #[test]
    fn nothing_moves_for_the_sake_of_an_order(host in host(), intent in intent(), by in 1usize..5) {
        let s = host.snapshot();
        let Ok(p) = plan(&s, &intent, &[]) else { return Ok(()) };
        if p.interrupts_traffic() || intent.goal == Goal::Mixed || (intent.goal == Goal::Forward && host.nics.len() > 1) {
            return Ok(());
        }
        let mut after = project(&s, &p.target);
        for nic in &mut after.nics {
            // Shared and managed vectors have other rules for CPUs.
            let plain = |n: &&NicSpec| n.name == nic.dev.name && !n.managed && matches!(n.vectors, Vectors::Paired);
            if !host.nics.iter().any(|n| plain(&n)) {
                continue;
            }
            let of: Vec<usize> = (0..nic.vectors.len()).filter(|v| nic.vectors[*v].is_queue()).collect();
            let cpus: Vec<_> = of.iter().map(|v| (nic.vectors[*v].asked.clone(), nic.vectors[*v].effective.clone())).collect();
            for (n, v) in of.iter().enumerate() {
                (nic.vectors[*v].asked, nic.vectors[*v].effective) = cpus[(n + by) % of.len()].clone();
            }
        }
        let again = plan(&after, &intent, &[]).expect("a plan was possible before");
        let moved = again.steps.iter().find(|s| matches!(&s.setting, Setting::IrqCpus { .. }));
        prop_assert!(moved.is_none(), "{moved:?}");
    }

    #[test]
    fn what_moves_has_a_gain(host in host(), intent in intent()) {
        let s = host.snapshot();
        let Ok(p) = plan(&s, &intent, &[]) else { return Ok(()) };
        let vague = p.steps.iter().find(|s| matches!(s.reason, Reason::LessLoaded { .. }));
        prop_assert!(vague.is_none(), "{vague:?}");
    }

    /// Tested on hosts whose CPUs are all online, for interfaces whose interrupts can be moved.
    #[test]
    fn a_number_that_gets_worse_is_reported_with_its_benefit(host in host(), intent in intent()) {
        if !host.cpu.offline.is_empty() || host.nics.iter().any(|n| n.managed) {
            return Ok(());
        }
        let s = host.snapshot();
        let Ok(p) = plan(&s, &intent, &[]) else { return Ok(()) };
        let bare = p.expected.iter().find(|e| e.before.is_some() && e.after > e.before && e.worth.is_none());
        prop_assert!(bare.is_none(), "{bare:?}");
    }

    #[test]
    fn neither_order_nor_repetition_matter(host in host(), intent in intent(), turn in 0usize..4, bits in any::<u64>()) {
        let s = dressed(host.snapshot(), bits);
        let p = plan(&s, &intent, &[]);
        prop_assert_eq!(&p, &plan(&s, &intent, &[]));
        let mut other = s.clone();
        other.nics.reverse();
        let by = turn % other.nics.len();
        other.nics.rotate_left(by);
        prop_assert_eq!(&p, &plan(&other, &intent, &[]));
        let names: Vec<String> = other.nics.iter().map(|n| n.dev.name.clone()).collect();
        let all = Intent { devs: names, ..intent.clone() };
        let (a, b) = (plan(&s, &all, &[]), plan(&other, &all, &[]));
        prop_assert_eq!(a.as_ref().map(|p| &p.target), p.as_ref().map(|p| &p.target));
        prop_assert_eq!(a, b);
    }

    #[test]
    fn no_near_core_carries_two_while_another_has_none(host in host(), intent in intent()) {
        // A latency goal leaves half of the cores free intentionally; ports of a router are alike intentionally.
        let one_nic = host.nics.len() == 1;
        if intent.goal == Goal::Latency || (intent.goal == Goal::Forward && !one_nic) || host.nics.iter().any(|n| n.managed) {
            return Ok(());
        }
        let s = host.snapshot();
        let Ok(p) = plan(&s, &intent, &[]) else { return Ok(()) };
        let free = s.topology.isolated_all().union(&intent.reserve);
        let mut on_core: BTreeMap<CpuSet, u32> = BTreeMap::new();
        for l in &p.layout {
            // Queues that share a vector share a CPU: they count once.
            let nic = s.nic(&l.dev).expect("planned from it");
            let mut seen = Vec::new();
            for q in &l.queues {
                let v = nic.vector_of(ringwise_model::Dir::Rx, q.queue).map(|v| v.irq);
                let changed = p.steps.iter().any(|s| matches!(&s.setting, Setting::Channels { dev, .. } if *dev == l.dev));
                if !changed && v.is_some() && seen.contains(&v) {
                    continue;
                }
                seen.push(v);
                let core = s.topology.siblings_of(q.cpu.expect("all can be placed"));
                *on_core.entry(core.clone()).or_default() += 1;
            }
        }
        for l in &p.layout {
            let usable = near(&s, l.node, intent.goal).difference(&free);
            let cores = cores(&s, &usable);
            let idle = cores.iter().find(|c| !on_core.contains_key(*c));
            // If all devices are near the same CPUs, it does not matter which device the two queues belong to.
            let alike = p.layout.iter().all(|o| near(&s, o.node, intent.goal) == near(&s, l.node, intent.goal));
            let twice = cores.iter().find(|c| {
                let own = l.queues.iter().filter(|q| q.cpu.is_some_and(|cpu| c.contains(cpu))).count();
                (alike || own > 1) && on_core.get(*c).copied().unwrap_or(0) > 1
            });
            if let (Some(idle), Some(twice)) = (idle, twice) {
                let shared = host.nics.iter().any(|n| matches!(n.vectors, Vectors::Twos | Vectors::Shared));
                prop_assert!(shared, "{}: core {twice} carries two, core {idle} none", l.dev);
            }
        }
    }

    #[test]
    fn transmit_queues_cover_every_cpu(host in host(), intent in intent()) {
        let s = host.snapshot();
        let Ok(p) = plan(&s, &intent, &[]) else { return Ok(()) };
        let mut by_dev: BTreeMap<&str, Vec<(u32, &CpuSet)>> = BTreeMap::new();
        for t in &p.target {
            if let Setting::XpsCpus { dev, queue, cpus } = t {
                by_dev.entry(dev).or_default().push((*queue, cpus));
            }
        }
        for (dev, numbered) in by_dev {
            let masks: Vec<&CpuSet> = numbered.iter().map(|(_, mask)| *mask).collect();
            let all = masks.iter().fold(CpuSet::new(), |a, m| a.union(m));
            prop_assert_eq!(&all, &s.topology.online, "{}", dev);
            let layout = &p.layout.iter().find(|l| l.dev == dev).expect("it is planned").queues;
            let at = |queue: u32| layout.iter().find(|q| q.queue == queue).and_then(|q| q.cpu);
            let own = matches!(intent.goal_of(dev), Goal::Forward | Goal::Balanced) && !intent.pair_as_article;
            for cpu in all.iter() {
                let of = || numbered.iter().filter(|(_, mask)| mask.contains(cpu));
                // Only a CPU that handles several interrupts sends through several queues: theirs.
                let mine = numbered.iter().filter(|(queue, _)| at(*queue) == Some(cpu)).count();
                prop_assert_eq!(of().count(), if own { mine.max(1) } else { 1 }, "{} CPU {}", dev, cpu);
                prop_assert!(!own || mine == 0 || of().all(|(queue, _)| at(*queue) == Some(cpu)), "{dev} CPU {cpu}");
            }
            let empty = masks.iter().filter(|m| m.is_empty()).count();
            let fullest = masks.iter().map(|m| m.len()).max().unwrap_or(0);
            prop_assert!(empty == 0 || fullest <= 1 || masks.len() > all.len(), "{dev}: {masks:?}");
        }
    }

    /// Needs at least four cores: with fewer, goal latency leaves none of them free.
    #[test]
    fn two_goals_differ(cores in 4u32..=8, l3s in 1u32..=2, queues in 2u32..=16, may in any::<bool>(), rfs in prop_oneof![Just(0u32), Just(32_768), Just(8_192), Just(1 << 20)]) {
        let cpu = CpuSpec { packages: 2, l3s, ..CpuSpec::flat(cores, 2) };
        let nics = vec![NicSpec::new("eth1", "ice", Some(0), queues, 32), NicSpec::new("eth2", "ice", Some(1), queues, 32)];
        let s = HostSpec { rps_sock_flow_entries: rfs, ..machines::host("two", cpu, nics) }.snapshot();
        let of = |goal| {
            let p = plan(&s, &Intent { goal, allow_disruption: may, ..Intent::default() }, &[]).expect("possible");
            (p.target, p.left_out, p.groups)
        };
        let all: Vec<_> = Goal::ALL.into_iter().map(of).collect();
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate().skip(i + 1) {
                prop_assert_ne!(a, b, "{} and {}", Goal::ALL[i], Goal::ALL[j]);
            }
        }
    }
}
