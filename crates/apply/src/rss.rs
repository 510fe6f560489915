//! The RSS table of context 0: `ETHTOOL_SRSSH`, which every supported kernel has (netlink since 6.17 only).

use ringwise_kfmt::ethtool_ioctl::{RssOrder, TableOrder, srssh};
use ringwise_model::Snapshot;
use ringwise_sys::{Error, IoctlCmd, Request, Result};

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

pub(crate) fn write_hash(
    _cx: &Cx,
    _dev: &str,
    _function: Option<&str>,
    _key: Option<&str>,
    _symmetric: Option<&str>,
) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}

pub(crate) fn write_fields(_cx: &Cx, _dev: &str, _flow: &str, _fields: &str) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}

pub(crate) fn write_context(
    _cx: &Cx,
    _now: &Snapshot,
    _dev: &str,
    _context: u32,
    _table: Option<&[u32]>,
    _key: Option<&str>,
) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}
