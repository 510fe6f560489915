//! The configuration as text: each line with a comment that names where it is from.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::natural;
use ringwise_model::words::visible;
use ringwise_model::{ConfiguredBy, CpuSet, Goal, Knob, Snapshot, Wish};

use super::{Chosen, ChosenSetting, ImportedValue, place};
use crate::merge;
use crate::print::{print_host_keys, print_knobs};
use crate::set::quote;
use crate::value::{Config, HostPart, InterfaceEntry, Matcher};
use crate::words::is_glob;

impl Chosen {
    /// The configuration without comments. The place of each setting is [`Chosen::place_of`] its number, so that a fault that
    /// names the place leads back to the choice.
    pub fn config(&self, s: &Snapshot) -> Config {
        let host = HostPart { goal: Some(self.goal), ..self.host_part(|_| true) };
        let mut out = Config { host, ..Config::default() };
        for (dev, parts) in self.by_interface() {
            let wishes = wishes(parts);
            out.entries.push(InterfaceEntry { matcher: matcher(s, dev), wishes, ..InterfaceEntry::default() });
        }
        out
    }

    /// The place in [`Chosen::config`] of the choice with this number.
    pub fn place_of(at: usize) -> ConfiguredBy {
        ConfiguredBy::Text { text: format!("choice {at}") }
    }

    fn host_part(&self, wanted: impl Fn(&ChosenSetting) -> bool) -> HostPart {
        let mine: Vec<Numbered<'_>> =
            self.choices.iter().enumerate().filter(|(_, c)| c.dev.is_none() && wanted(c)).collect();
        let set = |get: fn(&ImportedValue) -> Option<&CpuSet>| mine.iter().find_map(|(_, c)| get(&c.part)).cloned();
        HostPart {
            goal: None,
            cpus: set(|p| if let ImportedValue::Cpus(c) = p { Some(c) } else { None }),
            exclude_cpus: set(|p| if let ImportedValue::ExcludeCpus(c) = p { Some(c) } else { None }),
            wishes: wishes(mine.iter().copied()),
            ..HostPart::default()
        }
    }

    /// Choices of each interface.
    fn by_interface(&self) -> BTreeMap<&str, Vec<Numbered<'_>>> {
        let mut out: BTreeMap<&str, Vec<Numbered<'_>>> = BTreeMap::new();
        for (at, c) in self.choices.iter().enumerate() {
            if let Some(dev) = &c.dev {
                out.entry(dev).or_default().push((at, c));
            }
        }
        out
    }

    /// Moves a setting, and those that are printed on the same line, to those that are not carried over, because no plan
    /// is possible with it.
    pub fn drop_line(&mut self, at: usize, why: &str) {
        let Some(c) = self.choices.get(at) else { return };
        let (dev, key) = (c.dev.clone(), head(&c.part));
        let (left, kept) = self.choices.drain(..).partition(|c| c.dev == dev && head(&c.part) == key);
        self.choices = kept;
        self.leave(left, why);
    }
}

/// A choice with its number.
type Numbered<'a> = (usize, &'a ChosenSetting);

/// Parts of one setting (`rings.rx` and `rings.tx`) become one wish, and so do queues with the same CPUs.
fn wishes<'a>(choices: impl IntoIterator<Item = Numbered<'a>>) -> Vec<Wish> {
    let mut out: Vec<Wish> = Vec::new();
    // Queue 2 before queue 10.
    let mut choices: Vec<Numbered> = choices.into_iter().collect();
    choices.sort_by(|(_, a), (_, b)| natural::compare(&a.part.key(), &b.part.key()));
    for (at, c) in choices {
        let Some(knob) = c.part.knob() else { continue };
        let same_cpus = out.iter_mut().find_map(|w| more_queues(&mut w.knob, &knob));
        match same_cpus {
            Some(queues) => {
                queues.extend(queues_of(&knob));
                queues.sort_unstable();
            }
            None => {
                merge::wish(&mut out, &Wish { dev: None, knob, by: Chosen::place_of(at), params_by: BTreeMap::new() });
            }
        }
    }
    out
}

/// The queues of `have`, if `more` has the same CPUs for other queues.
fn more_queues<'a>(have: &'a mut Knob, more: &Knob) -> Option<&'a mut Vec<u32>> {
    match (have, more) {
        (Knob::IrqCpus { queues: Some(q), cpus }, Knob::IrqCpus { cpus: c, .. })
        | (Knob::XpsCpus { queues: Some(q), cpus }, Knob::XpsCpus { cpus: c, .. })
        | (Knob::RpsCpus { queues: Some(q), cpus }, Knob::RpsCpus { cpus: c, .. })
            if cpus == c =>
        {
            Some(q)
        }
        _ => None,
    }
}

fn queues_of(knob: &Knob) -> Vec<u32> {
    match knob {
        Knob::IrqCpus { queues: Some(q), .. }
        | Knob::XpsCpus { queues: Some(q), .. }
        | Knob::RpsCpus { queues: Some(q), .. } => q.clone(),
        _ => Vec::new(),
    }
}

/// By name, as in the sources. A name that would be read as a pattern is replaced by the address.
fn matcher(s: &Snapshot, dev: &str) -> Matcher {
    let nic = s.nic(dev).filter(|_| is_glob(dev));
    match nic.map(|n| (&n.dev.bus_address, &n.dev.permanent_mac)) {
        Some((Some(bus), _)) => Matcher { bus: Some(bus.clone()), ..Matcher::default() },
        Some((None, Some(mac))) => Matcher { mac: Some(mac.clone()), ..Matcher::default() },
        _ => Matcher { name: Some(dev.to_string()), ..Matcher::default() },
    }
}

/// The whole file. `notes` are further comments at the beginning.
pub fn print(c: &Chosen, s: &Snapshot, notes: &[String]) -> String {
    let mut out = String::from("# Written by ringwise config import. Keys: ringwise.toml(5)\n");
    for note in notes {
        comment(&mut out, "", note);
    }
    line(&mut out, "version = 1", "the format of this file");
    out += "\n[host]\n";
    let why = if c.goal == Goal::default() { "the default goal" } else { "the requested goal" };
    line(&mut out, &format!("goal = {}", quote(c.goal.name())), why);
    for choice in c.choices.iter().filter(|c| c.dev.is_none() && !matches!(c.part, ImportedValue::Sysctl(..))) {
        let text = print_host_keys(&c.host_part(|x| x == choice));
        line(&mut out, text.trim_end(), &places([choice]));
    }
    let sysctls = c.choices.iter().enumerate().filter(|(_, c)| matches!(c.part, ImportedValue::Sysctl(..)));
    let sysctls: Vec<Numbered<'_>> = sysctls.collect();
    if !sysctls.is_empty() {
        let text = print_host_keys(&HostPart { wishes: wishes(sysctls.iter().copied()), ..HostPart::default() });
        line(&mut out, text.trim_end(), &places(sysctls.iter().map(|(_, c)| *c)));
    }
    for (dev, choices) in c.by_interface() {
        out += "\n[[interface]]\n";
        let m = matcher(s, dev);
        let parts = [("name", &m.name), ("bus", &m.bus), ("mac", &m.mac)];
        let found = parts.iter().find_map(|(k, v)| Some(format!("{k} = {}", quote(v.as_ref()?))));
        line(&mut out, &format!("match = {{ {} }}", found.unwrap_or_default()), "an interface of this host");
        let keys: BTreeSet<String> = choices.iter().map(|(_, c)| head(&c.part)).collect();
        for key in keys {
            let mine = || choices.iter().copied().filter(|(_, c)| head(&c.part) == key);
            explain(&mut out, c.goal, mine().map(|(_, c)| c));
            let text = print_knobs(&InterfaceEntry { wishes: wishes(mine()), ..InterfaceEntry::default() });
            line(&mut out, text.trim_end(), &places(mine().map(|(_, c)| c)));
        }
    }
    list(&mut out, "Sources differ; this file has the first value:", &c.conflicts);
    list(&mut out, "Not carried over:", &c.not_carried);
    out
}

/// Comments above a line that holds on to a layout: what its keys and values are, where they are from, and what the goal
/// would do without it.
fn explain<'a>(out: &mut String, goal: Goal, choices: impl Iterator<Item = &'a ChosenSetting>) {
    let choices: Vec<&ChosenSetting> = choices.collect();
    let what = match choices.first().map(|c| &c.part) {
        Some(ImportedValue::IrqCpus(..)) => "Queue = CPU of its interrupt",
        Some(ImportedValue::XpsCpus(..)) => "Transmit queue = CPUs that send through it (XPS)",
        _ => return,
    };
    let found = choices.iter().all(|c| c.by.iter().all(|by| *by == ConfiguredBy::InEffect));
    let from = if found { ", as it is on this host now (what set it is unknown)" } else { "" };
    comment(out, "", &format!("{what}{from}."));
    comment(out, "", &format!("Goal {goal} would choose other CPUs: to let it, delete the line."));
}

/// The key of the line on which a part is printed.
fn head(p: &ImportedValue) -> String {
    p.key().split('.').next().unwrap_or_default().to_string()
}

/// Where the values of one line are from. With several places, each is named with its keys.
fn places<'a>(choices: impl IntoIterator<Item = &'a ChosenSetting>) -> String {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for c in choices {
        let by: Vec<String> = c.by.iter().map(place).collect();
        let (by, key) = (by.join(", "), c.part.key().split_once('.').map_or_else(String::new, |(_, k)| k.to_string()));
        match all.iter_mut().find(|(b, _)| *b == by) {
            Some((_, keys)) => keys.push(key),
            None => all.push((by, vec![key])),
        }
    }
    match all.as_slice() {
        [(by, _)] => by.clone(),
        all => all.iter().map(|(by, keys)| format!("{}: {by}", keys.join(", "))).collect::<Vec<_>>().join("; "),
    }
}

/// A line of the file, which may continue, with its comment. Names in the comment cannot begin another line.
fn line(out: &mut String, text: &str, about: &str) {
    let about = visible(about);
    for (i, l) in text.lines().enumerate() {
        *out += l;
        *out += &format!("{}# {about}\n", if i == 0 { "  " } else { " " });
    }
}

fn comment(out: &mut String, indent: &str, text: &str) {
    *out += &format!("# {indent}{}\n", visible(text));
}

fn list(out: &mut String, title: &str, all: &[impl std::fmt::Display]) {
    if !all.is_empty() {
        *out += &format!("\n# {title}\n");
        all.iter().for_each(|x| comment(out, "  ", &x.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_begin_a_line_of_the_file() {
        let by = ConfiguredBy::File { path: "/etc/x\n[host]\ngoal = \"rpc\"".into(), line: 1 };
        let s = ringwise_testkit::machines::ten()[0].snapshot();
        let dev = s.nics[0].name().to_string();
        let choice = ChosenSetting { dev: Some(dev), part: ImportedValue::Ring("rx", 512), by: vec![by] };
        let text = print(&Chosen { choices: vec![choice], ..Chosen::default() }, &s, &["a\nb".into()]);
        assert_eq!(text.matches("\n[host]\n").count(), 1, "{text}");
        let config = crate::parse("x.toml", &text).unwrap();
        assert_eq!(config.host.goal, Some(Goal::Balanced));
        assert_eq!(config.entries[0].wishes.len(), 1);
    }
}
