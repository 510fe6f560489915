//! `/proc/net/{tcp,tcp6,udp,udp6}`: sockets that wait for packets, and `/proc/PID/cgroup`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ParseError;

/// `TCP_LISTEN`; for UDP `TCP_CLOSE`, which is a socket without a peer (include/net/tcp_states.h).
const LISTEN: &str = "0A";
const CLOSE: &str = "07";
/// `TCP_ESTABLISHED`; for UDP a socket that is connected to one peer.
const ESTABLISHED: &str = "01";

/// A socket that accepts packets from any peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnconnectedSocket {
    /// `0.0.0.0` or `::`: any address of the host.
    pub address: IpAddr,
    /// Local port.
    pub port: u16,
    /// Inode of the socket, as in `/proc/PID/fd`.
    pub inode: u64,
}

/// Listening sockets of `tcp` and `tcp6`.
pub fn tcp(text: &str) -> Result<Vec<UnconnectedSocket>, ParseError> {
    waiting(text, LISTEN)
}

/// Sockets of `udp` and `udp6` that are bound to a port and not connected.
pub fn udp(text: &str) -> Result<Vec<UnconnectedSocket>, ParseError> {
    waiting(text, CLOSE)
}

fn waiting(text: &str, state: &str) -> Result<Vec<UnconnectedSocket>, ParseError> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate().skip(1) {
        let mut words = line.split_ascii_whitespace();
        let bad = || ParseError::at("/proc/net", i + 1, line, "sl, address, peer, state, …, inode");
        let (Some(_), Some(local), Some(_), Some(st)) = (words.next(), words.next(), words.next(), words.next()) else {
            return Err(bad());
        };
        if st != state {
            continue;
        }
        let inode = words.nth(5).and_then(|w| w.parse().ok()).ok_or_else(bad)?;
        let (address, port) = local.split_once(':').ok_or_else(bad)?;
        let port = u16::from_str_radix(port, 16).map_err(|_| bad())?;
        let address = ip(address).ok_or_else(bad)?;
        if port != 0 {
            out.push(UnconnectedSocket { address, port, inode });
        }
    }
    Ok(out)
}

/// A socket with one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connected {
    /// Address and port of this host.
    pub local: (IpAddr, u16),
    /// Address and port of the other end.
    pub peer: (IpAddr, u16),
    /// Inode of the socket; 0 if no process holds it.
    pub inode: u64,
}

/// Connections of any of the four files.
pub fn connected(text: &str) -> Result<Vec<Connected>, ParseError> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate().skip(1) {
        let bad = || ParseError::at("/proc/net", i + 1, line, "sl, address, peer, state, …, inode");
        let words: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
        let [_, local, peer, state, ..] = words[..] else { return Err(bad()) };
        if state != ESTABLISHED {
            continue;
        }
        let end = |text: &str| {
            let (a, p) = text.split_once(':')?;
            Some((ip(a)?, u16::from_str_radix(p, 16).ok()?))
        };
        let inode = words.get(9).and_then(|w| w.parse().ok()).ok_or_else(bad)?;
        out.push(Connected { local: end(local).ok_or_else(bad)?, peer: end(peer).ok_or_else(bad)?, inode });
    }
    Ok(out)
}

/// One word (IPv4) or four (IPv6) of 32 bits, each the number that the kernel reads in its own byte order.
fn ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut all = [0; 16];
            for (i, part) in all.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                *part = word(i * 8)?;
            }
            let six = Ipv6Addr::from(all);
            Some(six.to_ipv4_mapped().map_or(IpAddr::V6(six), IpAddr::V4))
        }
        _ => None,
    }
}

/// Whether a process with this `/proc/PID/cgroup` belongs to the systemd unit, including the groups below it.
pub fn in_unit(cgroup: &str, unit: &str) -> bool {
    let path = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        match (parts.next(), parts.next()) {
            (Some("" | "name=systemd"), Some(path)) => path.split('/').any(|p| p == unit),
            _ => false,
        }
    };
    cgroup.lines().any(path)
}

/// `socket:[1234]` → 1234
pub fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0277 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21001 1 0000000000000000 100 0 0 10 0
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21002 1 0000000000000000 100 0 0 10 0
   2: 0501A8C0:0050 0701A8C0:D431 01 00000000:00000000 00:00000000 00000000     0        0 21003 1 0000000000000000 20 4 30 10 -1
";
    const TCP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:01BB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21004 1 0000000000000000 100 0 0 10 0
   1: B80D0120000000000000000001000000:01BB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21005 1 0000000000000000 100 0 0 10 0
   2: 0000000000000000FFFF00000501A8C0:0019 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21006 1 0000000000000000 100 0 0 10 0
";
    const UDP: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  100: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 21007 2 0000000000000000 0
  101: 0501A8C0:8235 08080808:0035 01 00000000:00000000 00:00000000 00000000   101        0 21008 2 0000000000000000 0
";

    #[cfg(target_endian = "little")]
    #[test]
    fn who_waits() {
        let all = |list: Vec<UnconnectedSocket>| -> Vec<String> {
            list.iter().map(|w| format!("{} {} {}", w.address, w.port, w.inode)).collect()
        };
        assert_eq!(all(tcp(TCP).unwrap()), ["127.0.0.1 631 21001", "0.0.0.0 80 21002"]);
        assert_eq!(all(tcp(TCP6).unwrap()), [":: 443 21004", "2001:db8::1 443 21005", "192.168.1.5 25 21006"]);
        assert_eq!(all(udp(UDP).unwrap()), ["0.0.0.0 53 21007"]);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn who_is_connected() {
        let show = |c: &Connected| format!("{} {} {}", c.local.1, c.peer.0, c.inode);
        assert_eq!(connected(TCP).unwrap().iter().map(show).collect::<Vec<_>>(), ["80 192.168.1.7 21003"]);
        assert_eq!(connected(UDP).unwrap().iter().map(show).collect::<Vec<_>>(), ["33333 8.8.8.8 21008"]);
        assert!(connected("h\n 0: x").is_err());
    }

    #[test]
    fn broken_lines_are_reported() {
        assert_eq!(tcp("head\n").unwrap(), []);
        for bad in ["h\n 0: x", "h\n 0: 00000000:0050 0:0 0A 0 0 0 0 0 x", "h\n 0: 0000:0050 0:0 0A 0 0 0 0 0 5"] {
            let e = tcp(bad).unwrap_err().to_string();
            assert!(e.starts_with("/proc/net, line 2: found"), "{e}");
        }
    }

    #[test]
    fn units_and_inodes() {
        assert!(in_unit("0::/system.slice/nginx.service\n", "nginx.service"));
        assert!(in_unit("0::/system.slice/nginx.service/workers\n", "nginx.service"));
        assert!(in_unit("12:cpu:/x\n1:name=systemd:/system.slice/nginx.service\n", "nginx.service"));
        assert!(!in_unit("12:cpu:/nginx.service\n0::/system.slice/nginx.service.d\n", "nginx.service"));
        assert_eq!(inode("socket:[21002]"), Some(21002));
        assert_eq!(inode("pipe:[21002]"), None);
    }
}
