//! The RSS table of context 0: `ETHTOOL_SRSSH`, which every supported kernel has (netlink since 6.17 only).

use ringwise_kfmt::ethtool_ioctl::{RssOrder, TableOrder, srssh};
use ringwise_sys::{IoctlCmd, Request, Result};

use crate::cx::Cx;

fn order(cx: &Cx, dev: &str, table: TableOrder) -> Result<()> {
    let payload = srssh(&RssOrder::table(table));
    cx.order(Request::Ioctl { cmd: IoctlCmd::RssSet, dev: dev.to_string(), payload })
}

/// Key and function stay as they are.
pub(crate) fn write(cx: &Cx, dev: &str, table: &[u32]) -> Result<()> {
    order(cx, dev, TableOrder::Set(table.to_vec()))
}

/// Back to the kernel's default; from then on it does not count as set by a user.
pub(crate) fn reset(cx: &Cx, dev: &str) -> Result<()> {
    order(cx, dev, TableOrder::Default)
}
