//! `inet_diag_msg` (linux/inet_diag.h): one connection, and for TCP the traffic received since its beginning.

use std::net::IpAddr;

use crate::ParseError;
use crate::nl::attrs;
use crate::sockets::Connected;

const WHAT: &str = "sock_diag message";
/// `sizeof(struct inet_diag_msg)`.
const HEAD: usize = 72;
const AF_INET6: u8 = 10;
/// `INET_DIAG_INFO`: a `struct tcp_info` (linux/tcp.h), which grows at its end. UDP has none.
const INFO: u16 = 2;
const BYTES_RECEIVED: usize = 128;
const SEGS_IN: usize = 140;

/// One TCP connection of a `SOCK_DIAG_BY_FAMILY` dump (`linux/inet_diag.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectedSocket {
    /// Addresses, ports and inode. IPv4 addresses that are mapped into IPv6 are unwrapped.
    pub ends: Connected,
    /// Received segments, and bytes that were accepted from them. Kernels before 4.2 do not count segments.
    pub received: Option<(u32, u64)>,
}

/// Decodes one `struct inet_diag_msg` with its attributes. A message below 72 bytes is an error.
pub fn connected_socket(msg: &[u8]) -> Result<ConnectedSocket, ParseError> {
    let bad = || ParseError::new(WHAT, format!("{} bytes", msg.len()), "72 bytes or more");
    let (head, rest) = (msg.get(..HEAD).ok_or_else(bad)?, msg.get(HEAD..).unwrap_or_default());
    let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let address = |at: usize| -> IpAddr {
        if head[0] != AF_INET6 {
            return IpAddr::from([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        }
        let six = IpAddr::from(<[u8; 16]>::try_from(&head[at..at + 16]).unwrap_or_default());
        // A socket for both families: IPv4 on the wire.
        six.to_canonical()
    };
    let inode = u32::from_ne_bytes([head[68], head[69], head[70], head[71]]);
    let ends = Connected { local: (address(8), port(4)), peer: (address(24), port(6)), inode: u64::from(inode) };
    let mut received = None;
    for attr in attrs(rest) {
        let a = attr.map_err(|e| ParseError { what: WHAT, ..e })?;
        if a.kind != INFO {
            continue;
        }
        let bytes = a.data.get(BYTES_RECEIVED..BYTES_RECEIVED + 8).and_then(|b| b.try_into().ok());
        let segments = a.data.get(SEGS_IN..SEGS_IN + 4).and_then(|b| b.try_into().ok());
        received = segments.map(u32::from_ne_bytes).zip(bytes.map(u64::from_ne_bytes));
    }
    Ok(ConnectedSocket { ends, received })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(family: u8, local: &[u8], peer: &[u8]) -> Vec<u8> {
        let mut m = vec![family, 1, 0, 0, 0, 22, 0xc3, 0x50];
        m.extend(local);
        m.resize(24, 0);
        m.extend(peer);
        m.resize(68, 0);
        m.extend(21_003u32.to_ne_bytes());
        m
    }

    fn info(len: usize) -> Vec<u8> {
        let mut i = vec![0; 232];
        i[BYTES_RECEIVED..BYTES_RECEIVED + 8].copy_from_slice(&70_000u64.to_ne_bytes());
        i[SEGS_IN..SEGS_IN + 4].copy_from_slice(&53u32.to_ne_bytes());
        i.truncate(len);
        [&(4 + len as u16).to_ne_bytes()[..], &INFO.to_ne_bytes(), &i].concat()
    }

    #[test]
    fn ends_and_counts() {
        let m = [message(2, &[10, 0, 0, 2], &[10, 0, 0, 1]), info(232)].concat();
        let t = connected_socket(&m).unwrap();
        let want = Connected {
            local: ("10.0.0.2".parse().unwrap(), 22),
            peer: ("10.0.0.1".parse().unwrap(), 50_000),
            inode: 21_003,
        };
        assert_eq!((t.ends, t.received), (want, Some((53, 70_000))));
        // The structure of an old kernel ends before.
        let old = [message(2, &[10, 0, 0, 2], &[10, 0, 0, 1]), info(104)].concat();
        assert_eq!(connected_socket(&old).unwrap().received, None);
        let mapped: [u8; 16] = std::net::Ipv4Addr::new(10, 0, 0, 9).to_ipv6_mapped().octets();
        let both = connected_socket(&message(10, &mapped, &mapped)).unwrap();
        assert_eq!(both.ends.peer.0, "10.0.0.9".parse::<IpAddr>().unwrap());
        assert!(connected_socket(&m[..71]).is_err());
    }
}
