//! Results of system calls.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The result, or the errno if it is negative.
pub(crate) fn check(rc: libc::c_int) -> io::Result<libc::c_int> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) }
}

/// The descriptor that a call has just created and that nothing else owns.
pub(crate) fn own(rc: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(rc)?;
    // SAFETY: the kernel has just created it, and the caller owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
