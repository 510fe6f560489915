//! Text forms of a setting: its value, and the command that writes it.

use ringwise_model::{CpuSet, Snapshot};

use crate::Setting;

impl Setting {
    /// Whether the setting means that an object which can be created and deleted does not exist.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::RssContext { table: None, .. } | Self::FlowRule { rule: None, .. })
    }

    /// Whether this is the value that the kernel gives a new queue: no CPUs, no entries.
    pub fn is_of_new_queue(&self) -> bool {
        match self {
            Self::XpsCpus { cpus, .. } | Self::RpsCpus { cpus, .. } => cpus.is_empty(),
            Self::RpsFlowCnt { entries, .. } => *entries == 0,
            _ => false,
        }
    }

    /// The value alone, for people: `0-3`, `none`, `combined 8`, `32768`.
    pub fn value_text(&self) -> String {
        match (self, self.family()) {
            (_, Some(family)) => family.descriptor().value_text(self),
            (Self::Other(v), None) => v.to_string(),
            (_, None) => String::new(),
        }
    }

    /// [`value_text`](Self::value_text), shown beside that of another value. Two RSS tables can have the same shares, which are all
    /// that their texts have, in another order.
    pub fn value_text_beside(&self, other: &Self) -> String {
        let text = self.value_text();
        let same = self != other && text == other.value_text();
        if same && matches!(self, Self::RssTable { .. }) { format!("{text}, in another order") } else { text }
    }

    /// A plain command that writes this setting without ringwise, valid for this snapshot (interrupt numbers change).
    /// `None` if the snapshot no longer contains the object of the setting.
    pub fn command(&self, now: &Snapshot) -> Option<String> {
        self.family()?.descriptor().command(now, self)
    }
}

/// `0-3`, `none`
pub(crate) fn set_text(set: &CpuSet) -> String {
    if set.is_empty() { "none".to_string() } else { set.to_string() }
}
