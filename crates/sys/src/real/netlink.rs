//! A blocking netlink socket: send one request, receive until its answer is complete.
//!
//! The buffer grows to the size of the message (peek first). A dump that the kernel marks as inconsistent is reported as such,
//! extack messages are kept, and no call waits longer than [`TIMEOUT`]. The module does not know families or attributes of
//! replies. Formats: `linux/netlink.h`, `Documentation/userspace-api/netlink/intro.rst`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) const NLM_F_REQUEST: u16 = 0x1;
pub(crate) const NLM_F_ACK: u16 = 0x4;
pub(crate) const NLM_F_DUMP: u16 = 0x300;
pub(crate) const NLA_F_NESTED: u16 = 0x8000;

const NLM_F_DUMP_INTR: u16 = 0x10;
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSGERR_ATTR_MSG: u16 = 1;
const HEADER: usize = 16;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fail {
    /// The kernel refused: errno and extack message.
    Kernel { errno: i32, words: Option<String> },
    /// The dump changed while it was read.
    Inconsistent,
    /// The socket itself failed with this errno.
    Socket(i32),
    /// No message arrived for [`TIMEOUT`].
    Timeout,
    /// The bytes are not valid netlink messages.
    Broken(&'static str),
}

impl Fail {
    /// Whether the socket is still in sync and can be used again.
    pub(crate) fn in_step(&self) -> bool {
        matches!(self, Self::Kernel { .. })
    }
}

pub(crate) struct Socket {
    fd: OwnedFd,
    seq: u32,
    buf: Vec<u8>,
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

impl Socket {
    /// `protocol`: `libc::NETLINK_ROUTE` or `libc::NETLINK_GENERIC`.
    pub(crate) fn open(protocol: i32) -> Result<Self, Fail> {
        // SAFETY: no pointers; the result is checked before use.
        let raw = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        if raw < 0 {
            return Err(Fail::Socket(last_errno()));
        }
        // SAFETY: `raw` was just opened and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let socket = Self { fd, seq: 0, buf: vec![0; 32 * 1024] };
        let on = 1i32.to_ne_bytes();
        socket.option(libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, &on)?;
        socket.option(libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, &on)?;
        let mut wait = Vec::new();
        // struct timeval: two longs.
        wait.extend((TIMEOUT.as_secs() as libc::time_t).to_ne_bytes());
        wait.extend((0 as libc::suseconds_t).to_ne_bytes());
        socket.option(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &wait)?;
        Ok(socket)
    }

    fn option(&self, level: i32, name: i32, value: &[u8]) -> Result<(), Fail> {
        // SAFETY: pointer and length describe `value`, which outlives the call.
        let rc = unsafe {
            libc::setsockopt(self.fd.as_raw_fd(), level, name, value.as_ptr().cast(), value.len() as libc::socklen_t)
        };
        if rc < 0 { Err(Fail::Socket(last_errno())) } else { Ok(()) }
    }

    /// Sends `body` under a message header and returns the bodies (after `nlmsghdr`) of the answer.
    /// With `NLM_F_DUMP` it ends at NLMSG_DONE, else at the acknowledgement.
    pub(crate) fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> Result<Vec<Vec<u8>>, Fail> {
        self.seq = self.seq.wrapping_add(1);
        let dump = flags & NLM_F_DUMP == NLM_F_DUMP;
        let flags = NLM_F_REQUEST | flags | if dump { 0 } else { NLM_F_ACK };
        let message = message(kind, flags, self.seq, body);
        self.send(&message)?;
        let deadline = Instant::now() + TIMEOUT;
        let mut answer = NetlinkReply::new(self.seq, kind);
        while !answer.complete {
            let length = self.receive(deadline)?;
            answer.add(&self.buf[..length])?;
        }
        if answer.inconsistent { Err(Fail::Inconsistent) } else { Ok(answer.bodies) }
    }

    fn send(&self, message: &[u8]) -> Result<(), Fail> {
        // SAFETY: all-zero is a valid sockaddr_nl (plain integers); pid 0 addresses the kernel.
        let mut to: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        to.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        loop {
            // SAFETY: both pointers describe live values with their true lengths.
            let sent = unsafe {
                libc::sendto(
                    self.fd.as_raw_fd(),
                    message.as_ptr().cast(),
                    message.len(),
                    0,
                    (&raw const to).cast(),
                    size_of::<libc::sockaddr_nl>() as libc::socklen_t,
                )
            };
            match sent {
                n if n >= 0 && n as usize == message.len() => return Ok(()),
                n if n >= 0 => return Err(Fail::Broken("the kernel accepted only a part of the request")),
                _ if last_errno() == libc::EINTR => {}
                _ => return Err(Fail::Socket(last_errno())),
            }
        }
    }

    /// Receives one datagram of the kernel into `buf`; returns its length.
    fn receive(&mut self, deadline: Instant) -> Result<usize, Fail> {
        loop {
            if Instant::now() > deadline + TIMEOUT {
                return Err(Fail::Timeout);
            }
            // Reads the length first, then the data, so that nothing is truncated.
            let wanted = self.recv(true)?;
            if wanted > self.buf.len() {
                self.buf.resize(wanted.next_multiple_of(4096), 0);
            }
            let got = self.recv(false)?;
            if got > self.buf.len() {
                return Err(Fail::Broken("the reply grew while it was read"));
            }
            if got > 0 {
                return Ok(got);
            }
        }
    }

    fn recv(&mut self, peek: bool) -> Result<usize, Fail> {
        let flags = libc::MSG_TRUNC | if peek { libc::MSG_PEEK } else { 0 };
        loop {
            // SAFETY: all-zero is a valid sockaddr_nl (plain integers).
            let mut from: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
            let mut from_len = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
            let room = if peek { 0 } else { self.buf.len() };
            // SAFETY: the kernel writes at most `room` bytes into `buf` and `from_len` bytes into `from`.
            let n = unsafe {
                libc::recvfrom(
                    self.fd.as_raw_fd(),
                    self.buf.as_mut_ptr().cast(),
                    room,
                    flags,
                    (&raw mut from).cast(),
                    &raw mut from_len,
                )
            };
            if n < 0 {
                match last_errno() {
                    libc::EINTR => continue,
                    libc::EAGAIN => return Err(Fail::Timeout),
                    errno => return Err(Fail::Socket(errno)),
                }
            }
            // Another process may send to our port; only messages of the kernel (pid 0) are accepted.
            if !peek && from.nl_pid != 0 {
                return Ok(0);
            }
            return Ok(n as usize);
        }
    }
}

/// A whole message: header and body.
fn message(kind: u16, flags: u16, seq: u32, body: &[u8]) -> Vec<u8> {
    let mut m = Vec::with_capacity(HEADER + body.len());
    m.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    m.extend(kind.to_ne_bytes());
    m.extend(flags.to_ne_bytes());
    m.extend(seq.to_ne_bytes());
    m.extend(0u32.to_ne_bytes());
    m.extend_from_slice(body);
    m
}

/// Appends one attribute, padded to 4 bytes.
pub(crate) fn put_attr(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend(((4 + value.len()) as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Attributes of `bytes` as (type without flag bits, value); stops silently at the first one that does not fit.
pub(crate) fn attrs(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u16_at(bytes, 0)? as usize;
        let kind = u16_at(bytes, 2)? & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The answer to one request, collected from several datagrams.
struct NetlinkReply {
    seq: u32,
    bodies: Vec<Vec<u8>>,
    complete: bool,
    inconsistent: bool,
}

impl NetlinkReply {
    fn new(seq: u32, _kind: u16) -> Self {
        Self { seq, bodies: Vec::new(), complete: false, inconsistent: false }
    }

    fn add(&mut self, mut bytes: &[u8]) -> Result<(), Fail> {
        while !bytes.is_empty() && !self.complete {
            let broken = Fail::Broken("the reply ends within a message");
            let (Some(length), Some(kind), Some(flags), Some(seq)) =
                (u32_at(bytes, 0), u16_at(bytes, 4), u16_at(bytes, 6), u32_at(bytes, 8))
            else {
                return Err(broken);
            };
            let length = length as usize;
            if length < HEADER || length > bytes.len() {
                return Err(broken);
            }
            let body = &bytes[HEADER..length];
            bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
            if seq != self.seq {
                continue; // the rest of an earlier answer
            }
            self.inconsistent |= flags & NLM_F_DUMP_INTR != 0;
            match kind {
                NLMSG_NOOP => {}
                NLMSG_ERROR => {
                    let error = u32_at(body, 0).ok_or(broken)? as i32;
                    // Without CAPPED the request itself (header and body) precedes the attributes.
                    let skip = if flags & NLM_F_CAPPED != 0 {
                        4 + HEADER
                    } else {
                        4 + u32_at(body, 4).unwrap_or(0).max(HEADER as u32).next_multiple_of(4) as usize
                    };
                    self.end(error, flags, body.get(skip..).unwrap_or_default())?;
                }
                NLMSG_DONE => {
                    let error = u32_at(body, 0).unwrap_or(0) as i32;
                    self.end(error, flags, body.get(4..).unwrap_or_default())?;
                }
                _ => self.bodies.push(body.to_vec()),
            }
        }
        Ok(())
    }

    fn end(&mut self, error: i32, flags: u16, tlvs: &[u8]) -> Result<(), Fail> {
        self.complete = true;
        if error >= 0 {
            return Ok(());
        }
        let words = if flags & NLM_F_ACK_TLVS == 0 {
            None
        } else {
            attrs(tlvs)
                .find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG)
                .map(|(_, text)| String::from_utf8_lossy(text).trim_end_matches('\0').to_string())
        };
        Err(Fail::Kernel { errno: -error, words })
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::errno::{EINVAL, EOPNOTSUPP};

    use super::*;

    fn reply(kind: u16, flags: u16, seq: u32, body: &[u8]) -> Vec<u8> {
        let mut m = message(kind, flags, seq, body);
        m.resize(m.len().next_multiple_of(4), 0);
        m
    }

    #[test]
    fn header_is_byte_exact() {
        let mut attr = Vec::new();
        put_attr(&mut attr, 2, b"eth0\0");
        assert_eq!(
            attr,
            [9u16.to_ne_bytes(), 2u16.to_ne_bytes()].concat().into_iter().chain(*b"eth0\0\0\0\0").collect::<Vec<_>>()
        );
        let m = message(0x15, 0x5, 7, &attr);
        assert_eq!(m.len(), 28);
        assert_eq!(m[..4], 28u32.to_ne_bytes());
        assert_eq!(m[8..12], 7u32.to_ne_bytes());
    }

    #[test]
    fn extack_words_survive_capped_and_whole() {
        for capped in [true, false] {
            let mut body = (-22i32).to_ne_bytes().to_vec();
            let request = message(0x15, 5, 3, &[1, 2, 3, 4]);
            body.extend(if capped { &request[..HEADER] } else { &request[..] });
            put_attr(&mut body, 1, b"requested channel count exceeds maximum\0");
            let flags = NLM_F_ACK_TLVS | if capped { NLM_F_CAPPED } else { 0 };
            let failed = NetlinkReply::new(3, 0).add(&reply(NLMSG_ERROR, flags, 3, &body));
            let words = Some("requested channel count exceeds maximum".to_string());
            assert_eq!(failed, Err(Fail::Kernel { errno: EINVAL, words }));
        }
    }

    #[test]
    fn dump_over_two_datagrams_and_other_sequence() {
        let mut a = NetlinkReply::new(9, 0);
        let first = [reply(0x10, 2, 9, b"aaaa"), reply(0x10, 2, 8, b"old!"), reply(0x10, 2, 9, b"bb")].concat();
        a.add(&first).unwrap();
        assert!(!a.complete);
        a.add(&reply(NLMSG_DONE, 2, 9, &0u32.to_ne_bytes())).unwrap();
        assert!(a.complete && !a.inconsistent);
        assert_eq!(a.bodies, [b"aaaa".to_vec(), b"bb".to_vec()]);
    }

    #[test]
    fn a_dump_that_ends_in_an_error_is_one() {
        let failed = NetlinkReply::new(1, 0).add(&reply(NLMSG_DONE, 2, 1, &(-95i32).to_ne_bytes()));
        assert_eq!(failed, Err(Fail::Kernel { errno: EOPNOTSUPP, words: None }));
    }

    #[test]
    fn interrupted_dump_is_marked() {
        let mut a = NetlinkReply::new(1, 0);
        a.add(&reply(0x10, 2 | NLM_F_DUMP_INTR, 1, b"aaaa")).unwrap();
        assert!(a.inconsistent);
    }

    #[test]
    fn cut_replies_never_panic() {
        let whole = [reply(0x10, 2, 1, b"aaaabbbb"), reply(NLMSG_ERROR, 0x300, 1, &[0; 40])].concat();
        for end in 1..whole.len() {
            let _ = NetlinkReply::new(1, 0).add(&whole[..end]);
        }
        assert!(matches!(NetlinkReply::new(1, 0).add(&whole[..20]), Err(Fail::Broken(_))));
        assert_eq!(attrs(&[3, 0, 1, 0]).count(), 0);
    }
}
