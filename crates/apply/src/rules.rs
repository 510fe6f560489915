//! Flow steering rules: ETHTOOL_SRXCLSRLINS and ETHTOOL_SRXCLSRLDEL.

use ringwise_model::{Rule, Snapshot};
use ringwise_sys::{Error, Result};

use crate::cx::Cx;

pub(crate) fn write(_cx: &Cx, _now: &Snapshot, _dev: &str, _location: u32, _rule: Option<&Rule>) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}
