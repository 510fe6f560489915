//! The description of this end, and the counters of its interfaces.

use std::net::IpAddr;
use std::path::Path;

use ringwise_kfmt::{link_stats, rtnl};
use ringwise_sys::{Host, Real, Request};

use crate::error::HostError;
use crate::side::{DevCount, Hello, PROTOCOL};

/// Describes this host in the network namespace of the calling thread.
///
/// Errors: the kernel does not list the interfaces, with errno.
pub(crate) fn hello() -> Result<Hello, HostError> {
    let host = Real::new()?;
    // An unknown name stays empty, because names are only shown to people.
    let text = |path: &str| host.read_text(path).unwrap_or_default();
    let kernel = text("/proc/sys/kernel/osrelease");
    let mut drivers: Vec<String> = Vec::new();
    for name in ["netperf", "netserver", "iperf3"] {
        if ringwise_sys::load::in_path(name) {
            drivers.push(name.into());
        }
    }
    if Path::new("/proc/net/pktgen").exists() || has_module(&kernel, "/pktgen.ko") {
        drivers.push("pktgen".into());
    }
    Ok(Hello {
        protocol: PROTOCOL,
        ringwise: env!("CARGO_PKG_VERSION").into(),
        host: text("/proc/sys/kernel/hostname"),
        cpus: text("/sys/devices/system/cpu/online"),
        kernel,
        drivers,
        interfaces: interfaces(&host)?,
    })
}

/// Whether the module could be loaded or is built in.
fn has_module(kernel: &str, file: &str) -> bool {
    ["modules.dep", "modules.builtin"].iter().any(|list| {
        let text = std::fs::read_to_string(format!("/lib/modules/{kernel}/{list}")).unwrap_or_default();
        text.lines().any(|l| l.split(':').next().unwrap_or_default().contains(file))
    })
}

fn interfaces(host: &Real) -> Result<Vec<(String, String, Vec<IpAddr>)>, HostError> {
    let ask = |r: Request| host.kernel(&r);
    let mut addresses = Vec::new();
    for m in ask(Request::Addrs)? {
        addresses.extend(rtnl::addr(&m)?);
    }
    let mut out = Vec::new();
    for m in ask(Request::Links)? {
        let link = rtnl::link(&m)?;
        let own = addresses.iter().filter(|a| a.ifindex == link.ifindex);
        let own = own.filter_map(|a| a.address.split('/').next()?.parse().ok()).collect();
        out.push((link.name, link.mac.unwrap_or_default(), own));
    }
    Ok(out)
}

/// Errors: an interface does not exist (ENODEV), or the kernel does not report its counters.
pub(crate) fn count(devs: &[String]) -> Result<Vec<DevCount>, HostError> {
    use ringwise_sys::Clock;
    let host = Real::new()?;
    let one = |dev: &String| {
        let messages = host.kernel(&Request::Link { dev: dev.clone() })?;
        let at_ns = host.since_boot().as_nanos() as u64;
        let first = messages.first().ok_or_else(|| HostError::NoAnswer { dev: dev.clone() })?;
        let stats = link_stats::link_stats(first)?;
        let get = |counter: &'static str| {
            let at = link_stats::NAMES.iter().position(|n| *n == counter);
            let count = at.and_then(|i| stats.counts.get(i).copied());
            count.ok_or_else(|| HostError::NoCounter { dev: dev.clone(), counter })
        };
        Ok(DevCount {
            dev: dev.clone(),
            at_ns,
            rx_packets: get("rx_packets")?,
            rx_bytes: get("rx_bytes")?,
            tx_packets: get("tx_packets")?,
            tx_bytes: get("tx_bytes")?,
            rx_dropped: get("rx_dropped")?,
        })
    };
    devs.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host() {
        let h = hello().unwrap();
        assert_eq!(h.kernel, std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim());
        assert!(h.interfaces.iter().any(|(name, ..)| name == "lo"), "{h:?}");
        let before = count(&["lo".into()]).unwrap().remove(0);
        let s = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        s.send_to(b"x", s.local_addr().unwrap()).unwrap();
        let after = count(&["lo".into()]).unwrap().remove(0);
        assert!(after.rx_packets > before.rx_packets && after.at_ns > before.at_ns);
        let why = count(&["no-such-dev".into()]).unwrap_err();
        assert!(matches!(&why, HostError::Sys(e) if e.errno == Some(19)), "{why}");
        assert!(why.to_string().contains("ENODEV"), "{why}");
    }
}
