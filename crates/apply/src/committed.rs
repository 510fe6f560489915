//! What a kept transaction requested, and what it left behind.

use std::collections::BTreeSet;

use ringwise_knob::{Address, Setting, SettingMap};

use crate::Kind;

/// A transaction of this boot that was kept, with the present device names.
#[derive(Clone)]
pub(crate) struct CommittedTx {
    pub id: u64,
    pub kind: Kind,
    /// The service wrote again what was lost.
    pub correction: bool,
    /// The service moved entries of an indirection table because of the load.
    pub balance: bool,
    /// The table from before the first of these moves.
    pub base: Option<Setting>,
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
