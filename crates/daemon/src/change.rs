//! A setting that the service changes because of the load.

use ringwise_knob::{Address, Setting};

/// A setting that follows the load: its value now, as it shall be, and from before the first move.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub address: Address,
    pub from: Setting,
    pub to: Setting,
    pub base: Setting,
}

impl Change {
    /// The change that restores the value from before this one.
    pub(crate) fn back(&self) -> Self {
        Self { from: self.to.clone(), to: self.from.clone(), ..self.clone() }
    }
}

/// Whether all of the setting is in the other one: a plan names only some of the parameters that a device reports.
pub(crate) fn is_part_of(setting: &Setting, other: &Setting) -> bool {
    match (setting, other) {
        (Setting::QueueCoalesce { params, .. }, Setting::QueueCoalesce { params: all, .. }) => {
            params.iter().all(|(name, value)| all.get(name) == Some(value))
        }
        _ => setting == other,
    }
}
