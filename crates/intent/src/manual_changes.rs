//! Settings that were changed outside ringwise, and which of them a plan keeps.

use std::collections::BTreeSet;

use ringwise_apply::Verify;
use ringwise_knob::{ManualChange, Origin};
use ringwise_model::Snapshot;
use ringwise_plan::ManualChanges;

/// What a plan does about manual changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManualChangePolicy {
    /// Keep adopted changes; the plan contains the others, marked as manual.
    Ask,
    /// Keep all of them.
    Keep,
    /// Keep adopted changes, override the others; marked as with `Ask`.
    Changed,
    /// Override all of them.
    Over,
}

/// Manual changes as a plan takes them.
pub fn manual_changes_for_plan(list: &[ManualChange], take: ManualChangePolicy) -> ManualChanges {
    let (adopted, changed): (Vec<ManualChange>, Vec<ManualChange>) =
        list.iter().cloned().partition(|h| h.origin == Origin::Adopted);
    match take {
        ManualChangePolicy::Ask | ManualChangePolicy::Changed => {
            ManualChanges { keep: adopted, mark: changed, ..ManualChanges::default() }
        }
        ManualChangePolicy::Keep => ManualChanges { keep: list.to_vec(), ..ManualChanges::default() },
        ManualChangePolicy::Over => ManualChanges { mark: list.to_vec(), ..ManualChanges::default() },
    }
}

/// Interfaces for which nothing is in effect: their present layout is not one of ringwise.
pub fn interfaces_without_settings(s: &Snapshot, v: &Verify) -> BTreeSet<String> {
    let settled: BTreeSet<&str> = v.settings.iter().filter_map(|s| s.want.dev()).collect();
    s.tunable().map(|n| n.name()).filter(|n| !settled.contains(n)).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use ringwise_knob::Setting;

    use super::*;

    fn hand(origin: Origin, queue: u32) -> ManualChange {
        let setting = Setting::XpsCpus { dev: "eth2".into(), queue, cpus: "12".parse().unwrap() };
        let applied = Setting::XpsCpus { dev: "eth2".into(), queue, cpus: "14".parse().unwrap() };
        ManualChange { origin, setting, applied, transaction: 12, changed: None }
    }

    #[test]
    fn what_stays_and_what_is_marked() {
        let list = [hand(Origin::ByHand, 1), hand(Origin::Adopted, 2)];
        let queues = |h: &[ManualChange]| h.iter().map(|h| h.address().unwrap().to_string()).collect::<Vec<_>>();
        for (take, keep, mark) in [
            (ManualChangePolicy::Ask, &["eth2 tx-2 xps_cpus"][..], &["eth2 tx-1 xps_cpus"][..]),
            (ManualChangePolicy::Changed, &["eth2 tx-2 xps_cpus"], &["eth2 tx-1 xps_cpus"]),
            (ManualChangePolicy::Keep, &["eth2 tx-1 xps_cpus", "eth2 tx-2 xps_cpus"], &[]),
            (ManualChangePolicy::Over, &[], &["eth2 tx-1 xps_cpus", "eth2 tx-2 xps_cpus"]),
        ] {
            let h = manual_changes_for_plan(&list, take);
            assert_eq!(
                (queues(&h.keep), queues(&h.mark)),
                (keep.iter().map(ToString::to_string).collect(), mark.iter().map(ToString::to_string).collect()),
                "{take:?}"
            );
        }
    }
}
