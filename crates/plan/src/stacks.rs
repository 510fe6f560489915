//! Warnings about queues that share CPUs and cores, with what the user can do about it.

use std::collections::BTreeMap;

use ringwise_knob::Setting;
use ringwise_model::words::plural;
use ringwise_model::{CpuSet, Goal};

use crate::channels;
use crate::dev::Dev;
use crate::messages::Messages;
use crate::{DoubledCore, ProposedChange};

/// A device with several queues on one CPU.
pub(crate) struct Stack<'a> {
    dev: &'a str,
    queues: usize,
    cpus: usize,
    /// The most queues on one CPU.
    most: u32,
    /// The goal proposes the same number, and no number is requested.
    as_proposed: bool,
    /// The number of queues to propose.
    fewer: u32,
    goal: Goal,
    /// Why the number of queues cannot be changed.
    fixed: Option<String>,
    why: StackCause,
}

/// Why the queues of a device share CPUs.
enum StackCause {
    /// Queues share interrupts, and each interrupt has a CPU of its own.
    FewInterrupts,
    /// There are fewer CPUs for the interrupts than interrupts. `remote`: `--far-node ok` would give them more,
    /// `threads`: `--smt all` would.
    FewCpus { remote: bool, threads: bool },
    /// There are enough CPUs, but some of them have more queues of other devices.
    OtherDevices,
}

impl<'a> Stack<'a> {
    pub(crate) fn of(d: &'a Dev, proposed: &[ProposedChange], named: bool, remote: bool) -> Option<Self> {
        // Queues that share a CPU have smaller shares of a weighted table.
        if d.table.is_some() {
            return None;
        }
        let mut per: BTreeMap<usize, u32> = BTreeMap::new();
        for c in d.cpu.iter().flatten() {
            *per.entry(*c).or_default() += 1;
        }
        let most = per.values().copied().max().filter(|most| *most > 1)?;
        let (dev, queues, cpus) = (d.name(), d.cpu.len(), per.len());
        // The same number as in the change that the goal proposes, unless a router would lose CPUs by it.
        let good = |n: &u32| (*n as usize) < queues && (d.goal != Goal::Forward || *n as usize >= cpus);
        let goal = proposed.iter().find_map(|p| match &p.setting {
            Setting::Channels { dev: of, combined, rx, .. } if of == dev => combined.or(*rx).filter(good),
            _ => None,
        });
        let why = StackCause::of(d);
        let fewer = match why {
            StackCause::FewInterrupts => goal.map_or(cpus as u32, |n| n.min(cpus as u32)),
            // The goal counts local cores only.
            StackCause::FewCpus { .. } if remote => cpus as u32,
            StackCause::FewCpus { .. } | StackCause::OtherDevices => goal.unwrap_or(cpus as u32),
        };
        let fixed = channels::why_fixed(d);
        let as_proposed = !named && goal == Some(fewer);
        Some(Self { dev, queues, cpus, most, fewer, as_proposed, goal: d.goal, fixed, why })
    }
}

impl StackCause {
    fn of(d: &Dev) -> Self {
        // By CPU: its interrupts, and those of them that could move.
        let mut interrupts: BTreeMap<usize, (u32, u32)> = BTreeMap::new();
        for u in &d.units {
            let Some(cpu) = u.queues.first().and_then(|q| d.cpu[*q]) else { continue };
            let (all, movable) = interrupts.entry(cpu).or_default();
            *all += 1;
            *movable += u32::from(u.fixed.is_none());
        }
        let shared = || interrupts.values().filter(|(all, _)| *all > 1);
        match shared().next() {
            None if d.units.len() < d.cpu.len() => Self::FewInterrupts,
            _ if d.crowded => Self::OtherDevices,
            _ => {
                let movable = shared().any(|(_, movable)| *movable > 0);
                Self::FewCpus { remote: d.remote_left && movable, threads: d.threads_left && movable }
            }
        }
    }
}

/// Warns about them, with the solutions that the user can choose from. `devices`: how many there are in the plan.
pub(crate) fn warn(stacks: &[Stack], devices: usize, warnings: &mut Messages) {
    for s in stacks {
        let same = |o: &&Stack| (o.fewer, o.goal, &o.fixed) == (s.fewer, s.goal, &s.fixed);
        let alike: Vec<&str> = stacks.iter().filter(same).map(|o| o.dev).collect();
        // --queues and --allow-disruption are for all interfaces of the command, so others must not be part of it. The rest of the
        // command, such as --from and --config, stays, so it is not repeated here.
        let command = match alike.len() == devices {
            true => "add ".to_string(),
            false => format!("plan only {}, so that no others change, and add ", alike.join(" ")),
        };
        let reduce = match &s.fixed {
            None if s.as_proposed => format!(": reduce the queues ({command}--allow-disruption)"),
            None => format!(": reduce the queues ({command}--queues {} --allow-disruption)", s.fewer),
            Some(why) => format!("; their number cannot be changed: {why}"),
        };
        let on = plural(s.cpus, "CPU");
        let (on, text) = match s.why {
            StackCause::FewInterrupts => {
                (plural(s.cpus, "interrupt"), format!("queues that share an interrupt also share its CPU{reduce}"))
            }
            StackCause::FewCpus { remote, threads } => {
                let more = match (remote, threads) {
                    (true, true) => " remote CPUs too (--far-node ok), or second threads (--smt all)",
                    (true, false) => " remote CPUs too (--far-node ok)",
                    (false, true) => " second threads too (--smt all)",
                    (false, false) => "",
                };
                let or = match s.fixed {
                    _ if more.is_empty() => "",
                    Some(_) => "; to spread them, use",
                    None => ", or use",
                };
                (on, format!("queues share CPUs{reduce}{or}{more}"))
            }
            StackCause::OtherDevices => {
                let or = if s.fixed.is_some() { ";" } else { ", or" };
                let alone = format!("plan only {} to give each queue a CPU", s.dev);
                let why = "the other CPUs have more queues of other interfaces";
                (on, format!("queues share CPUs, because {why}{reduce}{or} {alone}"))
            }
        };
        warnings.detailed(s.dev, format!("{} queues on {on}, up to {} on one", s.queues, s.most), text);
    }
}

/// Warns about cores with several queues of one group.
pub(crate) fn warn_about_pairs(doubled: &[DoubledCore], warnings: &mut Messages) {
    let mut by: BTreeMap<(&str, &str), CpuSet> = BTreeMap::new();
    let mut cores: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for d in doubled {
        if let Some(g) = &d.group {
            let key = (d.dev.as_str(), g.as_str());
            let all = by.entry(key).or_default();
            *all = all.union(&d.core);
            *cores.entry(key).or_default() += 1;
        }
    }
    for ((dev, group), cpus) in by {
        let n = cores[&(dev, group)];
        let detail = format!("{}: CPUs {cpus}", plural(n as usize, "physical core"));
        warnings.detailed(dev, detail, format!("each of these cores carries several {group} queues"));
    }
}
