//! Connections as the kernel reports them (sock_diag(7)), and the CPU and NAPI instance by which a socket's packets last
//! arrived. Not part of [`Host`](crate::Host): they are momentary, name peers, and are never recorded.
//!
//! If `tcp_diag` and `udp_diag` are modules, the first request loads them, as `ss` does. Formats: linux/sock_diag.h,
//! linux/inet_diag.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::guardian::pidfd;
use crate::host::Result;
use crate::real::dump_once;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `1 << (INET_DIAG_INFO - 1)`: also returns TCP's own counters.
const INFO: u8 = 1 << 1;
/// `1 << TCP_ESTABLISHED`; for UDP sockets that are connected to one peer.
const ESTABLISHED: u32 = 1 << 1;

/// Connections of one protocol (TCP 6, UDP 17) and family, each an `inet_diag_msg` with attributes.
pub fn dump(protocol: u8, v6: bool) -> Result<Vec<Vec<u8>>> {
    let what = format!("sock-diag of protocol {protocol}, IPv{} (dump)", if v6 { 6 } else { 4 });
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET } as u8;
    // struct inet_diag_req_v2: family, protocol, extensions, padding, states, an address of 48 bytes.
    let body = [&[family, protocol, INFO, 0][..], &ESTABLISHED.to_ne_bytes(), &[0; 48]].concat();
    dump_once(&what, libc::NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, &body)
}

/// How the packets of a socket last arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastArrival {
    /// `SO_INCOMING_CPU`: the CPU that gave the packet to the socket, which is the one chosen by RPS or RFS if they are in use.
    /// `None`: no packet yet.
    pub cpu: Option<u32>,
    /// `SO_INCOMING_NAPI_ID`: the NAPI instance that received the packet. `None`: no packet yet, one that did not come from a
    /// device, or a kernel without CONFIG_NET_RX_BUSY_POLL.
    pub napi: Option<u32>,
}

/// How packets last arrived at a socket of the process `pid`; `None`: the socket does not belong to the process any more.
///
/// sock_diag does not report this (net/ipv4/inet_diag.c, `inet_sk_diag_fill`; include/uapi/linux/inet_diag.h has no attribute for
/// it): the kernel shows it only to processes that hold the socket. So ringwise holds it for a moment (pidfd_getfd(2), since 5.6,
/// needs the permissions of a debugger).
pub fn incoming(pid: u32, inode: u64) -> io::Result<Option<LastArrival>> {
    let wanted = format!("socket:[{inode}]");
    let mut found = None;
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let entry = entry?;
        if std::fs::read_link(entry.path()).is_ok_and(|l| l.as_os_str() == wanted.as_str()) {
            found = entry.file_name().to_str().and_then(|n| n.parse::<libc::c_int>().ok());
            break;
        }
    }
    let Some(theirs) = found else { return Ok(None) };
    let process = pidfd(pid)?;
    // SAFETY: three integer arguments.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), theirs, 0) };
    let raw = libc::c_int::try_from(raw).ok().filter(|r| *r >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just created it, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    let cpu = u32::try_from(option(&socket, libc::SO_INCOMING_CPU)?).ok();
    // net/core/sock.c, `sk_getsockopt`: 0 if there is no NAPI instance.
    let napi = match option(&socket, libc::SO_INCOMING_NAPI_ID) {
        Ok(id) => u32::try_from(id).ok().filter(|id| *id > 0),
        Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => None,
        Err(e) => return Err(e),
    };
    Ok(Some(LastArrival { cpu, napi }))
}

/// An option of level `SOL_SOCKET` that is a number.
fn option(socket: &OwnedFd, name: libc::c_int) -> io::Result<libc::c_int> {
    let (mut value, mut size) = (-1 as libc::c_int, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the pointer and the size are those of `value`, which outlives the call.
    let rc =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut size) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_socket_of_our_own() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut b, _) = listener.accept().unwrap();
        a.write_all(b"x").unwrap();
        b.read_exact(&mut [0]).unwrap();
        let link = std::fs::read_link(format!("/proc/self/fd/{}", b.as_raw_fd())).unwrap();
        let inode = link.to_str().unwrap().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        match incoming(std::process::id(), inode) {
            // Packets of the loopback device come from no NAPI instance of a device.
            Ok(seen) => {
                assert!(seen.is_some_and(|s| s.cpu.is_some() && s.napi.is_none()), "a packet has come: {seen:?}")
            }
            // Containers may forbid it.
            Err(e) => assert!(matches!(e.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)), "{e}"),
        }
        assert_eq!(incoming(std::process::id(), 1).unwrap(), None);
    }
}
