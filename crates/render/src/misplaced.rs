//! Interrupts on CPUs where they cost performance, for the first line of `status` and the column REMARK.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ringwise_model::{CpuId, CpuSet, Nic, NodeId, Snapshot, Vector};
use ringwise_text::plural;

/// How interrupts of an interface are misplaced. The first line of the page and the column REMARK use the same text.
pub(super) enum Misplaced {
    /// Several queues on each of these CPUs. `why`: no placement on local CPUs avoids it.
    Stacked { cpus: CpuSet, queues: usize, why: Option<Unavoidable> },
    /// Queues on another node than the interface. `error`: at least one is on another socket, although a local CPU has no
    /// queue; `check` reports an error then.
    Remote { queues: usize, error: bool },
    /// Queues on isolated CPUs.
    Isolated { queues: usize },
    /// Several queues on each of `cores` cores, although a local core has none. `cpus`: those of all these cores.
    /// `fullest`: those of the core with the most queues.
    SharedCore { cpus: CpuSet, fullest: CpuSet, queues: usize, cores: usize },
}

/// Why several queues are on one CPU, whatever the affinities are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unavoidable {
    /// The device has more queues than its node has CPUs.
    MoreQueuesThanCpus,
    /// They have one interrupt.
    OneInterrupt,
}

impl Misplaced {
    /// Whether no placement on local CPUs avoids it.
    pub(super) fn is_unavoidable(&self) -> bool {
        matches!(self, Self::Stacked { why: Some(_), .. })
    }

    /// Whether `check` reports it as an error (A03 across sockets, A08).
    pub(super) fn is_error(&self) -> bool {
        matches!(self, Self::Remote { error: true, .. } | Self::Isolated { .. })
    }

    /// The order of `check`: errors first (A03 across sockets, A08), then A01, A03 and A04.
    pub(super) fn rank(&self) -> usize {
        match self {
            Self::Remote { error: true, .. } => 0,
            Self::Isolated { .. } => 1,
            Self::Stacked { .. } => 2,
            Self::Remote { .. } => 3,
            Self::SharedCore { .. } => 4,
        }
    }
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stacked { cpus, queues, why } => {
                match (cpus.len(), cpus.first()) {
                    (1, _) => write!(f, "{queues} queues on CPU {cpus}")?,
                    (n, Some(first)) if !is_short(cpus) => {
                        write!(f, "{queues} queues on each of {n} CPUs (such as CPU {first})")?;
                    }
                    _ => write!(f, "{queues} queues on each of CPUs {cpus}")?,
                }
                f.write_str(match why {
                    Some(Unavoidable::MoreQueuesThanCpus) => " (more queues than local CPUs)",
                    Some(Unavoidable::OneInterrupt) => " (they share an interrupt)",
                    None => "",
                })
            }
            Self::Remote { queues, .. } => write!(f, "{} on a remote node", plural(*queues, "queue")),
            Self::Isolated { queues } => write!(f, "{} on isolated CPUs", plural(*queues, "queue")),
            Self::SharedCore { cpus, queues, cores: 1, .. } => write!(f, "{queues} queues on one core (CPUs {cpus})"),
            Self::SharedCore { cpus, fullest, queues, cores } => match is_short(cpus) {
                true => write!(f, "{queues} queues on only {cores} cores (CPUs {cpus})"),
                false => write!(f, "{queues} queues on only {cores} cores (such as CPUs {fullest})"),
            },
        }
    }
}

/// Longer lists of CPUs, in characters, would push the other remarks of the interface off the screen.
const LONGEST_LIST: usize = 24;

fn is_short(cpus: &CpuSet) -> bool {
    cpus.to_string().len() <= LONGEST_LIST
}

/// `CPU 0`, `CPUs 0-7`, or `CPU 0 and 15 more` if the list would be too long.
pub(crate) fn list_of(cpus: &CpuSet) -> String {
    match (cpus.len(), cpus.first()) {
        (1, _) => format!("CPU {cpus}"),
        (n, Some(first)) if !is_short(cpus) => format!("CPU {first} and {} more", n - 1),
        _ => format!("CPUs {cpus}"),
    }
}

/// A greater distance between nodes means another socket; rule A03 uses the same limit.
const SOCKET: u32 = 20;

/// What is misplaced of an interface.
pub(super) fn of(s: &Snapshot, n: &Nic) -> Vec<Misplaced> {
    let mut out = Vec::new();
    let stacked = stacked(n);
    if let Some(Stack { cpus, queues, interrupts }) = stacked.clone() {
        let why = match interrupts {
            1 => Some(Unavoidable::OneInterrupt),
            several => (several <= fair_share(s, n)).then_some(Unavoidable::MoreQueuesThanCpus),
        };
        out.push(Misplaced::Stacked { cpus, queues, why });
    }
    let taken = |bad: &dyn Fn(&CpuSet) -> bool| queues_where(n, bad);
    let t = &s.topology;
    let remote = |node: NodeId| taken(&|cpus| cpus.iter().any(|c| t.node_of(c).is_some_and(|of| of != node)));
    let queues = n.node.known().map_or(0, |node| remote(*node));
    if queues > 0 {
        let far = |node: NodeId, c: CpuId| t.node_of(c).and_then(|of| t.distance(node, of)).is_some_and(|d| d > SOCKET);
        let socket = n.node.known().is_some_and(|node| taken(&|cpus| cpus.iter().any(|c| far(*node, c))) > 0);
        let occupied: CpuSet = on_cpus(n).into_keys().collect();
        let error = socket && local_cpus(s, n).iter().any(|c| !occupied.contains(c));
        out.push(Misplaced::Remote { queues, error });
    }
    let isolated = t.isolated_all();
    let queues = taken(&|cpus| cpus.intersects(&isolated));
    if queues > 0 {
        out.push(Misplaced::Isolated { queues });
    }
    // Interrupts on one CPU share its core too, and are listed already.
    if stacked.is_none_or(|s| s.interrupts == 1)
        && let Some(m) = shared_core(s, n)
    {
        out.push(m);
    }
    out
}

/// How many queues have an interrupt on bad CPUs. The two interrupts of a pair count once, and an interrupt of several
/// queues counts each of them.
fn queues_where(n: &Nic, bad: &dyn Fn(&CpuSet) -> bool) -> usize {
    let of = |v: &Vector| v.rx().iter().chain(v.tx()).copied().collect::<Vec<u32>>();
    let on_bad = n.queue_vectors().filter(|v| v.taken_by().is_some_and(bad));
    on_bad.flat_map(of).collect::<BTreeSet<u32>>().len()
}

/// The cores that several interrupts of queues share, if a core of the device's node has none.
fn shared_core(s: &Snapshot, n: &Nic) -> Option<Misplaced> {
    let mut on: BTreeMap<Option<CpuId>, (CpuSet, usize, usize)> = BTreeMap::new();
    for (cpu, taken) in on_cpus(n) {
        let core = s.topology.siblings_of(cpu);
        let (_, interrupts, queues) = on.entry(core.first()).or_insert((core, 0, 0));
        *interrupts += taken.interrupts.len();
        *queues += taken.queues.len();
    }
    let free = local_cpus(s, n).iter().any(|c| !on.contains_key(&s.topology.siblings_of(c).first()));
    let shared: Vec<(CpuSet, usize, usize)> = on.into_values().filter(|(_, n, _)| free && *n > 1).collect();
    let (queues, cores) = (shared.iter().map(|(.., queues)| queues).sum(), shared.len());
    let cpus = shared.iter().fold(CpuSet::new(), |all, (core, ..)| all.union(core));
    let (fullest, ..) = shared.into_iter().max_by_key(|(.., queues)| *queues)?;
    Some(Misplaced::SharedCore { cpus, fullest, queues, cores })
}

/// Interrupts of queues per CPU if they are spread evenly over the CPUs of the device's node. Without shared interrupts, each queue has
/// one.
fn fair_share(s: &Snapshot, n: &Nic) -> usize {
    let cpus = local_cpus(s, n);
    let shared = n.queue_vectors().any(|v| v.rx().len() > 1 || v.tx().len() > 1);
    let interrupts = match shared {
        true => n.queue_vectors().filter_map(first_queue).collect::<BTreeSet<u32>>().len(),
        false => n.rx_queues.len().max(n.tx_queues.len()),
    };
    interrupts.div_ceil(CpuSet::len(&cpus).max(1))
}

/// Online CPUs of the device's node that are not isolated; if the node has none, those of the host.
fn local_cpus(s: &Snapshot, n: &Nic) -> CpuSet {
    let t = &s.topology;
    let usable = t.online.difference(&t.isolated_all());
    let node = n.node.known().and_then(|k| t.nodes.known()?.get(k)).map(|k| k.cpus.intersection(&usable));
    node.filter(|c| !c.is_empty()).unwrap_or(usable)
}

/// What a CPU takes of a device.
#[derive(Default)]
struct Taken {
    /// The first queue of each interrupt. The two interrupts of a pair count once.
    interrupts: BTreeSet<u32>,
    queues: BTreeSet<u32>,
}

fn first_queue(v: &Vector) -> Option<u32> {
    v.rx().first().or(v.tx().first()).copied()
}

/// By CPU, for the interrupts that are known to go to one.
fn on_cpus(n: &Nic) -> BTreeMap<CpuId, Taken> {
    let mut out: BTreeMap<CpuId, Taken> = BTreeMap::new();
    for v in n.queue_vectors() {
        let cpu = v.taken_by().filter(|e| e.len() == 1).and_then(CpuSet::first);
        if let (Some(cpu), Some(first)) = (cpu, first_queue(v)) {
            let taken = out.entry(cpu).or_default();
            taken.interrupts.insert(first);
            taken.queues.extend(if v.rx().is_empty() { v.tx() } else { v.rx() });
        }
    }
    out
}

/// Several queues of a device on one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) cpus: CpuSet,
    /// On each of the CPUs.
    pub(crate) queues: usize,
    /// On each of the CPUs. 1: the queues share it.
    interrupts: usize,
}

/// The CPUs with the most interrupts of queues, and among these those with the most queues, if more than one.
pub(crate) fn stacked(n: &Nic) -> Option<Stack> {
    let on = on_cpus(n);
    let interrupts = on.values().map(|t| t.interrupts.len()).max()?;
    let fullest = || on.iter().filter(|(_, t)| t.interrupts.len() == interrupts);
    let queues = fullest().map(|(_, t)| t.queues.len()).max().filter(|queues| *queues > 1)?;
    let cpus = fullest().filter(|(_, t)| t.queues.len() == queues).map(|(cpu, _)| *cpu).collect();
    Some(Stack { cpus, queues, interrupts })
}

#[cfg(test)]
mod tests {
    use ringwise_model::{Fact, Role};
    use ringwise_testkit::sim::build;

    use super::*;

    /// An interface on a host of four cores with two threads each (CPUs 0 and 4, 1 and 5, ...). `on`: the queues of each interrupt, and its
    /// CPU.
    fn shown(on: &[(&[u32], u32)]) -> Vec<String> {
        let mut s = build::host(8, 1).igb("eth0", 0, 8).done();
        let n = s.nics.iter_mut().find(|n| n.name() == "eth0").unwrap();
        let mut rest = on.iter();
        n.vectors.retain_mut(|v| {
            if !v.is_queue() {
                return true;
            }
            let Some((queues, cpu)) = rest.next() else { return false };
            v.role = Role::Queues { rx: queues.to_vec(), tx: queues.to_vec() };
            let at: CpuSet = [CpuId(*cpu)].into_iter().collect();
            (v.asked, v.effective) = (Fact::Known(at.clone()), Fact::Known(at));
            true
        });
        assert!(rest.next().is_none(), "as many interrupts as the device has");
        of(&s, s.nic("eth0").unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn queues_that_share_an_interrupt() {
        let four: [&[u32]; 4] = [&[0, 1], &[2, 3], &[4, 5], &[6, 7]];
        let on =
            |cpus: [u32; 4]| shown(&[(four[0], cpus[0]), (four[1], cpus[1]), (four[2], cpus[2]), (four[3], cpus[3])]);
        assert_eq!(on([0, 1, 2, 3]), ["2 queues on each of CPUs 0-3 (they share an interrupt)"]);
        assert_eq!(on([0, 0, 2, 3]), ["4 queues on CPU 0"], "a placement avoids it");
        // The second threads of two cores, while the other two have no interrupt.
        let two_cores = on([0, 4, 1, 5]);
        assert_eq!(two_cores.len(), 2, "{two_cores:?}");
        assert!(two_cores[1].starts_with("8 queues on only 2 cores"), "{two_cores:?}");
        let mixed = shown(&[(&[0, 1], 0), (&[2, 3], 1), (&[4], 3), (&[5], 3)]);
        assert_eq!(mixed, ["2 queues on CPU 3"], "the others cannot be improved");
    }

    #[test]
    fn names_all_cpus_or_their_number() {
        let shown = |m: Misplaced| m.to_string();
        let cpus = |list: &str| list.parse::<CpuSet>().unwrap();
        let stacked = |list, more: bool| {
            let why = more.then_some(Unavoidable::MoreQueuesThanCpus);
            shown(Misplaced::Stacked { cpus: cpus(list), queues: 3, why })
        };
        let one = Misplaced::Stacked { cpus: cpus("5"), queues: 4, why: Some(Unavoidable::OneInterrupt) };
        assert_eq!(shown(one), "4 queues on CPU 5 (they share an interrupt)");
        assert_eq!(stacked("5", false), "3 queues on CPU 5");
        assert_eq!(stacked("0-7", false), "3 queues on each of CPUs 0-7");
        assert_eq!(stacked("1,3,5,7", true), "3 queues on each of CPUs 1,3,5,7 (more queues than local CPUs)");
        assert_eq!(stacked("0,2,4,6,8,10,12,14,16,18,20", false), "3 queues on each of 11 CPUs (such as CPU 0)");
        assert_eq!(list_of(&cpus("0-7")), "CPUs 0-7");
        assert_eq!(list_of(&cpus("0,2,4,6,8,10,12,14,16,18,20")), "CPU 0 and 10 more");
        let cores = |list, cores| {
            let (cpus, fullest) = (cpus(list), cpus("4-5"));
            shown(Misplaced::SharedCore { cpus, fullest, queues: 4, cores })
        };
        assert_eq!(cores("4-5", 1), "4 queues on one core (CPUs 4-5)");
        assert_eq!(cores("0-1,4-5", 2), "4 queues on only 2 cores (CPUs 0-1,4-5)");
        let many = "0-1,4-5,8-9,12-13,16-17,20-21,24-25,28-29";
        assert_eq!(cores(many, 8), "4 queues on only 8 cores (such as CPUs 4-5)");
    }
}
