//! Parses lines with flows: ringwise's own notation, `ss`, `conntrack -L` and `/proc/net/nf_conntrack`.

use std::net::IpAddr;

use crate::population::CountedFlow;
use crate::tuple::{BadFlow, FlowSpec, Tuple, has_ports, protocol_number, side};

/// Parses one line. `None`: the line has no flow (empty, a comment, a heading, a listening socket).
pub fn parse(line: &str) -> Result<Option<CountedFlow>, BadFlow> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.iter().any(|w| w.starts_with("src=")) {
        return conntrack(&words).map(Some);
    }
    match words[..] {
        ["Netid" | "State" | "Recv-Q", ..] => Ok(None),
        [one] if one.contains('/') => exact(one, 1, 0).map(Some),
        // FLOW PACKETS [BYTES]
        [one, packets] if one.contains('/') => exact(one, count(packets)?, 0).map(Some),
        [one, packets, bytes] if one.contains('/') => exact(one, count(packets)?, count(bytes)?).map(Some),
        _ => ss(&words),
    }
}

fn count(word: &str) -> Result<u64, BadFlow> {
    word.parse().map_err(|_| BadFlow::new(word, "a number of packets, then a number of bytes"))
}

fn exact(text: &str, packets: u64, bytes: u64) -> Result<CountedFlow, BadFlow> {
    let tuple = text
        .parse::<FlowSpec>()?
        .exact()
        .ok_or_else(|| BadFlow::new(text, "a flow with both ports, because this is a list of flows"))?;
    Ok(CountedFlow { tuple, packets, bytes })
}

/// Parses a line of `ss`. `ss` shows this host's end first; received packets come from the other end.
fn ss(words: &[&str]) -> Result<Option<CountedFlow>, BadFlow> {
    let bad = || BadFlow::new(&words.join(" "), "a flow, or a line of ss or conntrack output");
    let (protocol, rest) = match words.first().and_then(|w| protocol_number(w)).filter(|p| has_ports(*p)) {
        Some(p) if words[0].parse::<u8>().is_err() => (p, &words[1..]),
        _ => (crate::tuple::TCP, words),
    };
    let [state, recv, send, local, peer, ..] = rest else { return Err(bad()) };
    if recv.parse::<u64>().is_err() || send.parse::<u64>().is_err() {
        return Err(bad());
    }
    if matches!(*state, "LISTEN" | "UNCONN") || peer.ends_with(":*") {
        return Ok(None);
    }
    // Removes the interface of a link-local address: `fe80::1%eth0`.
    let plain = |text: &str| match text.split_once('%') {
        Some((a, rest)) => match rest.split_once([']', ':']) {
            Some((_, p)) if a.starts_with('[') => format!("{a}]{p}"),
            Some((_, p)) => format!("{a}:{p}"),
            None => a.to_string(),
        },
        None => text.to_string(),
    };
    let ((dst, dst_port), (src, src_port)) = (side(&plain(local))?, side(&plain(peer))?);
    let (Some(s), Some(d)) = (src_port, dst_port) else { return Err(bad()) };
    if src.is_ipv6() != dst.is_ipv6() {
        return Err(bad());
    }
    let tuple = Tuple { src, dst, protocol, ports: Some((s, d)), fragment: false, vlan: None };
    Ok(Some(CountedFlow { tuple, packets: 1, bytes: 0 }))
}

/// Parses a line of conntrack: the direction that opened the connection, with packets and bytes if the kernel counts
/// them.
fn conntrack(words: &[&str]) -> Result<CountedFlow, BadFlow> {
    let bad = |found: &str, what: &str| BadFlow::new(found, what);
    let line = words.join(" ");
    let value = |key: &str| words.iter().find_map(|w| w.strip_prefix(key)?.strip_prefix('='));
    let address = |key: &str| -> Result<IpAddr, BadFlow> {
        let text = value(key).ok_or_else(|| bad(&line, "src= and dst= of a connection"))?;
        text.parse().map_err(|_| bad(text, "an address"))
    };
    let port = |key: &str| -> Result<Option<u16>, BadFlow> {
        value(key).map(|p| p.parse().map_err(|_| bad(p, "a port from 0 to 65535"))).transpose()
    };
    let (src, dst) = (address("src")?, address("dst")?);
    let name = words.iter().take(4).find(|w| w.parse::<u32>().is_err() && !matches!(**w, "ipv4" | "ipv6"));
    let protocol = name.and_then(|n| match *n {
        "unknown" => words.iter().find_map(|w| w.parse().ok()),
        n => protocol_number(n),
    });
    let protocol = protocol.ok_or_else(|| bad(&line, "the protocol of a connection"))?;
    if src.is_ipv6() != dst.is_ipv6() {
        return Err(bad(&line, "two addresses of one family"));
    }
    let ports = match (has_ports(protocol), port("sport")?, port("dport")?) {
        (true, Some(s), Some(d)) => Some((s, d)),
        (true, ..) => return Err(bad(&line, "sport= and dport= of a connection")),
        (false, ..) => None,
    };
    let number = |key: &str| value(key).and_then(|n| n.parse().ok());
    let tuple = Tuple { src, dst, protocol, ports, fragment: false, vlan: None };
    Ok(CountedFlow { tuple, packets: number("packets").unwrap_or(1), bytes: number("bytes").unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> String {
        match parse(line) {
            Ok(Some(c)) => format!("{} {} {}", c.tuple, c.packets, c.bytes),
            Ok(None) => "none".into(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn own_notation_ss_and_conntrack() {
        for (line, want) in [
            ("10.0.0.1:1-10.0.0.2:2/tcp", "10.0.0.1:1-10.0.0.2:2/tcp 1 0"),
            ("10.0.0.1:1-10.0.0.2:2/tcp 7 900", "10.0.0.1:1-10.0.0.2:2/tcp 7 900"),
            ("ESTAB 0 0 10.0.0.2:22 10.0.0.1:50000", "10.0.0.1:50000-10.0.0.2:22/tcp 1 0"),
            ("udp ESTAB 0 0 [2001:db8::2]:53 [2001:db8::1]:500", "[2001:db8::1]:500-[2001:db8::2]:53/udp 1 0"),
            ("tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:*", "none"),
            ("tcp ESTAB 0 0 [fe80::2%eth0]:22 [fe80::1%eth0]:5", "[fe80::1]:5-[fe80::2]:22/tcp 1 0"),
            (
                "tcp 6 431999 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1 dport=80 packets=5 bytes=600 src=10.0.0.2 \
                 dst=10.0.0.1 sport=80 dport=1 packets=9 bytes=9000 [ASSURED] mark=0 use=1",
                "10.0.0.1:1-10.0.0.2:80/tcp 5 600",
            ),
            (
                "ipv6 10 udp 17 29 src=2001:db8::1 dst=2001:db8::2 sport=5 dport=53 src=2001:db8::2 dst=2001:db8::1 sport=53 dport=5",
                "[2001:db8::1]:5-[2001:db8::2]:53/udp 1 0",
            ),
            ("icmp 1 29 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=3", "10.0.0.1-10.0.0.2/icmp 1 0"),
            ("# a word", "none"),
            ("", "none"),
        ] {
            assert_eq!(text(line), want, "{line}");
        }
    }

    #[test]
    fn malformed_lines_are_refused() {
        for line in
            ["hello", "tcp 6 src=10.0.0.1", "tcp 6 src=10.0.0.x dst=1.1.1.1", "10.0.0.1:1-10.0.0.2/tcp", "a b c d e"]
        {
            assert!(text(line).starts_with("flow: found"), "{line}: {}", text(line));
        }
    }
}
