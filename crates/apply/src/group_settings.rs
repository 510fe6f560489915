//! What the transactions in effect created for groups of queues: contexts, flow rules, the share of the table.

use std::collections::BTreeMap;

use ringwise_knob::{Address, CreatedObject, Setting, live};
use ringwise_model::{Fact, Snapshot};

use crate::TransactionKind;
use crate::committed::CommittedTx;

fn of_groups(a: &Address) -> bool {
    matches!(a, Address::RssTable { .. } | Address::RssContext { .. } | Address::FlowRule { .. })
}

/// What of it exists, including what was changed outside ringwise. A setting that was since requested on its own, or adopted,
/// does not belong to a group any more.
pub(crate) fn made(kept: &[CommittedTx], now: &Snapshot) -> Vec<CreatedObject> {
    let mut all: BTreeMap<&Address, CreatedObject> = BTreeMap::new();
    // Moves because of the load are no change of a layout: the base is restored before the layout changes.
    for k in kept.iter().filter(|k| !matches!(k.kind, TransactionKind::Rollback { .. }) && !k.balance) {
        if k.kind == TransactionKind::Adopt {
            all.retain(|a, _| !k.wants.contains_key(*a));
            continue;
        }
        for (address, left) in k.after.iter().filter(|(a, _)| of_groups(a)) {
            let Some(start) = k.start.get(address).filter(|s| *s != left) else { continue };
            let wanted = k.wants.contains_key(address);
            let group = wanted && k.for_groups.contains(address);
            match all.get_mut(address).filter(|m| m.setting == *start) {
                // A context also changes with the channels, without being named.
                Some(m) if group || !wanted => {
                    m.setting = left.clone();
                    m.transaction = if group { k.id } else { m.transaction };
                }
                None if group => {
                    let (setting, before) = (left.clone(), start.clone());
                    all.insert(address, CreatedObject { setting, before, transaction: k.id, as_left: true });
                }
                _ if wanted => _ = all.remove(address),
                _ => {}
            }
        }
        all.retain(|_, m| m.setting != m.before);
    }
    let there = |m: CreatedObject| match live(now, &m.address()?) {
        Fact::Known(Setting::FlowRule { rule: None, .. } | Setting::RssContext { table: None, .. }) => None,
        Fact::Known(s) => Some(CreatedObject { as_left: s == m.setting, ..m }),
        _ => None,
    };
    all.into_values().filter_map(there).collect()
}
