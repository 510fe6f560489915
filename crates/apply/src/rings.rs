//! Ring sizes: `ETHTOOL_MSG_RINGS_SET`.

use ringwise_kfmt::ethtool_nl as nl;
use ringwise_model::Snapshot;
use ringwise_sys::{Request, Result};

use crate::cx::Cx;

/// Sends only the sizes that differ.
pub(crate) fn write(cx: &Cx, now: &Snapshot, dev: &str, rx: Option<u32>, tx: Option<u32>) -> Result<()> {
    let have = now.nic(dev).and_then(|n| n.rings.known().copied());
    let differs =
        |want: Option<u32>, have: Option<ringwise_model::Count>| want.filter(|w| have.is_none_or(|c| c.now != *w));
    let rx = differs(rx, have.and_then(|r| r.rx));
    let tx = differs(tx, have.and_then(|r| r.tx));
    cx.order(Request::EthtoolSet {
        cmd: nl::msg::RINGS_SET,
        name: "rings-set",
        dev: dev.to_string(),
        attrs: nl::rings_set(rx, tx),
    })
}
