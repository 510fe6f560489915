//! The kernel's log buffer.

use std::io;

use crate::host::{Error, Result};

/// `SYSLOG_ACTION_READ_ALL` and `SYSLOG_ACTION_SIZE_BUFFER` (syslog(2)).
const READ_ALL: libc::c_int = 3;
const SIZE_BUFFER: libc::c_int = 10;
const LARGEST: usize = 16 << 20;

/// The whole content of the ring buffer as text: `<6>[    1.234567] igb 0000:01:00.0 eth0: ...`. EPERM without root if
/// `kernel.dmesg_restrict` is set.
pub fn kernel_log() -> Result<String> {
    let call = |action: libc::c_int, buffer: &mut [u8]| {
        let length = libc::c_int::try_from(buffer.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: the kernel writes at most `length` bytes to a live buffer at least as long; without one
        // (SIZE_BUFFER) it writes nothing.
        let n = unsafe { libc::klogctl(action, buffer.as_mut_ptr().cast(), length) };
        usize::try_from(n).map_err(|_| {
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            Error::errno("read the kernel's log", errno)
        })
    };
    let size = call(SIZE_BUFFER, &mut [])?;
    let mut buffer = vec![0; size.min(LARGEST)];
    let n = call(READ_ALL, &mut buffer)?;
    buffer.truncate(n);
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_or_refused_by_the_kernel() {
        match kernel_log() {
            // In an unprivileged container it may be empty.
            Ok(text) => assert!(text.is_empty() || text.contains('['), "{text:.200}"),
            Err(e) => assert!(matches!(e.errno, Some(libc::EPERM | libc::ENOSYS)), "{e}"),
        }
    }
}
