//! Device-wide moderation that drivers are known to refuse. Goals and groups use the nearest accepted value; configured
//! values are reported.

use std::collections::BTreeMap;

use ringwise_knob::{ReplacedValue, Setting, coalesce};
use ringwise_model::{Nic, Policy};

use crate::dev::Dev;
use crate::{Mistake, policies};

type Params = BTreeMap<String, u32>;

pub(crate) fn driver(nic: &Nic) -> Option<&str> {
    nic.driver.known().map(String::as_str)
}

/// Whether receive and transmit share one interval: drivers that are known to do so refuse a separate one for transmit.
pub(crate) fn one_interval(d: &Dev) -> bool {
    if !matches!(driver(d.nic), Some("igb" | "igc")) {
        return false;
    }
    if let Some(Setting::Channels { combined: Some(n), .. }) = &d.channels
        && let Some(has) = d.nic.channels.known().and_then(|c| c.combined)
        && let Some(pairs) = coalesce::pairs_with(driver(d.nic), *n, has.max)
    {
        return pairs;
    }
    d.nic.queue_vectors().any(|v| !v.rx().is_empty() && !v.tx().is_empty())
}

/// A policy with the values that the device accepts.
pub(crate) struct Fixed {
    pub params: Params,
    /// Parameters that the driver does not have.
    pub missing: Vec<String>,
    /// Whether `tx-usecs` was omitted.
    pub one_interval: bool,
    /// Values that were replaced, because the driver refuses them.
    pub moved: Vec<ReplacedValue>,
}

/// `has`: parameters that the device reports.
pub(crate) fn fixed(d: &Dev, policy: &Policy, has: &Params) -> Fixed {
    let policies::Fit { mut params, missing } = policies::fit(policy, has);
    let one_interval = one_interval(d) && params.remove("tx-usecs").is_some();
    let mut moved = Vec::new();
    for (k, v) in params.iter_mut().filter(|(k, _)| is_usecs(k)) {
        let takes = coalesce::nearest(driver(d.nic), *v);
        if takes != *v {
            moved.push(ReplacedValue { name: k.clone(), wanted: *v, takes });
            *v = takes;
        }
    }
    Fixed { params, missing, one_interval, moved }
}

fn is_usecs(name: &str) -> bool {
    matches!(name, "rx-usecs" | "tx-usecs")
}

/// Some drivers report a parameter that they refuse for one direction: as an alternative, receive alone.
pub(crate) fn rx_alone(dev: &str, params: &Params) -> Vec<Setting> {
    less(dev, params, |k| k.contains("tx"))
}

/// The parameters without some of them; empty if nothing is removed or nothing is left.
fn less(dev: &str, params: &Params, mut goes: impl FnMut(&str) -> bool) -> Vec<Setting> {
    let left: Params =
        params.iter().filter(|(k, _)| !goes(k)).map(|(k, v)| (k.clone(), *v)).collect::<BTreeMap<_, _>>();
    let some = !left.is_empty() && left.len() < params.len();
    some.then(|| Setting::Coalesce { dev: dev.to_string(), params: left }).into_iter().collect()
}

/// A configured value that the driver is known to refuse.
pub(crate) struct NotTaken {
    /// `rx-usecs 5`
    pub what: String,
    pub mistake: Mistake,
}

/// The values in `params` that the driver is known to refuse, and the alternatives without them.
pub(crate) fn not_taken(d: &Dev, params: &Params) -> (Vec<NotTaken>, Vec<Setting>) {
    let one = one_interval(d);
    let mut all = Vec::new();
    let rest = less(d.name(), params, |k| {
        let v = params.get(k).copied().unwrap_or_default();
        let name = driver(d.nic).unwrap_or_default().to_string();
        let mistake = match k {
            "tx-usecs" if one && v != 0 => Some(Mistake::OneInterval { driver: name }),
            _ if is_usecs(k) => coalesce::refuses(driver(d.nic), v).map(|takes| {
                let nearest = coalesce::nearest(driver(d.nic), v);
                Mistake::DriverRefuses { driver: name, takes, nearest }
            }),
            _ => None,
        };
        let Some(mistake) = mistake else { return false };
        all.push(NotTaken { what: format!("{k} {v}"), mistake });
        true
    });
    (all, rest)
}
