//! Settings that the user configured on purpose. They are not reported as faults, and no remedy may contradict them.

use std::collections::BTreeMap;

use ringwise_knob::features::short_name;
use ringwise_model::{ConfiguredBy, Intent, Knob, RingPart, Wish};

use crate::fix::PlanArguments;

/// Key for the host in place of an interface. Names of interfaces cannot contain a slash.
const HOST: &str = "/";

/// The settings that the user configured in addition to the goal, by interface.
pub(crate) struct WishesByDevice<'a>(BTreeMap<&'a str, Vec<&'a Wish>>);

impl<'a> WishesByDevice<'a> {
    pub(crate) fn new(i: &'a Intent) -> Self {
        let mut by: BTreeMap<&str, Vec<&Wish>> = BTreeMap::new();
        for w in &i.wishes {
            by.entry(w.dev.as_deref().unwrap_or(HOST)).or_default().push(w);
        }
        Self(by)
    }

    pub(crate) fn of(&self, dev: &str) -> &[&'a Wish] {
        self.0.get(dev).map_or(&[], Vec::as_slice)
    }

    /// Where the user configured another value for one of these settings. `None`: nowhere.
    pub(crate) fn against(&self, fix: &PlanArguments) -> Option<&'a ConfiguredBy> {
        let mut hits = fix.sets.iter().filter_map(|set| {
            let differs = |w: &&&Wish| wished(w, &set.key).is_some_and(|v| v.is_empty() || v != set.value);
            self.0.get(set.dev.as_deref().unwrap_or(HOST))?.iter().find(differs).copied()
        });
        hits.next().map(|w| &w.by)
    }
}

/// The configured value of this key, as `--set` expects it. Empty: the key is configured, but its value is not
/// compared.
fn wished(w: &Wish, key: &str) -> Option<String> {
    match &w.knob {
        Knob::Feature { name, on } => {
            let f = key.strip_prefix("features.")?;
            (short_name(f) == short_name(name)).then(|| on.to_string())
        }
        Knob::Sysctl { name, value } => (key == format!("sysctl.\"{name}\"")).then(|| value.clone()),
        Knob::RfsEntries { entries } => (key == "rfs_entries").then(|| entries.to_string()),
        Knob::LongestRings { rx, tx } => {
            ((key == "rings.rx" && *rx) || (key == "rings.tx" && *tx)).then(|| "max".to_string())
        }
        Knob::Rings { values } => {
            let part = RingPart::of(key.strip_prefix("rings.")?)?;
            Some(part.toml(part.value(values)?))
        }
        Knob::Coalesce { params, .. } => params.get(key.strip_prefix("coalesce.")?).map(u32::to_string),
        Knob::RssTable { context: None, .. } => (key == "rss.table").then(String::new),
        Knob::RssFields { flow, fields } => (key == format!("rss.fields.{flow}")).then(|| fields.clone()),
        Knob::RssHash { symmetric, .. } => (key == "rss.symmetric").then_some(symmetric.clone()?),
        Knob::Napi { .. } => key.starts_with("napi.").then(String::new),
        Knob::XpsCpus { .. } => key.starts_with("xps_cpus").then(String::new),
        Knob::RpsFlowCnt { entries, .. } => (key == "rps_flow_cnt").then(|| entries.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_value_for_the_same_setting() {
        let wish = |dev: Option<&str>, knob| Wish {
            dev: dev.map(str::to_string),
            knob,
            by: ConfiguredBy::InEffect,
            params_by: Default::default(),
        };
        let gro = Knob::Feature { name: "gro".into(), on: false };
        let sysctl = Knob::Sysctl { name: "net.core.busy_read".into(), value: "50".into() };
        let i = Intent { wishes: vec![wish(Some("eth1"), gro), wish(None, sysctl)], ..Intent::default() };
        let w = WishesByDevice::new(&i);
        assert_eq!(w.against(&PlanArguments::feature("eth1", "gro", true)), Some(&ConfiguredBy::InEffect));
        assert_eq!(
            w.against(&PlanArguments::feature("eth1", "rx-gro", true).disruptive()),
            Some(&ConfiguredBy::InEffect)
        );
        assert_eq!(w.against(&PlanArguments::feature("eth1", "gro", false).disruptive()), None);
        assert_eq!(w.against(&PlanArguments::feature("eth2", "gro", true)), None);
        assert_eq!(w.against(&PlanArguments::sysctl("net.core.busy_read", 0)), Some(&ConfiguredBy::InEffect));
        assert_eq!(w.against(&PlanArguments::sysctl("net.core.busy_read", 50)), None);
        assert_eq!(w.against(&PlanArguments::planned()), None);
    }
}
