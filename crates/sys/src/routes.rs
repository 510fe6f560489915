//! Routes for a measurement: `unreachable` routes that enlarge the main table to the size that is to be measured. They have a
//! protocol number of their own, by which they are found and removed (rtnetlink(7), RTM_NEWROUTE).

use crate::host::{Error, Result, errno_text};
use crate::real::netlink::{Fail, Socket};

/// The `rtm_protocol` of ringwise; `ip route flush proto 251` removes what a killed process has left.
pub const PROTOCOL: u8 = 251;
/// The number of addresses in 198.19.0.0/16 (the half of RFC 2544's network to which no load is sent).
pub const MOST: u32 = 65_536;

const NEW: u16 = 24;
const DEL: u16 = 25;
const GET: u16 = 26;
const CREATE: u16 = 0x400;
const DUMP: u16 = 0x300;
const AF_INET: u8 = 2;
const MAIN: u8 = 254;
const UNREACHABLE: u8 = 7;
const NOWHERE: u8 = 255;
const DST: u16 = 1;

/// The added routes, until it is dropped.
#[derive(Debug)]
pub struct Routes {
    count: u32,
}

impl Routes {
    /// Removes routes of an earlier run first.
    ///
    /// Errors: not root (EPERM), no memory; routes that were added until then are removed again.
    pub fn add(count: u32) -> Result<Self> {
        if count > MOST {
            return Err(Error::other("route-new", format!("{count} routes; at most {MOST}")));
        }
        let mut socket = open()?;
        let left = ours(&mut socket)?;
        for to in left {
            change(&mut socket, DEL, to)?;
        }
        let mut out = Self { count: 0 };
        for i in 0..count {
            change(&mut socket, NEW, address(i))?;
            out.count = i + 1;
        }
        Ok(out)
    }

    /// Routes that were added, 0 to [`MOST`].
    pub fn count(&self) -> u32 {
        self.count
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        // Routes that cannot be removed now are removed by the next run that adds some, or by `ip route flush proto 251`.
        if let Ok(mut socket) = open() {
            for i in 0..self.count {
                let _ = change(&mut socket, DEL, address(i));
            }
        }
    }
}

/// Addresses are spread over the network, so that a lookup traverses the whole trie.
fn address(i: u32) -> [u8; 4] {
    let spread = (i as u16).reverse_bits().to_be_bytes();
    [198, 19, spread[0], spread[1]]
}

fn open() -> Result<Socket> {
    Socket::open(libc::NETLINK_ROUTE).map_err(|e| failed("rtnetlink", e))
}

fn failed(what: &str, e: Fail) -> Error {
    match e {
        Fail::Kernel { errno, words } => Error { words, ..Error::errno(what, errno) },
        Fail::Socket(errno) => Error::other(what, errno_text(errno)),
        other => Error::other(what, format!("{other:?}")),
    }
}

/// `struct rtmsg`, then the destination.
fn change(socket: &mut Socket, kind: u16, to: [u8; 4]) -> Result<()> {
    let mut body = vec![AF_INET, 32, 0, 0, MAIN, PROTOCOL, if kind == DEL { NOWHERE } else { 0 }, UNREACHABLE];
    body.extend(0u32.to_ne_bytes());
    body.extend(8u16.to_ne_bytes());
    body.extend(DST.to_ne_bytes());
    body.extend(to);
    let flags = if kind == NEW { CREATE } else { 0 };
    let what = if kind == NEW { "route-new" } else { "route-del" };
    socket
        .request(kind, flags, &body)
        .map(drop)
        .map_err(|e| failed(&format!("{what} {}.{}.{}.{}", to[0], to[1], to[2], to[3]), e))
}

/// Destinations in the main table that have our protocol number.
fn ours(socket: &mut Socket) -> Result<Vec<[u8; 4]>> {
    let list =
        socket.request(GET, DUMP, &[AF_INET, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).map_err(|e| failed("routes", e))?;
    Ok(list.iter().filter_map(|m| destination(m)).collect())
}

fn destination(message: &[u8]) -> Option<[u8; 4]> {
    if message.get(4..6)? != [MAIN, PROTOCOL] {
        return None;
    }
    let mut rest = message.get(12..)?;
    loop {
        let length = usize::from(u16::from_ne_bytes([*rest.first()?, *rest.get(1)?]));
        let kind = u16::from_ne_bytes([*rest.get(2)?, *rest.get(3)?]);
        if kind == DST {
            return rest.get(4..8)?.try_into().ok();
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_read_from_a_dump() {
        let mut m = vec![2, 32, 0, 0, 254, 251, 0, 7, 0, 0, 0, 0];
        m.extend([8, 0, 15, 0, 254, 0, 0, 0]);
        m.extend([8, 0, 1, 0, 198, 19, 1, 2]);
        assert_eq!(destination(&m), Some([198, 19, 1, 2]));
        m[5] = 4;
        assert_eq!(destination(&m), None);
        assert_eq!(destination(&[]), None);
    }

    #[test]
    fn addresses_differ() {
        let mut all: Vec<[u8; 4]> = (0..MOST).map(address).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), MOST as usize);
    }
}
