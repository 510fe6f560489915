//! Unix sockets by name: abstract ones (`@name`, which vanish with the process) and files that only this user can connect to.

use std::fs::{self, File, Permissions};
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use crate::call::{check, own};

/// The kernel limits it to `net.core.somaxconn`.
const BACKLOG: libc::c_int = 4096;

struct Address {
    bytes: libc::sockaddr_un,
    length: libc::socklen_t,
    /// The directory, if the address names a file through its descriptor.
    _dir: Option<File>,
}

impl Address {
    /// `@name`: abstract, else a file. Paths may be longer than the 108 bytes of an address.
    fn of(name: &str) -> io::Result<Self> {
        if let Some(name) = name.strip_prefix('@') {
            return Self::made(&[b"\0", name.as_bytes()].concat(), None);
        }
        let path = Path::new(name);
        let (Some(dir), Some(file)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        let dir = File::open(dir)?;
        let short = [format!("/proc/self/fd/{}/", dir.as_raw_fd()).as_bytes(), file.as_bytes()].concat();
        Self::made(&short, Some(dir))
    }

    fn made(name: &[u8], dir: Option<File>) -> io::Result<Self> {
        // SAFETY: all-zero is a valid sockaddr_un (plain integers).
        let mut bytes: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        bytes.sun_family = libc::AF_UNIX as libc::sa_family_t;
        if name.len() >= bytes.sun_path.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        for (to, from) in bytes.sun_path.iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        let length = (offset_of!(libc::sockaddr_un, sun_path) + name.len()) as libc::socklen_t;
        Ok(Self { bytes, length, _dir: dir })
    }
}

fn socket(flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    own(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags, 0) })
}

/// Listens at `@name`, or at a file that only this user (and root) can connect to. No process can connect before the file has
/// that mode.
///
/// Errors: EADDRINUSE, or the file cannot be created.
pub fn listen(name: &str) -> io::Result<UnixListener> {
    let (address, fd) = (Address::of(name)?, socket(0)?);
    // SAFETY: the pointer and the length are those of `address`, which outlives the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address.bytes).cast(), address.length) })?;
    let begin = || -> io::Result<()> {
        if !name.starts_with('@') {
            fs::set_permissions(name, Permissions::from_mode(0o600))?;
        }
        // SAFETY: no pointers.
        check(unsafe { libc::listen(fd.as_raw_fd(), BACKLOG) }).map(|_| ())
    };
    if let Err(e) = begin() {
        if !name.starts_with('@') {
            let _ = fs::remove_file(name); // the earlier error is returned
        }
        return Err(e);
    }
    Ok(fd.into())
}

/// Connects. If the listener's queue is full, waits up to this time (EAGAIN after it). `None`: does not wait.
pub fn connect(name: &str, within: Option<Duration>) -> io::Result<UnixStream> {
    let (address, fd) = (Address::of(name)?, socket(if within.is_none() { libc::SOCK_NONBLOCK } else { 0 })?);
    let stream = UnixStream::from(fd);
    stream.set_write_timeout(within)?;
    // SAFETY: the pointer and the length are those of `address`, which outlives the call.
    check(unsafe { libc::connect(stream.as_raw_fd(), (&raw const address.bytes).cast(), address.length) })?;
    Ok(stream)
}

/// Binds the name but does not listen.
#[cfg(test)]
pub(crate) fn bound(name: &str) -> OwnedFd {
    let (address, fd) = (Address::of(name).unwrap(), socket(0).unwrap());
    // SAFETY: the pointer and the length are those of `address`, which outlives the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address.bytes).cast(), address.length) }).unwrap();
    fd
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_name_without_a_file() {
        let name = format!("@ringwise-test-{}", std::process::id());
        let listener = listen(&name).unwrap();
        assert_eq!(listen(&name).unwrap_err().raw_os_error(), Some(libc::EADDRINUSE));
        let mut there = connect(&name, Some(Duration::from_secs(60))).unwrap();
        let (mut here, _) = listener.accept().unwrap();
        there.write_all(b"x").unwrap();
        let mut b = [0];
        here.read_exact(&mut b).unwrap();
        drop(listener);
        assert_eq!(connect(&name, None).unwrap_err().raw_os_error(), Some(libc::ECONNREFUSED));
        assert!(listen(&format!("@{}", "x".repeat(108))).is_err());
    }

    #[test]
    fn a_file_that_only_its_user_connects_to() {
        let dir = std::env::temp_dir().join(format!("ringwise-local-{}", std::process::id()));
        // Longer than an address may be.
        let deep = dir.join("d".repeat(100));
        fs::create_dir_all(&deep).unwrap();
        let path = deep.join("guard.sock");
        let name = path.to_str().unwrap();
        let listener = listen(name).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut there = connect(name, None).unwrap();
        there.write_all(b"y").unwrap();
        listener.accept().unwrap().0.read_exact(&mut [0]).unwrap();
        assert!(connect("guard.sock", None).is_err(), "a name alone is no path");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_full_queue_is_waited_for_and_not_for_ever() {
        let name = format!("@ringwise-full-{}", std::process::id());
        let listener = listen(&name).unwrap();
        let full = loop {
            // They are closed at once but stay in the queue.
            if let Err(e) = connect(&name, None) {
                break e;
            }
        };
        assert_eq!(full.raw_os_error(), Some(libc::EAGAIN));
        let late = connect(&name, Some(Duration::from_millis(50))).unwrap_err();
        assert_eq!(late.raw_os_error(), Some(libc::EAGAIN));
        std::thread::scope(|s| {
            let waits = s.spawn(|| connect(&name, Some(Duration::from_secs(60))));
            listener.accept().unwrap();
            waits.join().unwrap().unwrap();
        });
    }
}
