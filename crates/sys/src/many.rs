//! Many datagrams or frames with one system call (sendmmsg(2), recvmmsg(2)).

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Number of datagrams that one call can transfer.
pub const AT_ONCE: usize = 32;

/// Sends the first `count` (at most [`AT_ONCE`]) parts of `bytes`, `size` each, on a connected socket. Returns how
/// many the kernel took, which is at least one.
pub fn send_many(socket: &UdpSocket, bytes: &mut [u8], size: usize, count: usize) -> io::Result<usize> {
    let mut slots: Vec<libc::iovec> = bytes
        .chunks_exact_mut(size)
        .take(count.min(AT_ONCE))
        .map(|c| libc::iovec { iov_base: c.as_mut_ptr().cast(), iov_len: c.len() })
        .collect();
    // SAFETY: all-zero is a valid mmsghdr: null pointers with lengths of 0.
    let mut heads: [libc::mmsghdr; AT_ONCE] = unsafe { std::mem::zeroed() };
    for (h, slot) in heads.iter_mut().zip(&mut slots) {
        h.msg_hdr.msg_iov = slot;
        h.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: each header points to one slot, each slot to its own part of `bytes`; all of them live.
    let n = unsafe { libc::sendmmsg(socket.as_raw_fd(), heads.as_mut_ptr(), slots.len() as u32, 0) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Receives up to [`AT_ONCE`] datagrams or frames: the first `head` bytes of each (into `bytes`, which has space for that many),
/// and its whole length into `lengths`. Does not wait; EAGAIN: no message is waiting.
pub fn receive_many(
    socket: &impl AsRawFd,
    bytes: &mut [u8],
    head: usize,
    lengths: &mut [usize; AT_ONCE],
) -> io::Result<usize> {
    let mut slots: Vec<libc::iovec> = bytes
        .chunks_exact_mut(head)
        .take(AT_ONCE)
        .map(|c| libc::iovec { iov_base: c.as_mut_ptr().cast(), iov_len: c.len() })
        .collect();
    // SAFETY: all-zero is a valid mmsghdr: null pointers with lengths of 0.
    let mut heads: [libc::mmsghdr; AT_ONCE] = unsafe { std::mem::zeroed() };
    for (h, slot) in heads.iter_mut().zip(&mut slots) {
        h.msg_hdr.msg_iov = slot;
        h.msg_hdr.msg_iovlen = 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: as in `send_many`.
    let n = unsafe {
        let count = slots.len() as u32;
        libc::recvmmsg(socket.as_raw_fd(), heads.as_mut_ptr(), count, flags as _, std::ptr::null_mut())
    };
    let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    for (to, h) in lengths.iter_mut().zip(&heads[..n]) {
        *to = h.msg_len as usize;
    }
    Ok(n)
}
