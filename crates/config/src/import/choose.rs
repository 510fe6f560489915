//! One value for each setting: the one in effect, where sources differ.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{ConfiguredBy, CpuSet, Goal, Knob, Snapshot};

use super::part::kernel_word;
use super::{FoundSetting, Imported, ImportedValue, NotCarried, PresentValue};
use crate::contradict::queues_left;
use crate::words::glob_matches;

/// A setting of the resulting configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenSetting {
    /// The interface. `None`: a setting of the host.
    pub dev: Option<String>,
    /// The setting and its value.
    pub part: ImportedValue,
    /// Every place that has this value.
    pub by: Vec<ConfiguredBy>,
}

/// A setting for which the sources have different values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The interface. `None`: a setting of the host.
    pub dev: Option<String>,
    /// The key, and the value that was chosen.
    pub chosen: ImportedValue,
    /// Where the chosen value is from.
    pub by: ConfiguredBy,
    /// The other values, with their places.
    pub others: Vec<(String, ConfiguredBy)>,
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dev = self.dev.as_ref().map_or_else(String::new, |d| format!("{d} "));
        let others = self.others.iter().map(|(value, by)| format!("{value} ({})", super::place(by)));
        let others: Vec<String> = others.collect();
        let (key, value) = (self.chosen.key(), self.chosen.value());
        let text = format!("{dev}{key}: {value} ({}) instead of {}", super::place(&self.by), others.join(", "));
        f.write_str(&ringwise_model::words::visible(&text))
    }
}

/// The settings of the resulting configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The goal of the file.
    pub goal: Goal,
    /// Settings by interface and key, those of the host first.
    pub choices: Vec<ChosenSetting>,
    /// Where sources differ.
    pub conflicts: Vec<Conflict>,
    /// What is not carried over.
    pub not_carried: Vec<NotCarried>,
}

/// Chooses among the values of all sources. If they differ from each other or from the host, the value in effect is
/// chosen; if that is unknown, the first one that was found.
pub fn choose(imported: Imported, s: &Snapshot) -> Chosen {
    let mut out = Chosen { goal: imported.goal, not_carried: imported.not_carried, ..Chosen::default() };
    let mut by_key: BTreeMap<(Option<String>, String), Vec<FoundSetting>> = BTreeMap::new();
    for f in imported.found.into_iter().flat_map(|f| single_features(f, s)) {
        by_key.entry((f.dev.clone(), f.part.key())).or_default().push(f);
    }
    for ((dev, _), found) in by_key {
        match &found[0].part {
            // CPUs of all sources are kept free.
            ImportedValue::ExcludeCpus(_) => {
                let cpus = union(&found);
                let by = found.into_iter().map(|f| f.by).collect();
                out.choices.push(ChosenSetting { dev, part: ImportedValue::ExcludeCpus(cpus), by });
            }
            _ => one(dev, found, s, &mut out),
        }
    }
    moderation(&mut out);
    wide_features(&mut out);
    cpus(s, &mut out);
    layouts(&mut out);
    // One line of a file may be for several interfaces.
    let mut seen = BTreeSet::new();
    out.not_carried.retain(|n| seen.insert(n.to_string()));
    let kept = |c: &Conflict| out.choices.iter().any(|x| x.dev == c.dev && x.part.key() == c.chosen.key());
    let conflicts = std::mem::take(&mut out.conflicts);
    out.conflicts = conflicts.into_iter().filter(kept).collect();
    out
}

/// A name of ethtool that stands for several features becomes those that the device can change. Otherwise it could
/// contradict another source that names one of them.
fn single_features(f: FoundSetting, s: &Snapshot) -> Vec<FoundSetting> {
    let ImportedValue::Feature(word, on) = &f.part else { return vec![f] };
    let nic = f.dev.as_deref().and_then(|d| s.nic(d));
    let Some(all) = nic.and_then(|n| n.features.known()).filter(|_| kernel_word(word).contains('*')) else {
        return vec![f];
    };
    let names = all.iter().filter(|(name, f)| !f.fixed && glob_matches(kernel_word(word), name));
    let single: Vec<FoundSetting> =
        names.map(|(name, _)| FoundSetting { part: ImportedValue::Feature(name.clone(), *on), ..f.clone() }).collect();
    if single.is_empty() { vec![f] } else { single }
}

/// Where the features of a device are unknown, a name that stands for several replaces single ones.
fn wide_features(out: &mut Chosen) {
    let wide: Vec<(Option<String>, String)> = out
        .choices
        .iter()
        .filter_map(|c| match &c.part {
            ImportedValue::Feature(word, _) if kernel_word(word).contains('*') => {
                Some((c.dev.clone(), kernel_word(word).to_string()))
            }
            _ => None,
        })
        .collect();
    let covered = |c: &ChosenSetting| match &c.part {
        ImportedValue::Feature(name, _) => {
            wide.iter().any(|(dev, w)| *dev == c.dev && kernel_word(name) != w && glob_matches(w, name))
        }
        _ => false,
    };
    let left = drain(&mut out.choices, covered);
    out.leave(left, "another source sets it under a name of ethtool that stands for several features");
}

fn drain(choices: &mut Vec<ChosenSetting>, which: impl Fn(&ChosenSetting) -> bool) -> Vec<ChosenSetting> {
    let (left, kept) = choices.drain(..).partition(which);
    *choices = kept;
    left
}

impl Chosen {
    /// Lists choices as not carried over.
    pub(super) fn leave(&mut self, left: Vec<ChosenSetting>, why: &str) {
        for c in left {
            let dev = c.dev.map_or_else(String::new, |d| format!("{d} "));
            let what = format!("{dev}{} = {}", c.part.key(), c.part.value());
            let left = c.by.into_iter().map(|by| NotCarried {
                by,
                what: what.clone(),
                why: why.to_string(),
                whole_file: false,
            });
            self.not_carried.extend(left);
        }
    }
}

fn union(found: &[FoundSetting]) -> CpuSet {
    found.iter().fold(CpuSet::new(), |all, f| match &f.part {
        ImportedValue::ExcludeCpus(c) => all.union(c),
        _ => all,
    })
}

fn one(dev: Option<String>, found: Vec<FoundSetting>, s: &Snapshot, out: &mut Chosen) {
    let nic = dev.as_deref().and_then(|d| s.nic(d));
    // What was found on the host is its present value, without what the kernel ignores (CPUs that are offline).
    let present = match found.iter().find(|f| f.by == ConfiguredBy::InEffect) {
        Some(f) => PresentValue::Value(f.part.clone()),
        None => found[0].part.present(s, nic),
    };
    let (part, by) = match present {
        PresentValue::NotSupported => {
            let why = if dev.is_some() { "the device has no such setting" } else { "this host has no such setting" };
            let left = found.into_iter().map(|f| ChosenSetting { dev: f.dev, part: f.part, by: vec![f.by] });
            return out.leave(left.collect(), why);
        }
        PresentValue::Value(part) => match found.iter().find(|f| f.part.value() == part.value()) {
            Some(same) => (same.part.clone(), same.by.clone()),
            None => (part, ConfiguredBy::InEffect),
        },
        PresentValue::Unknown => (found[0].part.clone(), found[0].by.clone()),
    };
    let (same, others): (Vec<FoundSetting>, Vec<FoundSetting>) =
        found.into_iter().partition(|f| f.part.value() == part.value());
    if !others.is_empty() {
        let others = others.into_iter().map(|f| (f.part.value(), f.by)).collect();
        out.conflicts.push(Conflict { dev: dev.clone(), chosen: part.clone(), by: by.clone(), others });
    }
    let mut places: Vec<ConfiguredBy> = same.into_iter().map(|f| f.by).collect();
    places.dedup();
    if places.is_empty() {
        places.push(by);
    }
    out.choices.push(ChosenSetting { dev, part, by: places });
}

/// With adaptive moderation, the driver chooses the fixed values, and the configuration accepts none.
fn moderation(out: &mut Chosen) {
    let adaptive: Vec<(Option<String>, String)> = out
        .choices
        .iter()
        .filter_map(|c| match &c.part {
            ImportedValue::Coalesce(name, 1) => Some((c.dev.clone(), name.strip_prefix("use-adaptive-")?.to_string())),
            _ => None,
        })
        .collect();
    let chosen_by_driver = |c: &ChosenSetting| match &c.part {
        ImportedValue::Coalesce(name, _) => adaptive.iter().any(|(dev, dir)| {
            *dev == c.dev && (*name == format!("{dir}-usecs") || *name == format!("{dir}-max-frames"))
        }),
        _ => false,
    };
    let left = drain(&mut out.choices, chosen_by_driver);
    out.leave(left, "adaptive moderation is on, so the driver chooses this value");
}

/// CPUs of queues are a layout for the present number of queues. It is not carried over if the file has fewer channels.
fn layouts(out: &mut Chosen) {
    let devs: BTreeSet<String> = out.choices.iter().filter_map(|c| c.dev.clone()).collect();
    for dev in devs {
        let mine = |c: &ChosenSetting| c.dev.as_ref() == Some(&dev);
        let of = |kind: &str| {
            out.choices.iter().filter(|c| mine(c)).find_map(|c| match c.part {
                ImportedValue::Channels(k, n) if k == kind => Some(n),
                _ => None,
            })
        };
        let channels = Knob::Channels { rx: of("rx"), tx: of("tx"), combined: of("combined") };
        let Some((rx, tx)) = queues_left(&channels) else { continue };
        let queue = |p: &ImportedValue| match *p {
            ImportedValue::IrqCpus(q, _) => Some(("irq_cpus", q, rx.max(tx))),
            ImportedValue::XpsCpus(q, _) => Some(("xps_cpus", q, tx)),
            ImportedValue::RpsCpus(q, _) => Some(("rps_cpus", q, rx)),
            _ => None,
        };
        for key in ["irq_cpus", "rps_cpus", "xps_cpus"] {
            let of_key = |c: &ChosenSetting| mine(c) && queue(&c.part).is_some_and(|(k, ..)| k == key);
            let all = || out.choices.iter().filter(|c| of_key(c)).filter_map(|c| queue(&c.part));
            let Some((_, last, left)) = all().max_by_key(|(_, q, _)| *q).filter(|(_, q, left)| q >= left) else {
                continue;
            };
            let what = format!("{dev} {key} of {} queues", all().count());
            let why = format!("they name queue {last}, but channels sets only {left}, so the goal chooses the CPUs");
            let by = drain(&mut out.choices, of_key).into_iter().next().and_then(|c| c.by.into_iter().next());
            let by = by.unwrap_or(ConfiguredBy::InEffect);
            out.not_carried.push(NotCarried { by, what, why, whole_file: false });
        }
    }
}

/// A list of CPUs that leaves none for queues makes every plan fail.
fn cpus(s: &Snapshot, out: &mut Chosen) {
    let mut usable = s.topology.online.clone();
    let mut left = Vec::new();
    out.choices.retain(|c| {
        let rest = match &c.part {
            ImportedValue::Cpus(cpus) => usable.intersection(cpus),
            ImportedValue::ExcludeCpus(cpus) => usable.difference(cpus),
            _ => return true,
        };
        if rest.is_empty() {
            left.push(c.clone());
            return false;
        }
        usable = rest;
        true
    });
    out.leave(left, "no CPU would be left for queues");
}
