//! Settings of which a plan writes only some values, such as moderation, rings or a NAPI instance. A device reports all of them.

use crate::Setting;

/// The parts of a setting that another one names, too.
pub fn named_parts(all: &Setting, named: &Setting) -> Setting {
    let mut out = all.clone();
    match (&mut out, named) {
        (Setting::Coalesce { params, .. }, Setting::Coalesce { params: named, .. })
        | (Setting::QueueCoalesce { params, .. }, Setting::QueueCoalesce { params: named, .. }) => {
            params.retain(|name, _| named.contains_key(name));
        }
        (Setting::NapiDevice { values, .. }, Setting::NapiDevice { values: named, .. })
        | (Setting::Napi { values, .. }, Setting::Napi { values: named, .. }) => {
            values.defer_hard_irqs = values.defer_hard_irqs.filter(|_| named.defer_hard_irqs.is_some());
            values.gro_flush_timeout_ns = values.gro_flush_timeout_ns.filter(|_| named.gro_flush_timeout_ns.is_some());
            values.irq_suspend_timeout_ns =
                values.irq_suspend_timeout_ns.filter(|_| named.irq_suspend_timeout_ns.is_some());
            values.threaded = values.threaded.filter(|_| named.threaded.is_some());
        }
        (Setting::RssContext { key, .. }, Setting::RssContext { key: None, .. }) => *key = None,
        (
            Setting::RssHash { function, key, symmetric, .. },
            Setting::RssHash { function: f, key: k, symmetric: x, .. },
        ) => {
            *function = function.take().filter(|_| f.is_some());
            *key = key.take().filter(|_| k.is_some());
            *symmetric = symmetric.take().filter(|_| x.is_some());
        }
        (Setting::Rings { values, .. }, Setting::Rings { values: named, .. }) => *values = values.only(named),
        (Setting::Pause { autoneg, rx, tx, .. }, Setting::Pause { autoneg: a, rx: r, tx: t, .. }) => {
            *autoneg = autoneg.filter(|_| a.is_some());
            *rx = rx.filter(|_| r.is_some());
            *tx = tx.filter(|_| t.is_some());
        }
        _ => {}
    }
    out
}

/// A setting with the parts of another one that it lacks.
pub fn with_parts_of(setting: Setting, more: &Setting) -> Setting {
    let mut out = setting;
    match (&mut out, more) {
        (Setting::QueueCoalesce { params, .. }, Setting::QueueCoalesce { params: more, .. }) => {
            more.iter().for_each(|(name, value)| _ = params.entry(name.clone()).or_insert(*value));
        }
        (Setting::Napi { values, .. }, Setting::Napi { values: more, .. }) => {
            values.defer_hard_irqs = values.defer_hard_irqs.or(more.defer_hard_irqs);
            values.gro_flush_timeout_ns = values.gro_flush_timeout_ns.or(more.gro_flush_timeout_ns);
            values.irq_suspend_timeout_ns = values.irq_suspend_timeout_ns.or(more.irq_suspend_timeout_ns);
            values.threaded = values.threaded.or(more.threaded);
        }
        (Setting::RssContext { key, .. }, Setting::RssContext { key: more, .. }) if key.is_none() => {
            key.clone_from(more)
        }
        _ => {}
    }
    out
}

/// Whether writing the first setting to a device with the second one changes nothing.
pub fn is_part_of(setting: &Setting, other: &Setting) -> bool {
    named_parts(other, setting) == *setting
}

#[cfg(test)]
mod tests {
    use ringwise_model::NapiValues;

    use super::*;
    use crate::VectorName;

    fn moderation(list: &[(&str, u32)]) -> Setting {
        let params = list.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        Setting::QueueCoalesce { dev: "eth0".into(), queue: 1, params }
    }

    fn napi(defer: u32, threaded: Option<u32>) -> Setting {
        let values = NapiValues { defer_hard_irqs: Some(defer), threaded, ..NapiValues::default() };
        Setting::Napi { dev: "eth0".into(), of: VectorName::Rx(1), values }
    }

    fn context(queue: u32, key: Option<&str>) -> Setting {
        Setting::RssContext {
            dev: "eth0".into(),
            context: 1,
            table: Some(vec![queue; 4]),
            key: key.map(str::to_string),
        }
    }

    #[test]
    fn only_what_a_plan_names_is_changed_and_restored() {
        let all = moderation(&[("rx-usecs", 62), ("tx-usecs", 122), ("rx-frames", 7)]);
        let plan = moderation(&[("rx-usecs", 5), ("tx-usecs", 10)]);
        assert_eq!(named_parts(&all, &plan), moderation(&[("rx-usecs", 62), ("tx-usecs", 122)]));
        assert_eq!(named_parts(&napi(2, Some(1)), &napi(0, None)), napi(2, None));
        assert_eq!(named_parts(&context(1, Some("aa")), &context(2, None)), context(1, None));
    }

    #[test]
    fn what_another_plan_names_besides_joins_the_base() {
        let base = moderation(&[("rx-usecs", 62)]);
        let joined = with_parts_of(base, &moderation(&[("rx-usecs", 5), ("rx-frames", 7)]));
        assert_eq!(joined, moderation(&[("rx-usecs", 62), ("rx-frames", 7)]));
        assert_eq!(with_parts_of(napi(2, None), &napi(9, Some(1))), napi(2, Some(1)));
        assert_eq!(with_parts_of(context(1, None), &context(2, Some("aa"))), context(1, Some("aa")));
    }

    #[test]
    fn a_part_changes_nothing() {
        let all = moderation(&[("rx-usecs", 62), ("rx-frames", 7)]);
        assert!(
            is_part_of(&moderation(&[("rx-usecs", 62)]), &all) && !is_part_of(&moderation(&[("rx-usecs", 5)]), &all)
        );
        assert!(is_part_of(&napi(2, None), &napi(2, Some(1))) && !is_part_of(&napi(3, None), &napi(2, Some(1))));
        assert!(
            is_part_of(&context(1, None), &context(1, Some("aa"))) && !is_part_of(&context(2, None), &context(1, None))
        );
        assert!(!is_part_of(&all, &moderation(&[("rx-usecs", 62)])), "it names more");
    }
}
