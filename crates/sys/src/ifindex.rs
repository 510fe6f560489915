//! The number of an interface.

use std::io;

use crate::host::{Error, Result};

/// The interface's index in this network namespace; ENODEV if no interface has this name.
pub fn ifindex(what: &str, dev: &str) -> Result<u32> {
    let name =
        std::ffi::CString::new(dev).map_err(|_| Error::other(what, "not an interface name: it contains a NUL"))?;
    // SAFETY: `name` is a NUL-terminated string that lives during the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(Error::errno(what, io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENODEV))),
        index => Ok(index),
    }
}
