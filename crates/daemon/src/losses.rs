//! Why a setting differs from what was applied: a driver or the kernel lost it, or a user or program changed it.

use ringwise_apply::SettingInEffect;
use ringwise_knob::{Address, Family, Match, Setting, rss};
use ringwise_model::{CpuSet, Fact, Nic, Snapshot};

use crate::evidence::InterfaceEvents;

/// Why a setting is not as applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingLoss {
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

impl SettingLoss {
    /// Whether the service writes the value again.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Reset | Self::CpuGone | Self::Ban)
    }
}

/// What is known besides the setting.
#[derive(Debug, Clone, Copy)]
pub struct LossContext<'a> {
    /// The host as it is now.
    pub now: &'a Snapshot,
    /// What was heard about the interface.
    pub heard: InterfaceEvents,
    /// The interface has another index than when it was written to: its driver was loaded again, or it was plugged again.
    pub anew: bool,
    /// Its channel counts are not those that were applied.
    pub other_channels: bool,
    /// CPUs went online or offline.
    pub cpus: bool,
    /// Not everything was heard: CPUs may have gone offline and come back.
    pub incomplete: bool,
    /// irqbalance does not skip the interrupts of this interface any more, although ringwise banned them.
    pub ban_lost: bool,
    /// Whether irqbalance still skips them could not be read, so who moved an interrupt is unknown.
    pub ban_unread: bool,
}

/// `None`: the setting is as applied.
pub fn judge(s: &SettingInEffect, about: LossContext) -> Option<SettingLoss> {
    match &s.how {
        how if how.holds() => return None,
        Match::Unknown(_) => return Some(SettingLoss::Unread),
        Match::Gone => return Some(SettingLoss::Absent),
        _ => {}
    }
    let (Some(address), Some(now)) = (s.want.address(), s.now.known()) else { return Some(SettingLoss::Absent) };
    // After `ethtool -L` vectors and queues are new; a count that a user or program set stays.
    let renewed = about.anew || about.heard.bound || about.other_channels || about.heard.channels;
    let nic = address.dev().and_then(|d| about.now.nic(d));
    let lost = match address.family() {
        Family::Rivals => return Some(SettingLoss::Ban),
        Family::Irq if about.ban_lost => return Some(SettingLoss::Ban),
        Family::Channels => about.anew,
        Family::Irq | Family::Xps | Family::Rps | Family::Rfs => {
            let default = is_default(now, &address, nic, about.now);
            if moved_by_kernel(&s.want, now, default, about) {
                return Some(SettingLoss::CpuGone);
            }
            (renewed || about.heard.may_reset()) && default
        }
        // A driver that is bound again has no context; one that was removed otherwise was removed by a person or program.
        Family::Rss if matches!(address, Address::RssContext { .. }) => about.anew,
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
    let by_irqbalance = address.family() == Family::Irq && about.ban_unread;
    Some(match lost {
        true => SettingLoss::Reset,
        false if by_irqbalance => SettingLoss::Unread,
        false => SettingLoss::Manual,
    })
}

/// Whether the kernel moved the interrupt because its CPU went offline: it then allows every CPU that is online, and this
/// mask stays when the CPU is back.
fn moved_by_kernel(want: &Setting, now: &Setting, default: bool, about: LossContext) -> bool {
    let (Setting::IrqCpus { cpus: want, .. }, Setting::IrqCpus { cpus: now, .. }) = (want, now) else { return false };
    let online = &about.now.topology.online;
    let offline = want.iter().any(|c| !online.contains(c));
    // Every CPU but the one that was offline.
    let others = now.len() > 1 && now.intersection(want).is_empty() && online.difference(want).is_subset(now);
    (offline && default) || (about.cpus && now.len() > 1) || (about.incomplete && others)
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
        Setting::RssTable { table, .. } => is_initial(table, nic),
        other => other.is_of_new_queue(),
    }
}

/// The default affinity is all CPUs, or those of the device's node.
fn covers_a_node(cpus: &CpuSet, host: &Snapshot) -> bool {
    let online = &host.topology.online;
    let contains = |set: &CpuSet| set.iter().filter(|c| online.contains(*c)).all(|c| cpus.contains(c));
    contains(online)
        || host.topology.nodes.known().is_some_and(|n| n.values().any(|n| !n.cpus.is_empty() && contains(&n.cpus)))
}

/// The kernel's default table for all queues or for those in use, or one block of neighbouring entries for each queue (igb).
fn is_initial(table: &[u32], nic: Option<&Nic>) -> bool {
    let used = table.iter().max().map_or(1, |m| m + 1);
    let all = nic.map_or(used, |nic| nic.rx_queues.len() as u32).max(1);
    let initial = |n: u32| {
        let blocks = || rss::by_weight(&vec![1; n as usize], table.len());
        table == rss::default(table.len(), n) || table == blocks()
    };
    !table.is_empty() && (initial(all) || initial(used))
}
