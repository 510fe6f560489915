//! Files whose identifiers have no recognizable shape: names, serials, the command line, tables in hexadecimal digits.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::names::Pseudonyms;
use super::{command, settings};

const SERIALS: [&str; 27] = [
    "serial",
    "serial_number",
    "product_serial",
    "board_serial",
    "chassis_serial",
    "product_uuid",
    "asset_tag",
    "board_asset_tag",
    "chassis_asset_tag",
    "vpd",
    "wwid",
    "unique_id",
    "node_guid",
    "sys_image_guid",
    "port_guid",
    "node_desc",
    "targetname",
    "initiatorname",
    "port_name",
    "node_name",
    "fabric_name",
    "subsysnqn",
    "hostnqn",
    "hostid",
    "nguid",
    "eui",
    "dev_uuid",
];

/// Tables below `net/` that contain no identifier, or only those with a recognizable shape.
const PLAIN_NET: [&str; 16] = [
    "dev",
    "softnet_stat",
    "snmp",
    "snmp6",
    "netstat",
    "sockstat",
    "sockstat6",
    "protocols",
    "ptype",
    "psched",
    "fib_triestat",
    "rt6_stats",
    "xfrm_stat",
    "arp",
    "packet",
    "ip_tables_names",
];

/// Texts of `ringwise support`, which are beside the files of the host.
pub(super) const OURS: &str = "/support/";
/// The excerpt of the kernel's log among them.
pub(super) const KERNEL_LOG: &str = "/support/kernel.log";
/// The settings in effect, as a capture contains them.
const STANDING: &str = "/ringwise/standing";

type OfText = fn(&str, &mut Pseudonyms) -> String;
type OfBytes = fn(&[u8], &mut Pseudonyms) -> Vec<u8>;

/// How to redact a file, chosen by its path.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// Replace only what is found by its shape or its label.
    Shapes,
    /// The same, but numbers with dots are versions.
    Version,
    /// The whole content is one identifier of this kind, which is also replaced in other files.
    Whole(&'static str),
    /// Hardware id as digits.
    Id,
    /// Redact with a special function, then by shape.
    Text(OfText),
    /// The same, but numbers with dots are versions.
    Versions(OfText),
    /// Redact with a special function only.
    Own(OfText),
    Bytes(OfBytes),
    /// JSON of ringwise; `intent`: plans need it.
    Papers {
        intent: bool,
    },
    Prose,
    KernelLog,
    /// Content that cannot be made safe is removed.
    LeaveOut,
}

/// Trees of the kernel: small files with one value each, mostly numbers. Files in other places are kept only if they have a rule.
const KERNEL: [&str; 2] = ["/proc/", "/sys/"];
/// Directories in which systemd looks for units.
const UNITS: [&str; 5] = [
    "/etc/systemd/system/",
    "/run/systemd/system/",
    "/usr/local/lib/systemd/system/",
    "/usr/lib/systemd/system/",
    "/lib/systemd/system/",
];
/// Scripts and tables of which a recording contains only a few words (`ringwise_discover::forget_others`).
const SCRIPTS: [&str; 4] = ["/etc/rc.local", "/etc/rc.d/rc.local", "/etc/crontab", "/etc/network/interfaces"];
const SCRIPT_DIRS: [&str; 3] = ["/etc/cron.d/", "/etc/udev/rules.d/", "/etc/network/if-up.d/"];

pub(super) fn rule(path: &str) -> Rule {
    let base = path.rsplit('/').next().unwrap_or_default();
    match path {
        "/proc/cmdline" => return Rule::Text(command::kernel),
        "/proc/cpuinfo" => return Rule::Text(cpu_info),
        "/proc/version" => return Rule::Versions(settings::kernel_version),
        "/proc/modules" => return Rule::Versions(|t, _| settings::modules(t)),
        "/proc/sys/kernel/osrelease" | "/proc/sys/kernel/version" | "/support/versions.txt" => return Rule::Version,
        "/etc/os-release" => return Rule::Versions(settings::os_release),
        "/proc/sys/kernel/hostname" | "/etc/hostname" | "/etc/mailname" => return Rule::Whole("host name"),
        "/proc/sys/kernel/domainname" => return Rule::Whole("domain name"),
        "/etc/machine-id" | "/var/lib/dbus/machine-id" => return Rule::Whole("machine id"),
        "/proc/bootconfig" => return Rule::LeaveOut,
        // Names of profiles, which also occur in the paths of their files.
        "/etc/tuned/active_profile" => return Rule::Shapes,
        "/run/ringwise/irqbalance-devices" | "/run/ringwise/irqbalance-bans" => return Rule::Shapes,
        "/var/lib/kubelet/cpu_manager_state" => return Rule::Own(settings::kubelet),
        STANDING => return Rule::Papers { intent: true },
        KERNEL_LOG => return Rule::KernelLog,
        _ => {}
    }
    if path.starts_with(OURS) {
        return if base.ends_with(".json") || base.ends_with(".jsonl") {
            Rule::Papers { intent: false }
        } else {
            Rule::Prose
        };
    }
    if path.starts_with("/samples/") {
        return Rule::Shapes;
    }
    if !KERNEL.iter().any(|k| path.starts_with(k)) {
        return of_others(path, base);
    }
    if let Some((before, table)) = path.split_once("/net/")
        && path.starts_with("/proc/")
        && !before.starts_with("/proc/sys")
    {
        return net_rule(table);
    }
    if path.starts_with("/proc/") {
        match base {
            "mounts" => return Rule::Own(settings::mounts),
            "cmdline" => return Rule::Bytes(command::arguments),
            "cgroup" => return Rule::Text(settings::control_group),
            "status" => return Rule::Text(settings::status),
            "mountinfo" | "mountstats" | "environ" | "keys" | "key-users" | "kmsg" | "maps" | "smaps" | "auxv" => {
                return Rule::LeaveOut;
            }
            _ => {}
        }
    }
    match base {
        "ifalias" => Rule::Whole("alias"),
        "phys_port_name" => Rule::Whole("port name"),
        "phys_port_id" | "phys_switch_id" => Rule::Id,
        "uevent" => Rule::Text(settings::uevent),
        "config" if path.starts_with("/sys/") => Rule::Bytes(settings::pci_config),
        "version" | "bios_version" | "fw_version" | "firmware_version" | "fw_ver" => Rule::Version,
        _ if SERIALS.contains(&base) => Rule::Whole("serial"),
        _ => Rule::Shapes,
    }
}

/// Files of other programs.
fn of_others(path: &str, base: &str) -> Rule {
    if SCRIPTS.contains(&path) || SCRIPT_DIRS.iter().any(|d| path.starts_with(d)) {
        return Rule::Text(settings::script);
    }
    if UNITS.iter().any(|d| path.starts_with(d)) {
        return Rule::Text(settings::unit);
    }
    if base.ends_with(".link") && path.contains("/systemd/network/") {
        return Rule::Text(settings::link);
    }
    if base == "tuned.conf" { Rule::Text(settings::tuned) } else { Rule::LeaveOut }
}

fn net_rule(table: &str) -> Rule {
    match table {
        "route" => Rule::Text(route),
        "ipv6_route" => Rule::Text(ipv6_route),
        "if_inet6" => Rule::Text(|t, n| inet6_columns(t, &[0], n)),
        "tcp" | "tcp6" | "udp" | "udp6" | "raw" | "raw6" | "udplite" | "udplite6" => Rule::Text(sockets),
        t if PLAIN_NET.contains(&t) => Rule::Shapes,
        t if ["bonding/", "vlan/", "stat/", "dev_snmp6/"].iter().any(|d| t.starts_with(d)) => Rule::Shapes,
        _ => Rule::LeaveOut,
    }
}

fn by_line(text: &str, change: impl FnMut(&str) -> String) -> String {
    let end = if text.ends_with('\n') { "\n" } else { "" };
    text.lines().map(change).collect::<Vec<_>>().join("\n") + end
}

pub(super) fn cpu_info(text: &str, names: &mut Pseudonyms) -> String {
    by_line(text, |line| match line.split_once(':') {
        Some((key, value)) if key.trim() == "Serial" => {
            format!("{key}: {}", names.string("serial", value.trim()))
        }
        _ => line.to_string(),
    })
}

fn v4_digits(digits: &str, names: &mut Pseudonyms) -> Option<String> {
    // The kernel prints the big-endian address as a number of this machine.
    let bytes = u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 8)?.to_ne_bytes();
    Some(format!("{:08X}", u32::from_ne_bytes(names.v4(Ipv4Addr::from(bytes)).octets())))
}

fn v6_digits(digits: &str, names: &mut Pseudonyms) -> Option<String> {
    let bytes: [u8; 16] = crate::capture::from_hex(digits)?.try_into().ok()?;
    Some(crate::capture::to_hex(&names.v6(Ipv6Addr::from(bytes)).octets()))
}

/// Like `v6_digits`, but printed as four numbers of this machine (sockets).
fn v6_words(digits: &str, names: &mut Pseudonyms) -> Option<String> {
    let swap = |bytes: &mut [u8]| {
        if cfg!(target_endian = "little") {
            bytes.chunks_mut(4).for_each(<[u8]>::reverse);
        }
    };
    let mut bytes: [u8; 16] = crate::capture::from_hex(digits)?.try_into().ok()?;
    swap(&mut bytes);
    let mut name = names.v6(Ipv6Addr::from(bytes)).octets();
    swap(&mut name);
    Some(crate::capture::to_hex(&name).to_uppercase())
}

/// Destination and gateway; the mask is not an identifier.
pub(super) fn route(text: &str, names: &mut Pseudonyms) -> String {
    by_line(text, |line| {
        let fields = line.split('\t').enumerate().map(|(i, f)| match i {
            1 | 2 => v4_digits(f, names).unwrap_or_else(|| f.to_string()),
            _ => f.to_string(),
        });
        fields.collect::<Vec<_>>().join("\t")
    })
}

/// Destination, source and gateway.
pub(super) fn ipv6_route(text: &str, names: &mut Pseudonyms) -> String {
    inet6_columns(text, &[0, 2, 4], names)
}

fn inet6_columns(text: &str, columns: &[usize], names: &mut Pseudonyms) -> String {
    by_line(text, |line| {
        let mut column = 0;
        let fields = line.split(' ').map(|f| {
            let mine = !f.is_empty() && columns.contains(&column);
            column += usize::from(!f.is_empty());
            if mine { v6_digits(f, names).unwrap_or_else(|| f.to_string()) } else { f.to_string() }
        });
        fields.collect::<Vec<_>>().join(" ")
    })
}

/// `0100007F:0016` and the long form of IPv6.
pub(super) fn sockets(text: &str, names: &mut Pseudonyms) -> String {
    by_line(text, |line| {
        let fields = line.split(' ').map(|f| match f.split_once(':') {
            Some((a, port)) if a.len() == 8 && port.len() == 4 => {
                v4_digits(a, names).map_or_else(|| f.to_string(), |a| format!("{a}:{port}"))
            }
            Some((a, port)) if a.len() == 32 && port.len() == 4 => {
                v6_words(a, names).map_or_else(|| f.to_string(), |a| format!("{a}:{port}"))
            }
            _ => f.to_string(),
        });
        fields.collect::<Vec<_>>().join(" ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_by_path() {
        let told = |path: &str| match rule(path) {
            Rule::Shapes => "shapes",
            Rule::Whole(kind) => kind,
            Rule::Text(_) | Rule::Versions(_) | Rule::Own(_) | Rule::Bytes(_) => "its own",
            Rule::LeaveOut => "left out",
            Rule::Papers { intent: true } => "intent",
            Rule::Papers { intent: false } => "papers",
            Rule::KernelLog => "kernel log",
            Rule::Prose => "prose",
            Rule::Version | Rule::Id => "other",
        };
        for (path, want) in [
            ("/proc/interrupts", "shapes"),
            ("/proc/net/dev", "shapes"),
            ("/proc/self/net/unix", "left out"),
            ("/proc/sys/net/ipv4/conf/all/rp_filter", "shapes"),
            ("/sys/class/net/eth1/ifalias", "alias"),
            ("/sys/class/dmi/id/product_serial", "serial"),
            ("/proc/77/cmdline", "its own"),
            ("/proc/77/environ", "left out"),
            ("/sys/class/net/eth1/statistics/rx_bytes", "shapes"),
            ("/etc/cron.d/backup", "its own"),
            ("/lib/systemd/system/irqbalance.service", "its own"),
            ("/usr/lib/systemd/network/10-x.link", "its own"),
            ("/etc/passwd", "left out"),
            ("/home/anna/x", "left out"),
            ("/support/state/tx-0001.jsonl", "papers"),
            ("/support/status.txt", "prose"),
            ("/support/kernel.log", "kernel log"),
            ("/ringwise/standing", "intent"),
        ] {
            assert_eq!(told(path), want, "{path}");
        }
    }

    #[test]
    fn tables_of_digits() {
        let n = &mut Pseudonyms::default();
        let table = "Iface\tDestination\tGateway\tFlags\neth0\t00000000\t0102000A\t0003\n";
        assert_eq!(route(table, n), "Iface\tDestination\tGateway\tFlags\neth0\t00000000\t010012C6\t0003\n");
        let inet6 = "fe80000000000000021b21fffeaabbcc 02 40 20 80     eth0\n";
        assert_eq!(inet6_columns(inet6, &[0], n), "fe800000000000000000000000000001 02 40 20 80     eth0\n");
        assert_eq!(sockets("   0: 0102000A:0016 00000000:0000 0A\n", n), "   0: 010012C6:0016 00000000:0000 0A\n");
        let mapped = "0000000000000000FFFF00000102000A:0016";
        assert_eq!(sockets(mapped, n), "0000000000000000FFFF0000010012C6:0016");
    }
}
