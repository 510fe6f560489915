//! One ringwise at a time in a network namespace, whatever each of them sees of the file system: a process that changes the
//! interfaces listens at an abstract unix socket, because the names of these sockets belong to the network namespace.
//!
//! Any user may bind such a name, so there are several names. The kernel reports which user listens at each, and only root and
//! this user count: names that other users hold are skipped and reported.

use std::io;
use std::os::fd::OwnedFd;

use crate::guardian::{Peer, peer};
use crate::local;
use crate::proc::euid;
use crate::real::dump_once;

/// The names are `@ringwise-lock-0` to `@ringwise-lock-7`.
pub const NAME: &str = "ringwise-lock";
const NAMES: u32 = 8;

/// A name that another user holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignLockName {
    /// `@ringwise-lock-3`: a unix socket in the abstract namespace (unix(7)).
    pub name: String,
    /// `Err`: why the user cannot be determined.
    pub uid: Result<u32, String>,
}

/// The result of an attempt to take the lock.
#[derive(Debug)]
pub enum Attempt {
    /// This process holds the lock until the descriptor and its copies are closed. `None`: other users hold all names, so another
    /// ringwise would not be detected.
    Taken {
        /// The listening socket that is the lock.
        socket: Option<OwnedFd>,
        /// Names that users other than root and this one hold, in the order of the names.
        strangers: Vec<ForeignLockName>,
    },
    /// `pid`: the process that took the lock; it may have passed it on since.
    Held {
        /// The name at which the holder listens.
        name: String,
        /// The process that called listen(2), and its user.
        by: Peer,
    },
}

/// Takes the lock, or reports which process holds it.
///
/// Errors: no socket can be created here.
pub fn take(prefix: &str) -> io::Result<Attempt> {
    take_among(prefix, &|uid| uid == 0 || uid == euid())
}

fn take_among(prefix: &str, counts: &dyn Fn(u32) -> bool) -> io::Result<Attempt> {
    let names: Vec<String> = (0..NAMES).map(|n| format!("@{prefix}-{n}")).collect();
    let mut mine = None;
    for name in &names {
        match local::listen(name) {
            Ok(socket) => {
                mine = Some((name, socket));
                break;
            }
            Err(e) if e.raw_os_error() == Some(libc::EADDRINUSE) => {}
            Err(e) => return Err(e),
        }
    }
    // After listening, never before: if two start at once, at least one sees the other. The holder may use any name, because
    // another user may have released an earlier one since.
    let mut strangers = Vec::new();
    for name in names.iter().filter(|n| mine.as_ref().is_none_or(|(m, _)| m != n)) {
        match owner(name) {
            Ok(None) => {}
            Ok(Some(by)) if counts(by.uid) => return Ok(Attempt::Held { name: name.clone(), by }),
            Ok(Some(by)) => strangers.push(ForeignLockName { name: name.clone(), uid: Ok(by.uid) }),
            Err(e) => strangers.push(ForeignLockName { name: name.clone(), uid: Err(crate::io_text(&e)) }),
        }
    }
    Ok(Attempt::Taken { socket: mine.map(|(_, s)| s.into()), strangers })
}

/// The process that listens there. The kernel records it in listen(2).
fn owner(name: &str) -> io::Result<Option<Peer>> {
    match local::connect(name, None) {
        Ok(stream) => peer(&stream).map(Some),
        Err(e) if e.raw_os_error() == Some(libc::ECONNREFUSED) => Ok(None),
        // The queue is full, or a security module refuses the connection: the socket still has an owner.
        Err(e) => match owner_by_diag(name) {
            Ok(uid) => Ok(uid.map(|uid| Peer { pid: None, uid })),
            Err(_) => Err(e),
        },
    }
}

/// Asks `unix_diag` for the user who created the socket (since 5.3). `None`: no process listens there. Format: linux/unix_diag.h.
fn owner_by_diag(name: &str) -> crate::Result<Option<u32>> {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const LISTENING: u32 = 1 << 10;
    const SHOW_NAME_AND_UID: u32 = 0x01 | 0x40;
    const HEAD: usize = 16;
    const NAME: u16 = 0;
    const UID: u16 = 7;
    let number = |n: u32| n.to_ne_bytes();
    // struct unix_diag_req: family, protocol, padding, states, inode, what to show, cookie.
    let body = [[libc::AF_UNIX as u8, 0, 0, 0], number(LISTENING), number(0), number(SHOW_NAME_AND_UID)].concat();
    let body = [&body[..], &[0xff; 8]].concat();
    let all = dump_once("unix_diag (dump)", libc::NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, &body)?;
    let wanted = name.replacen('@', "\0", 1);
    let mut found = None;
    for m in &all {
        let (mut its, mut uid) = (&[][..], None);
        let mut rest = m.get(HEAD..).unwrap_or_default();
        while let [a, b, c, d, ..] = *rest {
            let (length, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
            let Some(value) = rest.get(4..length) else { break };
            match kind {
                NAME => its = value,
                UID => uid = value.try_into().ok().map(u32::from_ne_bytes),
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        if its == wanted.as_bytes() {
            found = Some(uid.ok_or_else(|| crate::Error::other("unix_diag (dump)", "the kernel reports no owner"))?);
        }
    }
    Ok(found)
}

#[cfg(test)]
#[path = "host_lock_tests.rs"]
mod tests;
