//! Notifications of the kernel: netlink groups, uevents, and files that other programs replace. Nothing is sent.
//!
//! Groups: `RTNLGRP_LINK` (`linux/rtnetlink.h`), `monitor` of ethtool, `mgmt` of netdev, uevents (`NETLINK_KOBJECT_UEVENT`).
//! The bytes are decoded by `kfmt::notification`.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::call::{check, own};
use crate::host::{Error, Result};
use crate::real::group;

/// A busy host may send thousands of messages while the reader works.
const RECEIVE_BUFFER: libc::c_int = 1 << 20;
/// The kernel's messages are at most a page for uevents, and below 32 KiB for links.
const LONGEST: usize = 64 * 1024;
const RTNLGRP_LINK: u32 = 1;
/// The kernel's own uevents; group 2 is for those that udev has processed.
const UEVENTS_OF_THE_KERNEL: u32 = 1;

/// Where a notification comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// rtnetlink: interfaces of this network namespace.
    Links,
    /// Settings that ethtool changes.
    Ethtool,
    /// The netdev family (since 6.6).
    Netdev,
    /// Devices, drivers and CPUs.
    Uevents,
}

impl Channel {
    const ALL: [Self; 4] = [Self::Links, Self::Ethtool, Self::Netdev, Self::Uevents];

    fn protocol(self) -> libc::c_int {
        match self {
            Self::Links => libc::NETLINK_ROUTE,
            Self::Ethtool | Self::Netdev => libc::NETLINK_GENERIC,
            Self::Uevents => libc::NETLINK_KOBJECT_UEVENT,
        }
    }

    /// Number of the multicast group. Those of generic netlink are assigned at boot or when a module is loaded.
    fn group(self) -> Result<u32> {
        match self {
            Self::Links => Ok(RTNLGRP_LINK),
            Self::Uevents => Ok(UEVENTS_OF_THE_KERNEL),
            Self::Ethtool => group("ethtool", "monitor"),
            Self::Netdev => group("netdev", "mgmt"),
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Links => "listen for links",
            Self::Ethtool => "listen for ethtool settings",
            Self::Netdev => "listen for netdev notifications",
            Self::Uevents => "listen for uevents",
        }
    }
}

/// What was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorEvent<'a> {
    /// One datagram of the kernel.
    Datagram(Channel, &'a [u8]),
    /// Messages were lost, because they came faster than they were read.
    Lost(Channel),
    /// A watched file or directory changed; its number from [`Monitor::watch`].
    File(i32),
}

/// Open sockets that listen.
#[derive(Debug)]
pub struct Monitor {
    sockets: Vec<(Channel, OwnedFd)>,
    files: Option<OwnedFd>,
    buffer: Vec<u8>,
}

fn listen(channel: Channel) -> Result<OwnedFd> {
    let group = channel.group()?;
    subscribe(channel.protocol(), group).map_err(|e| crate::real::io_error(channel.what(), "netlink socket", &e))
}

fn subscribe(protocol: libc::c_int, group: u32) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers.
    let fd = own(unsafe { libc::socket(libc::AF_NETLINK, flags, protocol) })?;
    // With the privilege the limit of net.core.rmem_max does not count; without it the first call fails.
    let _ = option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)
        .or_else(|_| option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER));
    // SAFETY: all-zero is a valid sockaddr_nl (plain integers).
    let mut to: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    to.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    // SAFETY: pointer and length describe `to`, which is live during the call.
    check(unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const to).cast(), size_of::<libc::sockaddr_nl>() as libc::socklen_t)
    })?;
    let group = libc::c_int::try_from(group).map_err(io::Error::other)?;
    option(&fd, libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group)?;
    Ok(fd)
}

fn option(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which is live during the call.
    let rc = unsafe {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), length)
    };
    check(rc).map(|_| ())
}

impl Monitor {
    /// Opens what this kernel has, and returns why the rest is missing.
    pub fn open() -> (Self, Vec<(Channel, Error)>) {
        let mut missing = Vec::new();
        let mut sockets = Vec::new();
        for channel in Channel::ALL {
            match listen(channel) {
                Ok(fd) => sockets.push((channel, fd)),
                Err(e) => missing.push((channel, e)),
            }
        }
        (Self { sockets, files: None, buffer: vec![0; LONGEST] }, missing)
    }

    /// Reports from now on when something in this directory is written, replaced or removed. Returns the number of the watch.
    ///
    /// Errors: the directory does not exist or cannot be read.
    pub fn watch(&mut self, dir: &Path) -> io::Result<i32> {
        if self.files.is_none() {
            // SAFETY: no pointers.
            self.files = Some(own(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) })?);
        }
        let fd = self.files.as_ref().ok_or_else(|| io::Error::other("no inotify descriptor"))?;
        let path = CString::new(dir.as_os_str().as_bytes())?;
        let mask = libc::IN_CLOSE_WRITE | libc::IN_MOVED_TO | libc::IN_DELETE | libc::IN_MODIFY;
        // SAFETY: the text ends with a NUL and is live during the call.
        check(unsafe { libc::inotify_add_watch(fd.as_raw_fd(), path.as_ptr(), mask) })
    }

    /// The descriptors to wait for.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.sockets.iter().map(|(_, fd)| fd.as_fd()).chain(self.files.iter().map(AsFd::as_fd)).collect()
    }

    /// Reads everything that has arrived, and does not wait for more.
    pub fn drain(&mut self, each: &mut dyn FnMut(MonitorEvent)) {
        for (channel, fd) in &self.sockets {
            loop {
                match receive(fd, &mut self.buffer) {
                    Ok(Some(n)) => match self.buffer.get(..n) {
                        Some(datagram) => each(MonitorEvent::Datagram(*channel, datagram)),
                        None => each(MonitorEvent::Lost(*channel)),
                    },
                    Ok(None) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => {
                        each(MonitorEvent::Lost(*channel));
                        // After an overflow the socket works on; any other error may come again at once.
                        if e.raw_os_error() != Some(libc::ENOBUFS) {
                            break;
                        }
                    }
                }
            }
        }
        let Some(fd) = &self.files else { return };
        loop {
            // SAFETY: the kernel writes at most the length of the buffer.
            let n = unsafe { libc::read(fd.as_raw_fd(), self.buffer.as_mut_ptr().cast(), self.buffer.len()) };
            let Some(n) = usize::try_from(n).ok().filter(|n| *n > 0) else { return };
            watches(&self.buffer[..n]).for_each(|w| each(MonitorEvent::File(w)));
        }
    }
}

/// The numbers of the watches in a read of inotify: `struct inotify_event`, each with a name of `len` bytes.
fn watches(mut bytes: &[u8]) -> impl Iterator<Item = i32> {
    const HEAD: usize = size_of::<libc::inotify_event>();
    std::iter::from_fn(move || {
        let head = bytes.get(..HEAD)?;
        let word = |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok());
        let watch = i32::from_ne_bytes(word(0)?);
        let name = u32::from_ne_bytes(word(12)?) as usize;
        bytes = bytes.get(HEAD + name..).unwrap_or_default();
        Some(watch)
    })
}

/// The length of one datagram, also if the buffer was too small for it. `None`: it is not from the kernel.
fn receive(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    // SAFETY: all-zero is a valid sockaddr_nl (plain integers).
    let mut from: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
    // SAFETY: the kernel writes at most the lengths given, into live values.
    let n = unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_TRUNC,
            (&raw mut from).cast(),
            &raw mut length,
        )
    };
    let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    Ok((from.nl_pid == 0).then_some(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_has_the_groups_or_reports_why_not() {
        let (mut m, missing) = Monitor::open();
        assert_eq!(m.descriptors().len() + missing.len(), Channel::ALL.len(), "{missing:?}");
        assert!(missing.iter().all(|(c, _)| *c != Channel::Links), "{missing:?}");
        // Nothing has to be there; it must not wait.
        m.drain(&mut |_| {});
    }

    #[test]
    fn a_file_that_is_replaced() {
        let dir = std::env::temp_dir().join(format!("ringwise-monitor-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (mut m, _) = Monitor::open();
        let watch = m.watch(&dir).unwrap();
        let count = |m: &mut Monitor| {
            let mut seen = 0;
            m.drain(&mut |h| seen += usize::from(h == MonitorEvent::File(watch)));
            seen
        };
        assert_eq!(count(&mut m), 0);
        std::fs::write(dir.join("a"), "x").unwrap();
        assert!(count(&mut m) > 0);
        std::fs::rename(dir.join("a"), dir.join("b")).unwrap();
        assert!(count(&mut m) > 0);
        assert_eq!(count(&mut m), 0);
        assert!(m.watch(&dir.join("missing")).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn cut_events_end_the_list() {
        let event = |watch: i32, name: &[u8]| {
            let mut e = watch.to_ne_bytes().to_vec();
            e.extend([0; 8]);
            e.extend((name.len() as u32).to_ne_bytes());
            e.extend(name);
            e
        };
        let both = [event(3, b"name\0\0\0\0"), event(4, b"")].concat();
        assert_eq!(watches(&both).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(watches(&both[..30]).collect::<Vec<_>>(), [3]);
        assert_eq!(watches(&both[..7]).count(), 0);
    }
}
