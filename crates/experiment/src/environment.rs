//! The conditions under which a session measures: the ports, what the numbers do not cover, and facts of the host.

use std::collections::BTreeMap;
use std::hash::Hasher as _;

use ringwise_bench::result::{Environment, Port};
use ringwise_model::fnv::Fnv;
use ringwise_model::{CpuSet, Fact, NicKind, Snapshot};
use ringwise_sys::Host;

use crate::context::Workload;
use crate::error::{Error, Result};

/// The ports under test.
///
/// Errors: a port is not in the snapshot, or has no link.
pub fn ports(s: &Snapshot, devs: &[String]) -> Result<Vec<Port>> {
    let one = |d: &String| {
        let nic = s.nic(d).ok_or_else(|| ringwise_discover::Error::not_in(s, d))?;
        if nic.link.carrier.known() == Some(&false) {
            return Err(Error::NoLink { dev: d.clone() });
        }
        Ok(Port {
            name: d.clone(),
            driver: nic.driver.known().cloned().unwrap_or_else(|| "no driver".into()),
            speed_mbit_per_s: nic.link.speed_mbps.known().map(|s| u64::from(*s)),
        })
    };
    devs.iter().map(one).collect()
}

/// A caveat about the validity of the numbers.
pub fn caveat(s: &Snapshot, devs: &[String]) -> Option<String> {
    let soft: Vec<&str> = devs
        .iter()
        .filter(|d| s.nic(d).is_none_or(|n| matches!(n.kind, NicKind::Software { .. } | NicKind::Loopback)))
        .map(String::as_str)
        .collect();
    if !soft.is_empty() {
        return Some(format!(
            "not a NIC: {} is software; only the stack above the driver is measured",
            soft.join(", ")
        ));
    }
    let known = s.topology.hypervisor.known()?;
    Some(format!(
        "measured in a virtual machine ({known}): rates depend on its host, and effects of caches, NUMA and SMT are not visible"
    ))
}

/// Values of the host under test that no state sets, as text.
pub fn environment(host: &dyn Host, s: &Snapshot, devs: &[String], load: &dyn Workload) -> Environment {
    let mut facts = facts(host);
    let mut add = |name: String, f: &Fact<String>| {
        let text = match f {
            Fact::Known(v) => v.clone(),
            Fact::Absent => "none".into(),
            Fact::Unknown(u) => format!("unknown: {}", u.why),
        };
        facts.insert(name, text);
    };
    let h = &s.host;
    add("host".into(), &h.name);
    add("kernel".into(), &h.kernel);
    add("hypervisor".into(), &s.topology.hypervisor);
    add("cpus online".into(), &Fact::Known(s.topology.online.to_string()));
    add("smt".into(), &s.topology.smt_active.as_ref().map(|b| if *b { "on" } else { "off" }.to_string()));
    add(
        "irqbalance and competing programs".into(),
        &h.rivals.as_ref().map(|r| if r.is_empty() { "none".into() } else { r.join(", ") }),
    );
    if let Some(p) = &h.power {
        let words =
            |m: &BTreeMap<String, CpuSet>| m.iter().map(|(k, v)| format!("{k} on {v}")).collect::<Vec<_>>().join(", ");
        add("governor".into(), &p.governor.as_ref().map(words));
        add("aspm".into(), &p.aspm);
        add("turbo".into(), &p.turbo.as_ref().map(|on| if *on { "on" } else { "off" }.to_string()));
    }
    for d in devs {
        let Some(n) = s.nic(d) else { continue };
        add(format!("{d} driver"), &n.driver);
        add(format!("{d} firmware"), &n.firmware);
        add(format!("{d} speed Mbit/s"), &n.link.speed_mbps.as_ref().map(u32::to_string));
        add(format!("{d} mtu"), &n.link.mtu.as_ref().map(u32::to_string));
        add(format!("{d} node"), &n.node.as_ref().map(|n| n.0.to_string()));
        let channels = |c: &ringwise_model::Channels| format!("{} rx, {} tx", c.rx_queues(), c.tx_queues());
        add(format!("{d} queues as found"), &n.channels.as_ref().map(channels));
        let rings = |r: &ringwise_model::Rings| {
            let one = |c: &Option<ringwise_model::Count>| c.as_ref().map_or("-".into(), |c| c.now.to_string());
            format!("{} rx, {} tx", one(&r.rx), one(&r.tx))
        };
        add(format!("{d} rings as found"), &n.rings.as_ref().map(rings));
        let coalesce =
            |c: &ringwise_model::Coalesce| c.0.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(", ");
        add(format!("{d} moderation as found"), &n.coalesce.as_ref().map(coalesce));
    }
    let peer = load.peer_facts();
    let mut h = Fnv::default();
    facts.iter().chain(&peer).flat_map(|(k, v)| [k, v]).for_each(|t| h.text(t));
    let hash = format!("{:016x}", h.finish());
    Environment { hash, facts, peer, capture: None }
}

/// The idle states (C-states) of the first CPU with the time to leave them: `POLL 0 us, C1 2 us, C6 133 us (disabled)`. `None`: it has none,
/// or they cannot be read.
fn idle_states(host: &dyn Host) -> Option<String> {
    const DIR: &str = "/sys/devices/system/cpu/cpu0/cpuidle";
    let mut numbers: Vec<u32> =
        host.list(DIR).ok()?.iter().filter_map(|name| name.strip_prefix("state")?.parse().ok()).collect();
    numbers.sort_unstable();
    let one = |n: &u32| {
        let file = |name: &str| Some(host.read_text(&format!("{DIR}/state{n}/{name}")).ok()?.trim().to_string());
        let disabled = if file("disable")? != "0" { " (disabled)" } else { "" };
        Some(format!("{} {} us{disabled}", file("name")?, file("latency")?))
    };
    let states: Vec<String> = numbers.iter().map(one).collect::<Option<_>>()?;
    (!states.is_empty()).then(|| states.join(", "))
}

/// Facts of the host that may affect the numbers and that no state changes.
fn facts(host: &dyn Host) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut file = |name: &str, path: &str| {
        if let Ok(t) = host.read_text(path) {
            out.insert(name.to_string(), t.trim().to_string());
        }
    };
    file("kernel command line", "/proc/cmdline");
    file("mitigations off", "/sys/devices/system/cpu/mitigations");
    file("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    file("idle driver", "/sys/devices/system/cpu/cpuidle/current_driver");
    file("busy_poll", "/proc/sys/net/core/busy_poll");
    file("netdev_budget", "/proc/sys/net/core/netdev_budget");
    file("default qdisc", "/proc/sys/net/core/default_qdisc");
    file("ip_forward", "/proc/sys/net/ipv4/ip_forward");
    out.extend(idle_states(host).map(|t| ("idle states".to_string(), t)));
    if let Ok(t) = host.read_text("/proc/cpuinfo") {
        let of = |key: &str| t.lines().find_map(|l| Some(l.strip_prefix(key)?.split_once(':')?.1.trim().to_string()));
        out.extend(of("model name").map(|v| ("cpu".to_string(), v)));
    }
    if let Ok(t) = host.read_text("/proc/modules") {
        let filters = ["nf_tables", "ip_tables", "nf_conntrack"];
        let there = filters.iter().filter(|f| t.lines().any(|l| l.split(' ').next() == Some(f)));
        let list: Vec<&str> = there.copied().collect();
        out.insert("packet filter".into(), if list.is_empty() { "none".into() } else { list.join(", ") });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Measurement, TrialContext};
    use ringwise_bench::result::Point;
    use ringwise_model::Power;
    use ringwise_sys::Captured;
    use ringwise_testkit::dir::Dir;
    use ringwise_testkit::machines::{NicSpec, host};
    use ringwise_testkit::topo::CpuSpec;

    struct NoLoad;

    impl Workload for NoLoad {
        fn name(&self) -> &'static str {
            "none"
        }
        fn driver(&self) -> &'static str {
            "none"
        }
        fn peer(&self) -> Option<String> {
            None
        }
        fn peer_facts(&self) -> BTreeMap<String, String> {
            [("kernel".to_string(), "6.1".to_string())].into()
        }
        fn points(&self) -> Vec<Point> {
            Vec::new()
        }
        fn trial(&mut self, _: &Point, _: &str, _: &TrialContext) -> Result<Measurement> {
            unreachable!("nothing is measured")
        }
    }

    #[test]
    fn the_platform_is_recorded() {
        let mut s = host("h", CpuSpec::flat(2, 2), vec![NicSpec::new("eth0", "ice", Some(0), 4, 4)]).snapshot();
        s.topology.smt_active = Fact::Known(true);
        s.host.kernel = Fact::Known("6.12.48".into());
        let governor = Fact::Known([("performance".to_string(), "0-3".parse().unwrap())].into());
        s.host.power = Some(Power {
            governor,
            preference: Fact::Absent,
            turbo: Fact::Known(false),
            aspm: Fact::Known("performance".into()),
        });
        let dir = Dir::new();
        std::fs::create_dir_all(dir.0.join("sys/class/net")).unwrap();
        std::fs::create_dir_all(dir.0.join("proc")).unwrap();
        std::fs::write(dir.0.join("proc/cmdline"), "intel_idle.max_cstate=1\n").unwrap();
        let e = environment(&Captured::open(&dir.0).unwrap(), &s, &["eth0".into()], &NoLoad);
        for (name, value) in [
            ("smt", "on"),
            ("kernel", "6.12.48"),
            ("turbo", "off"),
            ("aspm", "performance"),
            ("governor", "performance on 0-3"),
            ("cpus online", "0-3"),
            ("eth0 driver", "ice"),
            ("kernel command line", "intel_idle.max_cstate=1"),
        ] {
            assert_eq!(e.facts.get(name).map(String::as_str), Some(value), "{name}: {:?}", e.facts);
        }
        assert_eq!(e.peer["kernel"], "6.1");
    }

    #[test]
    fn idle_states_have_their_latency_and_their_limit() {
        let dir = Dir::new();
        let put = |path: &str, text: &str| {
            let path = dir.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/version", "Linux version 6.12.0\n");
        put("sys/class/net/README", "");
        for (n, name, latency, disable) in [(0, "POLL", 0, 0), (2, "C6", 133, 1), (1, "C1", 2, 0)] {
            let state = format!("sys/devices/system/cpu/cpu0/cpuidle/state{n}");
            put(&format!("{state}/name"), &format!("{name}\n"));
            put(&format!("{state}/latency"), &format!("{latency}\n"));
            put(&format!("{state}/disable"), &format!("{disable}\n"));
        }
        let host = Captured::open(&dir.0).unwrap();
        assert_eq!(facts(&host)["idle states"], "POLL 0 us, C1 2 us, C6 133 us (disabled)");
        std::fs::remove_file(dir.0.join("sys/devices/system/cpu/cpu0/cpuidle/state1/latency")).unwrap();
        let host = Captured::open(&dir.0).unwrap();
        assert_eq!(facts(&host).get("idle states"), None, "a part of it would mislead");
    }
}
