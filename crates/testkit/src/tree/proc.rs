//! The rest of `/proc`, and the files that distinguish a guest from bare metal.

use std::fmt::Write as _;

use super::desc::{Arch, Host};
use super::{Cpus, Tree};

pub(super) fn write(tree: &mut Tree, host: &Host, cpus: &Cpus) {
    tree.line("/proc/sys/kernel/hostname", &host.hostname);
    tree.line("/proc/sys/kernel/osrelease", &host.kernel);
    // It is derived from the name, so that every host has its own.
    let sum = host.hostname.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    tree.line("/proc/sys/kernel/random/boot_id", format!("{sum:08x}-0000-4000-8000-000000000001"));
    tree.line("/etc/machine-id", format!("{sum:08x}000000000000000000000001"));
    let mut sysctl = vec![
        ("net/core/rps_sock_flow_entries", "0".to_string()),
        ("net/core/netdev_max_backlog", "1000".to_string()),
        ("net/core/netdev_budget", "300".to_string()),
        ("net/ipv4/ip_forward", "0".to_string()),
        ("net/ipv6/conf/all/forwarding", "0".to_string()),
    ];
    if host.since(6, 3) {
        sysctl.push(("net/core/rps_default_mask", super::text::mask(&[], cpus.bits)));
    }
    for (name, value) in sysctl {
        tree.line(format!("/proc/sys/{name}"), host.sysctl.get(name).unwrap_or(&value));
    }
    for (name, value) in &host.sysctl {
        tree.line(format!("/proc/sys/{name}"), value);
    }
    tree.line("/proc/version", format!("Linux version {} (builder@host) (gcc) #1 SMP", host.kernel));
    tree.line("/proc/cmdline", format!("BOOT_IMAGE=/vmlinuz-{} ro {}", host.kernel, host.cmdline).trim_end());
    tree.line("/proc/uptime", "864000.00 800000.00");
    let mut stat = "cpu  0 0 0 0 0 0 0 0 0 0\n".to_string();
    let mut info = String::new();
    let mut softnet = String::new();
    for c in &cpus.online {
        let _ = writeln!(stat, "cpu{c} 1000 0 1000 80000000 0 0 {} 0 0 0", 100 + c);
        let _ = writeln!(softnet, "{:08x}{}{c:08x} 00000000 00000000", 100_000 + c, " 00000000".repeat(11) + " ");
        match host.arch {
            Arch::X86_64 => {
                let flag = if host.guest { " hypervisor" } else { "" };
                let (model, package) = (&host.cpu.model, cpus.package(*c));
                let _ = writeln!(info, "processor\t: {c}\nmodel name\t: {model}\nphysical id\t: {package}");
                let _ = writeln!(info, "flags\t\t: fpu msr apic ht sse2 x2apic{flag}\n");
            }
            Arch::Aarch64 => {
                let _ = writeln!(info, "processor\t: {c}\nFeatures\t: fp asimd\nCPU implementer\t: 0x48\n");
            }
        }
    }
    let _ = writeln!(stat, "btime 1766000000");
    tree.file("/proc/stat", stat);
    tree.file("/proc/cpuinfo", info);
    tree.file("/proc/net/softnet_stat", softnet);
    let mut mounts = String::new();
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")] {
        let _ = writeln!(mounts, "{kind} {at} {kind} rw,nosuid,nodev,noexec,relatime 0 0");
    }
    tree.file("/proc/1/mounts", mounts.clone());
    tree.file("/proc/self/mounts", mounts.clone());
    tree.file("/proc/mounts", mounts);
    for (i, name) in ["systemd", "kthreadd"].into_iter().chain(host.processes.iter().map(String::as_str)).enumerate() {
        tree.line(format!("/proc/{}/comm", if i < 2 { i + 1 } else { 700 + i }), name);
    }
    if let Some(v) = &host.vendor {
        tree.line("/sys/class/dmi/id/sys_vendor", v);
    }
    if let Some(p) = &host.product {
        tree.line("/sys/class/dmi/id/product_name", p);
    }
}
