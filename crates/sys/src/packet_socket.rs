//! Packet sockets of one interface (packet(7)).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::call::{check, own};

/// A raw socket that receives nothing until it is bound. Errors: EPERM: no CAP_NET_RAW.
pub(crate) fn open() -> io::Result<OwnedFd> {
    let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers. Protocol 0: nothing arrives before bind.
    own(unsafe { libc::socket(libc::AF_PACKET, flags, 0) })
}

/// Receives the frames of all protocols on this interface from now on.
pub(crate) fn bind(socket: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: all-zero is a valid sockaddr_ll (plain integers).
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    to.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    to.sll_ifindex = index as i32;
    // SAFETY: `to` lives, and its true length is given.
    check(unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const to).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    })
    .map(|_| ())
}

/// Number of the interface to which the socket is bound. `None`: it was removed, or moved to another network namespace.
pub(crate) fn bound_to(socket: &OwnedFd) -> io::Result<Option<u32>> {
    // SAFETY: all-zero is a valid sockaddr_ll (plain integers).
    let mut is: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes into `is`, where every bit pattern is a value.
    check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut is).cast(), &raw mut size) })?;
    Ok(u32::try_from(is.sll_ifindex).ok().filter(|i| *i > 0))
}

/// `value` must be of the type that the option expects; pointers in it must be valid during the call.
pub(crate) fn set_option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which outlives the call; a program that it points to does too.
    check(unsafe {
        let size = size_of::<T>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size)
    })
    .map(|_| ())
}
