//! Pause frames: PAUSE_SET, with the requested members only.

use ringwise_kfmt::ethtool_nl as nl;
use ringwise_model::Pause;
use ringwise_sys::{Request, Result};

use crate::host_access::HostAccess;

pub(crate) fn write(cx: &HostAccess, dev: &str, values: (Option<bool>, Option<bool>, Option<bool>)) -> Result<()> {
    let (autoneg, rx, tx) = values;
    cx.order(Request::EthtoolSet {
        cmd: nl::msg::PAUSE_SET,
        name: "pause-set",
        dev: dev.to_string(),
        attrs: nl::pause_set(&Pause { autoneg, rx, tx }),
    })
}
