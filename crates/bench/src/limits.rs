//! Limits for requests of a client on the network to `bench serve`. A client through ssh, or in this process, could use
//! a shell as well, so it has no limits.

use std::net::IpAddr;

use crate::side::{ExternalProgram, LoadGroup, LoadGroups, Pattern, Pktgen, Request, Responder, Sink};

/// Limits for the number of threads, and for the sockets of all threads.
const THREADS: u64 = 512;
const FLOWS: u64 = 1 << 16;
const GROUPS: u64 = 16;
/// Limit for the bytes of all requests in flight.
const BYTES: u64 = 64 << 20;
const SECONDS: u64 = 3600;
const DELAY_US: u32 = 1_000_000;
/// Limits for interfaces, CPUs and addresses in one request.
const LIST: u64 = 8192;
const NAME: u64 = 64;

/// Addresses that have the first `bits` bits of `ip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    ip: IpAddr,
    bits: u32,
}

/// A text that is not a [`Net`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not an address or network; expected for example 192.0.2.7 or 192.0.2.0/24")]
pub struct NotANet(String);

/// Why a request of a client on the network is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OverLimit {
    /// The request exceeds a limit.
    #[error("{found} {what} requested; a client on the network may request up to {most}")]
    TooMuch { what: &'static str, found: u64, most: u64 },
    /// A load to a host that did not request it.
    #[error(
        "{to} is not the address of the control connection ({client}), and is not allowed: \
         ringwise bench serve --allow-target {to}"
    )]
    Target { to: IpAddr, client: IpAddr },
    /// The packet generator on an interface that is not allowed. `None`: the name is too long for an interface.
    #[error(
        "the packet generator is not allowed on that interface{}",
        .dev.as_ref().map_or(String::new(), |d| format!(": ringwise bench serve --allow-pktgen {d}"))
    )]
    Pktgen { dev: Option<String> },
}

impl Net {
    /// `192.0.2.7`, `192.0.2.0/24`, `2001:db8::/64`.
    pub fn parse(text: &str) -> Result<Self, NotANet> {
        let bad = || NotANet(text.into());
        let (ip, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
        let ip: IpAddr = ip.parse().map_err(|_| bad())?;
        let most = if ip.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |b| b.parse().map_err(|_| bad()))?;
        if bits > most { Err(bad()) } else { Ok(Self { ip, bits }) }
    }

    fn has(&self, ip: IpAddr) -> bool {
        let top = |n: u128, width: u32| n.checked_shr(width - self.bits).unwrap_or(0);
        match (self.ip, ip.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => top(a.to_bits().into(), 32) == top(b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => top(a.to_bits(), 128) == top(b.to_bits(), 128),
            _ => false,
        }
    }
}

/// The permissions that the user gave to the server.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Allowed targets besides the client's own address.
    pub targets: Vec<Net>,
    /// Interfaces of the packet generator.
    pub pktgen: Vec<String>,
}

/// The permissions of one client.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub client: IpAddr,
    pub allowed: Allowed,
}

impl Limits {
    /// The reason for a refusal; `None`: the request is allowed.
    pub(crate) fn refuse(&self, request: &Request) -> Option<OverLimit> {
        match request {
            Request::Hello { .. } | Request::Prove { .. } | Request::Stop => None,
            Request::Answer(Responder { threads, cpus, delay_us, .. }) => {
                at_most("delay_us", (*delay_us).into(), DELAY_US.into()).or_else(|| ends(*threads, cpus))
            }
            Request::Sink(Sink { threads, cpus, .. }) => ends(*threads, cpus),
            Request::Load(load) => self.load(load),
            Request::Pktgen(p) => self.pktgen(p),
            Request::Count { devs } => names(devs),
            Request::Program(ExternalProgram::Serve { program, .. }) => names(std::slice::from_ref(program)),
            Request::Program(ExternalProgram::Run { program, load, .. }) => {
                names(std::slice::from_ref(program)).or_else(|| self.load(load))
            }
        }
    }

    fn load(&self, load: &LoadGroups) -> Option<OverLimit> {
        let groups = &load.groups;
        let sum = |of: fn(&LoadGroup) -> u64| groups.iter().fold(0u64, |n, g| n.saturating_add(of(g)));
        let on_their_way = |g: &LoadGroup| {
            let each = if let Pattern::Burst(n) = g.pattern { u64::from(n.max(1)) } else { 1 };
            u64::from(g.flows.max(g.threads)).saturating_mul(each).saturating_mul(u64::from(g.size_bytes).max(64))
        };
        let bytes = groups.iter().fold(0u64, |n, g| n.saturating_add(on_their_way(g)));
        let target = groups.iter().flat_map(|g| &g.to).find(|to| !self.may_be_loaded(to.ip()));
        at_most("groups", groups.len() as u64, GROUPS)
            .or_else(|| at_most("threads", sum(|g| g.threads.into()), THREADS))
            .or_else(|| at_most("flows", sum(|g| g.flows.into()), FLOWS))
            .or_else(|| at_most("bytes in flight", bytes, BYTES))
            .or_else(|| at_most("seconds", load.warmup.saturating_add(load.time).as_secs(), SECONDS))
            .or_else(|| {
                groups.iter().find_map(|g| at_most("CPUs or addresses", g.cpus.len().max(g.to.len()) as u64, LIST))
            })
            .or_else(|| groups.iter().find_map(|g| at_most("bytes of a name", g.name.len() as u64, NAME)))
            .or_else(|| {
                let to = target?.ip();
                Some(OverLimit::Target { to, client: self.client })
            })
    }

    fn may_be_loaded(&self, to: IpAddr) -> bool {
        to.to_canonical() == self.client.to_canonical() || self.allowed.targets.iter().any(|n| n.has(to))
    }

    fn pktgen(&self, p: &Pktgen) -> Option<OverLimit> {
        let seconds = p.warmup.saturating_add(p.time).as_secs();
        let port = p.ports.iter().find(|port| !self.allowed.pktgen.contains(&port.dev));
        at_most("ports", p.ports.len() as u64, GROUPS)
            .or_else(|| at_most("seconds", seconds, SECONDS))
            .or_else(|| names(&p.count))
            .or_else(|| {
                let dev = &port?.dev;
                let is_name = names(std::slice::from_ref(dev)).is_none();
                Some(OverLimit::Pktgen { dev: is_name.then(|| dev.clone()) })
            })
    }
}

fn ends(threads: u32, cpus: &[u32]) -> Option<OverLimit> {
    at_most("threads", threads.into(), THREADS).or_else(|| at_most("CPUs", cpus.len() as u64, LIST))
}

fn names(all: &[String]) -> Option<OverLimit> {
    let longest = all.iter().map(String::len).max().unwrap_or(0);
    at_most("names", all.len() as u64, NAME).or_else(|| at_most("bytes of a name", longest as u64, NAME))
}

fn at_most(what: &'static str, found: u64, most: u64) -> Option<OverLimit> {
    (found > most).then_some(OverLimit::TooMuch { what, found, most })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::PktgenPort;
    use std::time::Duration;

    fn limits(targets: &[&str]) -> Limits {
        let targets = targets.iter().map(|t| Net::parse(t).unwrap()).collect();
        let allowed = Allowed { targets, pktgen: vec!["eth1".into()] };
        Limits { client: "192.0.2.10".parse().unwrap(), allowed }
    }

    fn to(ip: &str) -> Request {
        let to = vec![format!("{ip}:9").parse().unwrap()];
        Request::Load(LoadGroups {
            groups: vec![LoadGroup { to, threads: 1, ..LoadGroup::default() }],
            ..LoadGroups::default()
        })
    }

    #[test]
    fn only_the_client_and_what_was_allowed_is_loaded() {
        let l = limits(&["10.2.0.0/16", "2001:db8::/32"]);
        for good in ["192.0.2.10", "10.2.200.1", "[2001:db8:1::7]", "[::ffff:192.0.2.10]"] {
            assert_eq!(l.refuse(&to(good)), None, "{good}");
        }
        for bad in ["192.0.2.11", "10.3.0.1", "[2001:db9::1]", "127.0.0.1"] {
            assert!(l.refuse(&to(bad)).unwrap().to_string().contains("--allow-target"), "{bad}");
        }
        let Request::Load(load) = to("198.51.100.9") else { unreachable!() };
        let run = Request::Program(ExternalProgram::Run { program: "netperf".into(), port: 1, load });
        assert!(l.refuse(&run).unwrap().to_string().starts_with("198.51.100.9 is not the address"));
    }

    #[test]
    fn networks() {
        for text in ["192.0.2.0/33", "::/129", "x", "192.0.2.0/", "192.0.2.0/-1"] {
            assert!(Net::parse(text).unwrap_err().to_string().contains("expected for example"), "{text}");
        }
        assert!(Net::parse("0.0.0.0/0").unwrap().has("198.51.100.9".parse().unwrap()));
        assert!(!Net::parse("0.0.0.0/0").unwrap().has("::1".parse().unwrap()));
    }

    #[test]
    fn what_would_fill_the_memory_is_refused() {
        let l = limits(&["0.0.0.0/0"]);
        let with = |g: LoadGroup| Request::Load(LoadGroups { groups: vec![g], ..LoadGroups::default() });
        let good = LoadGroup {
            threads: 64,
            flows: 4096,
            size_bytes: 1400,
            pattern: Pattern::Burst(8),
            ..LoadGroup::default()
        };
        assert_eq!(l.refuse(&with(good.clone())), None);
        for bad in [
            LoadGroup { threads: 513, ..good.clone() },
            LoadGroup { flows: 1 << 17, ..good.clone() },
            LoadGroup { pattern: Pattern::Burst(u32::MAX), ..good.clone() },
            LoadGroup { size_bytes: 1 << 20, ..good.clone() },
            LoadGroup { name: "x".repeat(65), ..good.clone() },
            LoadGroup { cpus: vec![0; 8193], ..good.clone() },
        ] {
            assert!(l.refuse(&with(bad.clone())).is_some(), "{bad:?}");
        }
        let long = LoadGroups { time: Duration::from_secs(3601), ..LoadGroups::default() };
        assert!(l.refuse(&Request::Load(long)).is_some());
        assert!(l.refuse(&Request::Answer(Responder { delay_us: 1_000_001, ..Responder::default() })).is_some());
        assert!(l.refuse(&Request::Sink(Sink { threads: 513, ..Sink::default() })).is_some());
        assert!(l.refuse(&Request::Count { devs: vec!["x".repeat(65)] }).is_some());
    }

    #[test]
    fn the_packet_generator_only_where_it_was_allowed() {
        let port = |dev: &str| {
            let any = "192.0.2.1".parse().unwrap();
            let (sources, destinations, to_mac) = ((any, any), (any, any), String::new());
            let port = PktgenPort {
                dev: dev.into(),
                cpu: 0,
                to_mac,
                frame_bytes: 60,
                per_s: None,
                sources,
                random_sources: false,
                destinations,
                random_destinations: false,
                copies: 1,
                source_ports: (9, 9),
            };
            Request::Pktgen(Pktgen { ports: vec![port], ..Pktgen::default() })
        };
        assert_eq!(limits(&[]).refuse(&port("eth1")), None);
        assert!(limits(&[]).refuse(&port("eth0")).unwrap().to_string().contains("--allow-pktgen eth0"));
    }
}
