//! Features of a device (`ethtool -K`), by the kernel's names.

use ringwise_model::errno::EOPNOTSUPP;
use ringwise_model::{Fact, Feature, Nic, Snapshot};

use crate::{Address, Descriptor, Family, NotProjected, Reaction, Setting, known, nic};

pub(crate) struct FeaturesFamily;

impl Descriptor for FeaturesFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        addresses(nic)
    }

    fn label(&self, address: &Address) -> String {
        match address {
            Address::Feature { dev, name } => format!("{dev} {name}"),
            _ => String::new(),
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        match address {
            Address::Feature { dev, name } => s.nic(dev).map_or(Fact::Absent, |n| live(n, name)),
            _ => Fact::Absent,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::Feature { dev, name, on } => project(nic(s, dev)?, name, *on),
            _ => Err(NotProjected::OTHER_FAMILY),
        }
    }

    fn react(&self, _: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        (errno == Some(EOPNOTSUPP)).then_some(UNSUPPORTED)
    }

    /// Features that depend on this one change with it. A driver that restarts the device may lose the same settings as
    /// after a ring change.
    fn invalidates(&self, address: &Address) -> &'static [Family] {
        match address {
            Address::Feature { name, .. } if is_software(name) => &[Family::Features],
            _ => &[Family::Features, Family::Coalesce, Family::Rss, Family::Irq, Family::Xps, Family::Napi],
        }
    }

    fn interrupts_traffic(&self, address: &Address) -> bool {
        matches!(address, Address::Feature { name, .. } if !is_software(name))
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::Feature { on, .. } => text(*on),
            _ => String::new(),
        }
    }

    fn command(&self, _: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::Feature { dev, name, on } => Some(command(dev, name, *on)),
            _ => None,
        }
    }
}

/// What EOPNOTSUPP means for a feature.
pub(crate) const UNSUPPORTED: (Reaction, &str) =
    (Reaction::Refused, "this kernel does not know the feature, or the driver does not support it");

/// The feature that flow rules and accelerated RFS need. It is written late, because switching it off drops rules.
pub const NTUPLE: &str = "rx-ntuple-filter";

/// ethtool's short and long names, and the kernel's names that they stand for; `*` matches anything.
pub const SHORT: &[(&str, &str, &[&str])] = &[
    ("rx", "rx-checksumming", &["rx-checksum"]),
    ("tx", "tx-checksumming", &["tx-checksum-*"]),
    ("sg", "scatter-gather", &["tx-scatter-gather*"]),
    ("tso", "tcp-segmentation-offload", &["tx-tcp*-segmentation"]),
    ("ufo", "udp-fragmentation-offload", &["tx-udp-fragmentation"]),
    ("gso", "generic-segmentation-offload", &["tx-generic-segmentation"]),
    ("gro", "generic-receive-offload", &["rx-gro"]),
    ("lro", "large-receive-offload", &["rx-lro"]),
    ("rxvlan", "rx-vlan-offload", &["rx-vlan-hw-parse"]),
    ("txvlan", "tx-vlan-offload", &["tx-vlan-hw-insert"]),
    ("ntuple", "ntuple-filters", &[NTUPLE]),
    ("rxhash", "receive-hashing", &["rx-hashing"]),
];

/// Features in `all` that `word` names: by the kernel's name, or by a name of ethtool, which may stand for several
/// features.
pub fn named<'a>(word: &str, all: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let short = SHORT.iter().find(|(short, long, _)| *short == word || *long == word);
    let is = |name: &str| match short {
        Some((_, _, patterns)) => patterns.iter().any(|p| fits(p, name)),
        None => name == word,
    };
    all.into_iter().map(String::as_str).filter(|n| is(n)).collect()
}

/// The usual short name of the feature, if it has one that stands for no other feature.
pub fn short_name(name: &str) -> &str {
    SHORT.iter().find(|(_, _, k)| *k == [name]).map_or(name, |(short, ..)| short)
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| rest.ends_with(tail)),
        None => pattern == name,
    }
}

/// Features that the kernel handles without the driver (`NETIF_F_SOFT_FEATURES`, include/linux/netdev_features.h, and the
/// copy without cache). Some drivers restart the device when another feature changes (e1000e for VLAN, receive checksum
/// and hashing; ixgbe, bnxt, mlx5 for LRO), and a feature that is switched off may switch off such a dependent feature.
const SOFTWARE: &[&str] =
    &["rx-gro", "rx-gro-list", "rx-udp-gro-forwarding", "tx-generic-segmentation", "tx-nocache-copy"];

/// Whether the kernel handles the feature without the driver.
pub fn is_software(name: &str) -> bool {
    SOFTWARE.contains(&name)
}

/// Whether a change of what `word` names interrupts traffic: the kernel's name, or a name of ethtool.
pub fn interrupts_traffic(word: &str) -> bool {
    let harms = |name: &str| !is_software(name) && name != NTUPLE;
    let short = SHORT.iter().find(|(short, long, _)| *short == word || *long == word);
    short.map_or_else(|| harms(word), |(_, _, patterns)| patterns.iter().any(|p| harms(p)))
}

fn feature<'a>(nic: &'a Nic, name: &str) -> Option<&'a Feature> {
    nic.features.known()?.get(name)
}

/// The feature as it is in effect. Absent: the device has no such feature.
pub fn live(nic: &Nic, name: &str) -> Fact<Setting> {
    nic.features.as_ref().and_then(|all| match all.get(name) {
        Some(f) => Fact::Known(Setting::Feature { dev: nic.dev.name.clone(), name: name.to_string(), on: f.on }),
        None => Fact::Absent,
    })
}

pub(crate) fn project(nic: &mut Nic, name: &str, on: bool) -> Result<(), NotProjected> {
    let f = known(&mut nic.features)?.get_mut(name).ok_or(NotProjected("the device has no such feature"))?;
    if f.fixed {
        return Err(NotProjected("the feature cannot be changed"));
    }
    (f.on, f.wanted) = (on, on);
    Ok(())
}

/// Whether the kernel has recorded the requested value but cannot apply it, because a feature that it depends on is
/// missing. The kernel applies it later by itself.
pub fn waits(now: &Snapshot, setting: &Setting) -> bool {
    let Setting::Feature { dev, name, on } = setting else { return false };
    now.nic(dev).and_then(|n| feature(n, name)).is_some_and(|f| f.wanted == *on && f.on != *on)
}

/// Features of the device that can be changed.
pub fn addresses(nic: &Nic) -> Vec<Address> {
    let all = nic.features.known().into_iter().flatten();
    all.filter(|(k, f)| !f.fixed && *k != NTUPLE)
        .map(|(k, _)| Address::Feature { dev: nic.dev.name.clone(), name: k.clone() })
        .collect()
}

/// Why the feature did not change although the kernel accepted the request: the kernel's reply has no reason.
pub fn not_kept(on: bool) -> &'static str {
    match on {
        true => {
            "the driver refused it without an error, a feature that it depends on is off, or one that excludes it is on"
        }
        false => "the driver refused it without an error, or it cannot be switched off",
    }
}

/// `on` or `off`.
pub fn text(on: bool) -> String {
    if on { "on" } else { "off" }.to_string()
}

/// The `ethtool -K` command.
pub fn command(dev: &str, name: &str, on: bool) -> String {
    format!("ethtool -K {dev} {name} {}", text(on))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_have_the_meaning_of_ethtool() {
        let all: Vec<String> = [
            "rx-checksum",
            "rx-gro",
            "rx-gro-hw",
            "rx-gro-list",
            "rx-lro",
            "rx-ntuple-filter",
            "rx-udp-gro-forwarding",
            "tx-checksum-ip-generic",
            "tx-checksum-sctp",
            "tx-nocache-copy",
            "tx-scatter-gather",
            "tx-scatter-gather-fraglist",
            "tx-tcp-ecn-segmentation",
            "tx-tcp-segmentation",
            "tx-tcp6-segmentation",
            "tx-udp-segmentation",
        ]
        .map(String::from)
        .into();
        assert_eq!(named("gro", &all), ["rx-gro"]);
        assert_eq!(named("ntuple", &all), [NTUPLE]);
        assert_eq!(named("large-receive-offload", &all), ["rx-lro"]);
        assert_eq!(named("tso", &all), ["tx-tcp-ecn-segmentation", "tx-tcp-segmentation", "tx-tcp6-segmentation"]);
        assert_eq!(named("tx", &all), ["tx-checksum-ip-generic", "tx-checksum-sctp"]);
        assert_eq!(named("sg", &all), ["tx-scatter-gather", "tx-scatter-gather-fraglist"]);
        assert_eq!(named("rx-udp-gro-forwarding", &all), ["rx-udp-gro-forwarding"]);
        assert!(named("rxhash", &all).is_empty() && named("gr", &all).is_empty());
        assert_eq!((short_name("rx-lro"), short_name("tx-checksum-sctp")), ("lro", "tx-checksum-sctp"));
    }

    #[test]
    fn only_features_of_the_kernel_do_not_affect_the_device() {
        let of = |name: &str| Address::Feature { dev: "eth0".into(), name: name.into() };
        assert!(!of("rx-gro").interrupts_traffic() && !of("rx-udp-gro-forwarding").interrupts_traffic());
        assert!(of("rx-lro").interrupts_traffic() && of("tx-tcp-segmentation").interrupts_traffic());
        assert_eq!(of("rx-gro").invalidates(), [crate::Family::Features]);
        assert!(of("rx-lro").invalidates().contains(&crate::Family::Rss));
    }
}
