//! Writes that a device refused or ignored, or that took its link down, remembered between runs.
#![warn(missing_docs)]

use ringwise_model::DevId;
use ringwise_model::errno::EOPNOTSUPP;
use serde::{Deserialize, Serialize};

use crate::{Address, Family, Setting};

/// Such a write, stored with device, driver and kernel; it is dropped when one of them changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// Its interface.
    pub device: DevId,
    /// Its kernel driver. `None`: unknown.
    pub driver: Option<String>,
    /// Release of the kernel, as in `/proc/sys/kernel/osrelease`.
    pub kernel: String,
    /// Address of the setting.
    pub address: Address,
    /// The setting that was requested.
    pub asked: Setting,
    /// How the device answered.
    pub what: LearnedWrite,
    /// Seconds since 1970.
    pub unix_time: u64,
}

/// How a device answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnedWrite {
    /// The kernel refused the write permanently.
    Refused {
        /// Linux error number; 0 if unknown.
        errno: i32,
        /// The kernel's message, from the extended acknowledgement or by the error number; may be empty.
        words: String,
    },
    /// The kernel accepted the write without an error, but reads back another value.
    Ignored {
        /// The value that was read back.
        got: Setting,
    },
    /// The value was set, and the link went down for it. Plans set it nevertheless; only the service stops to write it because of load.
    LinkWentDown {
        /// How much `carrier_down_count` rose.
        times: u32,
    },
}

impl LearnedWrite {
    /// Whether the kernel or the driver lacks the call. Other refusals may have been temporary.
    pub fn is_not_supported(&self) -> bool {
        matches!(self, Self::Refused { errno: EOPNOTSUPP, .. })
    }
}

impl Learned {
    /// Whether the record applies to this setting of this device under this kernel. A vector that refuses one affinity
    /// refuses all, and an unsupported setting is unsupported with every value; other refusals apply only to the value
    /// that was requested.
    pub fn applies(&self, device: &DevId, driver: Option<&str>, kernel: &str, setting: &Setting) -> bool {
        if matches!(self.what, LearnedWrite::LinkWentDown { .. }) {
            return false;
        }
        let same_host = self.same_host(device, driver, kernel);
        if same_host && self.same_kind_of_rule(device, setting) {
            return true;
        }
        let same_address = setting.address().is_some_and(|a| a == self.address.renamed(&device.name));
        same_host
            && same_address
            && (self.address.family() == Family::Irq
                || self.not_supported()
                || self.asked.renamed(&device.name) == *setting)
    }

    /// Whether a write of an RSS table has taken the link of this device down.
    pub fn takes_link_down_for_rss(&self, device: &DevId, driver: Option<&str>, kernel: &str) -> bool {
        let down = matches!(self.what, LearnedWrite::LinkWentDown { .. });
        down && self.address.family() == Family::Rss && self.same_host(device, driver, kernel)
    }

    fn same_host(&self, device: &DevId, driver: Option<&str>, kernel: &str) -> bool {
        self.kernel == kernel && self.driver.as_deref() == driver && self.device.same_device(device)
    }

    /// Whether this record makes an older one obsolete. Some settings may refuse one value and accept another, so each
    /// refused value is remembered. A flow rule may be at any location, so each kind of rule is remembered.
    pub fn replaces(&self, old: &Self) -> bool {
        let same_host = old.device == self.device && old.driver == self.driver && old.kernel == self.kernel;
        // That a value was refused does not show that another one leaves the link up.
        let down = |l: &Self| matches!(l.what, LearnedWrite::LinkWentDown { .. });
        same_host
            && down(self) == down(old)
            && match self.address.family() {
                Family::Coalesce | Family::Pause => old.address == self.address && old.asked == self.asked,
                Family::Rules if matches!(self.asked, Setting::FlowRule { .. }) => {
                    old.asked == self.asked || old.same_kind_of_rule(&self.device, &self.asked)
                }
                _ => old.address == self.address,
            }
    }

    /// A driver that cannot match a kind of rule cannot match it at any location of its table.
    fn same_kind_of_rule(&self, device: &DevId, setting: &Setting) -> bool {
        let (Setting::FlowRule { rule: Some(was), .. }, Setting::FlowRule { dev, rule: Some(now), .. }) =
            (&self.asked, setting)
        else {
            return false;
        };
        *dev == device.name
            && self.what.is_not_supported()
            && was.flow == now.flow
            && was.fields.keys().eq(now.fields.keys())
            && std::mem::discriminant(&was.action) == std::mem::discriminant(&now.action)
            && was.context.is_some() == now.context.is_some()
    }

    /// Whether the driver or kernel does not support this setting for single queues.
    fn not_supported(&self) -> bool {
        self.what.is_not_supported() && matches!(self.address, Address::QueueCoalesce { .. } | Address::Napi { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A write that eth1 refused or ignored under 6.12.
    fn learned(asked: Setting, what: LearnedWrite) -> Learned {
        let device =
            DevId { name: "eth1".into(), ifindex: None, bus_address: Some("0000:01:00.0".into()), permanent_mac: None };
        let address = asked.address().unwrap();
        Learned { device, driver: Some("igb".into()), kernel: "6.12".into(), address, asked, what, unix_time: 1 }
    }

    fn xps(dev: &str, cpus: &str) -> Setting {
        Setting::XpsCpus { dev: dev.into(), queue: 0, cpus: cpus.parse().unwrap() }
    }

    #[test]
    fn a_refusal_applies_to_the_refused_value_only() {
        let l = learned(xps("eth1", "3"), LearnedWrite::Refused { errno: 22, words: "Invalid argument".into() });
        let applies = |s: &Setting| l.applies(&l.device, Some("igb"), "6.12", s);
        assert!(applies(&xps("eth1", "3")));
        assert!(!applies(&xps("eth1", "4")), "another value may be taken");
        assert!(!applies(&Setting::XpsCpus { dev: "eth1".into(), queue: 1, cpus: "3".parse().unwrap() }));
        assert!(!l.applies(&l.device, Some("igb"), "6.13", &xps("eth1", "3")), "another kernel, another try");
        assert!(!l.applies(&l.device, Some("igc"), "6.12", &xps("eth1", "3")));
        // The same device under another name.
        let renamed = DevId { name: "lan0".into(), ..l.device.clone() };
        assert!(l.applies(&renamed, Some("igb"), "6.12", &xps("lan0", "3")));
        assert!(!l.applies(&renamed, Some("igb"), "6.12", &xps("lan0", "4")));
    }

    #[test]
    fn a_link_that_went_down_is_no_refusal() {
        let table = |dev: &str, queue| Setting::RssTable { dev: dev.into(), table: vec![queue; 8] };
        let down = learned(table("eth1", 3), LearnedWrite::LinkWentDown { times: 1 });
        assert!(!down.applies(&down.device, Some("igb"), "6.12", &table("eth1", 3)), "a plan may set it");
        let renamed = DevId { name: "lan0".into(), ..down.device.clone() };
        assert!(down.takes_link_down_for_rss(&renamed, Some("igb"), "6.12"));
        assert!(!down.takes_link_down_for_rss(&renamed, Some("igb"), "6.13"), "another kernel, another try");
        assert!(!down.takes_link_down_for_rss(&renamed, Some("igc"), "6.12"));
        let other = DevId { bus_address: Some("0000:02:00.0".into()), ..down.device.clone() };
        assert!(!down.takes_link_down_for_rss(&other, Some("igb"), "6.12"));
        let refused = learned(table("eth1", 3), LearnedWrite::Refused { errno: 22, words: String::new() });
        assert!(!refused.takes_link_down_for_rss(&renamed, Some("igb"), "6.12"));
        assert!(!refused.replaces(&down) && !down.replaces(&refused), "both are remembered");
        let again = learned(table("eth1", 4), LearnedWrite::LinkWentDown { times: 2 });
        assert!(again.replaces(&down));
        let mask = learned(xps("eth1", "3"), LearnedWrite::LinkWentDown { times: 1 });
        assert!(!mask.takes_link_down_for_rss(&renamed, Some("igb"), "6.12"), "no RSS table was written");
    }

    #[test]
    fn unsupported_settings_are_unsupported_with_every_value() {
        let of =
            |n| Setting::QueueCoalesce { dev: "eth1".into(), queue: 0, params: [("rx-usecs".to_string(), n)].into() };
        let l = learned(of(20), LearnedWrite::Refused { errno: EOPNOTSUPP, words: "Operation not supported".into() });
        assert!(l.applies(&l.device, Some("igb"), "6.12", &of(50)));
    }
}
