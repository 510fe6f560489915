//! What was heard about each interface since it was looked at. It decides whether a value was lost or is a manual change.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_kfmt::notification::{InterfaceChange, InterfaceNotification, Uevent};
use ringwise_model::DevId;

/// What was heard about one interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterfaceEvents {
    /// It appeared, or a driver was bound to its device.
    pub bound: bool,
    /// Its link, name or flags changed.
    pub link: bool,
    /// Its channel counts were set.
    pub channels: bool,
    /// Its rings, features, pause frames or moderation were set; some drivers reset the device for it.
    pub settings: bool,
}

impl InterfaceEvents {
    const EVERYTHING: Self = Self { bound: true, link: true, channels: true, settings: true };

    fn and(self, other: Self) -> Self {
        Self {
            bound: self.bound || other.bound,
            link: self.link || other.link,
            channels: self.channels || other.channels,
            settings: self.settings || other.settings,
        }
    }

    /// Whether a driver may have set up its interrupts or table again.
    pub fn may_reset(self) -> bool {
        self.bound || self.link || self.channels || self.settings
    }
}

/// What was heard since the last look.
#[derive(Debug, Clone, Default)]
pub struct NotificationEvidence {
    by_index: BTreeMap<u32, InterfaceEvents>,
    by_name: BTreeMap<String, InterfaceEvents>,
    by_bus: BTreeMap<String, InterfaceEvents>,
    /// Something was not heard: messages were lost, or the service was not running.
    incomplete: bool,
    /// CPUs went online or offline, or other CPUs are isolated.
    pub cpus: bool,
    /// Interfaces with a group whose program has started, or listens on other ports.
    pub programs: BTreeSet<String>,
}

impl NotificationEvidence {
    /// At the start: what happened before is unknown.
    pub fn incomplete() -> Self {
        Self { incomplete: true, ..Self::default() }
    }

    /// Messages were lost.
    pub fn lost(&mut self) {
        self.incomplete = true;
    }

    /// A notification about an interface. `false`: it cannot matter.
    pub fn interface(&mut self, change: &InterfaceChange) -> bool {
        let mut heard = InterfaceEvents::default();
        match change.change {
            InterfaceNotification::Link | InterfaceNotification::Gone | InterfaceNotification::Netdev => {
                heard.link = true
            }
            InterfaceNotification::Channels => heard.channels = true,
            InterfaceNotification::Rings
            | InterfaceNotification::Coalesce
            | InterfaceNotification::Features
            | InterfaceNotification::Pause => heard.settings = true,
            // A user or program has set the table itself.
            InterfaceNotification::Rss => {}
            InterfaceNotification::Other => return false,
        }
        if let Some(index) = change.ifindex {
            add(&mut self.by_index, index, heard);
        }
        if let Some(name) = &change.name {
            add(&mut self.by_name, name.clone(), heard);
        }
        true
    }

    /// An interface has another number of queues than at the last look, whether or not anything was heard.
    pub fn other_queues(&mut self, name: &str) {
        add(&mut self.by_name, name.to_string(), InterfaceEvents { channels: true, ..InterfaceEvents::default() });
    }

    /// A uevent. `false`: it cannot matter.
    pub fn uevent(&mut self, event: &Uevent) -> bool {
        let bound = InterfaceEvents { bound: true, ..InterfaceEvents::default() };
        match event {
            Uevent::Cpu { .. } => self.cpus = true,
            Uevent::Interface { name } => add(&mut self.by_name, name.clone(), bound),
            Uevent::Driver { device } => add(&mut self.by_bus, device.clone(), bound),
            Uevent::Other => return false,
        }
        true
    }

    /// Anything may have happened.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// What was heard about this interface, or may have been.
    pub fn of(&self, dev: &DevId) -> InterfaceEvents {
        if self.incomplete { InterfaceEvents::EVERYTHING } else { self.heard(dev) }
    }

    /// What was really heard about this interface.
    pub fn heard(&self, dev: &DevId) -> InterfaceEvents {
        let index = dev.ifindex.and_then(|i| self.by_index.get(&i.0));
        let bus = dev.bus_address.as_ref().and_then(|b| self.by_bus.get(b));
        let all = [index, self.by_name.get(&dev.name), bus];
        all.into_iter().flatten().fold(InterfaceEvents::default(), |sum, h| sum.and(*h))
    }
}

fn add<K: Ord>(map: &mut BTreeMap<K, InterfaceEvents>, key: K, heard: InterfaceEvents) {
    let sum = map.entry(key).or_default();
    *sum = sum.and(heard);
}

#[cfg(test)]
mod tests {
    use ringwise_model::IfIndex;

    use super::*;

    fn dev(index: u32, name: &str, bus: &str) -> DevId {
        DevId { ifindex: Some(IfIndex(index)), name: name.into(), bus_address: Some(bus.into()), permanent_mac: None }
    }

    #[test]
    fn what_was_heard_is_found_by_index_name_and_bus() {
        let mut e = NotificationEvidence::default();
        let change =
            |change, ifindex, name: Option<&str>| InterfaceChange { change, ifindex, name: name.map(Into::into) };
        assert!(e.interface(&change(InterfaceNotification::Channels, Some(4), None)));
        assert!(e.interface(&change(InterfaceNotification::Link, Some(4), Some("eth1"))));
        assert!(e.interface(&change(InterfaceNotification::Rings, None, Some("eth2"))));
        assert!(e.uevent(&Uevent::Driver { device: "0000:05:00.0".into() }));
        assert!(!e.uevent(&Uevent::Other) && !e.interface(&change(InterfaceNotification::Other, Some(9), None)));
        let one = e.of(&dev(4, "lan0", "0000:03:00.0"));
        assert_eq!(
            one,
            InterfaceEvents { link: true, channels: true, ..InterfaceEvents::default() },
            "renamed: by its index"
        );
        assert_eq!(
            e.of(&dev(5, "eth2", "0000:04:00.0")),
            InterfaceEvents { settings: true, ..InterfaceEvents::default() }
        );
        assert_eq!(
            e.of(&dev(6, "eth3", "0000:05:00.0")),
            InterfaceEvents { bound: true, ..InterfaceEvents::default() }
        );
        assert_eq!(e.of(&dev(9, "eth9", "0000:09:00.0")), InterfaceEvents::default());
        assert!(!e.cpus);
        e.uevent(&Uevent::Cpu { cpu: 3, online: false });
        assert!(e.cpus);
    }

    #[test]
    fn lost_messages_may_have_been_anything() {
        let mut e = NotificationEvidence::default();
        assert!(!e.of(&dev(1, "eth0", "")).may_reset());
        e.lost();
        assert_eq!(e.of(&dev(1, "eth0", "")), InterfaceEvents::EVERYTHING);
        assert_eq!(NotificationEvidence::incomplete().of(&dev(2, "eth1", "")), InterfaceEvents::EVERYTHING);
    }
}
