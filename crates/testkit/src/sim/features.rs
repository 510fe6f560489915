//! Features, pause frames, sysctls and the wake-up time of CPUs: what the kernel accepts, ignores and refuses.

use std::collections::BTreeMap;

use ringwise_kfmt::cpumask;
use ringwise_model::errno::{EINVAL, ENODEV, ENOENT, EOPNOTSUPP};
use ringwise_model::{CpuId, CpuSet, Fact, Feature, Pause};
use ringwise_sys::{Error, Result};

use super::State;
use super::driver_kind::SimulatedDriver;

fn no(errno: i32) -> Error {
    Error::errno("", errno)
}

/// Names and states as `ethtool -k` prints them in the lab's guests: `+` on, `-` off, `=` fixed on, `!` fixed off.
/// lab: "DEV: features as ethtool -k shows them" compares whole sets; these are the ones that tests name.
pub(super) fn of_driver(driver: SimulatedDriver) -> BTreeMap<String, Feature> {
    let all = "+rx-gro -rx-gro-list -rx-udp-gro-forwarding -tx-nocache-copy +tx-generic-segmentation";
    let own = match driver {
        SimulatedDriver::Igb => {
            // lab: "rules: igb of this kind has no ntuple to switch"
            "+rx-checksum +rx-hashing +rx-vlan-hw-parse +tx-vlan-hw-insert !rx-lro !rx-ntuple-filter \
             +tx-scatter-gather +tx-checksum-ip-generic +tx-tcp-segmentation +tx-tcp6-segmentation =rx-vlan-filter"
        }
        SimulatedDriver::E1000e => {
            "+rx-checksum +rx-hashing +rx-vlan-hw-parse +tx-vlan-hw-insert !rx-lro !rx-ntuple-filter \
             +tx-scatter-gather +tx-checksum-ip-generic +tx-tcp-segmentation +tx-tcp6-segmentation"
        }
        SimulatedDriver::Virtio => {
            "=rx-checksum !rx-hashing !rx-lro +rx-gro-hw !rx-ntuple-filter +tx-scatter-gather \
             +tx-checksum-ip-generic +tx-tcp-segmentation +tx-tcp6-segmentation"
        }
        SimulatedDriver::Vmxnet3 => {
            "+rx-checksum +rx-hashing +rx-lro +rx-vlan-hw-parse +tx-vlan-hw-insert !rx-ntuple-filter \
             +tx-scatter-gather +tx-checksum-ip-generic +tx-tcp-segmentation +tx-tcp6-segmentation"
        }
        SimulatedDriver::Mqnic | SimulatedDriver::Other => {
            "+rx-hashing !rx-lro -rx-ntuple-filter +tx-scatter-gather \
             +tx-checksum-ip-generic !tx-tcp-segmentation"
        }
    };
    let one = |word: &str| {
        let (mark, name) = word.split_at(1);
        let on = matches!(mark, "+" | "=");
        (name.to_string(), Feature { on, wanted: on, fixed: matches!(mark, "=" | "!") })
    };
    all.split_whitespace().chain(own.split_whitespace()).map(one).collect()
}

/// net/ethtool/features.c, `ethnl_set_features`: a name that this kernel does not know is an error, what is fixed
/// is ignored silently. lab: "a feature that is fixed: the kernel reports no error"
pub(super) fn set(s: &mut State, dev: &str, wanted: &BTreeMap<String, bool>) -> Result<()> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let all = match &mut s.nics[i].features {
        Fact::Known(all) => all,
        _ => return Err(no(EOPNOTSUPP)),
    };
    if wanted.keys().any(|k| !all.contains_key(k)) {
        return Err(Error { words: Some("bit name not found".into()), ..no(EOPNOTSUPP) });
    }
    for (name, on) in wanted {
        let f = all.entry(name.clone()).or_insert(Feature { on: false, wanted: false, fixed: true });
        if !f.fixed {
            f.wanted = *on;
        }
    }
    depend(all);
    let off = all.get("rx-ntuple-filter").is_some_and(|f| !f.on);
    // lab: "rules: ntuple off drops them"
    if off
        && s.extra[i].driver == SimulatedDriver::Mqnic
        && let Fact::Known(r) = &mut s.nics[i].rules
    {
        r.rules.clear();
    }
    Ok(())
}

/// net/core/dev.c, `netdev_fix_features`: segmentation of TCP needs a checksum, every one needs scatter-gather.
/// lab: "tx-checksum-ip-generic off takes segmentation of TCP with it", "but not scatter-gather", "and brings it
/// back", "tx-scatter-gather off takes segmentation by the kernel with it"
fn depend(all: &mut BTreeMap<String, Feature>) {
    let wanted = |name: &str| all.get(name).is_some_and(|f| f.wanted);
    let (sum, gather) = (wanted("tx-checksum-ip-generic"), wanted("tx-scatter-gather"));
    for (name, f) in all.iter_mut().filter(|(_, f)| !f.fixed) {
        f.on = f.wanted
            && match name.as_str() {
                n if n.starts_with("tx-tcp") => sum && gather,
                "tx-generic-segmentation" => gather,
                _ => true,
            };
    }
}

/// net/ethtool/pause.c; drivers/net/ethernet/intel/igb/igb_ethtool.c, `igb_set_pauseparam`.
pub(super) fn set_pause(s: &mut State, dev: &str, want: &Pause) -> Result<()> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let (driver, now) = (s.extra[i].driver, s.now);
    let Fact::Known(p) = &mut s.nics[i].pause else {
        return Err(no(EOPNOTSUPP));
    };
    let asked = Pause { autoneg: want.autoneg.or(p.autoneg), rx: want.rx.or(p.rx), tx: want.tx.or(p.tx) };
    if asked == *p {
        return Ok(());
    }
    if matches!(driver, SimulatedDriver::Igb | SimulatedDriver::E1000e) && asked.autoneg == Some(true) {
        // The link partner decides too; the device is restarted. lab: "igb: pause with autonegotiation"
        *p = Pause { autoneg: Some(true), ..*p };
        s.extra[i].link_down_until(now + std::time::Duration::from_millis(1500));
    } else {
        *p = asked;
    }
    s.stale(i);
    Ok(())
}

const CORE: &str = "/proc/sys/net/core/";

/// As a kernel of 250 ticks a second starts. lab: "sysctls as the files say them"
pub(super) fn sysctls(possible: &CpuSet) -> BTreeMap<String, Fact<String>> {
    let cpus = possible.last().map_or(1, |c| c.0 + 1);
    let none = cpumask::format(&CpuSet::new(), Some(cpus));
    [
        ("busy_poll", "0"),
        ("busy_read", "0"),
        ("dev_weight", "64"),
        ("dev_weight_rx_bias", "1"),
        ("dev_weight_tx_bias", "1"),
        ("flow_limit_cpu_bitmap", none.as_str()),
        ("flow_limit_table_len", "4096"),
        ("netdev_budget", "300"),
        ("netdev_budget_usecs", "8000"),
        ("netdev_max_backlog", "1000"),
        // In the format of ringwise, which differs from that of the file.
        ("rps_default_mask", "0"),
    ]
    .map(|(k, v)| (format!("net.core.{k}"), Fact::Known(v.to_string())))
    .into()
}

pub(super) fn sysctl_path(name: &str) -> String {
    format!("{CORE}{}", name.trim_start_matches("net.core."))
}

pub(super) fn latency_path(cpu: CpuId) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us")
}

/// None: another file. net/core/sysctl_net_core.c, drivers/base/power/sysfs.c
pub(super) fn write(s: &mut State, path: &str, text: &str) -> Option<Result<()>> {
    if let Some(name) = path.strip_prefix(CORE) {
        return s.host.sysctls.contains_key(&format!("net.core.{name}")).then(|| sysctl(s, name, text.trim()));
    }
    let cpu = path.strip_prefix("/sys/devices/system/cpu/cpu")?.strip_suffix("/power/pm_qos_resume_latency_us")?;
    Some(latency(s, CpuId(cpu.parse().ok()?), text.trim()))
}

fn sysctl(s: &mut State, name: &str, text: &str) -> Result<()> {
    let possible = s.possible();
    let width = possible.last().map_or(1, |c| c.0 + 1);
    let kept = match name {
        "flow_limit_cpu_bitmap" | "rps_default_mask" => {
            let set = cpumask::parse(text).map_err(|_| no(EINVAL))?;
            if set.last().is_some_and(|c| c.0 >= width) {
                return Err(no(75));
            }
            if name == "rps_default_mask" {
                s.host.rps_default_mask = Fact::Known(set.clone());
                cpumask::format(&set, None)
            } else {
                cpumask::format(&set, Some(width))
            }
        }
        _ => {
            let n: i32 = text.parse().map_err(|_| no(EINVAL))?;
            // Two ticks at least. lab: "netdev_budget_usecs below two ticks"
            let low = name == "netdev_budget_usecs" && n < 8000;
            // lab: "flow_limit_table_len that is no power of two"
            let odd = name == "flow_limit_table_len" && !u32::try_from(n).is_ok_and(u32::is_power_of_two);
            if low || odd {
                return Err(no(EINVAL));
            }
            n.to_string()
        }
    };
    s.host.sysctls.insert(format!("net.core.{name}"), Fact::Known(kept));
    Ok(())
}

/// lab: "resume latency: n/a and a number", "resume latency: below 0"
fn latency(s: &mut State, cpu: CpuId, text: &str) -> Result<()> {
    let Some(Fact::Known(now)) = s.host.cpu_latency.get_mut(&cpu) else {
        return Err(no(ENOENT));
    };
    *now = match text {
        "n/a" => text.to_string(),
        _ => text.parse::<i32>().ok().filter(|n| (0..i32::MAX).contains(n)).ok_or_else(|| no(EINVAL))?.to_string(),
    };
    Ok(())
}
