//! The page of `plan` for people: changes, reasons, what was skipped, and the next command.

use std::collections::BTreeMap;

use ringwise_knob::{Reason, Setting, Step, VectorName};
use ringwise_model::order::Order;
use ringwise_model::{DEFAULT_CONFIG, Fact, Goal, Snapshot};
use ringwise_plan::{NotPossible, Obstacle, Plan, SkippedInterface};

use super::bands::{bands, now_text};
use super::competing;
use super::control;
use super::doubled_cores;
use super::gains;
use super::groups;
use super::interrupts;
use super::manual_changes;
use super::pending;
use super::plan_index::PlanIndex;
use super::skipped;
use ringwise_emit::summary::{name, summary};
use ringwise_model::shell::quote;
use ringwise_text::{self as text, hang, len, pad, plural};
use ringwise_text::{Style, Tint};

/// The sources, each with the ids of its rules, in the order in which the page names them.
#[derive(Default)]
struct Sources {
    list: Vec<(String, Vec<String>)>,
}

impl Sources {
    fn add(&mut self, st: &Step) {
        let at = self.list.iter().position(|(s, _)| *s == st.source).unwrap_or_else(|| {
            self.list.push((st.source.clone(), Vec::new()));
            self.list.len() - 1
        });
        let rules = &mut self.list[at].1;
        if !rules.contains(&st.rule) {
            rules.push(st.rule.clone());
        }
    }

    fn render(&self, width: Option<usize>) -> String {
        let mut out = String::new();
        for (source, rules) in &self.list {
            out.push_str(&hang(&format!("[{}] ", rules.join(" ")), source, width));
        }
        if let Some(rule) = self.list.first().and_then(|(_, rules)| rules.first()) {
            out.push_str(&format!("Explain a rule: ringwise check --explain {rule}\n"));
        }
        out
    }
}

/// What a command line requests beside its configuration file. A boot reads the file alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotInFile {
    /// Lines to add under `[host]`: `queues = 4`.
    pub host: Vec<String>,
    /// `--set` names settings of interfaces.
    pub set: bool,
    /// The command line permits changes that interrupt traffic, and the file does not.
    pub disruption: bool,
}

/// The options of the page.
#[derive(Debug, Clone, Default)]
pub struct PlanPageOptions {
    /// The flags of this plan, for the next command.
    pub again: String,
    /// The file that holds this plan.
    pub file: Option<String>,
    /// The plan is for another host or another time.
    pub recorded: bool,
    /// One line for each setting instead of bands.
    pub full: bool,
    /// Why `ringwise persist` would refuse the configuration file of the plan where it is.
    pub config_refused: Option<String>,
    /// What the command line requests beside the configuration file of the plan.
    pub not_in_file: NotInFile,
    /// The goal that fits the role of the host better than that of the plan. `None`: the role is not evident, or a goal was chosen.
    pub better_goal: Option<Goal>,
}

/// The whole page.
pub fn text(plan: &Plan, s: Option<&Snapshot>, how: &PlanPageOptions, style: &Style) -> String {
    let (w, again) = (style.width, how.again.as_str());
    if plan.steps.is_empty() {
        let mut out = named(plan, style);
        out += &hang("", &nothing_to_change(plan), w);
        let unplanned = |l: &&SkippedInterface| !matches!(l.why, Obstacle::NotNamed | Obstacle::Software { .. });
        let interesting = plan.left_alone.iter().filter(unplanned);
        let (skipped, counts) = skipped_interfaces(plan, interesting);
        if !skipped.is_empty() {
            out += &hang("", &format!("Skipped: {}.", skipped.join(", ")), w);
        }
        out += &counts.map(|c| hang("", &c, w)).unwrap_or_default();
        if how.full && !plan.target.is_empty() {
            out.push_str(&lines(plan, &PlanIndex::new(plan), s, &mut Sources::default(), style));
        }
        out.push_str(&s.map(|s| pending::of_plan(plan, &PlanIndex::new(plan), s, w)).unwrap_or_default());
        out.push_str(&rest(plan, again, style));
        out.push_str(&manual_changes::kept(plan, again, style));
        return out;
    }
    let mut out = named(plan, style) + &head(plan, how, w);
    let mut notes = Sources::default();
    let index = PlanIndex::new(plan);
    if how.full {
        out.push_str(&lines(plan, &index, s, &mut notes, style));
    } else {
        for dev in &plan.considered {
            out.push_str(&device(plan, &index, s, dev, &mut notes, style));
        }
        let host = bands(&index.host, s);
        let told = competing::steps(plan);
        if !host.is_empty() || !told.is_empty() {
            out.push_str(&format!("{}\n", style.paint(Tint::Bold, "host")));
            if !told.is_empty() {
                out.push_str(&competing::band(&told, s, style));
                out.push_str(&reasons(&told, told.len(), &mut notes, style));
            }
            for b in &host {
                out.push_str(&b.render(false, style));
                out.push_str(&reasons(&b.steps, b.columns.len(), &mut notes, style));
                out.push_str(&manual_changes::marks(&index, &b.steps, style));
            }
            out.push('\n');
        }
    }
    out.push_str(&groups::programs(plan, s, w));
    out.push_str(&gains::text(plan, w));
    out.push_str(&s.map(|s| pending::of_plan(plan, &index, s, w)).unwrap_or_default());
    out.push_str(&rest(plan, again, style));
    out.push_str(&groups::advice(plan, w));
    out.push_str(&manual_changes::kept(plan, again, style));
    if !out.ends_with("\n\n") {
        out.push('\n');
    }
    out.push_str(&manual_changes::undone(plan, style));
    out.push_str(&totals(plan, w));
    out.push_str(&control::cuts(plan, style));
    out.push_str(&next(plan, how, style));
    if !notes.list.is_empty() {
        out.push('\n');
        out.push_str(&notes.render(w));
    }
    out
}

/// The first line of a plan without changes. A setting that could not be read is not as planned, only unknown.
fn nothing_to_change(plan: &Plan) -> String {
    let (n, host) = (plan.target.len(), name(plan));
    let so = n.saturating_sub(plan.kept.len());
    let unread = || plan.refused.iter().filter(|r| r.is_unread());
    let not_readable: usize = unread().map(|r| r.settings).sum();
    let incomplete = unread().any(|r| r.needed && !r.is_user_configured());
    match (n, not_readable) {
        (0, 0) => format!("{host}: nothing to plan, nothing to change."),
        (_, 0) => format!("{host}: nothing to change ({so} of {n} settings are as planned)."),
        (_, unread) => {
            let whether = if incomplete { "; whether the goal is met is unknown" } else { "" };
            let planned = if so == n { plural(n, "setting") } else { format!("{so} of {n} settings") };
            format!(
                "{host}: nothing to change in what could be read ({planned} as planned, {unread} not readable){whether}."
            )
        }
    }
}

fn head(plan: &Plan, how: &PlanPageOptions, w: Option<usize>) -> String {
    let goal = plan.intent.goal;
    let named = plan.intent.given.as_ref().is_some_and(|given| given.goal.is_some());
    let default = match &plan.intent.config {
        Some(file) => match plan.intent.host_groups.as_slice() {
            [] => format!(" ({file})"),
            [one] => format!(" ({file}, host group {one})"),
            all => format!(" ({file}, host groups {})", all.join(", ")),
        },
        None if goal == Default::default() && !named => " (default)".into(),
        None => String::new(),
    };
    let better = how.better_goal.map(super::check::for_role).unwrap_or_default();
    let mut out = hang("", &format!("Plan for {}: goal {goal}{default}{better}", name(plan)), w);
    let mut text = format!("Considered {}.", plan.considered.join(" "));
    let (mut alone, counts) = skipped_interfaces(plan, plan.left_alone.iter());
    let mut soft: Vec<String> = plan
        .bystanders
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(k, n)| format!("{} {}", text::thousands(u64::from(*n)), text::kind_name(k, u64::from(*n))))
        .collect();
    if let Some(last) = soft.last_mut() {
        last.push_str(" (no queues of their own)");
    }
    alone.append(&mut soft);
    if !alone.is_empty() {
        text.push_str(&format!(" Skipped: {}.", alone.join(", ")));
    }
    text.extend(counts.map(|c| format!(" {c}")));
    out.push_str(&hang("", &text, w));
    out.push_str(&control::head(plan, w));
    out.push('\n');
    out
}

/// `eth1 (link down)` for each skipped interface, and a sentence about those of which only the number of queues is skipped.
fn skipped_interfaces<'a>(
    plan: &Plan,
    list: impl Iterator<Item = &'a SkippedInterface>,
) -> (Vec<String>, Option<String>) {
    let (mut alone, mut counts) = (Vec::new(), Vec::new());
    for l in list {
        match &l.why {
            Obstacle::ChannelsInUse { by } if plan.considered.contains(&l.dev) => {
                let by: Vec<String> = by.iter().map(text::user).collect();
                counts.push(format!("{} (in use by {})", l.dev, by.join(", ")));
            }
            why => alone.push(format!("{} ({why})", l.dev)),
        }
    }
    let counts = (!counts.is_empty()).then(|| format!("Number of queues not changed: {}.", counts.join(", ")));
    (alone, counts)
}

fn device(
    plan: &Plan,
    index: &PlanIndex,
    s: Option<&Snapshot>,
    dev: &str,
    notes: &mut Sources,
    style: &Style,
) -> String {
    let as_planned = || format!("{dev}   already as planned\n\n");
    let Some(part) = index.device(dev) else { return as_planned() };
    let bands = bands(part, s);
    if bands.is_empty() {
        return as_planned();
    }
    let mut about = Vec::new();
    if let Some(n) = s.and_then(|s| s.nic(dev)) {
        about.push(text::word(&n.driver, String::clone));
        about.push(match &n.node {
            Fact::Known(k) => format!("node {k}"),
            Fact::Absent => "no NUMA node".into(),
            Fact::Unknown(_) => "node unknown".into(),
        });
        about.push(text::queues(n));
    }
    let mut out = format!("{}   {}\n", style.paint(Tint::Bold, dev), about.join(", "));
    let mut headed = None;
    for b in &bands {
        let columns = b.head();
        out.push_str(&b.render(columns.is_some() && columns != headed, style));
        headed = columns.or(headed);
        out.push_str(&reasons(&b.steps, b.columns.len(), notes, style));
        out.push_str(&manual_changes::marks(index, &b.steps, style));
    }
    out.push_str(&interrupts_of(plan, dev, s, style));
    for g in &part.groups {
        let queues = text::numbers(g.queues.iter().copied());
        let queue = if g.queues.len() == 1 { "queue" } else { "queues" };
        let cpu = if g.cpus.len() == 1 { "CPU" } else { "CPUs" };
        let text = format!("{queue} {queues} on {cpu} {}{}", g.cpus, groups::reached(g));
        out.push_str(&hang(&format!("  group {}: ", g.name), &text, style.width));
    }
    out.push_str(&doubled_cores::text(plan, dev, part, style));
    out.push('\n');
    out
}

/// Only with `-v`.
fn interrupts_of(plan: &Plan, dev: &str, s: Option<&Snapshot>, style: &Style) -> String {
    let shown = || interrupts::text(dev, plan.steps.iter(), s, style.width);
    (style.verbose > 0).then(shown).flatten().unwrap_or_default()
}

/// The rule of interrupts whose place is not wrong.
const BETTER_PLACE: &str = "R0.09";

/// The different reasons in one band, each once, with the ids of their rules. If there are several, each names its queues.
/// `columns`: how many settings the band shows.
fn reasons(steps: &[&Step], columns: usize, notes: &mut Sources, style: &Style) -> String {
    let mut seen: Vec<(&Reason, String, Vec<&str>, Vec<u32>)> = Vec::new();
    for st in steps {
        notes.add(st);
        let queue = queue_of_interrupt(&st.setting);
        let several = st.reason.of_several();
        let alike = |r: &Reason| *r == st.reason || several.is_some() && r.of_several() == several;
        match seen.iter_mut().find(|(r, ..)| alike(r)) {
            Some((_, text, rules, queues)) => {
                if !rules.contains(&st.rule.as_str()) {
                    rules.push(&st.rule);
                }
                queues.extend(queue);
                if let Some(several) = several {
                    *text = several;
                }
            }
            None => seen.push((&st.reason, st.reason.to_string(), vec![&st.rule], queue.into_iter().collect())),
        }
    }
    // What is wrong comes before what is only less good, and before what is right only by chance.
    seen.order_by_key(|(reason, _, rules, _)| {
        (matches!(reason, Reason::FreeToMove { arrived: true, .. }), rules.iter().all(|r| *r == BETTER_PLACE))
    });
    let shown = if style.width.is_some() && seen.len() > 3 { 2 } else { seen.len() };
    let mut out = String::new();
    for (_, reason, rules, queues) in &seen[..shown] {
        let of = match queues.as_slice() {
            [] => String::new(),
            _ if seen.len() == 1 && steps.len() == columns => String::new(),
            [one] => format!("queue {one}: "),
            several => format!("queues {}: ", text::numbers(several.iter().copied())),
        };
        out.push_str(&hang("      ", &format!("{of}{reason} [{}]", rules.join(" ")), style.width));
    }
    if shown < seen.len() {
        out.push_str(&format!("      and {} more reasons (--full)\n", seen.len() - shown));
    }
    out
}

/// For `--full`: one line for each setting, including those that do not change.
fn lines(plan: &Plan, index: &PlanIndex, s: Option<&Snapshot>, notes: &mut Sources, style: &Style) -> String {
    let steps: BTreeMap<_, &Step> = plan.steps.iter().filter_map(|st| Some((st.setting.address()?, st))).collect();
    let addresses: Vec<String> =
        plan.target.iter().map(|t| t.address().map_or_else(|| t.value_text(), |a| a.to_string())).collect();
    let longest = addresses.iter().map(|a| len(a)).max().unwrap_or(0);
    let mut out = String::new();
    for (t, a) in plan.target.iter().zip(&addresses) {
        let Some(st) = t.address().and_then(|a| steps.get(&a).copied()) else {
            out.push_str(&hang(&format!("= {}  ", pad(a, longest)), &t.value_text(), style.width));
            continue;
        };
        notes.add(st);
        let head = format!("~ {}  ", pad(a, longest));
        let mark = manual_changes::mark(index, st, style.utc);
        let change = format!("{}{mark} -> {}", now_text(st, s), t.value_text());
        let reason = format!("{} [{}]", st.reason, st.rule);
        match style.width {
            // Programs read one setting from each line.
            None => out.push_str(&format!("{head}{change}   {reason}\n")),
            Some(_) => {
                out.push_str(&hang(&head, &change, style.width));
                out.push_str(&hang("      ", &reason, style.width));
            }
        }
    }
    for dev in &plan.considered {
        out.push_str(&interrupts_of(plan, dev, s, style));
    }
    out.push('\n');
    out
}

/// Warnings, and settings that cannot be set or were skipped.
fn rest(plan: &Plan, again: &str, style: &Style) -> String {
    let mut out = String::new();
    for warning in &plan.warnings {
        out.push_str(&hang("Warning: ", warning, style.width));
    }
    plan.refused.iter().for_each(|r| out.push_str(&impossible(r, style.width)));
    let goal = || plan.left_out.iter().filter(|l| !l.is_user_configured());
    // Without a number of queues each interface gets that of the goal. `balanced` changes none.
    let whole = plan.intent.goal != Goal::Balanced && plan.intent.queues.is_none();
    let all = whole.then(|| {
        ["ringwise plan", again, "--allow-disruption"]
            .into_iter()
            .filter(|w| !w.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    });
    out.push_str(&skipped::text(goal(), "Skipped", all.as_deref(), style));
    out
}

fn impossible(r: &NotPossible, w: Option<usize>) -> String {
    let NotPossible { what, why, needed, .. } = r;
    let unread = matches!(why, Obstacle::NotReadable { .. } | Obstacle::NotReadableStays { .. });
    let tail = match *needed {
        _ if r.is_user_configured() => "",
        true if unread => "; run plan as root on the host to find out whether the goal is met",
        true => "; the goal is not fully met without it",
        false => "; optional for this goal",
    };
    hang("x ", &format!("{what}: {why}{tail}"), w)
}

/// Settings that the user configured and that cannot be set on this host, for `apply`.
pub fn impossible_requests(plan: &Plan, style: &Style) -> String {
    plan.refused.iter().filter(|r| r.is_user_configured()).map(|r| impossible(r, style.width)).collect()
}

/// Settings that the user requested and the plan skipped. They come first on the page.
fn named(plan: &Plan, style: &Style) -> String {
    skipped::text(plan.left_out.iter().filter(|l| l.is_user_configured()), "Requested but not planned", None, style)
}

/// The queue that an interrupt serves.
fn queue_of_interrupt(s: &Setting) -> Option<u32> {
    match s {
        Setting::IrqCpus { of: VectorName::Rx(q) | VectorName::Tx(q), .. } => Some(*q),
        _ => None,
    }
}

/// `41 changes (40 on eth1 eth2, 1 on the host), 45 settings checked. None interrupts traffic.`
fn totals(plan: &Plan, w: Option<usize>) -> String {
    hang("", &format!("{} Nothing was changed. What apply changes is lost at reboot.", summary(plan)), w)
}

fn next(plan: &Plan, how: &PlanPageOptions, style: &Style) -> String {
    let w = style.width;
    let plain = |n: &&String| n.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let file = format!("{}.plan", plan.host.name.known().filter(plain).map_or("host", String::as_str));
    let again = if how.again.is_empty() { String::new() } else { format!(" {}", how.again) };
    let here = if how.recorded { "This is a recording. On the host itself:" } else { "Next:" };
    let apply = match &how.file {
        Some(file) => format!("ringwise apply {}", quote(file)),
        None => format!("ringwise apply{again}"),
    };
    let persist = persist(plan, how, w);
    if !plan.cuts.is_empty() {
        return format!("{here}\n  {apply} --force --confirm 60s\n  ringwise confirm\n{persist}");
    }
    let exact = match &how.file {
        Some(_) => String::new(),
        None => {
            let what = if how.recorded {
                "To write the plan into a file here, and apply the file on the host:"
            } else {
                "To apply exactly this plan:"
            };
            let write = style.recording.reads(format!("ringwise plan{again} --out {file}"));
            format!("{what}\n  {write}\n  ringwise apply {file} --confirm 60s\n")
        }
    };
    // The warning about the model prefers another plan, so that one comes first.
    let other = match plan.shared_for_locality {
        Some(_) if how.file.is_none() => {
            let far = style.recording.reads(format!("ringwise plan{again} --far-node ok"));
            format!("Before you apply this, look at the plan that uses remote CPUs too:\n  {far}\n")
        }
        _ => String::new(),
    };
    format!(
        "{other}{here}\n  {apply}\nOver a network, so that a lost session rolls it back:\n  {apply} --confirm 60s\n  \
         ringwise confirm\n{exact}{persist}"
    )
}

/// How to apply the settings at every boot.
fn persist(plan: &Plan, how: &PlanPageOptions, w: Option<usize>) -> String {
    let harmful = plan.steps.iter().filter(|s| s.interrupts_traffic).count();
    let mut out = keep(plan.intent.config.as_deref(), how.config_refused.as_deref(), &how.not_in_file, harmful);
    if !plan.cuts.is_empty() {
        let text = "If one of the changes that interrupt traffic would interrupt the control path at boot, all of them are \
                    skipped: no user can confirm a trial then.";
        out += &hang("  ", text, w);
    }
    out
}

/// `refused`: why `persist` would refuse the configuration file where it is. `harmful`: the number of changes that
/// interrupt traffic.
fn keep(config: Option<&str>, refused: Option<&str>, lacks: &NotInFile, harmful: usize) -> String {
    let command = |file: &str| match file {
        DEFAULT_CONFIG => "ringwise persist".to_string(),
        file => format!("ringwise persist --config {}", quote(file)),
    };
    let kept = |file: &str| DEFAULT_CONFIG.replace("ringwise.toml", file.rsplit('/').next().unwrap_or(file));
    let (command, then) = match (config, refused) {
        (None, _) => (
            command(DEFAULT_CONFIG),
            "  Without a configuration file, it writes one with the goal and your options.\n".to_string(),
        ),
        (Some(file), None) => {
            let add = to_add("First", file, lacks, harmful);
            (command(file), format!("{add}  Every boot then applies {file} as it is.\n"))
        }
        (Some(file), Some(why)) if kept(file) == file => {
            (command(file), format!("  It would refuse {file} now: {why}.\n{}", to_add("Also", file, lacks, harmful)))
        }
        (Some(file), Some(why)) => {
            let kept = kept(file);
            let add = to_add("Then", "the copy", lacks, harmful);
            let first = format!("  First copy {file} to {kept}: {why}.\n");
            (command(&kept), format!("{first}{add}  Every boot then applies the copy as it is.\n"))
        }
    };
    format!("To keep it over reboots, afterwards: {command}\n{then}")
}

/// What to add to the configuration file, so that a boot makes the same changes. `when`: the first word of the first line.
fn to_add(when: &str, file: &str, lacks: &NotInFile, harmful: usize) -> String {
    let mut out = String::new();
    if !lacks.host.is_empty() {
        out += &format!("  {when} add to {file}, under [host]:\n");
        lacks.host.iter().for_each(|line| out += &format!("      {line}\n"));
        if lacks.disruption {
            let which = match harmful {
                0 => "changes that interrupt traffic".to_string(),
                1 => "the change that interrupts traffic".to_string(),
                n => format!("the {n} changes that interrupt traffic"),
            };
            out += &format!("  Without allow_disruption, a boot skips {which}.\n");
        }
    }
    if lacks.set {
        let when = if out.is_empty() { when } else { "Also" };
        out += &format!("  {when} add to {file} what --set names; --print-config shows the keys.\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_keeps_this_file_over_reboots() {
        let whole = NotInFile::default();
        let persist = |config, refused| keep(config, refused, &whole, 0);
        let text = persist(None, None);
        assert!(text.contains("afterwards: ringwise persist\n  Without a configuration file"), "{text}");
        let text = persist(Some(DEFAULT_CONFIG), None);
        assert!(
            text.contains("afterwards: ringwise persist\n  Every boot then applies /etc/ringwise/ringwise.toml"),
            "{text}"
        );
        let text = persist(Some("/etc/edge.toml"), None);
        assert!(text.contains("afterwards: ringwise persist --config /etc/edge.toml\n  Every boot"), "{text}");
        let text = persist(Some("/tmp/my x.toml"), Some("files in /tmp do not survive a reboot"));
        assert_eq!(
            text,
            "To keep it over reboots, afterwards: ringwise persist --config '/etc/ringwise/my x.toml'\n  First copy /tmp/my \
             x.toml to /etc/ringwise/my x.toml: files in /tmp do not survive a reboot.\n  Every boot then applies the copy \
             as it is.\n"
        );
        let text = persist(Some(DEFAULT_CONFIG), Some("every user can write to /etc"));
        assert!(
            text.ends_with("It would refuse /etc/ringwise/ringwise.toml now: every user can write to /etc.\n"),
            "{text}"
        );
    }

    #[test]
    fn what_the_file_lacks_is_added_before_the_boot_applies_it() {
        let lacks = NotInFile {
            host: vec!["queues = 4".into(), "allow_disruption = true".into()],
            set: true,
            disruption: true,
        };
        assert_eq!(
            keep(Some("/tmp/x.toml"), Some("files in /tmp do not survive a reboot"), &lacks, 6),
            "To keep it over reboots, afterwards: ringwise persist --config /etc/ringwise/x.toml\n  First copy \
             /tmp/x.toml to /etc/ringwise/x.toml: files in /tmp do not survive a reboot.\n  Then add to the copy, under \
             [host]:\n      queues = 4\n      allow_disruption = true\n  Without allow_disruption, a boot skips the 6 \
             changes that interrupt traffic.\n  Also add to the copy what --set names; --print-config shows the keys.\n  \
             Every boot then applies the copy as it is.\n"
        );
        let lacks = NotInFile { host: Vec::new(), disruption: false, ..lacks };
        let text = keep(Some("/etc/edge.toml"), None, &lacks, 0);
        assert!(text.contains("\n  First add to /etc/edge.toml what --set names;"), "{text}");
    }
}
