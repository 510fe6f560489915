//! Interrupt moderation of the device: `ETHTOOL_MSG_COALESCE_SET`.

use std::collections::BTreeMap;

use ringwise_kfmt::ethtool_nl as nl;
use ringwise_model::Snapshot;
use ringwise_sys::{Error, Request, Result};

use crate::cx::Cx;

/// Sends only the parameters that differ: one that the driver does not take fails the whole call.
pub(crate) fn write(cx: &Cx, now: &Snapshot, dev: &str, params: &BTreeMap<String, u32>) -> Result<()> {
    let have = now.nic(dev).and_then(|n| n.coalesce.known());
    let differ: Vec<(&str, u32)> = params
        .iter()
        .filter(|(k, v)| have.is_none_or(|h| h.0.get(*k) != Some(*v)))
        .map(|(k, v)| (k.as_str(), *v))
        .collect();
    let attrs = nl::coalesce_set(&differ).map_err(|e| Error::other(format!("coalesce-set {dev}"), e.to_string()))?;
    cx.order(Request::EthtoolSet { cmd: nl::msg::COALESCE_SET, name: "coalesce-set", dev: dev.to_string(), attrs })
}

pub(crate) fn write_queue(
    _cx: &Cx,
    _now: &Snapshot,
    _dev: &str,
    _queue: u32,
    _params: &BTreeMap<String, u32>,
) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}
