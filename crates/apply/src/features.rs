//! Features: FEATURES_SET.

use ringwise_sys::{Error, Result};

use crate::cx::Cx;

pub(crate) fn write(_cx: &Cx, _dev: &str, _name: &str, _on: bool) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}
