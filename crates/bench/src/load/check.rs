//! Checks the parameters and destinations of a load.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::error::{InvalidLoad, NotOneHost};
use crate::side::{LoadGroup, LoadGroups, Pattern, Protocol};

pub(super) const MOST_THREADS: u32 = 1024;
pub(super) const MOST_FLOWS: u32 = 100_000;
pub(super) const MOST_TIME: Duration = Duration::from_secs(3600);
const MOST_BURST: u32 = 4096;
const MOST_SKEW: f64 = 10.0;

/// Errors: the requested value and the allowed bounds.
pub fn load(load: &LoadGroups) -> Result<(), InvalidLoad> {
    if load.time.is_zero() || load.time > MOST_TIME || load.warmup > MOST_TIME {
        return Err(InvalidLoad::Time { time: load.time, warmup: load.warmup });
    }
    if load.groups.is_empty() {
        return Err(InvalidLoad::NoGroup);
    }
    load.groups.iter().try_for_each(group)?;
    let threads: u64 = load.groups.iter().map(|g| u64::from(g.threads)).sum();
    if threads > u64::from(MOST_THREADS) {
        return Err(InvalidLoad::ThreadsInAll { found: threads, most: MOST_THREADS });
    }
    let flows: u64 = load.groups.iter().map(|g| u64::from(g.flows.max(g.threads))).sum();
    if flows > u64::from(MOST_FLOWS) {
        return Err(InvalidLoad::FlowsInAll { found: flows, most: MOST_FLOWS });
    }
    Ok(())
}

fn group(g: &LoadGroup) -> Result<(), InvalidLoad> {
    threads(g.threads)?;
    let (protocol, least, most) = match g.protocol {
        Protocol::Udp => ("UDP", 16, 65_507),
        Protocol::Tcp => ("TCP", 1, 1 << 20),
    };
    if !(least..=most).contains(&g.size_bytes) {
        return Err(InvalidLoad::Size { found: g.size_bytes, protocol, least, most });
    }
    if let Pattern::Burst(n) = g.pattern
        && !(1..=MOST_BURST).contains(&n)
    {
        return Err(InvalidLoad::Burst { found: n, most: MOST_BURST });
    }
    if !(0.0..=MOST_SKEW).contains(&g.skew) {
        return Err(InvalidLoad::Skew { found: g.skew, most: MOST_SKEW });
    }
    if let Some(rate) = g.per_s
        && !(rate > 0.0 && rate <= 1e9)
    {
        return Err(InvalidLoad::Rate(rate));
    }
    if g.to.is_empty() {
        return Err(InvalidLoad::NoTarget);
    }
    g.to.iter().try_for_each(|to| target(*to))
}

pub(super) fn threads(n: u32) -> Result<(), InvalidLoad> {
    let most = MOST_THREADS;
    if (1..=most).contains(&n) { Ok(()) } else { Err(InvalidLoad::Threads { found: n, most }) }
}

/// Checks that the address is one host and has a port. (The kernel refuses the broadcast address of a network, because
/// the sockets do not set `SO_BROADCAST`.)
pub(super) fn target(to: SocketAddr) -> Result<(), InvalidLoad> {
    one_host(to.ip()).map_err(|why| InvalidLoad::Target { to, why })?;
    if to.port() == 0 { Err(InvalidLoad::NoPort(to)) } else { Ok(()) }
}

/// Checks that the address is neither a wildcard nor a group.
pub fn one_host(ip: IpAddr) -> Result<(), NotOneHost> {
    match ip.to_canonical() {
        ip if ip.is_unspecified() => Err(NotOneHost::EveryAddress(ip)),
        ip if ip.is_multicast() => Err(NotOneHost::Multicast(ip)),
        IpAddr::V4(v4) if v4.is_broadcast() => Err(NotOneHost::Broadcast(v4)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> LoadGroups {
        let group = LoadGroup {
            size_bytes: 64,
            threads: 2,
            flows: 4,
            to: vec!["10.0.0.1:9".parse().unwrap()],
            ..LoadGroup::default()
        };
        LoadGroups { groups: vec![group], time: Duration::from_secs(1), ..LoadGroups::default() }
    }

    #[test]
    fn refusals_say_what_would_be_right() {
        assert_eq!(load(&good()), Ok(()));
        type Wrong<'a> = (&'a str, &'a dyn Fn(&mut LoadGroups));
        let wrong: [Wrong; 15] = [
            ("one hour", &|l| l.time = Duration::from_secs(3601)),
            ("one hour", &|l| l.time = Duration::ZERO),
            ("without a group", &|l| l.groups.clear()),
            ("1 to 1024", &|l| l.groups[0].threads = 0),
            ("at most 1024", &|l| {
                l.groups[0].threads = 1000;
                l.groups.push(l.groups[0].clone());
            }),
            ("at most 100000", &|l| l.groups[0].flows = 100_001),
            ("16 to 65507", &|l| l.groups[0].size_bytes = 15),
            ("1 to 1048576", &|l| {
                l.groups[0].protocol = Protocol::Tcp;
                l.groups[0].size_bytes = (1 << 20) + 1;
            }),
            ("1 to 4096", &|l| l.groups[0].pattern = Pattern::Burst(0)),
            ("skew NaN", &|l| l.groups[0].skew = f64::NAN),
            ("above 0", &|l| l.groups[0].per_s = Some(0.0)),
            ("multicast", &|l| l.groups[0].to = vec!["239.1.1.1:9".parse().unwrap()]),
            ("multicast", &|l| l.groups[0].to = vec!["[::ffff:224.0.0.1]:9".parse().unwrap()]),
            ("broadcast", &|l| l.groups[0].to = vec!["255.255.255.255:9".parse().unwrap()]),
            ("no port", &|l| l.groups[0].to = vec!["10.0.0.1:0".parse().unwrap()]),
        ];
        for (words, change) in wrong {
            let mut l = good();
            change(&mut l);
            let why = load(&l).unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        }
    }
}
