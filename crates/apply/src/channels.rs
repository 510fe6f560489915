//! Channel counts: `ETHTOOL_MSG_CHANNELS_SET`, because it returns error messages; the ioctl returns only an errno.

use ringwise_kfmt::ethtool_nl::{self as nl, ChannelCounts};
use ringwise_model::Snapshot;
use ringwise_model::errno::EINVAL;
use ringwise_sys::{Request, Result};

use crate::host_access::HostAccess;
use crate::rss;

/// Sends only the counts that differ. If an RSS table that a user set, or that of a context, names queues that are to be removed,
/// the kernel refuses ("too low for existing indirection table"): see [`rss::make_way`].
pub(crate) fn write(
    cx: &HostAccess,
    now: &Snapshot,
    dev: &str,
    want: (Option<u32>, Option<u32>, Option<u32>),
) -> Result<()> {
    let nic = now.nic(dev);
    let have = nic.and_then(|n| n.channels.known().copied());
    let differs = |want: Option<u32>, have: Option<ringwise_model::Count>| {
        want.filter(|w| have.is_none_or(|c| c.now != *w) && (*w > 0 || have.is_some()))
    };
    let counts = ChannelCounts {
        rx: differs(want.0, have.and_then(|c| c.rx)),
        tx: differs(want.1, have.and_then(|c| c.tx)),
        combined: differs(want.2, have.and_then(|c| c.combined)),
        other: None,
    };
    let request = || Request::EthtoolSet {
        cmd: nl::msg::CHANNELS_SET,
        name: "channels-set",
        dev: dev.to_string(),
        attrs: nl::channels_set(&counts),
    };
    let first = cx.order(request());
    let Err(e) = &first else { return first };
    let Some(have) = have else { return first };
    let left = |w: Option<u32>, c: Option<ringwise_model::Count>| w.or(c.map(|c| c.now)).unwrap_or(0);
    let queues = left(want.2, have.combined) + left(want.0, have.rx);
    if e.errno == Some(EINVAL) && rss::make_way(cx, now, dev, queues) {
        return cx.order(request());
    }
    first
}
