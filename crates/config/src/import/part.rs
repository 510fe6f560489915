//! The smallest setting that another program configures, and its present value.

use ringwise_model::{CpuSet, Dir, Fact, Knob, Nic, RingPart, RingValues, Snapshot};

use crate::export::FEATURE_WORDS;
use crate::words::glob_matches;

/// One value of an interface or of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportedValue {
    /// A number of channels: `combined`, `rx` or `tx`.
    Channels(&'static str, u32),
    /// A ring parameter, by its key.
    Ring(&'static str, u32),
    /// A moderation parameter of the device, by its netlink name. Switches are 0 and 1.
    Coalesce(String, u32),
    /// Pause frames: `autoneg`, `rx` or `tx`.
    Pause(&'static str, bool),
    /// A feature, by the kernel's name or a name of ethtool.
    Feature(String, bool),
    /// CPUs of the interrupt of a queue.
    IrqCpus(u32, CpuSet),
    /// CPUs that send through a transmit queue.
    XpsCpus(u32, CpuSet),
    /// CPUs that process packets of a receive queue.
    RpsCpus(u32, CpuSet),
    /// A sysctl of the network core.
    Sysctl(String, String),
    /// Only these CPUs may have queues.
    Cpus(CpuSet),
    /// CPUs without queues.
    ExcludeCpus(CpuSet),
}

/// The present value of the setting that a [`ImportedValue`] names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresentValue {
    /// The host has this value.
    Value(ImportedValue),
    /// The device has no such setting.
    NotSupported,
    /// It was not read, or the setting is one of ringwise.
    Unknown,
}

impl ImportedValue {
    /// The key in the configuration file; two parts with the same key configure the same.
    pub fn key(&self) -> String {
        match self {
            Self::Channels(k, _) => format!("channels.{k}"),
            Self::Ring(k, _) => format!("rings.{k}"),
            Self::Coalesce(k, _) => format!("coalesce.{k}"),
            Self::Pause(k, _) => format!("pause.{k}"),
            Self::Feature(k, _) => format!("features.{}", kernel_word(k)),
            Self::IrqCpus(q, _) => format!("irq_cpus.{q}"),
            Self::XpsCpus(q, _) => format!("xps_cpus.{q}"),
            Self::RpsCpus(q, _) => format!("rps_cpus.{q}"),
            Self::Sysctl(k, _) => format!("sysctl.\"{k}\""),
            Self::Cpus(_) => "cpus".into(),
            Self::ExcludeCpus(_) => "exclude_cpus".into(),
        }
    }

    /// The value as text.
    pub fn value(&self) -> String {
        match self {
            Self::Ring(k, n) => RingPart::of(k).map_or_else(|| n.to_string(), |p| p.toml(*n)),
            Self::Coalesce(k, n) if k.starts_with("use-") => (*n != 0).to_string(),
            Self::Channels(_, n) | Self::Coalesce(_, n) => n.to_string(),
            Self::Pause(_, on) | Self::Feature(_, on) => on.to_string(),
            Self::IrqCpus(_, c) | Self::XpsCpus(_, c) | Self::RpsCpus(_, c) => shown(c),
            Self::Cpus(c) | Self::ExcludeCpus(c) => shown(c),
            Self::Sysctl(_, v) => v.clone(),
        }
    }

    /// As a wish. `None`: a key of `[host]` that is no wish.
    pub(super) fn knob(&self) -> Option<Knob> {
        Some(match self {
            Self::Channels(k, n) => {
                let of = |key: &str| (*k == key).then_some(*n);
                Knob::Channels { rx: of("rx"), tx: of("tx"), combined: of("combined") }
            }
            Self::Ring(k, n) => Knob::Rings { values: RingValues::each(|p| (p.key == *k).then_some(*n)) },
            Self::Coalesce(k, n) => Knob::Coalesce { queues: None, params: [(k.clone(), *n)].into() },
            Self::Pause(k, on) => {
                let of = |key: &str| (*k == key).then_some(*on);
                Knob::Pause { autoneg: of("autoneg"), rx: of("rx"), tx: of("tx") }
            }
            Self::Feature(name, on) => Knob::Feature { name: name.clone(), on: *on },
            Self::IrqCpus(q, cpus) => Knob::IrqCpus { queues: Some(vec![*q]), cpus: cpus.clone() },
            Self::XpsCpus(q, cpus) => Knob::XpsCpus { queues: Some(vec![*q]), cpus: cpus.clone() },
            Self::RpsCpus(q, cpus) => Knob::RpsCpus { queues: Some(vec![*q]), cpus: cpus.clone() },
            Self::Sysctl(name, value) => Knob::Sysctl { name: name.clone(), value: value.clone() },
            Self::Cpus(_) | Self::ExcludeCpus(_) => return None,
        })
    }

    /// The value of the same setting on the host.
    pub fn present(&self, s: &Snapshot, nic: Option<&Nic>) -> PresentValue {
        match (self, nic) {
            (Self::Sysctl(name, _), _) => {
                let value = s.host.sysctls.get(name).and_then(|f| f.known());
                value.map_or(PresentValue::Unknown, |v| {
                    let words: Vec<&str> = v.split_whitespace().collect();
                    PresentValue::Value(Self::Sysctl(name.clone(), words.join(" ")))
                })
            }
            (_, Some(n)) => self.of_nic(n),
            (_, None) => PresentValue::Unknown,
        }
    }

    fn of_nic(&self, n: &Nic) -> PresentValue {
        match self {
            Self::Channels(k, _) => of(&n.channels, |c| {
                let count = match *k {
                    "rx" => c.rx,
                    "tx" => c.tx,
                    _ => c.combined,
                };
                count.filter(|c| c.max > 0).map(|c| Self::Channels(k, c.now))
            }),
            Self::Ring(k, _) => of(&n.rings, |r| {
                let count = RingPart::of(k)?.found(r)?;
                Some(Self::Ring(k, count.now))
            }),
            Self::Coalesce(k, _) => of(&n.coalesce, |c| Some(Self::Coalesce(k.clone(), *c.0.get(k)?))),
            Self::Pause(k, _) => of(&n.pause, |p| {
                let on = match *k {
                    "rx" => p.rx,
                    "tx" => p.tx,
                    _ => p.autoneg,
                };
                Some(Self::Pause(k, on?))
            }),
            Self::Feature(word, wanted) => of(&n.features, |all| {
                let pattern = kernel_word(word);
                let named: Vec<_> = all.iter().filter(|(name, _)| glob_matches(pattern, name)).collect();
                // A name that stands for several features is on if one of those that can be changed is on, as for ethtool.
                let on = named.iter().any(|(_, f)| if *wanted { f.on || f.wanted } else { f.on });
                (!named.is_empty()).then(|| Self::Feature(word.clone(), on))
            }),
            Self::IrqCpus(q, _) => {
                let vector = n.vector_of(Dir::Rx, *q).or(n.vector_of(Dir::Tx, *q));
                vector.map_or(PresentValue::NotSupported, |v| of(&v.asked, |c| Some(Self::IrqCpus(*q, c.clone()))))
            }
            Self::XpsCpus(q, _) => n
                .tx_queues
                .iter()
                .find(|t| t.id == *q)
                .map_or(PresentValue::NotSupported, |t| of(&t.xps_cpus, |c| Some(Self::XpsCpus(*q, c.clone())))),
            Self::RpsCpus(q, _) => n
                .rx_queues
                .iter()
                .find(|r| r.id == *q)
                .map_or(PresentValue::NotSupported, |r| of(&r.rps_cpus, |c| Some(Self::RpsCpus(*q, c.clone())))),
            Self::Sysctl(..) | Self::Cpus(_) | Self::ExcludeCpus(_) => PresentValue::Unknown,
        }
    }
}

fn of<T>(fact: &Fact<T>, get: impl Fn(&T) -> Option<ImportedValue>) -> PresentValue {
    match fact.known() {
        Some(t) => get(t).map_or(PresentValue::NotSupported, PresentValue::Value),
        None if fact.is_absent() => PresentValue::NotSupported,
        None => PresentValue::Unknown,
    }
}

fn shown(c: &CpuSet) -> String {
    if c.is_empty() { "none".into() } else { c.to_string() }
}

/// The kernel's name of a feature, with `*` if ethtool's name stands for several.
pub(super) fn kernel_word(word: &str) -> &str {
    FEATURE_WORDS.iter().find(|(s, l, _)| *s == word || *l == word).map_or(word, |(.., pattern)| pattern)
}
