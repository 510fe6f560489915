//! `/proc/net/snmp`, `/proc/net/netstat` and `/proc/net/snmp6` (net/ipv4/proc.c, net/ipv6/proc.c).

use crate::ParseError;

/// Places where a socket, or the path to it, loses packets. The kernel prints these names after `Group:`.
pub const DROPS: &[&str] = &[
    "Udp:RcvbufErrors",
    "Udp:MemErrors",
    "Udp:SndbufErrors",
    "Udp:InCsumErrors",
    "UdpLite:RcvbufErrors",
    "TcpExt:ListenOverflows",
    "TcpExt:ListenDrops",
    "TcpExt:TCPBacklogDrop",
    "TcpExt:TCPRcvQDrop",
    "TcpExt:TCPZeroWindowDrop",
    "TcpExt:TCPReqQFullDrop",
    "TcpExt:TCPOFODrop",
    "TcpExt:PFMemallocDrop",
    "TcpExt:RcvPruned",
    "Udp6:RcvbufErrors",
    "Udp6:MemErrors",
    "Udp6:SndbufErrors",
    "Udp6:InCsumErrors",
];

/// Counters that show the kind of the traffic, and how well it arrives.
pub const TRAFFIC: &[&str] = &[
    "Ip:InReceives",
    "Ip:ForwDatagrams",
    "Ip:ReasmReqds",
    "Udp:InDatagrams",
    "Udp:NoPorts",
    "Udp:InErrors",
    "TcpExt:TCPSACKReorder",
    "TcpExt:TCPTSReorder",
    "TcpExt:TCPOFOQueue",
];

fn wanted() -> impl Iterator<Item = &'static &'static str> {
    DROPS.iter().chain(TRAFFIC)
}

/// The counters of [`DROPS`] and [`TRAFFIC`] in this text, which has pairs of lines: names, then values.
pub fn pairs(text: &str) -> Result<Vec<(&'static str, u64)>, ParseError> {
    let mut out = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((i, names)) = lines.next() {
        let bad = |line| ParseError::at("/proc/net/snmp", i + 1, line, "names, then as many numbers");
        let (_, values) = lines.next().ok_or_else(|| bad(names))?;
        let (group, names) = names.split_once(':').ok_or_else(|| bad(names))?;
        let values = values.strip_prefix(group).and_then(|v| v.strip_prefix(':')).ok_or_else(|| bad(values))?;
        let (names, values) = (names.split_ascii_whitespace(), values.split_ascii_whitespace());
        for (name, value) in names.zip(values) {
            let known = |d: &&&str| d.split_once(':') == Some((group, name));
            if let Some(known) = wanted().find(known) {
                out.push((*known, value.parse().map_err(|_| bad(value))?));
            }
        }
    }
    Ok(out)
}

/// The same for `snmp6`, which has one `Udp6RcvbufErrors  0` per line.
pub fn six(text: &str) -> Result<Vec<(&'static str, u64)>, ParseError> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next().and_then(|w| w.strip_prefix("Udp6")) else { continue };
        let known = |d: &&&str| d.split_once(':') == Some(("Udp6", name));
        if let Some(known) = DROPS.iter().find(known) {
            let n = words.next().and_then(|w| w.parse().ok());
            out.push((*known, n.ok_or_else(|| ParseError::at("/proc/net/snmp6", i + 1, line, "a name and a number"))?));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_and_never_by_column() {
        let text = "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 10 0 7 0 7 2\nIcmp: InMsgs\nIcmp: 1\n";
        let want = [
            ("Udp:InDatagrams", 10),
            ("Udp:NoPorts", 0),
            ("Udp:InErrors", 7),
            ("Udp:RcvbufErrors", 7),
            ("Udp:SndbufErrors", 2),
        ];
        assert_eq!(pairs(text).unwrap(), want);
        let old = "TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 1 3\n";
        assert_eq!(pairs(old).unwrap(), [("TcpExt:ListenOverflows", 3)]);
        // The kernel prints -1 if there is no limit; such a value is not among these counters.
        assert_eq!(pairs("Tcp: MaxConn\nTcp: -1\n").unwrap(), []);
        for bad in ["Udp: a\n", "Udp a\nUdp 1\n", "Udp: RcvbufErrors\nTcp: 1\n", "Udp: RcvbufErrors\nUdp: x\n"] {
            assert!(pairs(bad).is_err(), "{bad:?}");
        }
        assert_eq!(six("Ip6InReceives 5\nUdp6RcvbufErrors    \t4\n").unwrap(), [("Udp6:RcvbufErrors", 4)]);
        assert!(six("Udp6RcvbufErrors\n").is_err());
    }
}
