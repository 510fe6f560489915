//! Manual changes: when they happened, their likely cause, and the two ways to continue.
use std::collections::BTreeSet;

use ringwise_apply::{DriftCause, Newer, Outcome, SettingInEffect};
use ringwise_knob::{ChangeWindow, Family, ManualChange, Match, Origin, Setting};
use ringwise_plan::Plan;

use super::plan_index::PlanIndex;
use ringwise_text::when;
use ringwise_text::{Style, Tint};
use ringwise_text::{hang, plural};

fn address(s: &Setting) -> String {
    s.address().map_or_else(|| s.value_text(), |a| a.to_string())
}

/// `between 02:51:10 and 02:51:40`. It includes the date if that is not today's, or if the two dates differ.
pub fn between(w: &ChangeWindow, now: Option<u64>, utc: bool) -> String {
    let day = |t: u64| when::minute(t, utc).get(..10).map(str::to_string);
    let today = now.and_then(day);
    let time = |t: u64| if day(t) == today { when::clock(t, utc) } else { when::second(t, utc) };
    match w.by {
        Some(by) if day(by) == day(w.after) && day(by) != today => {
            format!("between {} and {}", when::second(w.after, utc), when::clock(by, utc))
        }
        Some(by) => format!("between {} and {}", time(w.after), time(by)),
        None => format!("after {}", time(w.after)),
    }
}

/// `changed between …` after a line of `verify`; `same time` if the line before shows the same time.
pub fn changed(s: &SettingInEffect, last: &mut Option<ChangeWindow>, now: Option<u64>, utc: bool) -> String {
    let Some(w) = s.changed else { return String::new() };
    if last.replace(w) == Some(w) {
        return "   same time".into();
    }
    format!("   changed {}", between(&w, now, utc))
}

/// What helps to find out which program changed settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriftEvidence {
    /// By device with manual changes; devices about which nothing is known are not in the list.
    pub devices: Vec<(String, DriftCause)>,
    /// Names of running programs that change settings; `None`: this could not be read.
    pub rivals: Option<Vec<String>>,
}

/// What `verify` shows in addition to the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice {
    /// The command that applied it last, without flags that only that run needed. `None`: a reviewed plan was applied, or
    /// the command is not recorded.
    pub again: Option<String>,
    /// The last transaction in effect.
    pub last: Option<u64>,
    /// What is known about the cause of manual changes.
    pub evidence: DriftEvidence,
    /// Seconds since 1970; `None`: the page is about a recording.
    pub now: Option<u64>,
}

/// The last lines of `verify` if settings differ from those applied. `changed`: some of them were changed outside
/// ringwise.
pub fn next_steps(drifted: &[&SettingInEffect], changed: bool, a: &Advice, style: &Style) -> String {
    let mut out = String::new();
    if let Some(text) = likely_cause(drifted, &a.evidence) {
        out.push_str(&hang("Likely cause: ", &text, style.width));
    }
    let there = |c: &str| style.recording.there(c);
    let Some(again) = a.again.as_deref() else {
        let shown = a.last.map_or_else(|| "ringwise history".into(), |id| format!("ringwise history {id}"));
        let over = if changed { ", with --take-over" } else { "" };
        let text = format!("run the apply command from {} again{over}", there(&shown));
        out.push_str(&hang("Put back: ", &text, style.width));
        return out + &keep(drifted, style);
    };
    if changed {
        out.push_str(&format!("Put back: {}\n", there(&format!("{again} --take-over"))));
        out.push_str(&hang("          ", "--take-over overwrites what was changed outside ringwise", style.width));
    } else {
        out.push_str(&format!("Put back: {}\n", there(again)));
    }
    out + &keep(drifted, style)
}

/// How to keep the present values.
fn keep(drifted: &[&SettingInEffect], style: &Style) -> String {
    let mut out = String::new();
    let there = |c: &str| style.recording.there(c);
    let addresses: Vec<_> = drifted.iter().filter(|s| !matches!(s.how, Match::Unknown(_))).collect();
    let devs: BTreeSet<String> = addresses.iter().filter_map(|s| s.want.address()?.dev().map(str::to_string)).collect();
    let host = addresses.iter().any(|s| s.want.address().is_some_and(|a| a.dev().is_none()));
    match (host, devs.is_empty()) {
        (true, _) => out.push_str(&format!("Keep:     {}\n", there("ringwise adopt --all"))),
        (false, false) => {
            let adopt = format!("ringwise adopt {}", devs.into_iter().collect::<Vec<_>>().join(" "));
            out.push_str(&format!("Keep:     {}\n", there(&adopt)));
        }
        (false, true) => {}
    }
    out
}

/// A transaction of this boot whose journal is damaged, or which only a later version can read.
pub fn newer(n: &Newer, style: &Style) -> String {
    let text = format!("transaction {} is not included here: {} ({})", n.transaction, n.why, n.path.display());
    let mut out = hang("", &text, style.width);
    out.push_str(if n.damaged {
        "Manual undo, as far as the journal can be read (compare it with the host first):\n"
    } else {
        "Manual undo, from its journal:\n"
    });
    n.undo.iter().for_each(|c| out.push_str(&format!("  {c}\n")));
    out
}

/// `Likely cause: …`: a guess at the cause, with the evidence for it.
pub fn likely_cause(drifted: &[&SettingInEffect], e: &DriftEvidence) -> Option<String> {
    if drifted.iter().all(|s| matches!(s.how, Match::Unknown(_))) {
        return None;
    }
    let names = |f: fn(&DriftCause) -> bool| -> Vec<&str> {
        e.devices.iter().filter(|(_, h)| f(h)).map(|(d, _)| d.as_str()).collect()
    };
    let anew = names(|h| *h == DriftCause::SetUpAnew);
    if !anew.is_empty() {
        return Some(format!("{} was created again (new interface index: driver or device reloaded)", anew.join(", ")));
    }
    let channels: Vec<String> = e
        .devices
        .iter()
        .filter_map(|(d, h)| match h {
            DriftCause::Channels { from, to } => Some(format!("{d} {} -> {}", from.value_text(), to.value_text())),
            _ => None,
        })
        .collect();
    if !channels.is_empty() {
        return Some(format!("the channels were changed ({}), which resets other settings", channels.join(", ")));
    }
    let irq_only = drifted.iter().all(|s| s.want.address().is_some_and(|a| a.family() == Family::Irq));
    let mut facts = Vec::new();
    match &e.rivals {
        Some(r) if !r.is_empty() && irq_only => {
            return Some(format!("{} (running), or a manual change or a script", r.join(", ")));
        }
        Some(r) if r.is_empty() => facts.push("no program that moves interrupts is running".to_string()),
        Some(r) => facts.push(format!("{} does not change these settings", r.join(", "))),
        None => {}
    }
    let same = names(|h| *h == DriftCause::Nothing);
    if !same.is_empty() {
        facts.push(format!("{} not created again, channels unchanged", same.join(", ")));
    }
    let why = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
    Some(format!("a manual change or a script{why}"))
}

/// `changed manually after 02:51` or `adopted in transaction 15`.
fn origin(h: &ManualChange, utc: bool) -> String {
    match (h.origin, &h.changed) {
        (Origin::Adopted, _) => format!("adopted in transaction {}", h.transaction),
        (Origin::ByHand, Some(w)) => format!("changed manually {}", between(w, None, utc)),
        (Origin::ByHand, None) => "changed manually".into(),
    }
}

/// Lines below a band with steps that undo manual changes.
pub fn marks(index: &PlanIndex, steps: &[&ringwise_knob::Step], style: &Style) -> String {
    let mut out = String::new();
    for h in index.manual_changes(steps) {
        let was = match h.origin {
            Origin::ByHand => format!("; transaction {} had set {}", h.transaction, h.applied.value_text()),
            Origin::Adopted => String::new(),
        };
        let text = format!("now {}, {}{was}", h.setting.value_text(), origin(h, style.utc));
        out.push_str(&hang(&format!("      {}: ", address(&h.setting)), &text, style.width));
    }
    out
}

/// The note about a manual change after a line of `plan --full`.
pub fn mark(index: &PlanIndex, st: &ringwise_knob::Step, utc: bool) -> String {
    index.manual_change(st).map(|h| format!(" ({})", origin(h, utc))).unwrap_or_default()
}

fn devices(list: &[&ManualChange]) -> String {
    let devs: BTreeSet<String> = list.iter().filter_map(|h| h.address()?.dev().map(str::to_string)).collect();
    if list.iter().any(|h| h.address().is_some_and(|a| a.dev().is_none())) {
        return "--all".into();
    }
    devs.into_iter().collect::<Vec<_>>().join(" ")
}

/// The manual changes that the plan keeps, and how to overwrite them. `again`: the flags of this plan.
pub fn kept(plan: &Plan, again: &str, style: &Style) -> String {
    if plan.kept.is_empty() {
        return String::new();
    }
    let mut out = hang("", "Manual changes and adopted settings that are kept:", style.width);
    for k in &plan.kept {
        let text = format!(
            "{}, {}; planned {}",
            k.hand.setting.value_text_beside(&k.wanted),
            origin(&k.hand, style.utc),
            k.wanted.value_text()
        );
        out.push_str(&hang(&format!("  = {}  ", address(&k.hand.setting)), &text, style.width));
    }
    let again = if again.is_empty() { String::new() } else { format!(" {again}") };
    out.push_str(&format!("  overwrite:  ringwise apply{again} --take-over\n"));
    let by_hand: Vec<&ManualChange> =
        plan.kept.iter().map(|k| &k.hand).filter(|h| h.origin == Origin::ByHand).collect();
    if !by_hand.is_empty() {
        out.push_str(&format!("  keep permanently:  ringwise adopt {}\n", devices(&by_hand)));
    }
    out
}

/// How many manual changes the plan undoes, and the `adopt` command that keeps one of them.
pub fn undone(plan: &Plan, style: &Style) -> String {
    if plan.by_hand.is_empty() {
        return String::new();
    }
    let changed: Vec<&ManualChange> = plan.by_hand.iter().filter(|h| h.origin == Origin::ByHand).collect();
    let adopted = plan.by_hand.len() - changed.len();
    let mut text = Vec::new();
    let verb = |n: usize| if n == 1 { "undoes" } else { "undo" };
    if !changed.is_empty() {
        let n = changed.len();
        text.push(format!(
            "{n} of these {} a manual change. Keep it instead: ringwise adopt {}",
            verb(n),
            devices(&changed)
        ));
    }
    if adopted > 0 {
        text.push(format!("{adopted} of these {} an adopted setting.", verb(adopted)));
    }
    text.iter().map(|t| hang("", t, style.width)).collect()
}

/// The question before an apply that would undo manual changes.
pub fn question(list: &[ManualChange], style: &Style) -> String {
    let verb = if list.len() == 1 { "was" } else { "were" };
    let mut out = format!("{} of this plan {verb} changed manually:\n", plural(list.len(), "setting"));
    for h in list {
        let text = format!(
            "now {}, {}; transaction {} had set {}",
            h.setting.value_text_beside(&h.applied),
            origin(h, style.utc),
            h.transaction,
            h.applied.value_text()
        );
        out.push_str(&hang(&format!("  {}  ", address(&h.setting)), &text, style.width));
    }
    out.push_str("[K]eep, [t]ake over, or anything else to quit?");
    out
}

/// The manual changes that an apply kept, after its outcome.
pub fn outcome(kept: &[ManualChange], style: &Style) -> String {
    let mut out = String::new();
    for h in kept.iter().filter(|h| h.origin == Origin::ByHand) {
        let text = format!("{} stays {} ({})", address(&h.setting), h.setting.value_text(), origin(h, style.utc));
        out.push_str(&hang("kept: ", &text, style.width));
    }
    out
}

/// One line for each setting that `adopt` would record.
pub fn adoptable(steps: &[ringwise_knob::Step], style: &Style) -> String {
    if steps.is_empty() {
        return "Nothing to adopt: all settings are as applied.\n".into();
    }
    steps
        .iter()
        .map(|st| hang(&format!("= {}  ", address(&st.setting)), &st.setting.value_text(), style.width))
        .collect()
}

/// The outcome of `adopt`.
pub fn adopted(o: &Outcome, style: &Style) -> String {
    let mut out = match o.transaction {
        None => "Nothing to adopt: all settings are as applied. Nothing was written.\n".to_string(),
        Some(id) => {
            let n = plural(o.already_so.len(), "setting");
            let text = format!("Adopted {n} as transaction {id}; nothing was written to the host.");
            format!(
                "{}\nUndo: ringwise rollback {id}\n",
                style.paint(Tint::Green, hang("", &text, style.width).trim_end())
            )
        }
    };
    for n in &o.notes {
        out.push_str(&hang("note: ", n, style.width));
    }
    out
}
