//! Interrupt moderation: of a device by `ETHTOOL_MSG_COALESCE_SET`, of a queue by `ETHTOOL_PERQUEUE`.

use std::collections::BTreeMap;

use ringwise_kfmt::ethtool_ioctl::perqueue;
use ringwise_kfmt::ethtool_nl as nl;
use ringwise_model::errno::EINVAL;
use ringwise_model::{Coalesce, Snapshot};
use ringwise_sys::{Error, IoctlCmd, Request, Result};

use crate::host_access::HostAccess;

type Params = BTreeMap<String, u32>;

/// Sends only the parameters that differ: a parameter that the driver does not support makes the whole call fail.
pub(crate) fn write(cx: &HostAccess, now: &Snapshot, dev: &str, params: &Params) -> Result<()> {
    let have = now.nic(dev).and_then(|n| n.coalesce.known()).map(|c| &c.0);
    in_order(params, have, &|p| set(cx, dev, &whole_profiles(p, have)))
}

fn set(cx: &HostAccess, dev: &str, params: &Params) -> Result<()> {
    let list: Vec<(&str, u32)> = params.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    let attrs = nl::coalesce_set(&list).map_err(|e| Error::other(format!("coalesce-set {dev}"), e.to_string()))?;
    cx.order(Request::EthtoolSet { cmd: nl::msg::COALESCE_SET, name: "coalesce-set", dev: dev.to_string(), attrs })
}

/// The kernel accepts a profile only as a complete list.
fn whole_profiles(params: &Params, have: Option<&Params>) -> Params {
    let mut out = params.clone();
    for (_, profile) in nl::coalesce::PROFILES {
        let part = format!("{profile}.");
        if params.keys().any(|k| k.starts_with(&part)) {
            let rest = have.into_iter().flatten().filter(|(k, _)| k.starts_with(&part));
            rest.for_each(|(k, v)| _ = out.entry(k.clone()).or_insert(*v));
        }
    }
    out
}

/// Writes the moderation of one queue: all its present parameters, with the changed ones replaced.
pub(crate) fn write_queue(cx: &HostAccess, dev: &str, queue: u32, params: &Params) -> Result<()> {
    if let Some(k) = params.keys().find(|k| !perqueue::is_parameter(k)) {
        return Err(Error::other(order(dev, Vec::new()).to_string(), perqueue::NotOfQueues(k.clone()).to_string()));
    }
    let what = order(dev, perqueue::get_request(&[queue])).to_string();
    let bad = |words: String| Error::other(what.clone(), words);
    let name = dev.to_string();
    let found = cx.trying(|| what.clone(), move |h| ringwise_discover::queue_struct(h, &name, queue))?;
    let have = found.0.clone();
    // The struct holds all parameters, so each call includes what the earlier calls set.
    let last = std::cell::RefCell::new(found.0);
    in_order(params, Some(&have), &|p| {
        let mut values = last.borrow().clone();
        values.extend(p.iter().map(|(k, v)| (k.clone(), *v)));
        let payload = perqueue::set_request(&[queue], &Coalesce(values.clone())).map_err(|e| bad(e.to_string()))?;
        cx.order(order(dev, payload))?;
        last.replace(values);
        Ok(())
    })
}

fn order(dev: &str, payload: Vec<u8>) -> Request {
    Request::Ioctl { cmd: IoctlCmd::PerQueue, dev: dev.to_string(), payload }
}

/// Sends all parameters in one call, which either sets all or none. Drivers (i40e, ice, iavf) refuse times together with adaptive
/// moderation. In that case the parameters are sent in several calls, in an order that the driver accepts, and restored if a
/// later call fails.
fn in_order(want: &Params, have: Option<&Params>, set: &dyn Fn(&Params) -> Result<()>) -> Result<()> {
    let differ: Params = want
        .iter()
        .filter(|(k, v)| have.is_none_or(|h| h.get(*k) != Some(*v)))
        .map(|(k, v)| (k.clone(), *v))
        .collect::<BTreeMap<_, _>>();
    let refused = match set(&differ) {
        Err(e) if e.errno == Some(EINVAL) => e,
        other => return other,
    };
    let flag = |k: &str| k.starts_with("use-adaptive-");
    let part = |keep: &dyn Fn(&str, u32) -> bool| -> Params {
        differ.iter().filter(|(k, v)| keep(k, **v)).map(|(k, v)| (k.clone(), *v)).collect::<BTreeMap<_, _>>()
    };
    let parts = [part(&|k, v| flag(k) && v == 0), part(&|k, _| !flag(k)), part(&|k, v| flag(k) && v != 0)];
    let parts: Vec<&Params> = parts.iter().filter(|p| !p.is_empty()).collect();
    let Some(have) = have.filter(|_| parts.len() > 1) else { return Err(refused) };
    for (i, p) in parts.iter().enumerate() {
        if let Err(e) = set(p) {
            for done in parts[..i].iter().rev() {
                let old: Params =
                    done.keys().filter_map(|k| Some((k.clone(), *have.get(k)?))).collect::<BTreeMap<_, _>>();
                // If restoring fails, the next discovery finds it.
                let _ = set(&old);
            }
            return Err(e);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn map(list: &[(&str, u32)]) -> Params {
        list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
    }

    fn text(p: &Params) -> String {
        p.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(" ")
    }

    /// Behaves like ice: refuses times while adaptive moderation is on, or if the same call turns it on.
    fn ice(p: &Params, state: &RefCell<Params>, log: &RefCell<Vec<String>>) -> Result<()> {
        let mut next = state.borrow().clone();
        next.extend(p.clone());
        let moved = next["rx-usecs"] != state.borrow()["rx-usecs"];
        let no = (next["use-adaptive-rx"] == 1 && moved) || next["rx-usecs"] > 8160;
        log.borrow_mut().push(format!("{}{}", text(p), if no { " refused" } else { "" }));
        if no {
            return Err(Error::errno("coalesce-set", EINVAL));
        }
        state.replace(next);
        Ok(())
    }

    fn run(from: &[(&str, u32)], want: &[(&str, u32)]) -> (Result<()>, Params, Vec<String>) {
        let (state, log) = (RefCell::new(map(from)), RefCell::new(Vec::new()));
        let done = in_order(&map(want), Some(&map(from)), &|p| ice(p, &state, &log));
        (done, state.into_inner(), log.into_inner())
    }

    #[test]
    fn adaptive_goes_off_with_the_times_and_on_after_them() {
        let (done, state, log) =
            run(&[("use-adaptive-rx", 1), ("rx-usecs", 50)], &[("use-adaptive-rx", 0), ("rx-usecs", 5)]);
        assert!(done.is_ok() && state["rx-usecs"] == 5);
        assert_eq!(log, ["rx-usecs 5 use-adaptive-rx 0"]);
        let (done, state, log) =
            run(&[("use-adaptive-rx", 0), ("rx-usecs", 5)], &[("use-adaptive-rx", 1), ("rx-usecs", 50)]);
        assert!(done.is_ok() && state == map(&[("use-adaptive-rx", 1), ("rx-usecs", 50)]));
        assert_eq!(log, ["rx-usecs 50 use-adaptive-rx 1 refused", "rx-usecs 50", "use-adaptive-rx 1"]);
    }

    #[test]
    fn nothing_is_half_done() {
        let (done, state, log) =
            run(&[("use-adaptive-rx", 1), ("rx-usecs", 50)], &[("use-adaptive-rx", 0), ("rx-usecs", 9999)]);
        assert_eq!(done.unwrap_err().errno, Some(EINVAL));
        assert_eq!(state, map(&[("use-adaptive-rx", 1), ("rx-usecs", 50)]));
        assert_eq!(log.last().unwrap(), "use-adaptive-rx 1");
    }

    #[test]
    fn one_parameter_alone_is_not_tried_twice() {
        let (done, _, log) = run(&[("use-adaptive-rx", 0), ("rx-usecs", 50)], &[("rx-usecs", 9999)]);
        assert!(done.is_err());
        assert_eq!(log, ["rx-usecs 9999 refused"]);
    }

    #[test]
    fn a_profile_is_sent_whole() {
        let have =
            map(&[("rx-profile.0.usec", 1), ("rx-profile.1.usec", 8), ("tx-profile.0.usec", 2), ("rx-usecs", 3)]);
        let sent = whole_profiles(&map(&[("rx-profile.1.usec", 9)]), Some(&have));
        assert_eq!(sent, map(&[("rx-profile.0.usec", 1), ("rx-profile.1.usec", 9)]));
    }
}
