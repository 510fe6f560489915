//! Why a setting differs from what was applied: a driver or the kernel lost it, or a user or program changed it.

use std::collections::BTreeSet;

use ringwise_apply::Standing;
use ringwise_knob::{Address, Family, Match, Setting};
use ringwise_model::{CpuSet, Fact, Nic, Snapshot};

use crate::evidence::Heard;

/// Why a setting is not as applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The driver set up the device again, or the kernel gave a new queue its default.
    Reset,
    /// Its CPUs are offline, or no longer usable.
    CpuGone,
    /// irqbalance was started again and has forgotten which interrupts to skip.
    Ban,
    /// A person or a program changed it.
    Manual,
    /// Its queue or interface does not exist.
    Absent,
    /// The present value is unknown.
    Unread,
}

impl Loss {
    /// Whether the service writes the value again.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Reset | Self::CpuGone | Self::Ban)
    }
}

/// What is known besides the setting.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The host as it is now.
    pub now: &'a Snapshot,
    /// What was heard about the interface.
    pub heard: Heard,
    /// The interface has another index than when it was written to: its driver was loaded again, or it was plugged again.
    pub anew: bool,
    /// Its channel counts are not those that were applied.
    pub other_channels: bool,
}

/// `None`: the setting is as applied.
pub fn judge(s: &Standing, about: About) -> Option<Loss> {
    match &s.how {
        how if how.holds() => return None,
        Match::Unknown(_) => return Some(Loss::Unread),
        Match::Gone => return Some(Loss::Absent),
        _ => {}
    }
    let (Some(address), Some(now)) = (s.want.address(), s.now.known()) else { return Some(Loss::Absent) };
    // After `ethtool -L` vectors and queues are new; a count that a user or program set stays.
    let renewed = about.anew || about.heard.bound || about.other_channels || about.heard.channels;
    let nic = address.dev().and_then(|d| about.now.nic(d));
    let lost = match address.family() {
        Family::Rivals => return Some(Loss::Ban),
        Family::Channels => about.anew,
        Family::Irq | Family::Xps | Family::Rps | Family::Rfs => {
            if unusable(&s.want, about.now) {
                return Some(Loss::CpuGone);
            }
            (renewed || about.heard.may_reset()) && is_default(now, &address, nic, about.now)
        }
        Family::Rss => (renewed || about.heard.link) && is_default(now, &address, nic, about.now),
        // A queue that was created again has the values of the driver.
        Family::Napi | Family::Coalesce => {
            let of_queue =
                matches!(address, Address::Napi { .. } | Address::NapiThread { .. } | Address::QueueCoalesce { .. });
            about.anew || (of_queue && renewed)
        }
        Family::Rings | Family::Features | Family::Pause | Family::Rules => about.anew,
        Family::Host => false,
    };
    Some(if lost { Loss::Reset } else { Loss::Manual })
}

/// Whether the setting names a CPU that is offline: the kernel then moves the interrupt itself.
fn unusable(want: &Setting, now: &Snapshot) -> bool {
    let cpus = match want {
        Setting::IrqCpus { cpus, .. } => cpus,
        _ => return false,
    };
    cpus.iter().any(|c| !now.topology.online.contains(c))
}

/// Whether this is the value that the kernel or a driver gives: all CPUs, no CPU, or an even table.
fn is_default(now: &Setting, address: &Address, nic: Option<&Nic>, host: &Snapshot) -> bool {
    match now {
        Setting::IrqCpus { cpus, .. } => {
            let hint = || match (address, nic) {
                (Address::IrqCpus { of, .. }, Some(nic)) => {
                    ringwise_knob::irq::vector(nic, *of).is_some_and(|v| v.hint == Fact::Known(cpus.clone()))
                }
                _ => false,
            };
            covers_a_node(cpus, host) || hint()
        }
        Setting::XpsCpus { cpus, .. } | Setting::RpsCpus { cpus, .. } => cpus.is_empty(),
        Setting::RpsFlowCnt { entries, .. } => *entries == 0,
        Setting::RssTable { table, .. } => is_even(table, nic),
        _ => false,
    }
}

/// The default affinity is all CPUs, or those of the device's node.
fn covers_a_node(cpus: &CpuSet, host: &Snapshot) -> bool {
    let online = &host.topology.online;
    let contains = |set: &CpuSet| set.iter().filter(|c| online.contains(*c)).all(|c| cpus.contains(c));
    contains(online)
        || host.topology.nodes.known().is_some_and(|n| n.values().any(|n| !n.cpus.is_empty() && contains(&n.cpus)))
}

/// The kernel's default: entry `i` names queue `i` modulo the number of queues (`ethtool_rxfh_indir_default`).
fn is_even(table: &[u32], nic: Option<&Nic>) -> bool {
    let queues: BTreeSet<u32> = table.iter().copied().collect();
    let n = nic.map_or(queues.len(), |nic| nic.rx_queues.len()).max(1);
    let modulo = |n: usize| table.iter().enumerate().all(|(i, q)| *q as usize == i % n);
    !table.is_empty() && (modulo(n) || modulo(queues.len()) || in_blocks(table))
}

/// Some drivers (igb) give each queue one block of neighbouring entries.
fn in_blocks(table: &[u32]) -> bool {
    let queues = table.iter().max().map_or(1, |m| *m as usize + 1);
    table.len().is_multiple_of(queues) && table.iter().enumerate().all(|(i, q)| *q as usize == i * queues / table.len())
}
