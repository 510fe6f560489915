//! Finds contradictions in a configuration: in one text, and in a file that `--set` and flags override.

use ringwise_model::{Action, ConfiguredBy, Flow, Goal, GroupQueues, GroupWish, Knob, Table, Wish};

use crate::conflict::Conflict;
use crate::export::FEATURE_WORDS;
use crate::value::{Config, HostPart, InterfaceEntry};
use crate::words::{flow_text, glob_matches};

/// Where one half of a contradiction was configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConflictPlace {
    /// The place of a wish.
    Place(ConfiguredBy),
    /// A key of a group.
    Group(ConfiguredBy, &'static str),
    /// A key of `[host]`.
    Host(&'static str),
    /// A key of an entry.
    Entry(usize, &'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contradiction {
    pub at: Vec<ConflictPlace>,
    pub conflict: Conflict,
}

/// The contradictions of merged configurations, as text.
pub fn contradictions(c: &Config) -> Vec<String> {
    let place = |a: &ConflictPlace| match a {
        ConflictPlace::Place(by) | ConflictPlace::Group(by, _) => by.to_string(),
        ConflictPlace::Host(key) => format!("host.{key}"),
        ConflictPlace::Entry(i, key) => {
            c.entries.get(*i).map_or_else(String::new, |e| format!("{key} of {}", e.matcher))
        }
    };
    let words = |x: Contradiction| {
        let mut places: Vec<String> = x.at.iter().map(place).collect();
        places.dedup();
        format!("{}: {}; expected {}", places.join(" and "), x.conflict.found(), x.conflict.right())
    };
    all(c, false).into_iter().map(words).collect()
}

/// `alone`: no other configuration overrides this one, and no RSS context exists that another program created.
pub(crate) fn all(c: &Config, alone: bool) -> Vec<Contradiction> {
    let mut out = Vec::new();
    of_host(&c.host, &mut out);
    for (i, e) in c.entries.iter().enumerate() {
        let mut cx = ContradictionCheck { i, e, host: &c.host, out: &mut out };
        cx.beyond_channels();
        cx.group_queues();
        cx.group_cpus();
        cx.tables_and_weights();
        cx.features();
        cx.symmetric();
        cx.flows();
        if alone {
            cx.contexts();
        }
    }
    out
}

fn add(out: &mut Vec<Contradiction>, at: Vec<ConflictPlace>, conflict: Conflict) {
    out.push(Contradiction { at, conflict });
}

fn of_host(h: &HostPart, out: &mut Vec<Contradiction>) {
    let kept = [("reserve", &h.reserve), ("exclude_cpus", &h.exclude_cpus)];
    let kept: Vec<_> = kept.into_iter().filter_map(|(k, c)| Some((k, c.as_ref()?))).collect();
    let free = kept.iter().fold(ringwise_model::CpuSet::new(), |all, (_, c)| all.union(c));
    if let Some(cpus) = h.cpus.as_ref().filter(|c| c.is_subset(&free)) {
        let also = kept.iter().filter(|(_, c)| !c.intersection(cpus).is_empty()).map(|(k, _)| ConflictPlace::Host(k));
        let at = std::iter::once(ConflictPlace::Host("cpus")).chain(also).collect();
        add(out, at, Conflict::NoCpuLeft { cpus: cpus.clone() });
    }
    if let (Some(true), Some(goal)) = (h.pair_as_article, h.goal)
        && !matches!(goal, Goal::Balanced | Goal::Mixed)
    {
        add(
            out,
            vec![ConflictPlace::Host("pair_as_article"), ConflictPlace::Host("goal")],
            Conflict::ArticleAndGoal { goal },
        );
    }
}

struct ContradictionCheck<'a> {
    i: usize,
    e: &'a InterfaceEntry,
    host: &'a HostPart,
    out: &'a mut Vec<Contradiction>,
}

fn place(w: &Wish) -> ConflictPlace {
    ConflictPlace::Place(w.by.clone())
}

fn of_group(g: &GroupWish, key: &'static str) -> ConflictPlace {
    ConflictPlace::Group(g.by.clone(), key)
}

impl ContradictionCheck<'_> {
    fn beyond_channels(&mut self) {
        let e = self.e;
        let Some((channels, left)) = e.wishes.iter().find_map(|w| Some((w, queues_left(&w.knob)?))) else { return };
        for w in &e.wishes {
            if let Some((queue, what, left)) = beyond(&w.knob, left) {
                add(self.out, vec![place(w), place(channels)], Conflict::BeyondChannels { what, queue, left });
            }
        }
        let n = left.0;
        for g in &e.groups {
            if let GroupQueues::These(q) = &g.queues
                && let Some(queue) = q.iter().copied().find(|q| *q >= n)
            {
                let conflict = Conflict::GroupBeyondChannels { group: g.name.clone(), queue, left: n };
                add(self.out, vec![of_group(g, "queues"), place(channels)], conflict);
            }
        }
        let counted: u32 = e.groups.iter().map(|g| if let GroupQueues::Count(n) = g.queues { n } else { 0 }).sum();
        if counted > n {
            let conflict = Conflict::GroupsWantMore { wanted: counted, left: n };
            add(self.out, vec![ConflictPlace::Entry(self.i, "group"), place(channels)], conflict);
        }
    }

    fn group_queues(&mut self) {
        for (i, g) in self.e.groups.iter().enumerate() {
            let GroupQueues::These(queues) = &g.queues else { continue };
            for other in &self.e.groups[..i] {
                let GroupQueues::These(theirs) = &other.queues else { continue };
                if let Some(q) = queues.iter().find(|q| theirs.contains(q) && other.name != g.name) {
                    let at = vec![of_group(g, "queues"), of_group(other, "queues")];
                    add(self.out, at, Conflict::QueueOfTwoGroups { queue: *q, group: other.name.clone() });
                }
            }
        }
    }

    fn group_cpus(&mut self) {
        let kept = [("reserve", &self.host.reserve), ("exclude_cpus", &self.host.exclude_cpus)];
        for g in &self.e.groups {
            let Some(cpus) = &g.cpus else { continue };
            for (name, set) in kept {
                let both = set.as_ref().map(|s| cpus.intersection(s)).unwrap_or_default();
                if !both.is_empty() {
                    let conflict = Conflict::GroupOnKeptCpus { group: g.name.clone(), cpus: both, kept: name };
                    add(self.out, vec![of_group(g, "cpus"), ConflictPlace::Host(name)], conflict);
                }
            }
            let outside = self.host.cpus.as_ref().map(|c| cpus.difference(c)).unwrap_or_default();
            if !outside.is_empty() {
                let conflict = Conflict::GroupOutsideCpus { group: g.name.clone(), cpus: outside };
                add(self.out, vec![of_group(g, "cpus"), ConflictPlace::Host("cpus")], conflict);
            }
            for w in &self.e.wishes {
                let Knob::IrqCpus { queues, cpus: irq } = &w.knob else { continue };
                let of_it = match (queues, &g.queues) {
                    (None, _) => true,
                    (Some(q), GroupQueues::These(mine)) => q.iter().any(|q| mine.contains(q)),
                    (Some(_), _) => false,
                };
                if of_it && !irq.is_subset(cpus) {
                    let (group, cpus, interrupts) = (g.name.clone(), cpus.clone(), irq.clone());
                    let conflict = Conflict::GroupAndInterrupts { group, cpus, interrupts };
                    add(self.out, vec![of_group(g, "cpus"), place(w)], conflict);
                }
            }
        }
    }

    fn tables_and_weights(&mut self) {
        let table = self.e.wishes.iter().find(|w| matches!(w.knob, Knob::RssTable { context: None, .. }));
        if let (Some(t), Some(g)) = (table, self.e.groups.iter().find(|g| g.weight.is_some())) {
            add(self.out, vec![place(t), of_group(g, "weight")], Conflict::TableAndWeights);
        }
    }

    fn features(&mut self) {
        let all: Vec<(&Wish, &str, bool)> = self.e.wishes.iter().filter_map(feature).collect();
        for (i, (w, name, on)) in all.iter().enumerate() {
            for (other, before, was) in &all[..i] {
                if on != was && overlap(name, before) {
                    let (name, before) = (name.to_string(), before.to_string());
                    let conflict = Conflict::FeatureOnAndOff { name, on: *on, before, was: *was };
                    add(self.out, vec![place(w), place(other)], conflict);
                }
            }
        }
        let goal = match (self.e.goal, self.host.goal) {
            (Some(g), _) => Some((g, ConflictPlace::Entry(self.i, "goal"))),
            (None, g) => g.map(|g| (g, ConflictPlace::Host("goal"))),
        };
        if let Some((Goal::Forward, at)) = goal {
            for (w, ..) in all.iter().filter(|(_, name, on)| *on && overlap(name, "lro")) {
                add(self.out, vec![place(w), at.clone()], Conflict::LroAndForward);
            }
        }
        let Some((off, ..)) = all.iter().find(|(_, name, on)| !on && overlap(name, "ntuple")) else { return };
        let rule = self.e.wishes.iter().find(|w| matches!(w.knob, Knob::FlowRule { .. })).map(place);
        let flows = || self.e.groups.iter().find(|g| !g.flows.is_empty()).map(|g| of_group(g, "flows"));
        if let Some(at) = rule.or_else(flows) {
            add(self.out, vec![place(off), at], Conflict::NtupleOff);
        }
    }

    /// The kernel refuses a symmetric transform if only one field of a pair is hashed.
    fn symmetric(&mut self) {
        let on = |w: &&Wish| matches!(&w.knob, Knob::RssHash { symmetric: Some(s), .. } if s != "none");
        let Some(hash) = self.e.wishes.iter().find(on) else { return };
        for w in &self.e.wishes {
            let Knob::RssFields { flow, fields } = &w.knob else { continue };
            let half = |a: char, b: char| fields.contains(a) != fields.contains(b);
            if half('s', 'd') || half('f', 'n') {
                let conflict = Conflict::HalfOfSymmetric { flow: flow.clone(), fields: fields.clone() };
                add(self.out, vec![place(w), place(hash)], conflict);
            }
        }
    }

    /// Finds flows that are steered to two places.
    fn flows(&mut self) {
        let mut seen: Vec<(String, String, ConflictPlace)> = Vec::new();
        let mut meet = |key: String, to: String, at: ConflictPlace| {
            if let Some((_, first, place)) = seen.iter().find(|(k, ..)| *k == key) {
                let (flow, first, to) = (key.clone(), first.clone(), to.clone());
                add(self.out, vec![at.clone(), place.clone()], Conflict::FlowTwice { flow, first, to });
            }
            seen.push((key, to, at));
        };
        for w in &self.e.wishes {
            if let Knob::FlowRule { rule, .. } = &w.knob {
                let to = match (rule.context, &rule.action) {
                    (Some(c), _) => format!("context {c}"),
                    (None, Action::Queue(q)) => format!("queue {q}"),
                    (None, Action::Drop) => "action -1 (drop)".into(),
                    (None, Action::Wake) => "action -2 (wake up)".into(),
                    (None, Action::Vf { vf, queue }) => format!("vf {vf} queue {queue}"),
                };
                meet(flow_text(&rule.flow, &rule.fields), to, place(w));
            }
        }
        for g in &self.e.groups {
            for f in &g.flows {
                let key = match f {
                    Flow::Match { flow, fields } => flow_text(flow, fields),
                    Flow::Program(p) => format!("program \"{p}\""),
                    Flow::Unit(u) => format!("unit \"{u}\""),
                };
                meet(key, format!("group \"{}\"", g.name), of_group(g, "flows"));
            }
        }
    }

    fn contexts(&mut self) {
        let all = &self.e.wishes;
        for w in all {
            let Knob::FlowRule { rule, .. } = &w.knob else { continue };
            let Some(c) = rule.context else { continue };
            if !all.iter().any(|o| matches!(o.knob, Knob::RssTable { context: Some(n), .. } if n == c)) {
                add(self.out, vec![place(w)], Conflict::NoContext { context: c });
            }
        }
    }
}

fn feature(w: &Wish) -> Option<(&Wish, &str, bool)> {
    match &w.knob {
        Knob::Feature { name, on } => Some((w, name, *on)),
        _ => None,
    }
}

/// Whether two names include the same feature. A name may be the kernel's, or ethtool's for one or several features.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    a == b || covers(a, b) || covers(b, a)
}

/// Whether the wide name includes every feature of the narrow one.
pub(crate) fn covers(wide: &str, narrow: &str) -> bool {
    let pattern = |word: &str| FEATURE_WORDS.iter().find(|(s, l, _)| *s == word || *l == word).map(|x| x.2);
    match (pattern(wide), pattern(narrow)) {
        (Some(w), Some(n)) => w == n,
        (Some(w), None) => glob_matches(w, narrow),
        (None, Some(n)) => n == wide,
        (None, None) => wide == narrow,
    }
}

/// Receive and transmit queues after `channels`, if the setting determines them.
pub(crate) fn queues_left(knob: &Knob) -> Option<(u32, u32)> {
    match *knob {
        Knob::Channels { rx: None, combined: Some(n), tx: None } => Some((n, n)),
        // The count of a kind that is not configured does not change.
        Knob::Channels { rx, combined: Some(n), tx } => {
            let sum = |own: Option<u32>| own.map_or(u32::MAX, |own| own + n);
            Some((sum(rx), sum(tx)))
        }
        _ => None,
    }
}

/// A queue that the knob names and that does not exist with this many queues.
fn beyond(knob: &Knob, (rx, tx): (u32, u32)) -> Option<(u32, &'static str, u32)> {
    let last = |q: &Option<Vec<u32>>| q.as_ref()?.iter().max().copied();
    let (q, what, n) = match knob {
        Knob::RssTable { table, .. } => (highest(table)?, "the table", rx),
        Knob::FlowRule { rule, .. } => match rule.action {
            Action::Queue(q) => (q, "the rule", rx),
            _ => return None,
        },
        Knob::Coalesce { queues, .. } => (last(queues)?, "coalesce", rx.max(tx)),
        Knob::Napi { queues, .. } => (last(queues)?, "napi", rx),
        Knob::IrqCpus { queues, .. } => (last(queues)?, "irq_cpus", rx.max(tx)),
        Knob::RpsCpus { queues, .. } => (last(queues)?, "rps_cpus", rx),
        Knob::RpsFlowCnt { queues, .. } => (last(queues)?, "rps_flow_cnt", rx),
        Knob::XpsCpus { queues, .. } => (last(queues)?, "xps_cpus", tx),
        Knob::XpsRxqs { queues, rxqs } => match last(queues).filter(|q| *q >= tx) {
            Some(q) => (q, "xps_rxqs", tx),
            None => (rxqs.iter().max().copied()?, "xps_rxqs", rx),
        },
        _ => return None,
    };
    (q >= n).then_some((q, what, n))
}

/// The highest queue that a table names.
fn highest(table: &Table) -> Option<u32> {
    match table {
        Table::Default => None,
        Table::Equal { queues, start } => Some(start.saturating_add(queues - 1)),
        Table::Weight { weights, start } => {
            let last = weights.iter().rposition(|w| *w > 0)?;
            Some(start.saturating_add(last as u32))
        }
        Table::Explicit(entries) => entries.iter().max().copied(),
    }
}
