//! Redacts files of other programs: mounts, systemd units, `.link` files, tuned profiles, and small files of the kernel. Values
//! that ringwise reads stay; of other values only their presence stays.

use std::net::IpAddr;

use super::command;
use super::names::Pseudonyms;

/// Passes each line to `change`; `None` removes it.
fn by_line(text: &str, mut change: impl FnMut(&str) -> Option<String>) -> String {
    text.lines().filter_map(|l| change(l).map(|l| l + "\n")).collect()
}

/// Directories that every host has.
const POINTS: [&str; 10] = ["/proc", "/sys", "/dev", "/run", "/boot", "/usr", "/etc", "/var", "/tmp", "/lib"];
/// Mount options that say how a file system is mounted, not what. Of all other options only the name stays.
const OPTIONS: [&str; 24] = [
    "rw",
    "ro",
    "nosuid",
    "nodev",
    "noexec",
    "relatime",
    "noatime",
    "nodiratime",
    "sync",
    "async",
    "hard",
    "soft",
    "intr",
    "bind",
    "discard",
    "lazytime",
    "mand",
    "strictatime",
    "userxattr",
    "nsdelegate",
    "seclabel",
    "inode64",
    "nolock",
    "private",
];
/// Options whose values are words of the kernel or numbers.
const PLAIN_OPTIONS: [&str; 9] = ["vers", "proto", "trans", "mode", "timeo", "retrans", "port", "rsize", "wsize"];
/// Options whose values are addresses.
const ADDRESSES: [&str; 4] = ["addr", "clientaddr", "mountaddr", "srcaddr"];

fn address(text: &str, names: &mut Pseudonyms) -> Option<String> {
    Some(match text.parse::<IpAddr>().ok()? {
        IpAddr::V4(a) => names.v4(a).to_string(),
        IpAddr::V6(a) => names.v6(a).to_string(),
    })
}

/// `10.0.0.1:6789,10.0.0.2:6789:/volume`, `[2001:db8::1]:/x`, `filer:/home`, `//nas/share`: addresses stay addresses.
fn source(text: &str, names: &mut Pseudonyms) -> String {
    let (share, rest) = match text.strip_prefix("//") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let at = if share { rest.find('/') } else { rest.find(":/") };
    let hosts = &rest[..at.unwrap_or(rest.len())];
    let one = |h: &str, names: &mut Pseudonyms| {
        if let Some(inner) = h.strip_prefix('[')
            && let Some((a, port)) = inner.split_once(']')
            && let Some(a) = address(a, names)
        {
            let digits = port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
            return format!("[{a}]{}", if digits { port } else { "" });
        }
        let (host, port) = match h.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') && port.bytes().all(|b| b.is_ascii_digit()) => (host, Some(port)),
            _ => (h, None),
        };
        let name = address(host, names).unwrap_or_else(|| names.string("network mount", host));
        port.map_or_else(|| name.clone(), |p| format!("{name}:{p}"))
    };
    let hosts: Vec<String> = hosts.split(',').map(|h| one(h, names)).collect();
    match (share, at.is_some()) {
        (true, _) => format!("//{}/export", hosts.join(",")),
        (false, true) => format!("{}:/export", hosts.join(",")),
        (false, false) => hosts.join(","),
    }
}

/// `/proc/mounts`: which file systems are on the network, which are read-only.
pub(super) fn mounts(text: &str, names: &mut Pseudonyms) -> String {
    by_line(text, |line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [from, point, kind, options, rest @ ..] = &words[..] else {
            names.count("left out");
            return None;
        };
        let remote =
            from.starts_with("//") || from.split_once(":/").is_some_and(|(h, _)| !h.is_empty() && !h.contains('/'));
        let common = POINTS.contains(from)
            || from == kind
            || matches!(*from, "none" | "udev" | "overlay" | "sysfs" | "proc" | "devpts" | "rootfs");
        let new_source = if remote {
            source(from, names)
        } else if common {
            (*from).to_string()
        } else {
            names.string("mount", from)
        };
        let below = |p: &&str| point.strip_prefix(*p).is_some_and(|r| r.starts_with('/'));
        let is_common = *point == "/" || POINTS.contains(point) || POINTS[..4].iter().any(below);
        // Names of people and containers occur below /run.
        let personal = point.starts_with("/run/") || point.starts_with("/dev/") && point.matches('/').count() > 2;
        let new_point = if is_common && !personal {
            (*point).to_string()
        } else {
            format!("/{}", names.string("mount point", point))
        };
        let new_options: Vec<String> = options
            .split(',')
            .filter_map(|o| match o.split_once('=') {
                None if OPTIONS.contains(&o) => Some(o.to_string()),
                None => None,
                Some((k, v)) if ADDRESSES.contains(&k) => {
                    Some(format!("{k}={}", address(v, names).unwrap_or_default()))
                }
                Some((k, v)) if PLAIN_OPTIONS.contains(&k) && v.len() <= 8 => Some(o.to_string()),
                Some((k, _)) => Some(format!("{k}=")),
            })
            .collect();
        if new_options.join(",") != *options {
            names.count("mount option");
        }
        let rest: Vec<&str> = rest.iter().filter(|w| w.bytes().all(|b| b.is_ascii_digit())).copied().collect();
        Some([&[new_source.as_str(), &new_point, kind, &new_options.join(",")][..], &rest].concat().join(" "))
    })
}

/// Words that `check` looks for in scripts and tables of other programs; a recording contains only these words.
const SCRIPT_WORDS: [&str; 12] = [
    "set_irq_affinity",
    "mlnx_affinity",
    "mlnx_tune",
    "smp_affinity",
    "rps_cpus",
    "xps_cpus",
    "rps_flow_cnt",
    "rps_sock_flow_entries",
    "ethtool -L",
    "ethtool -G",
    "ethtool -C",
    "ethtool -X",
];

pub(super) fn script(text: &str, names: &mut Pseudonyms) -> String {
    by_line(text, |line| {
        let known = SCRIPT_WORDS.contains(&line);
        if !known {
            names.count("left out");
        }
        known.then(|| line.to_string())
    })
}

/// Sections and keys of an ini file; the values as `value` returns them, empty for `None`.
fn ini(
    text: &str,
    names: &mut Pseudonyms,
    value: impl Fn(&str, &str, &str, &mut Pseudonyms) -> Option<String>,
) -> String {
    let mut section = String::new();
    let joined = text.replace("\\\n", " ");
    by_line(&joined, |line| {
        let line = line.trim();
        if SCRIPT_WORDS.contains(&line) {
            return Some(line.to_string());
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            return None;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.to_string();
            return Some(match value("", "", name, names) {
                Some(name) => format!("[{name}]"),
                None => format!("[{}]", names.string("section", name)),
            });
        }
        let Some((key, text)) = line.split_once('=') else {
            names.count("left out");
            return None;
        };
        let (key, text) = (key.trim(), text.trim());
        let is_key =
            key.len() <= 40 && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
        if !is_key {
            names.count("left out");
            return None;
        }
        let kept = value(&section, key, text, names);
        if kept.as_deref() != Some(text) {
            names.count("value");
        }
        Some(format!("{key}={}", kept.unwrap_or_default()))
    })
}

/// How a service is started; of everything else only the key stays.
pub(super) fn unit(text: &str, names: &mut Pseudonyms) -> String {
    ini(text, names, |section, key, value, names| match (section, key) {
        ("", "") => matches!(value, "Unit" | "Service" | "Install").then(|| value.to_string()),
        ("Service", "ExecStart") => Some(command::exec(value, names)),
        _ => None,
    })
}

/// A `.link` file: which interfaces it matches, and numbers.
pub(super) fn link(text: &str, names: &mut Pseudonyms) -> String {
    ini(text, names, |section, key, value, _| match (section, key) {
        ("", "") => matches!(value, "Match" | "Link" | "SR-IOV").then(|| value.to_string()),
        // They are replaced by shape afterwards.
        ("Match", "MACAddress" | "PermanentMACAddress") => {
            value.bytes().all(|b| b.is_ascii_hexdigit() || b":-. ".contains(&b)).then(|| value.to_string())
        }
        ("Match", "OriginalName" | "Driver" | "Type" | "Kind" | "Path") => Some(value.to_string()),
        ("Link", _) if value.len() <= 16 && value.bytes().all(|b| b.is_ascii_digit() || b",-".contains(&b)) => {
            Some(value.to_string())
        }
        ("Link", _) if matches!(value, "max" | "yes" | "no" | "true" | "false" | "spread" | "disable" | "all") => {
            Some(value.to_string())
        }
        _ => None,
    })
}

/// Section types that tuned has (its plugins).
const PLUGINS: [&str; 20] = [
    "main",
    "variables",
    "net",
    "irq",
    "irqbalance",
    "scheduler",
    "sysctl",
    "script",
    "cpu",
    "vm",
    "disk",
    "bootloader",
    "sysfs",
    "systemd",
    "modules",
    "audio",
    "video",
    "usb",
    "mounts",
    "service",
];

/// A tuned profile: which settings it makes, and for which interfaces.
pub(super) fn tuned(text: &str, names: &mut Pseudonyms) -> String {
    ini(text, names, |_, key, value, _| match key {
        "" => PLUGINS.contains(&value).then(|| value.to_string()),
        "include" | "devices" => Some(value.to_string()),
        "type" => PLUGINS.contains(&value).then(|| value.to_string()),
        _ => None,
    })
}

/// The state of a kubelet's CPU manager: names of pods and containers become numbers, lists of CPUs stay.
pub(super) fn kubelet(text: &str, names: &mut Pseudonyms) -> String {
    let Ok(mut state) = serde_json::from_str::<serde_json::Value>(text) else {
        names.count("left out");
        return String::new();
    };
    let all = state.get("entries").and_then(serde_json::Value::as_object).into_iter().flat_map(serde_json::Map::values);
    let lists = all.filter_map(serde_json::Value::as_object).flat_map(serde_json::Map::values).filter_map(cpus);
    let containers: serde_json::Map<_, _> =
        lists.enumerate().map(|(n, list)| (format!("container{n}"), list)).collect();
    containers.values().for_each(|_| names.count("left out"));
    let known = ["policyName", "defaultCpuSet"];
    let kept = known.iter().filter_map(|k| Some((k.to_string(), plain(state.get_mut(*k)?.take())?)));
    let mut out: serde_json::Map<_, _> = kept.collect();
    out.insert("entries".into(), serde_json::json!({ "pod": containers }));
    serde_json::Value::Object(out).to_string() + "\n"
}

/// A list of CPUs, without anything else.
fn cpus(list: &serde_json::Value) -> Option<serde_json::Value> {
    let text = list.as_str()?;
    text.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'-').then(|| list.clone())
}

/// The name of a policy (letters) or a list of CPUs.
fn plain(value: serde_json::Value) -> Option<serde_json::Value> {
    let harmless = |t: &str| ["none", "static"].contains(&t);
    if value.as_str().is_some_and(harmless) { Some(value) } else { cpus(&value) }
}

const RELEASE: [&str; 8] =
    ["NAME", "VERSION", "ID", "ID_LIKE", "PRETTY_NAME", "VERSION_ID", "VERSION_CODENAME", "PLATFORM_ID"];

/// Name and version of the distribution.
pub(super) fn os_release(text: &str, names: &mut Pseudonyms) -> String {
    kept(text, names, |line| line.split_once('=').is_some_and(|(k, _)| RELEASE.contains(&k)))
}

/// Only the version: the text after it reveals who built the kernel, and where.
pub(super) fn kernel_version(text: &str, names: &mut Pseudonyms) -> String {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.len() > 3 {
        names.count("left out");
    }
    words.iter().take(3).copied().collect::<Vec<_>>().join(" ") + "\n"
}

const UEVENT: [&str; 12] = [
    "DRIVER",
    "PCI_CLASS",
    "PCI_ID",
    "PCI_SUBSYS_ID",
    "PCI_SLOT_NAME",
    "MODALIAS",
    "INTERFACE",
    "IFINDEX",
    "DEVTYPE",
    "SUBSYSTEM",
    "MAJOR",
    "MINOR",
];

pub(super) fn uevent(text: &str, names: &mut Pseudonyms) -> String {
    let known =
        |line: &str| line.split_once('=').is_some_and(|(k, _)| UEVENT.contains(&k) || k.starts_with("OF_COMPATIBLE"));
    kept(text, names, known)
}

/// The lines of `/proc/PID/status` that tell where a thread may run.
pub(super) fn status(text: &str, names: &mut Pseudonyms) -> String {
    let keys = ["Name", "State", "Pid", "Cpus_allowed", "Cpus_allowed_list", "Mems_allowed", "Mems_allowed_list"];
    kept(text, names, |line| line.split_once(':').is_some_and(|(k, _)| keys.contains(&k)))
}

fn kept(text: &str, names: &mut Pseudonyms, known: impl Fn(&str) -> bool) -> String {
    by_line(text, |line| {
        if !known(line) {
            names.count("left out");
            return None;
        }
        Some(line.to_string())
    })
}

/// Names, sizes and users of modules, without their addresses in memory.
pub(super) fn modules(text: &str) -> String {
    by_line(text, |line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let end = if words.len() > 5 { " 0x0000000000000000" } else { "" };
        Some(words.iter().take(5).copied().collect::<Vec<_>>().join(" ") + end)
    })
}

/// The service of a process, without the containers and sessions around it.
pub(super) fn control_group(text: &str, names: &mut Pseudonyms) -> String {
    let known = |p: &str| {
        let slice = ["system.slice", "user.slice", "machine.slice", "init.scope", "-.slice"].contains(&p);
        p.is_empty() || slice || p.ends_with(".service") && p.contains("irqbalance")
    };
    by_line(text, |line| {
        let parts: Vec<&str> = line.splitn(3, ':').collect();
        let [number, controllers, path] = parts[..] else { return None };
        let path: Vec<String> =
            path.split('/').map(|p| if known(p) { p.to_string() } else { names.string("control group", p) }).collect();
        // Hierarchies have names too: `name=systemd`.
        let controllers = if controllers.contains('=') { "" } else { controllers };
        Some(format!("{number}:{controllers}:{}", path.join("/")))
    })
}

/// The header of a PCI function and its PCI Express capability. Serial number and vital product data are in other parts.
pub(super) fn pci_config(bytes: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    const HEADER: usize = 64;
    const EXPRESS: u8 = 0x10;
    /// `PCI_CAP_EXP_ENDPOINT_SIZEOF_V2`.
    const LENGTH: usize = 0x3c;
    let mut out = vec![0; bytes.len()];
    let head = bytes.len().min(HEADER);
    out[..head].copy_from_slice(&bytes[..head]);
    if bytes.len() <= HEADER {
        return out;
    }
    let mut at = usize::from(bytes[0x34] & 0xfc);
    for _ in 0..48 {
        // Identifier and offset of the next capability: the list stays valid.
        let Some(list) = bytes.get(at..at + 2).filter(|_| at >= HEADER) else { break };
        out[at..at + 2].copy_from_slice(list);
        if list[0] == EXPRESS {
            let end = (at + LENGTH).min(bytes.len());
            out[at..end].copy_from_slice(&bytes[at..end]);
        }
        at = usize::from(list[1] & 0xfc);
    }
    if out != bytes {
        names.count("left out");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_keep_their_kind() {
        let n = &mut Pseudonyms::default();
        let text = "nas7:/home/anna / nfs4 rw,addr=10.1.2.3,username=anna,password=x 0 0\n\
                    proc /proc proc rw 0 0\n\
                    10.1.2.3:6789,10.1.2.4:6789:/ /srv/acme ceph rw,secret=k 0 0\n\
                    //nas7/share /mnt/x cifs rw,addr=2001:db8:1::7 0 0\n\
                    /dev/mapper/acme-root / ext4 ro,relatime 0 0\n\
                    tmpfs /run/user/1000 tmpfs rw,uid=1000 0 0\n";
        let want = "network-mount-1:/export / nfs4 rw,addr=198.18.0.1,username=,password= 0 0\n\
                    proc /proc proc rw 0 0\n\
                    198.18.0.1:6789,198.18.0.2:6789:/export /mount-point-1 ceph rw,secret= 0 0\n\
                    //network-mount-1/export /mount-point-2 cifs rw,addr=2001:db8::1 0 0\n\
                    mount-1 / ext4 ro,relatime 0 0\n\
                    tmpfs /mount-point-3 tmpfs rw,uid= 0 0\n";
        assert_eq!(mounts(text, n), want);
    }

    #[test]
    fn of_settings_of_others_what_is_read_stays() {
        let n = &mut Pseudonyms::default();
        let text = "[Unit]\nDescription=of ACME\n[Service]\nEnvironment=TOKEN=x\nExecStart=/usr/sbin/irqbalance -f \\\n --x=y\n";
        assert_eq!(
            unit(text, n),
            "[Unit]\nDescription=\n[Service]\nEnvironment=\nExecStart=/usr/sbin/irqbalance -f argument-1\n"
        );
        let text =
            "[Match]\nMACAddress=3c:ec:ef:12:34:56\nOriginalName=eth*\nHost=web1\n[Link]\nAlias=x\nRxChannels=4\n";
        let want = "[Match]\nMACAddress=3c:ec:ef:12:34:56\nOriginalName=eth*\nHost=\n[Link]\nAlias=\nRxChannels=4\n";
        assert_eq!(link(text, n), want);
        let text = "[main]\nsummary=of ACME\ninclude=base\n[acme]\ntype=net\ndevices=eth1\nchannels=combined 4\n";
        let want = "[main]\nsummary=\ninclude=base\n[section-1]\ntype=net\ndevices=eth1\nchannels=\n";
        assert_eq!(tuned(text, n), want);
        assert_eq!(script("ethtool -L\nPASSWORD=x\n", n), "ethtool -L\n");
        let text = "Linux version 6.1.0 (anna@build7) (gcc) #1 SMP\n";
        assert_eq!(kernel_version(text, n), "Linux version 6.1.0\n");
        let text = "0::/docker/4f5e/system.slice/irqbalance.service\n1:name=acme:/x\n";
        assert_eq!(
            control_group(text, n),
            "0::/control-group-1/control-group-2/system.slice/irqbalance.service\n1::/control-group-3\n"
        );
    }

    #[test]
    fn of_a_kubelet_only_lists_of_cpus_stay() {
        let text = r#"{"policyName":"static","defaultCpuSet":"0,4-7","entries":
            {"acme-0a1b":{"shop":"1-2","db":"3"},"x":{"y":"anna"}},"checksum":1353318690}"#;
        let got = kubelet(text, &mut Pseudonyms::default());
        let want = serde_json::json!({"policyName": "static", "defaultCpuSet": "0,4-7",
            "entries": {"pod": {"container0": "3", "container1": "1-2"}}});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&got).unwrap(), want);
        assert_eq!(kubelet("acme", &mut Pseudonyms::default()), "");
    }

    #[test]
    fn the_express_capability_stays() {
        let mut config: Vec<u8> = (0..=255).collect();
        config.extend([7; 256]);
        (config[0x34], config[0x40], config[0x41], config[0x60], config[0x61]) = (0x40, 3, 0x60, 0x10, 0);
        let got = pci_config(&config, &mut Pseudonyms::default());
        assert_eq!((&got[..64], &got[0x60..0x9c]), (&config[..64], &config[0x60..0x9c]));
        assert_eq!((&got[0x40..0x43], got[0x9d], got[0x104]), (&[3, 0x60, 0][..], 0, 0));
    }
}
