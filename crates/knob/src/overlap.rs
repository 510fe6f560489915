//! Settings that overlap: those of a whole device and those of its queues.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::NapiValues;
use ringwise_model::order::Order;

use crate::{Setting, coalesce};

/// The part of the previous value `before` that still applies beside these settings. `None`: nothing of it.
///
/// A write to the device overwrites the values of its queues. Drivers that report the first queue as the value of the
/// device (i40e, ice, the test NIC) show the value of that queue for the device.
pub fn beside<'a>(before: &Setting, settings: impl Iterator<Item = &'a Setting> + Clone) -> Option<Setting> {
    match before {
        Setting::QueueCoalesce { dev, queue, params } => {
            let names = settings.filter_map(|s| match s {
                Setting::Coalesce { dev: d, params } if d == dev => Some(params.keys()),
                _ => None,
            });
            let params = coalesce::without(params, names.flatten())?;
            Some(Setting::QueueCoalesce { dev: dev.clone(), queue: *queue, params })
        }
        Setting::Coalesce { dev, params } => {
            let names = settings.filter_map(|s| match s {
                Setting::QueueCoalesce { dev: d, params, .. } if d == dev => Some(params.keys()),
                _ => None,
            });
            let params = coalesce::without(params, names.flatten())?;
            Some(Setting::Coalesce { dev: dev.clone(), params })
        }
        Setting::Napi { dev, of, values } => {
            let mut values = *values;
            for s in settings {
                if let Setting::NapiDevice { dev: d, values: v } = s
                    && d == dev
                {
                    values = without(values, v);
                }
            }
            (values != NapiValues::default()).then(|| Setting::Napi { dev: dev.clone(), of: *of, values })
        }
        other => Some(other.clone()),
    }
}

fn without(values: NapiValues, set: &NapiValues) -> NapiValues {
    NapiValues {
        defer_hard_irqs: values.defer_hard_irqs.filter(|_| set.defer_hard_irqs.is_none()),
        gro_flush_timeout_ns: values.gro_flush_timeout_ns.filter(|_| set.gro_flush_timeout_ns.is_none()),
        irq_suspend_timeout_ns: values.irq_suspend_timeout_ns,
        threaded: values.threaded.filter(|_| set.threaded.is_none()),
    }
}

/// Whether a later setting replaces an earlier one at another address: a setting of the device replaces one of its
/// queues, but only if nothing of the earlier one is left.
pub fn replaces(later: &Setting, earlier: &Setting) -> bool {
    let wider = matches!(
        (later, earlier),
        (Setting::Coalesce { .. }, Setting::QueueCoalesce { .. }) | (Setting::NapiDevice { .. }, Setting::Napi { .. })
    );
    wider && beside(earlier, std::iter::once(later)).is_none()
}

/// Groups queues with equal moderation, so that a report needs one line for each group: values and queues, in the order
/// of the first queue.
pub fn alike<T: Clone + Ord>(of: &BTreeMap<u32, T>) -> Vec<(T, BTreeSet<u32>)> {
    let mut groups: BTreeMap<&T, BTreeSet<u32>> = BTreeMap::new();
    for (q, v) in of {
        groups.entry(v).or_default().insert(*q);
    }
    let mut out: Vec<(T, BTreeSet<u32>)> = groups.into_iter().map(|(v, q)| (v.clone(), q)).collect();
    out.order_by_key(|(_, q)| q.first().copied());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VectorName;

    fn map(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
        list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
    }

    fn queue(queue: u32, list: &[(&str, u32)]) -> Setting {
        Setting::QueueCoalesce { dev: "eth0".into(), queue, params: map(list) }
    }

    fn device(dev: &str, list: &[(&str, u32)]) -> Setting {
        Setting::Coalesce { dev: dev.into(), params: map(list) }
    }

    #[test]
    fn device_values_override_those_of_its_queues() {
        let had = queue(3, &[("rx-usecs", 50), ("rx-max-frames", 8)]);
        let left = |s: &[Setting]| beside(&had, s.iter());
        assert_eq!(left(&[device("eth0", &[("rx-usecs", 5)])]), Some(queue(3, &[("rx-max-frames", 8)])));
        assert_eq!(left(&[device("eth1", &[("rx-usecs", 5)])]), Some(had.clone()));
        assert_eq!(left(&[device("eth0", &[("rx-usecs", 5), ("rx-max-frames", 1)])]), None);
        assert!(replaces(&device("eth0", &[("rx-usecs", 5)]), &queue(0, &[("rx-usecs", 9)])));
        assert!(!replaces(&device("eth0", &[("rx-usecs", 5)]), &had));
    }

    #[test]
    fn queues_show_through_in_the_device() {
        let had = device("eth0", &[("rx-usecs", 50), ("stats-block-usecs", 9)]);
        let steps = [queue(0, &[("rx-usecs", 5)])];
        assert_eq!(beside(&had, steps.iter()), Some(device("eth0", &[("stats-block-usecs", 9)])));
    }

    #[test]
    fn files_of_the_device_set_every_instance() {
        let values = NapiValues { defer_hard_irqs: Some(1), threaded: Some(1), ..NapiValues::default() };
        let had = Setting::Napi { dev: "eth0".into(), of: VectorName::Rx(0), values };
        let set = |values| [Setting::NapiDevice { dev: "eth0".into(), values }];
        let only = NapiValues { threaded: Some(0), ..NapiValues::default() };
        let left = beside(&had, set(only).iter()).unwrap();
        let Setting::Napi { values: v, .. } = left else { panic!() };
        assert_eq!((v.defer_hard_irqs, v.threaded), (Some(1), None));
        assert_eq!(beside(&had, set(values).iter()), None);
    }

    #[test]
    fn queues_alike_are_one_group() {
        let of = BTreeMap::from([(0, 5), (1, 62), (2, 5)]);
        assert_eq!(alike(&of), [(5, BTreeSet::from([0, 2])), (62, BTreeSet::from([1]))]);
    }
}
