//! Scores the present interrupt layout of a host.

use ringwise_model::Snapshot;

use crate::dev::Dev;
use crate::effect::{before, far, per_core};
use crate::machine::Machine;

/// Score of the interrupt layout of a host, for comparing layouts of any origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Score {
    /// Queue pairs whose CPU is known.
    pub queues: u32,
    /// Queue pairs whose CPU is unknown.
    pub unknown: u32,
    /// On another node than the device's.
    pub far: u32,
    /// On a CPU that handles another queue of the same device.
    pub stacked: u32,
    /// On another thread of a core that handles a queue of the same device.
    pub smt_shared: u32,
}

/// Scores the layout that a snapshot shows (effective CPUs).
pub fn score(s: &Snapshot) -> Score {
    let m = Machine::new(&s.topology);
    let mut out = Score::default();
    for nic in s.tunable().filter(|n| n.link_is_up()) {
        let d = Dev::new(&m, nic, ringwise_model::Goal::Balanced);
        let cpus = before(&m, &d);
        let cores = per_core(&m, &cpus);
        for (q, c) in cpus.iter().enumerate() {
            let Some(c) = *c else {
                out.unknown += 1;
                continue;
            };
            out.queues += 1;
            out.far += u32::from(far(&m, &d, c) == Some(true));
            let mates = &cores[&m.core[c]];
            let same = mates.iter().any(|o| *o as usize != q && cpus[*o as usize] == Some(c));
            out.stacked += u32::from(same);
            out.smt_shared += u32::from(!same && mates.len() > 1);
        }
    }
    out
}
