//! Facts of the host as a whole.

use std::collections::BTreeMap;

use ringwise_kfmt::{sysctl, sysfs};
use ringwise_knob::path;
use ringwise_model::{CpuId, CpuSet, Fact, Host as HostFacts, Unread};
use ringwise_sys::Host;

use crate::read::{Reader, failed};
use crate::{competing_programs, rfs, rps};

/// Everything but the list of competing programs is a handful of small files. Without `rps_default_mask`, which
/// may hang: see [`rps::default_mask`].
pub fn host(host: &dyn Host) -> (HostFacts, Vec<Unread>) {
    let (mut facts, mut unread) = host_without_rivals(host);
    let found = competing_programs::find(host);
    (facts.rivals, facts.rival_details, facts.irqbalance) = (found.names, found.details, found.irqbalance);
    if let Fact::Unknown(u) = &facts.rivals {
        unread.push(u.clone());
    }
    (facts, unread)
}

/// The kernel's placeholder for a host without a name is no name.
fn named(name: Fact<String>) -> Fact<String> {
    match name {
        Fact::Known(n) if n == "(none)" => Fact::Absent,
        other => other,
    }
}

/// The same without searching other processes.
pub fn host_without_rivals(host: &dyn Host) -> (HostFacts, Vec<Unread>) {
    let mut r = Reader::new(host);
    let facts = HostFacts {
        name: named(r.text("/proc/sys/kernel/hostname")),
        kernel: r.text("/proc/sys/kernel/osrelease"),
        boot_id: r.text("/proc/sys/kernel/random/boot_id"),
        machine_id: r.text("/etc/machine-id"),
        rps_sock_flow_entries: rfs::global(&mut r),
        rps_default_mask: Fact::not_requested(rps::DEFAULT_MASK),
        rivals: Fact::unknown("/proc/*/comm", "not read"),
        rival_details: Vec::new(),
        irqbalance: Fact::unknown("irqbalance", "not read"),
        sysctls: BTreeMap::new(),
        cpu_latency: BTreeMap::new(),
        power: None,
        forwarding: forwarding(&mut r),
        read_only: read_only(&mut r),
    };
    (facts, r.unread)
}

/// Absent: this kernel does not have it, or not in this network namespace. Recordings of earlier versions lack those of
/// [`sysctl::LATER`], or all of them: then the map is empty. [`rps::DEFAULT_MASK`] may hang and is read apart.
pub(crate) fn sysctls(host: &dyn Host) -> (BTreeMap<String, Fact<String>>, Vec<Unread>) {
    let mut r = Reader::new(host);
    let mut out = BTreeMap::new();
    for (name, _) in sysctl::ALL.iter().filter(|(n, _)| *n != sysctl::RPS_DEFAULT_MASK) {
        let value = sysctl(&mut r, name);
        let later = sysctl::LATER.contains(name) && host.is_recorded();
        if !(later && matches!(&value, Fact::Unknown(u) if u.errno.is_none())) {
            out.insert(name.to_string(), value);
        }
    }
    if host.is_recorded() && out.values().all(|f| matches!(f, Fact::Unknown(u) if u.errno.is_none())) {
        out.clear();
    }
    (out, r.unread)
}

/// The value of each online CPU, from one small file per CPU. Empty: a recording of an earlier version.
pub(crate) fn cpu_latency(host: &dyn Host, online: &CpuSet) -> (BTreeMap<CpuId, Fact<String>>, Vec<Unread>) {
    let mut r = Reader::new(host);
    let mut out = BTreeMap::new();
    for cpu in online.iter() {
        let path = path::cpu_latency(cpu);
        let value = match host.read_text(&path) {
            Ok(t) => Fact::Known(t),
            Err(e) if out.is_empty() && r.is_older_recording(&e) => break,
            // Without power management no CPU has the file.
            Err(e) if out.is_empty() && e.is_absent() => {
                out.extend(online.iter().map(|c| (c, Fact::Absent)));
                break;
            }
            Err(e) => r.note(failed(&path, &e)),
        };
        out.insert(cpu, value);
    }
    (out, r.unread)
}

/// The content of the file, without trailing white space.
pub(crate) fn sysctl(r: &mut Reader, name: &str) -> Fact<String> {
    match path::sysctl(name) {
        Some(path) => r.parse_later(&path, |t| Ok(t.to_string())),
        None => Fact::unknown(name, "not the name of a sysctl"),
    }
}

/// The value of one CPU.
pub(crate) fn latency_of(r: &mut Reader, cpu: CpuId) -> Fact<String> {
    r.parse(&path::cpu_latency(cpu), |t| Ok(t.to_string()))
}

/// On if either family forwards; unknown if neither is known to forward and one could not be read.
fn forwarding(r: &mut Reader) -> Fact<bool> {
    let four = r.parse("/proc/sys/net/ipv4/ip_forward", sysfs::parse_bool);
    // Absent if the kernel has no IPv6.
    let six = r.parse("/proc/sys/net/ipv6/conf/all/forwarding", sysfs::parse_u32).map(|n| n != 0);
    match (four, six) {
        (Fact::Known(true), _) | (_, Fact::Known(true)) => Fact::Known(true),
        (Fact::Unknown(u), _) | (_, Fact::Unknown(u)) => Fact::Unknown(u),
        (Fact::Absent, Fact::Absent) => Fact::Absent,
        _ => Fact::Known(false),
    }
}

/// Places to which ringwise writes. One read-only mount among them is enough.
const WRITTEN: &[&str] = &["/proc/irq", "/proc/sys/net", "/sys/class/net"];

fn read_only(r: &mut Reader) -> Fact<bool> {
    match r.text("/proc/self/mounts") {
        Fact::Known(text) => match read_only_by(&text) {
            Some(b) => Fact::Known(b),
            None => r.note(Fact::unknown("/proc/self/mounts", "does not list the mounts of /proc and /sys")),
        },
        Fact::Absent => Fact::Absent,
        Fact::Unknown(u) => Fact::Unknown(u),
    }
}

/// The mount that covers a path is the last one with the longest matching mount point.
/// `None`: the list (as in captures) does not contain proc or sysfs.
fn read_only_by(mounts: &str) -> Option<bool> {
    let mut any = false;
    for path in WRITTEN {
        let mut best: Option<(usize, bool)> = None;
        for line in mounts.lines() {
            let mut words = line.split_whitespace();
            let (Some(_), Some(point), Some(_), Some(options)) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            let covers = point != "/" && path.strip_prefix(point).is_some_and(|r| r.is_empty() || r.starts_with('/'));
            if covers && best.is_none_or(|(len, _)| point.len() >= len) {
                best = Some((point.len(), options.split(',').any(|o| o == "ro")));
            }
        }
        any |= best.is_some();
        if best.is_some_and(|(_, ro)| ro) {
            return Some(true);
        }
    }
    any.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_decides() {
        let plain = "proc /proc proc rw,nosuid 0 0\nsysfs /sys sysfs rw 0 0\n";
        assert_eq!(read_only_by(plain), Some(false));
        let container = "overlay / overlay rw 0 0\nproc /proc proc rw 0 0\nsysfs /sys sysfs ro,nosuid 0 0\n";
        assert_eq!(read_only_by(container), Some(true));
        let irq = format!("{plain}proc /proc/irq proc ro,nosuid 0 0\n");
        assert_eq!(read_only_by(&irq), Some(true));
        // Mounted over again, writable.
        assert_eq!(read_only_by(&format!("{irq}proc /proc/irq proc rw 0 0\n")), Some(false));
        // Other read-only mounts do not matter, nor does a path that only begins with the same letters.
        assert_eq!(read_only_by(&format!("{plain}x /sys/firmware x ro 0 0\ny /proc/irqx y ro 0 0\n")), Some(false));
        assert_eq!(read_only_by("overlay / overlay ro 0 0\n"), None);
        assert_eq!(read_only_by(""), None);
    }
}
