//! Routes for a measurement: `unreachable` ones that make the main table as large as it is to be measured with.
//! They bear a protocol number of their own, by which they are found and taken away (rtnetlink(7), RTM_NEWROUTE).

use crate::host::{Error, Result, errno_text};
use crate::real::netlink::{Fail, Socket};

/// `rtm_protocol` of ours; `ip route flush proto 251` takes away what a killed process has left.
pub const PROTOCOL: u8 = 251;
/// As many addresses as 198.19.0.0/16 has (RFC 2544's network, without the half that load is sent to).
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

/// What was added, until it is dropped.
#[derive(Debug)]
pub struct Routes {
    count: u32,
}

impl Routes {
    /// Ours that are there already go first.
    ///
    /// Errors: not root (EPERM), no memory; what was added until then is gone again.
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
        // What cannot be taken away now is by the next one that adds, or by `ip route flush proto 251`.
        if let Ok(mut socket) = open() {
            for i in 0..self.count {
                let _ = change(&mut socket, DEL, address(i));
            }
        }
    }
}

/// Spread over the network, so that a lookup goes through all of the trie.
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

/// Destinations in the main table that bear our number.
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
