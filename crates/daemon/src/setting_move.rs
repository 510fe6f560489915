//! A setting that the service writes because of the load.

use ringwise_knob::{Address, Setting};

/// Its value now, as it shall be, and from before the first move.
#[derive(Debug, Clone)]
pub(crate) struct SettingMove {
    pub address: Address,
    pub from: Setting,
    pub to: Setting,
    pub base: Setting,
}

impl SettingMove {
    /// The move that restores the value from before this one.
    pub(crate) fn back(&self) -> Self {
        Self { from: self.to.clone(), to: self.from.clone(), ..self.clone() }
    }
}
