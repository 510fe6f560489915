//! What a kept transaction requested, and what it left behind.

use std::collections::BTreeSet;

use ringwise_knob::{Address, Setting, SettingMap};

use crate::TransactionKind;

/// A transaction of this boot that was kept, with the present device names.
#[derive(Clone)]
pub(crate) struct CommittedTx {
    pub id: u64,
    pub kind: TransactionKind,
    /// The service wrote again what was lost.
    pub correction: bool,
    /// The service moved entries of an indirection table, or an interrupt, because of the load.
    pub balance: bool,
    /// The values from before the first of these moves.
    pub base: SettingMap,
    /// When it ended, seconds since 1970.
    pub ended: u64,
    /// Values as found before it.
    pub start: SettingMap,
    /// What it requested: its steps, without those that were refused or ignored.
    pub wants: SettingMap,
    /// Values of `start` and of its steps when it ended.
    pub after: SettingMap,
    /// What it wrote only for groups of queues.
    pub for_groups: BTreeSet<Address>,
}

impl CommittedTx {
    /// The value of a setting from before the service moved it because of the load. `None`: it is not known.
    pub(crate) fn base_of(&self, address: &Address) -> Option<&Setting> {
        self.base.get(address).or_else(|| self.start.get(address))
    }
}
