//! What a device was found to refuse or ignore, remembered over runs.

use ringwise_model::DevId;
use serde::{Deserialize, Serialize};

use crate::{Address, Family, Setting};

const EOPNOTSUPP: i32 = 95;

/// A refusal or an ignored write, kept by device, driver and kernel; forgotten when one of them changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    pub device: DevId,
    pub driver: Option<String>,
    pub kernel: String,
    pub address: Address,
    /// What was asked when it was learned.
    pub asked: Setting,
    pub what: What,
    /// Seconds since 1970.
    pub unix_time: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The kernel said no for good.
    Refused { errno: i32, words: String },
    /// Accepted without an error, and reads back as something else.
    Ignored { got: Setting },
}

impl Learned {
    /// Whether it speaks of this setting of this device under this kernel. A vector that cannot be
    /// moved cannot be moved anywhere, and what is not supported is so with no value; other refusals are about
    /// the value that was asked.
    pub fn applies(&self, device: &DevId, driver: Option<&str>, kernel: &str, setting: &Setting) -> bool {
        let same_host = self.kernel == kernel && self.driver.as_deref() == driver && self.device.same_device(device);
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

    /// Whether an older one says nothing beside this one. Of some settings one value is refused and another taken: each
    /// is remembered; of rules, which stand in any place, each kind.
    pub fn replaces(&self, old: &Self) -> bool {
        let same_host = old.device == self.device && old.driver == self.driver && old.kernel == self.kernel;
        same_host
            && match self.address.family() {
                Family::Coalesce | Family::Pause => old.address == self.address && old.asked == self.asked,
                Family::Rules if matches!(self.asked, Setting::FlowRule { .. }) => {
                    old.asked == self.asked || old.same_kind_of_rule(&self.device, &self.asked)
                }
                _ => old.address == self.address,
            }
    }

    /// What a driver cannot match it cannot match in any place of its table.
    fn same_kind_of_rule(&self, device: &DevId, setting: &Setting) -> bool {
        let (Setting::FlowRule { rule: Some(was), .. }, Setting::FlowRule { dev, rule: Some(now), .. }) =
            (&self.asked, setting)
        else {
            return false;
        };
        *dev == device.name
            && matches!(self.what, What::Refused { errno: EOPNOTSUPP, .. })
            && was.flow == now.flow
            && was.fields.keys().eq(now.fields.keys())
            && std::mem::discriminant(&was.action) == std::mem::discriminant(&now.action)
            && was.context.is_some() == now.context.is_some()
    }

    /// The driver or kernel has no such setting of single queues.
    fn not_supported(&self) -> bool {
        matches!(self.what, What::Refused { errno: EOPNOTSUPP, .. })
            && matches!(self.address, Address::QueueCoalesce { .. } | Address::Napi { .. })
    }
}
