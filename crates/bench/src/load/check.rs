//! What is not sent, and where to it is not sent.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::side::{Group, Load, Pattern, Protocol};

pub(super) const MOST_THREADS: u32 = 1024;
pub(super) const MOST_FLOWS: u32 = 100_000;
pub(super) const MOST_TIME: Duration = Duration::from_secs(3600);

/// Err: what was asked and what would be right.
pub fn load(load: &Load) -> Result<(), String> {
    if load.time.is_zero() || load.time > MOST_TIME || load.warmup > MOST_TIME {
        return Err(format!(
            "{:?} after {:?} of warm-up: a load lasts up to one hour, and so may the warm-up",
            load.time, load.warmup
        ));
    }
    if load.groups.is_empty() {
        return Err("a load without a group sends nothing".into());
    }
    load.groups.iter().try_for_each(group)?;
    let threads: u64 = load.groups.iter().map(|g| u64::from(g.threads)).sum();
    if threads > u64::from(MOST_THREADS) {
        return Err(format!("{threads} threads: at most {MOST_THREADS} in all"));
    }
    let flows: u64 = load.groups.iter().map(|g| u64::from(g.flows.max(g.threads))).sum();
    if flows > u64::from(MOST_FLOWS) {
        return Err(format!("{flows} flows: at most {MOST_FLOWS} in all"));
    }
    Ok(())
}

fn group(g: &Group) -> Result<(), String> {
    threads(g.threads)?;
    let (most, least) = match g.protocol {
        Protocol::Udp => (65_507, 16),
        Protocol::Tcp => (1 << 20, 1),
    };
    if !(least..=most).contains(&g.size_bytes) {
        let name = if g.protocol == Protocol::Udp { "UDP" } else { "TCP" };
        return Err(format!("{} bytes over {name}: {least} to {most} can be sent", g.size_bytes));
    }
    if let Pattern::Burst(n) = g.pattern
        && !(1..=4096).contains(&n)
    {
        return Err(format!("{n} requests on the way for each flow: 1 to 4096"));
    }
    if !(0.0..=10.0).contains(&g.skew) {
        return Err(format!("skew {}: 0 (all flows alike) to 10", g.skew));
    }
    if let Some(rate) = g.per_s
        && !(rate > 0.0 && rate <= 1e9)
    {
        return Err(format!("{rate} a second: above 0, up to 1,000,000,000; none for as much as can be had"));
    }
    if g.to.is_empty() {
        return Err("no address to send to".into());
    }
    g.to.iter().try_for_each(|to| target(*to))
}

pub(super) fn threads(n: u32) -> Result<(), String> {
    if (1..=MOST_THREADS).contains(&n) { Ok(()) } else { Err(format!("{n} threads: 1 to {MOST_THREADS}")) }
}

/// One host, and a port. (The broadcast address of a network is refused by the kernel: our sockets never ask for
/// `SO_BROADCAST`.)
pub(super) fn target(to: SocketAddr) -> Result<(), String> {
    one_host(to.ip()).map_err(|why| format!("nothing is sent to {to}: {why}"))?;
    if to.port() == 0 { Err(format!("nothing is sent to {to}: it has no port")) } else { Ok(()) }
}

/// Neither all of them nor a group.
pub fn one_host(ip: IpAddr) -> Result<(), String> {
    match ip.to_canonical() {
        ip if ip.is_unspecified() => Err(format!("{ip} is every address; name one")),
        ip if ip.is_multicast() => Err(format!("{ip} is a multicast group; name one host")),
        IpAddr::V4(v4) if v4.is_broadcast() => Err(format!("{v4} is broadcast; name one host")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Load {
        let group =
            Group { size_bytes: 64, threads: 2, flows: 4, to: vec!["10.0.0.1:9".parse().unwrap()], ..Group::default() };
        Load { groups: vec![group], time: Duration::from_secs(1), ..Load::default() }
    }

    #[test]
    fn refusals_say_what_would_be_right() {
        assert_eq!(load(&good()), Ok(()));
        type Wrong<'a> = (&'a str, &'a dyn Fn(&mut Load));
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
            let why = load(&l).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
