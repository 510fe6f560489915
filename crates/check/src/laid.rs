//! What somebody laid down on purpose is no fault: nothing is proposed against it.

use ringwise_knob::features::short_name;
use ringwise_model::{Intent, Knob, Wish};

/// Where a setting of these arguments of `ringwise plan` was laid down otherwise. `None`: nowhere.
pub(crate) fn against<'a>(i: &'a Intent, arguments: &str) -> Option<&'a str> {
    let sets = arguments.split("--set ").skip(1).filter_map(|s| s.trim().trim_matches('\'').split_once('='));
    let mut hits = sets.filter_map(|(key, value)| {
        let (dev, key) = key.split_once('.')?;
        let value = value.split(" --").next().unwrap_or(value).trim_matches(['\'', '"', ' ']);
        i.wishes.iter().find(|w| {
            let mine = w.dev.as_deref().unwrap_or("host") == dev;
            mine && wished(w, key).is_some_and(|v| v.is_empty() || v != value)
        })
    });
    hits.next().map(|w| w.said.as_str())
}

/// What it wants there; empty: something.
fn wished(w: &Wish, key: &str) -> Option<String> {
    match &w.knob {
        Knob::Feature { name, on } => {
            let f = key.strip_prefix("features.")?;
            (short_name(f) == short_name(name)).then(|| on.to_string())
        }
        Knob::Sysctl { name, value } => (key == format!("sysctl.\"{name}\"")).then(|| value.clone()),
        Knob::RfsEntries { entries } => (key == "rfs_entries").then(|| entries.to_string()),
        Knob::Rings { rx, .. } => (key == "rings.rx").then_some(rx.as_ref()?.to_string()),
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
    fn of_the_same_setting_otherwise() {
        let wish = |dev: Option<&str>, knob| Wish { dev: dev.map(str::to_string), knob, said: "file".into() };
        let gro = Knob::Feature { name: "gro".into(), on: false };
        let sysctl = Knob::Sysctl { name: "net.core.busy_read".into(), value: "50".into() };
        let i = Intent { wishes: vec![wish(Some("eth1"), gro), wish(None, sysctl)], ..Intent::default() };
        assert_eq!(against(&i, "--set eth1.features.gro=true"), Some("file"));
        assert_eq!(against(&i, "--set eth1.features.rx-gro=true --allow-disruption"), Some("file"));
        assert_eq!(against(&i, "--set eth1.features.gro=false --allow-disruption"), None);
        assert_eq!(against(&i, "--set eth2.features.gro=true"), None);
        assert_eq!(against(&i, "--set 'host.sysctl.\"net.core.busy_read\"=0'"), Some("file"));
        assert_eq!(against(&i, "--set 'host.sysctl.\"net.core.busy_read\"=50'"), None);
        assert_eq!(against(&i, ""), None);
    }
}
