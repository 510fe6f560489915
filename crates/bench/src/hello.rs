//! Who this end is, and what its interfaces have counted.

use std::net::IpAddr;
use std::path::Path;

use ringwise_kfmt::{link_stats, rtnl};
use ringwise_sys::{Host, Real, Request};

use crate::side::{DevCount, Hello, PROTOCOL};

/// Of the network namespace of the calling thread.
///
/// Err: the kernel does not list its interfaces, with errno.
pub(crate) fn hello() -> Result<Hello, String> {
    let host = Real::new().map_err(|e| e.to_string())?;
    // What is not told stays empty: a name is for people.
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
        interfaces: interfaces(&host).map_err(|e| e.to_string())?,
    })
}

/// It could be loaded, or is built in.
fn has_module(kernel: &str, file: &str) -> bool {
    ["modules.dep", "modules.builtin"].iter().any(|list| {
        let text = std::fs::read_to_string(format!("/lib/modules/{kernel}/{list}")).unwrap_or_default();
        text.lines().any(|l| l.split(':').next().unwrap_or_default().contains(file))
    })
}

fn interfaces(host: &Real) -> Result<Vec<(String, String, Vec<IpAddr>)>, String> {
    let ask = |r: Request| host.kernel(&r).map_err(|e| e.to_string());
    let mut addresses = Vec::new();
    for m in ask(Request::Addrs)? {
        addresses.extend(rtnl::addr(&m).map_err(|e| e.to_string())?);
    }
    let mut out = Vec::new();
    for m in ask(Request::Links)? {
        let link = rtnl::link(&m).map_err(|e| e.to_string())?;
        let own = addresses.iter().filter(|a| a.ifindex == link.ifindex);
        let own = own.filter_map(|a| a.address.split('/').next()?.parse().ok()).collect();
        out.push((link.name, link.mac.unwrap_or_default(), own));
    }
    Ok(out)
}

/// Err: an interface is not there (ENODEV), or does not tell what it counts.
pub(crate) fn count(devs: &[String]) -> Result<Vec<DevCount>, String> {
    use ringwise_sys::Clock;
    let host = Real::new().map_err(|e| e.to_string())?;
    let one = |dev: &String| {
        let messages = host.kernel(&Request::Link { dev: dev.clone() }).map_err(|e| e.to_string())?;
        let at_ns = host.since_boot().as_nanos() as u64;
        let first = messages.first().ok_or_else(|| format!("{dev}: no answer to RTM_GETLINK"))?;
        let stats = link_stats::link_stats(first).map_err(|e| e.to_string())?;
        let get = |name: &str| {
            let at = link_stats::NAMES.iter().position(|n| *n == name);
            at.and_then(|i| stats.counts.get(i).copied()).ok_or_else(|| format!("{dev} does not tell {name}"))
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
        assert!(why.contains("ENODEV"), "{why}");
    }
}
