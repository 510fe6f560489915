//! Values in effect on the host that are imported only from files: they are listed.

use ringwise_kfmt::sysctl;
use ringwise_model::{ConfiguredBy, Nic, Snapshot};

use super::{Chosen, ImportedValue, NotCarried, devices};

/// Lists sysctls and RFS tables that differ from the kernel's defaults and are not in the file, and what is not compared.
pub fn not_imported(s: &Snapshot, out: &mut Chosen) {
    let in_file = |name: &str| out.choices.iter().any(|c| matches!(&c.part, ImportedValue::Sysctl(n, _) if n == name));
    let differs = |name: &str, value: &str| sysctl::is_default(name, value) == Some(false) && !in_file(name);
    let known = s.host.sysctls.iter().filter_map(|(name, value)| Some((name, value.known()?)));
    let mut sysctls: Vec<String> =
        known.filter(|(name, value)| differs(name, value)).map(|(name, value)| format!("{name} {value}")).collect();
    let mask = s.host.rps_default_mask.known().filter(|m| !m.is_empty());
    // It has a fact of its own, and may be among the others, too.
    if let Some(cpus) = mask.filter(|_| !in_file(sysctl::RPS_DEFAULT_MASK))
        && !s.host.sysctls.contains_key(sysctl::RPS_DEFAULT_MASK)
    {
        sysctls.push(format!("{} for CPUs {cpus}", sysctl::RPS_DEFAULT_MASK));
    }
    let unread = s.host.sysctls.iter().filter(|(name, value)| value.unread().is_some() && !in_file(name));
    let unread: Vec<String> = unread.map(|(name, _)| name.clone()).collect();
    let rfs = rfs(s);
    let mut leave = |what: String, why: &str| {
        out.not_carried.push(NotCarried { by: ConfiguredBy::InEffect, what, why: why.into(), whole_file: false });
    };
    if !sysctls.is_empty() {
        leave(
            sysctls.join(", "),
            "not the kernel's default; sysctls of the running host are not imported. Files in /etc/sysctl.d keep working",
        );
    }
    if !unread.is_empty() {
        leave(unread.join(", "), "could not be read, so it is unknown whether it is the kernel's default");
    }
    if !rfs.is_empty() {
        leave(
            rfs.join(", "),
            "RFS tables of the running host are not imported (keys: rfs_entries in [host], rps_flow_cnt of the interface)",
        );
    }
    if devices::all(s).next().is_some() {
        leave(
            "features, pause frames, RSS, flow rules, NAPI settings".into(),
            "those of the running host are not compared with defaults, and not imported",
        );
    }
}

/// The RFS socket table, and interfaces with tables of their queues.
fn rfs(s: &Snapshot) -> Vec<String> {
    let entries = s.host.rps_sock_flow_entries.known().filter(|n| **n > 0);
    let of = |n: &Nic| {
        let counts = || n.rx_queues.iter().filter_map(|q| q.rps_flow_cnt.known().copied()).filter(|c| *c > 0);
        let (least, most) = (counts().min()?, counts().max()?);
        let count = if least == most { most.to_string() } else { format!("{least} to {most}") };
        Some(format!("{} rps_flow_cnt {count}", n.name()))
    };
    let host = entries.map(|n| format!("{} {n}", sysctl::RPS_SOCK_FLOW_ENTRIES));
    host.into_iter().chain(devices::all(s).filter_map(of)).collect()
}

#[cfg(test)]
mod tests {
    use ringwise_model::Fact;

    use super::*;
    use crate::import::ChosenSetting;

    fn listed(s: &Snapshot, choices: Vec<ChosenSetting>) -> Vec<String> {
        let mut out = Chosen { choices, ..Chosen::default() };
        not_imported(s, &mut out);
        out.not_carried.iter().map(|n| n.what.clone()).collect()
    }

    #[test]
    fn values_that_differ_from_the_kernels_defaults_are_listed() {
        const REST: &str = "features, pause frames, RSS, flow rules, NAPI settings";
        let mut s = ringwise_testkit::machines::ten()[0].snapshot();
        let values = [("netdev_budget", "600"), ("netdev_budget_usecs", "8000"), ("netdev_max_backlog", "5000")];
        s.host.sysctls = values.map(|(k, v)| (format!("net.core.{k}"), Fact::Known(v.to_string()))).into();
        s.host.rps_default_mask = Fact::Absent;
        s.host.rps_sock_flow_entries = Fact::Known(0);
        s.nics.iter_mut().flat_map(|n| &mut n.rx_queues).for_each(|q| q.rps_flow_cnt = Fact::Known(0));
        let sysctls = "net.core.netdev_budget 600, net.core.netdev_max_backlog 5000";
        assert_eq!(listed(&s, Vec::new()), [sysctls, REST]);

        // What a file sets is in the result.
        let part = ImportedValue::Sysctl("net.core.netdev_budget".into(), "600".into());
        let choice = ChosenSetting { dev: None, part, by: Vec::new() };
        assert_eq!(listed(&s, vec![choice]), ["net.core.netdev_max_backlog 5000", REST]);

        let unknown = Fact::unknown("/proc/sys/net/core/netdev_budget", "Permission denied");
        s.host.sysctls = [("net.core.netdev_budget".to_string(), unknown)].into();
        assert_eq!(listed(&s, Vec::new()), ["net.core.netdev_budget", REST]);

        s.host.sysctls.clear();
        s.host.rps_default_mask = Fact::Known("0-3".parse().unwrap());
        s.host.rps_sock_flow_entries = Fact::Known(32768);
        let n = s.nics.iter_mut().find(|n| n.has_own_queues()).unwrap();
        n.rx_queues[0].rps_flow_cnt = Fact::Known(4096);
        let rfs = format!("net.core.rps_sock_flow_entries 32768, {} rps_flow_cnt 4096", n.name());
        assert_eq!(listed(&s, Vec::new()), ["net.core.rps_default_mask for CPUs 0-3", &rfs, REST]);
    }
}
