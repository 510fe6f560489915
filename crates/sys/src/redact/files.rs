//! Files whose identifiers have no shape of their own: names, serials, the command line, tables in hexadecimal digits.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::names::Names;

/// Words of the kernel command line that a plan needs; everything else keeps its name only.
const KNOWN_TOKENS: [&str; 15] = [
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "irqaffinity",
    "mitigations",
    "iommu",
    "intel_iommu",
    "amd_iommu",
    "pci",
    "nosmt",
    "maxcpus",
    "intel_idle.max_cstate",
    "processor.max_cstate",
    "idle",
    "nr_cpus",
];

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

/// Tables below `net/` that hold no identifier, or one that is found by its shape.
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

/// Texts of `ringwise support` beside the files of the host.
pub const OURS: &str = "/support/";

/// What a file is, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Only what is found by its shape.
    Shapes,
    /// The same, but numbers with dots are versions.
    Version,
    CommandLine,
    /// The whole content is one identifier of this kind, also looked for elsewhere.
    Whole(&'static str),
    /// Hardware id as digits.
    Id,
    /// The first 64 bytes of PCI configuration: the serial number lies further on.
    PciConfig,
    Arguments,
    CpuInfo,
    Mounts,
    /// Columns of `/proc/net/route`, `ipv6_route`, `if_inet6`, `tcp` and its like.
    Route,
    Inet6Columns(&'static [usize]),
    Sockets,
    /// Content that can not be made safe.
    LeaveOut,
}

pub fn rule(path: &str) -> Rule {
    let base = path.rsplit('/').next().unwrap_or_default();
    match path {
        "/proc/cmdline" => return Rule::CommandLine,
        "/proc/cpuinfo" => return Rule::CpuInfo,
        "/proc/version"
        | "/proc/sys/kernel/osrelease"
        | "/proc/sys/kernel/version"
        | "/etc/os-release"
        | "/support/versions.txt" => return Rule::Version,
        "/proc/sys/kernel/hostname" | "/etc/hostname" | "/etc/mailname" => return Rule::Whole("host name"),
        "/proc/sys/kernel/domainname" => return Rule::Whole("domain name"),
        "/etc/machine-id" | "/var/lib/dbus/machine-id" => return Rule::Whole("machine id"),
        "/proc/bootconfig" | "/etc/hosts" | "/etc/resolv.conf" | "/etc/passwd" | "/etc/shadow" | "/etc/group"
        | "/etc/fstab" => return Rule::LeaveOut,
        _ => {}
    }
    if let Some((before, table)) = path.split_once("/net/")
        && path.starts_with("/proc/")
        && !before.starts_with("/proc/sys")
    {
        return net_rule(table);
    }
    if path.starts_with("/proc/") && matches!(base, "mounts" | "mountinfo" | "mountstats") {
        return if base == "mountstats" { Rule::LeaveOut } else { Rule::Mounts };
    }
    if path.starts_with("/proc/") && base == "cmdline" {
        return Rule::Arguments;
    }
    if path.starts_with("/proc/") && matches!(base, "environ" | "keys" | "kmsg") {
        return Rule::LeaveOut;
    }
    match base {
        "ifalias" => Rule::Whole("alias"),
        "phys_port_id" | "phys_switch_id" => Rule::Id,
        "config" if path.starts_with("/sys/") => Rule::PciConfig,
        "version" | "bios_version" | "fw_version" | "firmware_version" | "fw_ver" => Rule::Version,
        _ if SERIALS.contains(&base) => Rule::Whole("serial"),
        _ => Rule::Shapes,
    }
}

fn net_rule(table: &str) -> Rule {
    match table {
        "route" => Rule::Route,
        "ipv6_route" => Rule::Inet6Columns(&[0, 2, 4]),
        "if_inet6" => Rule::Inet6Columns(&[0]),
        "tcp" | "tcp6" | "udp" | "udp6" | "raw" | "raw6" | "udplite" | "udplite6" => Rule::Sockets,
        t if PLAIN_NET.contains(&t) => Rule::Shapes,
        t if ["bonding/", "vlan/", "stat/", "dev_snmp6/"].iter().any(|d| t.starts_with(d)) => Rule::Shapes,
        _ => Rule::LeaveOut,
    }
}

/// Known words whole, others by name only, nothing after ` -- ` (the arguments of init).
pub fn command_line(text: &str, names: &mut Names) -> String {
    let mut out = Vec::new();
    let mut rest = text.split_whitespace();
    for token in rest.by_ref() {
        if token == "--" {
            names.count("command line");
            break;
        }
        match token.split_once('=') {
            _ if KNOWN_TOKENS.contains(&token.split('=').next().unwrap_or(token)) => out.push(token.to_string()),
            Some((name, value)) => {
                if !value.is_empty() {
                    names.count("command line");
                }
                out.push(format!("{name}="));
            }
            None => out.push(token.to_string()),
        }
    }
    out.join(" ") + "\n"
}

/// The program only: arguments may hold anything. Those of irqbalance say what it leaves alone, and hold no names.
pub fn arguments(bytes: &[u8], names: &mut Names) -> Vec<u8> {
    let program = bytes.split(|b| *b == 0).next().unwrap_or_default();
    if program.rsplit(|b| *b == b'/').next() == Some(b"irqbalance") {
        return bytes.to_vec();
    }
    let end = bytes.iter().position(|b| *b == 0).map_or(bytes.len(), |i| i + 1);
    if end < bytes.len() {
        names.count("process arguments");
    }
    bytes[..end].to_vec()
}

fn by_line(text: &str, change: impl FnMut(&str) -> String) -> String {
    let end = if text.ends_with('\n') { "\n" } else { "" };
    text.lines().map(change).collect::<Vec<_>>().join("\n") + end
}

pub fn cpu_info(text: &str, names: &mut Names) -> String {
    by_line(text, |line| match line.split_once(':') {
        Some((key, value)) if key.trim() == "Serial" => {
            format!("{key}: {}", names.string("serial", value.trim(), value.trim().len() > 4))
        }
        _ => line.to_string(),
    })
}

/// Sources on other machines (`server:/path`, `//server/share`) and the names of users in options.
pub fn mounts(text: &str, names: &mut Names) -> String {
    by_line(text, |line| {
        let token = |t: &str| {
            let server = t.split_once(":/").is_some_and(|(s, _)| !s.is_empty() && !s.contains(['/', '=', ',']));
            if server || t.starts_with("//") {
                return format!("{}:/export", names.string("network mount", t, false));
            }
            let options = t.split(',').map(|o| match o.split_once('=') {
                Some((k @ ("username" | "user" | "domain" | "credentials" | "name" | "secret"), _)) => {
                    names.count("network mount");
                    format!("{k}=")
                }
                _ => o.to_string(),
            });
            options.collect::<Vec<_>>().join(",")
        };
        line.split(' ').map(token).collect::<Vec<_>>().join(" ")
    })
}

fn v4_digits(digits: &str, names: &mut Names) -> Option<String> {
    // The kernel prints the big-endian address as a number of this machine.
    let bytes = u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 8)?.to_ne_bytes();
    Some(format!("{:08X}", u32::from_ne_bytes(names.v4(Ipv4Addr::from(bytes)).octets())))
}

fn v6_digits(digits: &str, names: &mut Names) -> Option<String> {
    let bytes: [u8; 16] = crate::capture::from_hex(digits)?.try_into().ok()?;
    Some(crate::capture::to_hex(&names.v6(Ipv6Addr::from(bytes)).octets()))
}

/// As `v6_digits`, but printed as four numbers of this machine (sockets).
fn v6_words(digits: &str, names: &mut Names) -> Option<String> {
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

/// Destination and gateway; the mask is no identifier.
pub fn route(text: &str, names: &mut Names) -> String {
    by_line(text, |line| {
        let fields = line.split('\t').enumerate().map(|(i, f)| match i {
            1 | 2 => v4_digits(f, names).unwrap_or_else(|| f.to_string()),
            _ => f.to_string(),
        });
        fields.collect::<Vec<_>>().join("\t")
    })
}

pub fn inet6_columns(text: &str, columns: &[usize], names: &mut Names) -> String {
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
pub fn sockets(text: &str, names: &mut Names) -> String {
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
        for (path, want) in [
            ("/proc/interrupts", Rule::Shapes),
            ("/proc/net/dev", Rule::Shapes),
            ("/proc/self/net/unix", Rule::LeaveOut),
            ("/proc/sys/net/ipv4/conf/all/rp_filter", Rule::Shapes),
            ("/sys/class/net/eth1/ifalias", Rule::Whole("alias")),
            ("/sys/class/dmi/id/product_serial", Rule::Whole("serial")),
            ("/proc/77/cmdline", Rule::Arguments),
            ("/sys/class/net/eth1/statistics/rx_bytes", Rule::Shapes),
        ] {
            assert_eq!(rule(path), want, "{path}");
        }
    }

    #[test]
    fn the_command_line_keeps_what_a_plan_needs() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1-2 quiet isolcpus=managed_irq,2-5 pci=nomsi nosmt ip=10.0.0.1 -- secret=1\n";
        let got = command_line(line, &mut Names::default());
        assert_eq!(got, "BOOT_IMAGE= root= quiet isolcpus=managed_irq,2-5 pci=nomsi nosmt ip=\n");
    }

    #[test]
    fn tables_of_digits() {
        let n = &mut Names::default();
        let table = "Iface\tDestination\tGateway\tFlags\neth0\t00000000\t0102000A\t0003\n";
        assert_eq!(route(table, n), "Iface\tDestination\tGateway\tFlags\neth0\t00000000\t010012C6\t0003\n");
        let inet6 = "fe80000000000000021b21fffeaabbcc 02 40 20 80     eth0\n";
        assert_eq!(inet6_columns(inet6, &[0], n), "fe800000000000000000000000000001 02 40 20 80     eth0\n");
        assert_eq!(sockets("   0: 0102000A:0016 00000000:0000 0A\n", n), "   0: 010012C6:0016 00000000:0000 0A\n");
        let mapped = "0000000000000000FFFF00000102000A:0016";
        assert_eq!(sockets(mapped, n), "0000000000000000FFFF0000010012C6:0016");
    }

    #[test]
    fn of_arguments_only_those_of_irqbalance_stay() {
        let mut names = Names::default();
        let irqbalance = b"/usr/sbin/irqbalance\0--foreground\0--banirq=7\0";
        assert_eq!(arguments(irqbalance, &mut names), irqbalance);
        assert_eq!(arguments(b"/bin/mail\0-s\0secret\0", &mut names), b"/bin/mail\0");
    }

    #[test]
    fn mounts_keep_their_kind() {
        let got = mounts(
            "nas7:/home/anna / nfs4 rw,addr=x,username=anna 0 0\nproc /proc proc rw 0 0\n",
            &mut Names::default(),
        );
        assert_eq!(got, "network-mount-1:/export / nfs4 rw,addr=x,username= 0 0\nproc /proc proc rw 0 0\n");
    }
}
