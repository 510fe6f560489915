//! Values that are shown and recorded, but on which no decision depends: firmware, PCIe links, how CPUs save power.

use std::collections::BTreeMap;

use ringwise_kfmt::{ParseError, cpulist, ethtool_ioctl, sysfs};
use ringwise_model::order::Order;
use ringwise_model::{CpuSet, Fact, Pcie, PcieLink, Power, Topology};
use ringwise_sys::IoctlCmd;

use crate::ethtool::{first, ioctl};
use crate::natural;
use crate::read::Reader;

/// In the driver's format; absent if the driver reports nothing.
pub(crate) fn firmware(r: &mut Reader, dev: &str) -> Fact<String> {
    let ask = ioctl(dev, IoctlCmd::DrvinfoGet, ethtool_ioctl::drvinfo_request());
    let told = r.ask_later(&ask, |reply| ethtool_ioctl::drvinfo(first(reply)?));
    told.and_then(|d| match d.fw_version.trim() {
        "" | "N/A" => Fact::Absent,
        v => Fact::Known(v.to_string()),
    })
}

/// Of the function itself; for virtio of the function above. Absent: not a PCI Express device.
pub(crate) fn pcie(r: &mut Reader, dirs: &[String]) -> Fact<Pcie> {
    let mut out = Fact::Absent;
    for dir in dirs {
        out = one(r, dir);
        if !out.is_absent() {
            break;
        }
    }
    out
}

fn one(r: &mut Reader, dir: &str) -> Fact<Pcie> {
    let mut link = |which: &str| {
        let speed = r.parse_later(&format!("{dir}/{which}_link_speed"), sysfs::parse_pcie_speed);
        speed.and_then(|mtps| {
            let lanes = r.parse_later(&format!("{dir}/{which}_link_width"), sysfs::parse_u32);
            lanes.map(|lanes| PcieLink { mtps, lanes })
        })
    };
    link("current").and_then(|now| link("max").map(|max| Pcie { now, max }))
}

const CPU: &str = "/sys/devices/system/cpu";

pub(crate) fn power(r: &mut Reader, t: &Topology) -> Power {
    let mut policies = match r.host.list(&format!("{CPU}/cpufreq")) {
        Ok(l) => l.into_iter().filter(|n| n.starts_with("policy")).collect(),
        Err(_) => Vec::new(),
    };
    policies.order_by(|a, b| natural::compare(a, b));
    let quiet = t.isolated_all();
    let text = |t: &str| -> Result<String, ParseError> { Ok(t.to_string()) };
    let (mut governor, mut preference) = (Fact::Absent, Fact::Absent);
    for p in &policies {
        let dir = format!("{CPU}/cpufreq/{p}");
        let Fact::Known(cpus) =
            r.parse_later(&format!("{dir}/affected_cpus"), |t| cpulist::parse(&t.replace(' ', ",")))
        else {
            continue;
        };
        add(&mut governor, r.parse_later(&format!("{dir}/scaling_governor"), text), &cpus);
        // intel_pstate reads a register of that CPU, which would interrupt it, so isolated CPUs are skipped.
        if !cpus.intersects(&quiet) {
            add(&mut preference, r.parse_later(&format!("{dir}/energy_performance_preference"), text), &cpus);
        }
    }
    let no_turbo = r.parse_later(&format!("{CPU}/intel_pstate/no_turbo"), sysfs::parse_bool);
    Power {
        governor,
        preference,
        turbo: match no_turbo.map(|off| !off) {
            Fact::Absent => r.parse_later(&format!("{CPU}/cpufreq/boost"), sysfs::parse_bool),
            known => known,
        },
        aspm: r.parse_later("/sys/module/pcie_aspm/parameters/policy", sysfs::parse_choice),
    }
}

/// Adds one value of some CPUs to those of the others. The first reason for an unknown value is kept.
fn add(all: &mut Fact<BTreeMap<String, CpuSet>>, value: Fact<String>, cpus: &CpuSet) {
    match value {
        Fact::Absent => {}
        Fact::Unknown(u) => *all = Fact::Unknown(u),
        Fact::Known(v) => {
            if all.is_absent() {
                *all = Fact::Known(BTreeMap::new());
            }
            if let Fact::Known(map) = all {
                let set = map.entry(v).or_default();
                *set = set.union(cpus);
            }
        }
    }
}
