//! Facts of the host as a whole.

use ringwise_kfmt::sysfs;
use ringwise_model::{Fact, Host as HostFacts, Unread};
use ringwise_sys::Host;

use crate::read::Reader;
use crate::{rfs, rivals, rps};

/// Everything but the list of rivals is a handful of small files. Without `rps_default_mask`, which
/// may hang: see [`rps::default_mask`].
pub fn host(host: &dyn Host) -> (HostFacts, Vec<Unread>) {
    let (mut facts, mut unread) = without_rivals(host);
    let found = rivals::find(host);
    (facts.rivals, facts.rival_details, facts.irqbalance) = (found.names, found.details, found.irqbalance);
    if let Fact::Unknown(u) = &facts.rivals {
        unread.push(u.clone());
    }
    (facts, unread)
}

pub(crate) fn without_rivals(host: &dyn Host) -> (HostFacts, Vec<Unread>) {
    let mut r = Reader::new(host);
    let facts = HostFacts {
        name: r.text("/proc/sys/kernel/hostname"),
        kernel: r.text("/proc/sys/kernel/osrelease"),
        boot_id: r.text("/proc/sys/kernel/random/boot_id"),
        machine_id: r.text("/etc/machine-id"),
        rps_sock_flow_entries: rfs::global(&mut r),
        rps_default_mask: Fact::unknown(rps::DEFAULT_MASK, "not asked"),
        rivals: Fact::unknown("/proc/*/comm", "not looked for"),
        rival_details: Vec::new(),
        irqbalance: Fact::unknown("irqbalance", "not looked for"),
        sysctls: Default::default(),
        cpu_latency: Default::default(),
        forwarding: forwarding(&mut r),
        read_only: read_only(&mut r),
    };
    (facts, r.unread)
}

/// On when either family forwards; unknown when neither says yes and one could not be read.
fn forwarding(r: &mut Reader) -> Fact<bool> {
    let four = r.parse("/proc/sys/net/ipv4/ip_forward", sysfs::parse_bool);
    // Absent where IPv6 is not there at all.
    let six = r.parse("/proc/sys/net/ipv6/conf/all/forwarding", sysfs::parse_u32).map(|n| n != 0);
    match (four, six) {
        (Fact::Known(true), _) | (_, Fact::Known(true)) => Fact::Known(true),
        (Fact::Unknown(u), _) | (_, Fact::Unknown(u)) => Fact::Unknown(u),
        (Fact::Absent, Fact::Absent) => Fact::Absent,
        _ => Fact::Known(false),
    }
}

/// Places that are written to: one read-only mount among them is enough.
const WRITTEN: &[&str] = &["/proc/irq", "/proc/sys/net", "/sys/class/net"];

fn read_only(r: &mut Reader) -> Fact<bool> {
    match r.text("/proc/self/mounts") {
        Fact::Known(text) => match read_only_by(&text) {
            Some(b) => Fact::Known(b),
            None => r.note(Fact::unknown("/proc/self/mounts", "names no mount of /proc and /sys")),
        },
        Fact::Absent => Fact::Absent,
        Fact::Unknown(u) => Fact::Unknown(u),
    }
}

/// The mount that covers a path is the last one with the longest matching mount point.
/// None: the list (as in captures) does not mention proc or sysfs.
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
        // Something else that is read-only is no matter; neither is a name that only begins alike.
        assert_eq!(read_only_by(&format!("{plain}x /sys/firmware x ro 0 0\ny /proc/irqx y ro 0 0\n")), Some(false));
        assert_eq!(read_only_by("overlay / overlay ro 0 0\n"), None);
        assert_eq!(read_only_by(""), None);
    }
}
