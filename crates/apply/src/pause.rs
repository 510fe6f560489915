//! Pause frames: PAUSE_SET.

use ringwise_sys::{Error, Result};

use crate::cx::Cx;

pub(crate) fn write(_cx: &Cx, _dev: &str, _values: (Option<bool>, Option<bool>, Option<bool>)) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}
