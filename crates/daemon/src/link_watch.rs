//! Whether a write because of the load took the link of its interface down: some drivers set up the device again for a new RSS table.
//!
//! `carrier_down_count` decides: `netif_carrier_off` (net/sched/sch_generic.c) increments it at once. A link message alone proves nothing:
//! another MTU and promiscuous mode cause one, too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_adapt::Forbidden;
use ringwise_kfmt::notification::{InterfaceChange, InterfaceNotification};
use ringwise_knob::{Family, Learned, Setting, path};
use ringwise_sys::Host;

/// A link that goes down within this time after a write does so because of it.
pub(crate) const LIKELY_CAUSE: Duration = Duration::from_secs(5);

/// A write whose effect on the link is not known yet.
#[derive(Debug, Clone)]
pub(crate) struct LinkWatch {
    /// The RSS table among what was written.
    pub table: Option<Setting>,
    /// When the write ended.
    written: Duration,
    /// Just before the write.
    before: Carrier,
    /// The first link message since the write.
    message: Option<Duration>,
}

/// What the kernel counts of the link of an interface. `None`: unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carrier {
    /// Another index is another interface, whose count begins again.
    pub ifindex: Option<u32>,
    /// `carrier_down_count`
    pub downs: Option<u32>,
}

impl Carrier {
    pub(crate) fn read(host: &dyn Host, dev: &str) -> Self {
        Self { ifindex: number(host, dev, "ifindex"), downs: carrier_downs(host, dev) }
    }
}

/// What a write did to the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkVerdict {
    /// Not known yet.
    Open,
    /// Nothing.
    StayedUp,
    /// It went down. `times`: how much `carrier_down_count` rose; `None`: the count is unknown, and there was a link message.
    WentDown { times: Option<u32> },
    /// The interface was created again: its count does not show what the write did.
    Replaced,
}

impl LinkWatch {
    /// Just before these settings of the interface are written.
    pub(crate) fn before<'a>(host: &dyn Host, dev: &str, settings: impl Iterator<Item = &'a Setting>) -> Self {
        let rss = |s: &&Setting| s.address().is_some_and(|a| a.family() == Family::Rss);
        let table = settings.filter(rss).last().cloned();
        Self { table, written: host.since_boot(), before: Carrier::read(host, dev), message: None }
    }

    /// They are written.
    pub(crate) fn written(&mut self, now: Duration) {
        self.written = now;
    }

    /// A link message about the interface was received.
    pub(crate) fn heard(&mut self, now: Duration) {
        self.message.get_or_insert(now);
    }

    /// `after`: as the kernel counts now.
    pub(crate) fn verdict(&self, after: Carrier, now: Duration) -> LinkVerdict {
        let end = self.written + LIKELY_CAUSE;
        let in_time = self.message.is_some_and(|at| at <= end);
        let other_index = self.before.ifindex.zip(after.ifindex).is_some_and(|(before, after)| before != after);
        match (self.before.downs, after.downs) {
            _ if other_index => LinkVerdict::Replaced,
            (Some(before), Some(after)) if after < before => LinkVerdict::Replaced,
            // Looked at too late, the count alone does not show when it rose.
            (Some(before), Some(after)) if after > before => match now <= end || in_time || self.message.is_none() {
                true => LinkVerdict::WentDown { times: Some(after - before) },
                false => LinkVerdict::StayedUp,
            },
            (None, _) | (_, None) if in_time => LinkVerdict::WentDown { times: None },
            _ if now > end => LinkVerdict::StayedUp,
            _ => LinkVerdict::Open,
        }
    }
}

/// What is known about links and writes.
#[derive(Debug, Default)]
pub(crate) struct LinkWatches {
    /// Writes whose effect is not known yet, by interface.
    pub watched: BTreeMap<String, LinkWatch>,
    /// Found since the last look, which records them: the table that was written, and how often the link went down.
    pub new: BTreeMap<String, (Setting, u32)>,
    /// What was found now or by an earlier service. `None`: not read yet.
    pub learned: Option<Vec<Learned>>,
    /// Interfaces, as they are named now.
    pub names: BTreeSet<String>,
    /// Whether `names` is complete: the records were read, and compared with the interfaces of this host.
    pub known: bool,
    /// Interfaces with a base to restore whose link went down for the last write, of any setting.
    pub went_down: BTreeSet<String>,
    /// Interfaces whose base could not be restored: another try would take the link down again. The value: whether the service still acted
    /// on the interface. Once it no longer does, the base is tried one more time.
    pub given_up: BTreeMap<String, bool>,
}

impl LinkWatches {
    /// Whether a write of its RSS table takes the link of this interface down.
    pub(crate) fn contains(&self, dev: &str) -> bool {
        self.names.contains(dev)
    }

    /// Why its RSS table must not be written. `None`: nothing is known against it.
    pub(crate) fn forbids_table(&self, dev: &str) -> Option<Forbidden> {
        match self.known {
            _ if self.contains(dev) => Some(Forbidden::WriteResetsDevice),
            true => None,
            false => Some(Forbidden::ResetUnknown),
        }
    }

    /// A link message about this interface was received.
    pub(crate) fn heard(&mut self, change: &InterfaceChange, now: Duration) {
        let link = matches!(change.change, InterfaceNotification::Link | InterfaceNotification::Gone);
        let watch = change.name.as_ref().filter(|_| link).and_then(|name| self.watched.get_mut(name));
        watch.into_iter().for_each(|w| w.heard(now));
    }
}

/// How often the link of this interface went down. `None`: unknown.
pub(crate) fn carrier_downs(host: &dyn Host, dev: &str) -> Option<u32> {
    number(host, dev, "carrier_down_count")
}

fn number(host: &dyn Host, dev: &str, file: &str) -> Option<u32> {
    host.read_text(&path::of_device(dev, file)).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn watch(downs: Option<u32>, message: Option<u64>) -> LinkWatch {
        LinkWatch { table: None, written: ms(10_000), before: carrier(downs), message: message.map(ms) }
    }

    fn carrier(downs: Option<u32>) -> Carrier {
        Carrier { ifindex: Some(7), downs }
    }

    #[test]
    fn the_count_decides() {
        let down = |times| LinkVerdict::WentDown { times: Some(times) };
        assert_eq!(watch(Some(3), None).verdict(carrier(Some(3)), ms(15_000)), LinkVerdict::Open);
        assert_eq!(watch(Some(3), None).verdict(carrier(Some(3)), ms(15_001)), LinkVerdict::StayedUp);
        assert_eq!(watch(Some(3), None).verdict(carrier(Some(4)), ms(10_000)), down(1));
        assert_eq!(watch(Some(3), None).verdict(carrier(Some(5)), ms(15_000)), down(2));
        // Another MTU: a message, and the link stays up.
        assert_eq!(watch(Some(3), Some(11_000)).verdict(carrier(Some(3)), ms(12_000)), LinkVerdict::Open);
        assert_eq!(watch(Some(3), Some(11_000)).verdict(carrier(Some(3)), ms(16_000)), LinkVerdict::StayedUp);
    }

    #[test]
    fn an_interface_that_was_created_again_shows_nothing() {
        assert_eq!(watch(Some(3), None).verdict(carrier(Some(0)), ms(11_000)), LinkVerdict::Replaced);
        assert_eq!(watch(Some(3), Some(11_000)).verdict(carrier(Some(0)), ms(11_000)), LinkVerdict::Replaced);
        let other = |downs| Carrier { ifindex: Some(8), downs };
        for downs in [None, Some(0), Some(3), Some(4)] {
            assert_eq!(watch(Some(3), Some(11_000)).verdict(other(downs), ms(11_000)), LinkVerdict::Replaced);
        }
        // Without its index, the count decides.
        let unknown = Carrier { ifindex: None, downs: Some(4) };
        assert_eq!(watch(Some(3), None).verdict(unknown, ms(11_000)), LinkVerdict::WentDown { times: Some(1) });
    }

    #[test]
    fn the_first_message_decides_where_the_count_is_read_late() {
        let down = LinkVerdict::WentDown { times: Some(1) };
        assert_eq!(watch(Some(3), Some(14_900)).verdict(carrier(Some(4)), ms(30_000)), down);
        assert_eq!(watch(Some(3), Some(19_000)).verdict(carrier(Some(4)), ms(30_000)), LinkVerdict::StayedUp);
        // Nothing is heard on this host: the write is the likely cause.
        assert_eq!(watch(Some(3), None).verdict(carrier(Some(4)), ms(16_000)), down);
        let mut w = watch(Some(3), None);
        w.heard(ms(11_000));
        w.heard(ms(29_000));
        assert_eq!(w.verdict(carrier(Some(4)), ms(30_000)), down, "only the first one counts");
    }

    #[test]
    fn without_the_count_a_message_in_time_is_enough() {
        let unknown = LinkVerdict::WentDown { times: None };
        assert_eq!(watch(None, Some(11_000)).verdict(carrier(Some(4)), ms(12_000)), unknown);
        assert_eq!(watch(Some(3), Some(11_000)).verdict(carrier(None), ms(12_000)), unknown);
        assert_eq!(watch(None, None).verdict(carrier(None), ms(12_000)), LinkVerdict::Open);
        assert_eq!(watch(None, None).verdict(carrier(None), ms(15_001)), LinkVerdict::StayedUp);
        assert_eq!(watch(None, Some(15_001)).verdict(carrier(None), ms(15_001)), LinkVerdict::StayedUp);
    }
}
