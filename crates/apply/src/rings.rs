//! Ring parameters: `ETHTOOL_MSG_RINGS_SET`.

use ringwise_kfmt::ethtool_nl as nl;
use ringwise_model::{RingValues, Rings, Snapshot};
use ringwise_sys::{Request, Result};

use crate::host_access::HostAccess;

/// Sends only the values that differ.
pub(crate) fn write(cx: &HostAccess, now: &Snapshot, dev: &str, want: &RingValues) -> Result<()> {
    let have = now.nic(dev).and_then(|n| n.rings.known()).map(Rings::now).unwrap_or_default();
    let differs = RingValues::each(|part| part.value(want).filter(|w| part.value(&have) != Some(*w)));
    cx.order(Request::EthtoolSet {
        cmd: nl::msg::RINGS_SET,
        name: "rings-set",
        dev: dev.to_string(),
        attrs: nl::rings_set(&differs),
    })
}
