//! What a transaction that was kept wants and left.

use std::collections::BTreeSet;

use ringwise_knob::{Address, SettingMap};

use crate::Kind;

/// A transaction of this boot that was kept, under the names of now.
#[derive(Clone)]
pub(crate) struct Kept {
    pub id: u64,
    pub kind: Kind,
    /// When it ended, seconds since 1970.
    pub ended: u64,
    /// As found before it.
    pub start: SettingMap,
    /// What it wants: its steps, without those that were refused or ignored.
    pub wants: SettingMap,
    /// As it left `start` and its steps.
    pub after: SettingMap,
    /// What it wrote only for groups of queues.
    pub for_groups: BTreeSet<Address>,
}
