//! One socket of a load, and its requests that wait for an answer.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::error::LoadError;
use crate::load::packet;
use crate::side::Protocol;

/// In [`PendingRequests`]: the request was answered, but an earlier one was not.
const ANSWERED: u64 = u64::MAX;
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Intended times of requests without an answer, by sequence number, so that an answer finds its request in one step.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    /// Sequence number of the first one.
    first: u32,
    times: VecDeque<u64>,
}

impl PendingRequests {
    /// Its sequence number.
    pub(super) fn push(&mut self, intended: u64) -> u32 {
        self.times.push_back(intended);
        self.first.wrapping_add(self.times.len() as u32 - 1)
    }

    /// Sequence number of the next one.
    pub(super) fn next(&self) -> u32 {
        self.first.wrapping_add(self.times.len() as u32)
    }

    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    /// Intended time of this request, which is answered now. `None`: it was answered before, given up, or never sent.
    pub(super) fn answer(&mut self, seq: u32) -> Option<u64> {
        let at = seq.wrapping_sub(self.first) as usize;
        let slot = self.times.get_mut(at).filter(|t| **t != ANSWERED)?;
        let time = std::mem::replace(slot, ANSWERED);
        while self.times.front() == Some(&ANSWERED) {
            self.times.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Some(time)
    }

    /// Removes requests that were intended before `time`. Returns how many had no answer.
    pub(super) fn forget(&mut self, time: u64) -> u64 {
        let mut lost = 0;
        while let Some(t) = self.times.front().filter(|t| **t == ANSWERED || **t < time) {
            lost += u64::from(*t != ANSWERED);
            self.times.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        lost
    }

    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// How many requests between these sequence numbers have no answer.
    pub(super) fn unanswered(&self, from: u32, to: u32) -> usize {
        let at = |seq: u32| (seq.wrapping_sub(self.first) as usize).min(self.times.len());
        let (from, to) = (at(from), at(to));
        self.times.range(from.min(to)..to).filter(|t| **t != ANSWERED).count()
    }

    /// How many requests that were intended before `time` are waiting, counted from the first one.
    pub(super) fn before(&self, time: u64) -> u32 {
        self.times.iter().take_while(|t| **t == ANSWERED || **t < time).count() as u32
    }
}

pub(super) enum Socket {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

pub(super) struct ForwardedPackets {
    pub socket: Socket,
    /// The tag of this flow in this run.
    pub tag: u32,
    pub waiting: PendingRequests,
    /// Requests before this one no longer delay the next one.
    pub given_up: u32,
    /// TCP: bytes that the kernel has not accepted yet.
    pub owed: u64,
    /// TCP: bytes that it has accepted, of an incomplete message.
    pub written: u64,
    /// TCP: bytes of an incomplete answer.
    pub read: u64,
    /// TCP: the connection failed and is not used again.
    pub dead: bool,
    /// TCP, one way: the flow is in the list of flows that accept more data.
    pub listed: bool,
}

impl ForwardedPackets {
    /// Errors: the call that failed, with errno.
    pub(super) fn open(protocol: Protocol, to: SocketAddr, tag: u32, kind: u8, size: u32) -> Result<Self, LoadError> {
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable | io::ErrorKind::WouldBlock => {
                LoadError::NoSourcePort { to, error: e.into() }
            }
            _ => LoadError::Connect { to, error: e.into() },
        };
        let socket = match protocol {
            Protocol::Udp => {
                let any: SocketAddr = match to {
                    SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                let socket = UdpSocket::bind(any).map_err(failed)?;
                socket.connect(to).map_err(failed)?;
                socket.set_nonblocking(true).map_err(failed)?;
                Socket::Udp(socket)
            }
            Protocol::Tcp => {
                let mut stream = TcpStream::connect_timeout(&to, CONNECT_WITHIN).map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                stream.write_all(&packet::opening(kind, size)).map_err(failed)?;
                stream.set_nonblocking(true).map_err(failed)?;
                Socket::Tcp(stream)
            }
        };
        let waiting = PendingRequests::default();
        Ok(Self { socket, tag, waiting, given_up: 0, owed: 0, written: 0, read: 0, dead: false, listed: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_find_their_request_once() {
        let mut w = PendingRequests { first: u32::MAX, times: VecDeque::new() };
        assert_eq!([w.push(10), w.push(20), w.push(30)], [u32::MAX, 0, 1]);
        assert_eq!((w.answer(0), w.answer(0), w.len()), (Some(20), None, 3));
        assert_eq!((w.unanswered(u32::MAX, 2), w.unanswered(0, 1), w.unanswered(1, 0)), (2, 0, 0));
        assert_eq!((w.before(10), w.before(30), w.before(31)), (0, 2, 3));
        assert_eq!(w.answer(u32::MAX), Some(10));
        assert_eq!((w.first(), w.next()), (1, 2));
        assert_eq!((w.answer(u32::MAX), w.answer(0), w.answer(2)), (None, None, None));
        assert_eq!(w.push(40), 2);
        assert_eq!((w.answer(2), w.forget(30), w.forget(31), w.next()), (Some(40), 0, 1, 3));
        assert_eq!((w.push(30), w.push(40)), (3, 4));
        assert_eq!((w.answer(3), w.answer(4), w.first(), w.len()), (Some(30), Some(40), 5, 0));
    }
}
