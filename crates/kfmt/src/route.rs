//! How packets leave the host: rtnetlink route replies, the default routes of `/proc/net`, and the text of ssh
//! sessions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ParseError;
use crate::nl::{Builder, attrs};

const ROUTE: &str = "route message";
/// `sizeof(struct rtmsg)`: family 0, type 7.
const RTMSG: usize = 12;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_VIA: u16 = 18;
/// `RTN_*` (linux/rtnetlink.h).
const RTN_LOCAL: u8 = 2;
/// `RTF_UP`, `RTF_REJECT` (linux/route.h).
const RTF_UP: u32 = 0x1;
const RTF_REJECT: u32 = 0x200;

/// The path to one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The address belongs to this host.
    pub local: bool,
    /// `RTA_OIF`: index of the interface through which packets leave.
    pub out: Option<u32>,
    /// `RTA_GATEWAY` or `RTA_VIA`. `None`: the destination is on the link.
    pub gateway: Option<IpAddr>,
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    four.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}

/// Decodes an RTM_NEWROUTE message.
pub fn route(msg: &[u8]) -> Result<Route, ParseError> {
    let (Some(head), Some(rest)) = (msg.get(..RTMSG), msg.get(RTMSG..)) else {
        return Err(ParseError::new(ROUTE, format!("{} bytes", msg.len()), "12 bytes or more"));
    };
    let mut out = Route { local: head[7] == RTN_LOCAL, out: None, gateway: None };
    for attr in attrs(rest) {
        let a = attr.map_err(|e| ParseError { what: ROUTE, ..e })?;
        match a.kind {
            RTA_OIF => out.out = Some(a.u32().map_err(|e| ParseError { what: ROUTE, ..e })?),
            RTA_GATEWAY => out.gateway = ip(a.data),
            // IPv4 over an IPv6 next hop: the address follows its family.
            RTA_VIA => out.gateway = a.data.get(2..).and_then(ip),
            _ => {}
        }
    }
    Ok(out)
}

/// An RTM_NEWROUTE message as the kernel would send it, for simulated hosts.
pub fn route_reply(r: &Route) -> Result<Vec<u8>, ParseError> {
    let mut out = vec![0; RTMSG];
    out[7] = if r.local { RTN_LOCAL } else { 1 };
    let mut b = Builder::new();
    if let Some(oif) = r.out {
        b.u32(RTA_OIF, oif);
    }
    match r.gateway {
        Some(IpAddr::V4(a)) => _ = b.binary(RTA_GATEWAY, &a.octets())?,
        Some(IpAddr::V6(a)) => _ = b.binary(RTA_GATEWAY, &a.octets())?,
        None => {}
    }
    out.extend(b.finish());
    Ok(out)
}

/// A default route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultRoute {
    /// Name of the interface.
    pub dev: String,
    /// `None`: the interface itself is the route (point-to-point).
    pub gateway: Option<IpAddr>,
    /// Lower values are preferred.
    pub metric: u32,
}

/// `/proc/net/route`: usable default routes of the main table. If a route has several next hops, the kernel shows only
/// the first (net/ipv4/fib_trie.c, `fib_route_seq_show`).
pub fn defaults_v4(text: &str) -> Result<Vec<DefaultRoute>, ParseError> {
    const WHAT: &str = "/proc/net/route";
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate().skip(1) {
        let f: Vec<&str> = line.split_whitespace().collect();
        let bad = || ParseError::at(WHAT, i + 1, line, "eight fields or more, with hexadecimal addresses");
        let (Some(dev), Some(dst), Some(gw), Some(flags), Some(metric), Some(mask)) =
            (f.first(), f.get(1), f.get(2), f.get(3), f.get(6), f.get(7))
        else {
            return Err(bad());
        };
        let hex = |s: &str| u32::from_str_radix(s, 16).map_err(|_| bad());
        let flags = hex(flags)?;
        if hex(dst)? != 0 || hex(mask)? != 0 || flags & RTF_UP == 0 || flags & RTF_REJECT != 0 {
            continue;
        }
        // The address's bytes as a number of this machine.
        let gw = hex(gw)?;
        let gateway = (gw != 0).then(|| IpAddr::V4(Ipv4Addr::from(gw.to_ne_bytes())));
        out.push(DefaultRoute { dev: dev.to_string(), gateway, metric: metric.parse().map_err(|_| bad())? });
    }
    Ok(out)
}

/// `/proc/net/ipv6_route`: the same for IPv6, every next hop.
pub fn defaults_v6(text: &str) -> Result<Vec<DefaultRoute>, ParseError> {
    const WHAT: &str = "/proc/net/ipv6_route";
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let f: Vec<&str> = line.split_whitespace().collect();
        let bad = || ParseError::at(WHAT, i + 1, line, "ten fields, with hexadecimal addresses");
        let [dst, plen, _, _, gw, metric, _, _, flags, dev] = f[..] else { return Err(bad()) };
        let hex = |s: &str| u32::from_str_radix(s, 16).map_err(|_| bad());
        let flags = hex(flags)?;
        if hex(plen)? != 0 || dst.bytes().any(|b| b != b'0') || flags & RTF_UP == 0 || flags & RTF_REJECT != 0 {
            continue;
        }
        let gw = u128::from_str_radix(gw, 16).map_err(|_| bad())?;
        let gateway = (gw != 0).then(|| IpAddr::V6(Ipv6Addr::from(gw)));
        out.push(DefaultRoute { dev: dev.to_string(), gateway, metric: hex(metric)? });
    }
    Ok(out)
}

/// An ssh session: `own 192.0.2.10 51234 192.0.2.1 22`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshSession {
    /// The session in which this program runs; otherwise one of a server on this host.
    pub own: bool,
    /// Address of the client.
    pub peer: IpAddr,
    /// The interface of a link-local peer.
    pub scope: Option<String>,
}

/// Parses such a line. A line that does not start with `own` or `held`, or that has no address, is an error.
pub fn session(msg: &[u8]) -> Result<SshSession, ParseError> {
    let text = std::str::from_utf8(msg).unwrap_or_default();
    let bad = || ParseError::new("ssh session", msg, "own or held, and an address");
    let mut words = text.split_whitespace();
    let own = match words.next() {
        Some("own") => true,
        Some("held") => false,
        _ => return Err(bad()),
    };
    let word = words.next().ok_or_else(bad)?;
    let (address, scope) = word.split_once('%').map_or((word, None), |(a, s)| (a, Some(s.to_string())));
    Ok(SshSession { own, peer: address.parse().map_err(|_| bad())?, scope })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_both_ways() {
        for r in [
            Route { local: false, out: Some(7), gateway: Some("192.0.2.1".parse().unwrap()) },
            Route { local: false, out: Some(7), gateway: Some("fe80::1".parse().unwrap()) },
            Route { local: true, out: Some(1), gateway: None },
        ] {
            assert_eq!(route(&route_reply(&r).unwrap()).unwrap(), r);
        }
        assert!(route(&[0; 11]).is_err());
        // RTA_VIA: AF_INET6, then the address.
        let mut m = vec![0; 12];
        m.extend([22, 0, 18, 0, 10, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(route(&m).unwrap().gateway, Some("fe80::1".parse().unwrap()));
    }

    #[test]
    fn default_routes() {
        let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
        let text = format!(
            "{head}eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
             ppp0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n\
             eth1\t00000000\t010200C0\t0203\t0\t0\t5\t00000000\t0\t0\t0\n\
             eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
        );
        let got = defaults_v4(&text).unwrap();
        assert_eq!(got.len(), 2);
        assert_eq!((got[0].dev.as_str(), got[0].gateway, got[0].metric), ("eth0", "192.0.2.1".parse().ok(), 100));
        assert_eq!((got[1].dev.as_str(), got[1].gateway), ("ppp0", None));
        assert_eq!(defaults_v4(head).unwrap(), []);
        assert!(defaults_v4(&format!("{head}eth0 x y")).is_err());
        let zero = "0".repeat(32);
        let text = format!(
            "{zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n\
             {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo\n\
             20010db8000000000000000000000000 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001 eth0\n"
        );
        let got = defaults_v6(&text).unwrap();
        assert_eq!(got.len(), 1, "{got:?}");
        assert_eq!((got[0].gateway, got[0].metric), ("fe80::1".parse().ok(), 1024));
        assert!(defaults_v6("short").is_err());
    }

    #[test]
    fn sessions() {
        let s = session(b"own fe80::1%eth0.100 51234 fe80::2%eth0.100 22").unwrap();
        assert_eq!((s.own, s.scope.as_deref()), (true, Some("eth0.100")));
        assert_eq!(session(b"held 192.0.2.1 1 192.0.2.2 22").unwrap().peer, IpAddr::from([192, 0, 2, 1]));
        for bad in [&b"own"[..], b"", b"other 192.0.2.1", b"own host", &[0xff, 0xfe]] {
            assert!(session(bad).is_err());
        }
    }
}
