//! The pages of `ringwise` without a command and of `ringwise status`. They are the first that a user sees.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_apply::{HistoryEntry, Holder, Pending, SettingInEffect, TrialResult, Verify};
use ringwise_daemon::ServiceState;
use ringwise_knob::{Address, ChangeWindow, Match};
use ringwise_model::{Cause, CpuSet, Goal, Snapshot};

use super::verdict::{self, Worst};
use super::{competing, outcome, service, table, verify_history};
use ringwise_model::Boot;
use ringwise_text::when;
use ringwise_text::{self as text, hang, pad, plural};
use ringwise_text::{Style, Tint};

/// What `status` shows in addition to the snapshot.
#[derive(Debug, Default)]
pub struct HostStatus {
    /// `None`: this is a recording, or the state directory could not be read (`unreadable` has the reason).
    pub verify: Option<Verify>,
    /// The last transaction in effect.
    pub last: Option<HistoryEntry>,
    /// The last transaction, if it is a rollback; it may have undone everything that was applied before.
    pub rolled_back: Option<HistoryEntry>,
    /// A transaction of which a part could not be restored.
    pub half_way: Option<u64>,
    /// Settings that a rollback could not restore because CPUs were offline.
    pub waiting: Option<UnrestoredSettings>,
    /// The last transaction, if the guard rolled it back because transmit queues were stuck.
    pub stuck: Option<HistoryEntry>,
    /// Why the journals cannot be read; `None`: they were read, or this is a recording.
    pub unreadable: Option<String>,
    /// The service, if one runs on this host.
    pub service: Option<ServiceState>,
    /// Why it is unknown whether the service runs.
    pub service_unreadable: Option<String>,
    /// What the next boot applies. `None`: this is a recording.
    pub boot: Option<Boot>,
    /// Time since boot; the deadline of a trial is on the same clock.
    pub since_boot: Duration,
}

/// Settings that the last rollback could not restore and that still differ.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UnrestoredSettings {
    /// The rollback.
    pub transaction: u64,
    /// How many settings are not restored.
    pub settings: usize,
    /// CPUs that these settings need and that are still offline. Empty: all of them can be restored.
    pub offline: CpuSet,
    /// Some of the settings can be restored now.
    pub ready: bool,
}

impl HostStatus {
    /// The trial that has not ended although its deadline has passed, and the time since then.
    pub fn overdue(&self) -> Option<(&Pending, Duration)> {
        let trial = self.verify.as_ref()?.trial.as_ref()?;
        Some((trial, trial.trial.overdue(self.since_boot)?))
    }
}

/// Whether something needs attention. Unknown states count as problems.
pub fn needs_attention(st: &HostStatus) -> bool {
    problem(st).is_some()
}

/// The most urgent problem, in a few words.
fn problem(st: &HostStatus) -> Option<String> {
    let v = st.verify.as_ref();
    if st.unreadable.is_some() {
        return Some("what was applied is unknown".into());
    }
    if let Some(id) = v.and_then(|v| v.unfinished) {
        return Some(format!("transaction {id} was interrupted"));
    }
    if let Some(id) = st.half_way {
        return Some(format!("transaction {id} is not fully restored"));
    }
    if let Some(w) = st.waiting.as_ref().filter(|w| w.ready) {
        return Some(format!("{} of rollback {} can be restored now", plural(w.settings, "setting"), w.transaction));
    }
    if let Some((p, _)) = st.overdue() {
        return Some(format!("the trial of transaction {} is overdue", p.transaction));
    }
    if let Some(p) = v.and_then(|v| v.trial.as_ref()) {
        return Some(format!("transaction {} is on trial", p.transaction));
    }
    if let Some(n) = v.and_then(|v| v.newer.first()) {
        return Some(format!("transaction {} cannot be read", n.transaction));
    }
    if let Some(e) = &st.stuck {
        return Some(format!("transaction {} was rolled back because transmit queues were stuck", e.id));
    }
    if st.service_unreadable.is_some() {
        return Some("the state of the service is unknown".into());
    }
    if st.service.as_ref().is_some_and(|s| s.problem.is_some()) {
        return Some("the service cannot keep the layout".into());
    }
    if let Some(text) = v.and_then(differing) {
        return Some(text);
    }
    matches!(st.boot, Some(Boot::Skipped { .. })).then(|| "nothing is applied at boot any more".into())
}

/// `2 of 41 settings differ from what was applied (most of them on eth2)`
fn differing(v: &Verify) -> Option<String> {
    let drifted: Vec<&SettingInEffect> = v.drifted().filter(|s| was_read(s)).collect();
    let mut by: BTreeMap<&str, usize> = BTreeMap::new();
    for dev in drifted.iter().filter_map(|d| d.want.dev()) {
        *by.entry(dev).or_default() += 1;
    }
    let most = by.iter().max_by_key(|(dev, n)| (**n, std::cmp::Reverse(**dev)));
    let on = match most {
        Some((dev, n)) if *n == drifted.len() => format!(" ({dev})"),
        Some((dev, _)) => format!(" (most of them on {dev})"),
        None => String::new(),
    };
    let text = || format!("{} of {} settings differ from what was applied{on}", drifted.len(), v.settings.len());
    (!drifted.is_empty()).then(text)
}

/// Whether the setting was read. Settings that `--passive` does not read are unknown and count as unchanged.
fn was_read(s: &SettingInEffect) -> bool {
    !matches!(&s.how, Match::Unknown(u) if matches!(u.cause, Cause::NotAsked | Cause::Passive))
}

/// The options of the page.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusOptions {
    /// The page is about a recording.
    pub recorded: bool,
    /// Software interfaces are listed too.
    pub all: bool,
    /// `--passive`: the page lists what was not read.
    pub passive: bool,
    /// The goal that fits the role of the host, where nothing was applied and no file names a goal. `None`: the role is not evident.
    pub better_goal: Option<Goal>,
}

/// The page of `status`.
pub fn page(s: &Snapshot, st: &HostStatus, how: StatusOptions, style: &Style) -> String {
    let w = style.width;
    let worst = verdict::worst(s, st.verify.as_ref());
    let mut out = verdict::line(problem(st).as_deref(), worst.as_ref(), s, style);
    out.push_str(&text::host_line(s, w));
    let mut line = |k: &str, v: &str| out.push_str(&hang(&pad(k, 12), v, w));
    line("applied", &applied(st, how.recorded, style));
    if let Some(v) = &st.verify {
        if !v.settings.is_empty() {
            line("now", &now(v, st.last.as_ref(), style));
        }
        if let Some(text) = boot(st.boot.as_ref(), !v.settings.is_empty(), style) {
            line("boot", &text);
        }
        for text in pending(v, st, style) {
            line("pending", &text);
        }
    }
    if let Some(why) = &st.service_unreadable {
        line("service", &style.paint(Tint::Yellow, &format!("unknown ({why})")));
    }
    if let Some(s) = &st.service {
        out.push_str(&service::lines(s, style));
    }
    let mut line = |k: &str, v: &str| out.push_str(&hang(&pad(k, 12), v, w));
    line("competing", &competing::line(s));
    if how.passive {
        let text = "requests to the kernel, link speed, carrier and XPS (--passive)";
        line("not read", text);
    }
    out.push('\n');
    let extra = remarks(s, st);
    out.push_str(&table::interfaces(s, &extra, how.all, style));
    out.push('\n');
    out.push_str(&next(s, st, worst.as_ref(), how, style));
    out
}

fn applied(st: &HostStatus, recorded: bool, style: &Style) -> String {
    match (&st.last, &st.verify) {
        _ if recorded => "unknown (this is a recording)".into(),
        (_, None) => format!("unknown ({})", st.unreadable.clone().unwrap_or_default()),
        (Some(e), Some(v)) if !v.settings.is_empty() => {
            let reason = e.reason.as_ref().map(|r| format!(" ({r})")).unwrap_or_default();
            format!("transaction {}, {}, {} by {}{reason}", e.id, e.title, when::minute(e.unix_time, style.utc), e.who)
        }
        _ => match &st.rolled_back {
            Some(e) => format!("nothing (transaction {}: {})", e.id, verify_history::title(e)),
            None => "nothing in this boot".into(),
        },
    }
}

/// What the next boot applies, as text.
fn boot(b: Option<&Boot>, in_force: bool, style: &Style) -> Option<String> {
    Some(match b {
        None | Some(Boot::Nothing) if in_force => "settings are lost at reboot".into(),
        None | Some(Boot::Nothing) => return None,
        Some(Boot::Applies { config }) => format!("{config} is applied (ringwise.service)"),
        Some(Boot::Service { config: Some(config) }) => {
            format!("{config} is applied, and kept (ringwise-daemon.service)")
        }
        Some(Boot::Service { config: None }) => {
            "settings are lost at reboot; until then ringwise-daemon.service keeps them".into()
        }
        Some(Boot::Missing { config }) => {
            style.paint(Tint::Yellow, &format!("nothing is applied: {config} does not exist (ringwise persist)"))
        }
        Some(Boot::Skipped { unix_time }) => style.paint(
            Tint::Red,
            &format!(
                "SKIPPED at every boot until ringwise persist is run again, with --daemon for the service: a boot ended \
                 within five minutes of tuning, {}",
                when::minute(*unix_time, style.utc)
            ),
        ),
        Some(Boot::Unknown { why }) => format!("unknown ({why})"),
    })
}

/// The state of the settings: `2 of 41 settings differ since 2026-11-20 02:51 (ringwise verify)`
fn now(v: &Verify, last: Option<&HistoryEntry>, style: &Style) -> String {
    let drifted: Vec<&SettingInEffect> = v.drifted().filter(|s| was_read(s)).collect();
    let left_out = v.drifted().count() - drifted.len();
    if drifted.is_empty() && left_out > 0 {
        return format!("{} of {} settings as applied, {left_out} not read", v.holding(), v.settings.len());
    }
    if drifted.is_empty() {
        let all = v.settings.len();
        let text =
            if all == 1 { "the only setting is as applied".into() } else { format!("all {all} settings as applied") };
        // For a single transaction: the number of settings that had the right value before.
        let of_last = last.filter(|e| e.steps < all && v.settings.iter().all(|s| s.transaction == e.id));
        let whole =
            |e: &&HistoryEntry| e.outcome.as_ref().is_some_and(|o| o.refused.is_empty() && o.ignored.is_empty());
        return match of_last.filter(whole) {
            Some(e) => format!("{text} ({}, the others had these values before)", plural(e.steps, "change")),
            None => text,
        };
    }
    // The latest time at which all settings were known to match.
    let windows: Option<Vec<ChangeWindow>> = drifted.iter().map(|s| s.changed).collect();
    let since = windows.and_then(|w| w.iter().map(|w| w.after).min());
    let since = since.map(|t| format!(" since {}", when::minute(t, style.utc))).unwrap_or_default();
    let text = format!("{} of {} settings differ{since} (ringwise verify)", drifted.len(), v.settings.len());
    style.paint(Tint::Yellow, &text)
}

/// Everything that needs the user, one line each.
fn pending(v: &Verify, st: &HostStatus, style: &Style) -> Vec<String> {
    let red = |t: String| style.paint(Tint::Red, &t);
    let mut out = Vec::new();
    if let Some(p) = &v.trial {
        out.push(red(match st.overdue() {
            Some((p, late)) => format!("{}: {}", overdue(p, late, &when::clock(p.trial.until_unix, style.utc)), end(p)),
            None => trial(p, style),
        }));
    }
    if let Some(id) = v.unfinished {
        out.push(red(format!("transaction {id} was interrupted: ringwise recover")));
    }
    if let Some(e) = &st.stuck {
        let why = e.reason.as_deref().unwrap_or_default();
        out.push(red(format!("transaction {}, by the guard: {}: {why}", e.id, e.title)));
    }
    if let Some(id) = st.half_way {
        out.push(red(format!("transaction {id} failed and is not fully restored: ringwise recover")));
    }
    if let Some(w) = &st.waiting {
        let what = format!("{} of rollback {}", plural(w.settings, "setting"), w.transaction);
        out.push(match w.ready {
            true => red(format!("{what} can be restored now that a CPU is online again: ringwise recover")),
            false => format!("{what} can be restored when {} online again", outcome::is(&w.offline)),
        });
    }
    for n in &v.newer {
        out.push(red(format!("transaction {}: {}; its undo: ringwise history {0}", n.transaction, n.why)));
    }
    if let Some(h) = &v.running {
        let pid = h.pid.map_or("another ringwise".into(), |p| format!("process {p}"));
        let who = h.who.as_ref().map(|w| format!(" of {w}")).unwrap_or_default();
        out.push(format!("a transaction is running ({pid}{who})"));
    }
    if out.is_empty() {
        out.push("no transaction is on trial or unfinished".into());
    }
    out
}

/// The line about a trial that should have ended `late` ago.
pub fn overdue(p: &Pending, late: Duration, until: &str) -> String {
    let (id, late) = (p.transaction, plural(usize::try_from(late.as_secs()).unwrap_or(usize::MAX), "second"));
    let why = match &p.guard {
        Some(Holder { pid: Some(pid), .. }) => format!("its guard (process {pid}) does not roll it back"),
        Some(_) => "its guard does not roll it back".into(),
        None => "its guard is gone, so nothing rolls it back".into(),
    };
    format!("transaction {id} of {} is OVERDUE: its trial ended at {until}, {late} ago, and {why}", p.who)
}

/// How to end an overdue trial.
fn end(p: &Pending) -> String {
    match p.guard.as_ref().and_then(|g| g.pid) {
        Some(pid) => format!("kill -9 {pid}, then ringwise recover"),
        None => "ringwise recover".into(),
    }
}

fn trial(p: &Pending, style: &Style) -> String {
    let until = when::clock(p.trial.until_unix, style.utc);
    match (&p.trial.fate, &p.guard) {
        (TrialResult::Pending, Some(_)) => {
            format!("transaction {} of {} is ON TRIAL until {until}: ringwise confirm", p.transaction, p.who)
        }
        (TrialResult::Pending, None) => format!(
            "transaction {} was on trial until {until} and its guard is gone, so nothing rolls it back: \
             ringwise confirm or ringwise recover",
            p.transaction
        ),
        _ => format!("transaction {}: its trial is over", p.transaction),
    }
}

/// The first remark about an interface: a connection that depends on it, or a change.
fn remarks(s: &Snapshot, st: &HostStatus) -> BTreeMap<String, String> {
    let mut parts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in s.control.known().into_iter().flatten() {
        if let Some((top, _)) = path.may_be_over_any() {
            for n in s.nics.iter().filter(|n| n.has_own_queues() && !ringwise_text::is_down(n)) {
                let (list, text) =
                    (parts.entry(n.name().to_string()).or_default(), format!("may carry {} ({top})", path.what()));
                if !list.contains(&text) {
                    list.push(text);
                }
            }
        }
        for dev in path.members.known().into_iter().flatten() {
            let list = parts.entry(dev.clone()).or_default();
            if !list.contains(&path.what()) {
                list.push(path.what());
            }
        }
    }
    let mut moved: BTreeMap<String, Vec<Address>> = BTreeMap::new();
    let drifted = st.verify.iter().flat_map(Verify::drifted).filter(|d| was_read(d));
    for address in drifted.filter_map(|d| d.want.address()) {
        if let Some(dev) = address.dev() {
            moved.entry(dev.to_string()).or_default().push(address);
        }
    }
    for (dev, list) in moved {
        parts.entry(dev).or_default().push(moved_text(&list));
    }
    parts.into_iter().map(|(dev, list)| (dev, list.join(", "))).collect::<BTreeMap<_, _>>()
}

/// `2 queues moved` where only interrupts changed, otherwise `3 settings changed`.
fn moved_text(list: &[Address]) -> String {
    let queues: Option<BTreeSet<String>> = list
        .iter()
        .map(|a| match a {
            Address::IrqCpus { of, .. } => Some(of.to_string()),
            _ => None,
        })
        .collect();
    match queues {
        Some(q) => format!("{} moved", plural(q.len(), "queue")),
        None => format!("{} changed", plural(list.len(), "setting")),
    }
}

/// The command to run next.
fn next(s: &Snapshot, st: &HostStatus, worst: Option<&Worst>, how: StatusOptions, style: &Style) -> String {
    let Some(v) = &st.verify else { return otherwise(s, worst, how, style) };
    if v.unfinished.is_some() || st.half_way.is_some() || st.waiting.as_ref().is_some_and(|w| w.ready) {
        return "Next: ringwise recover\n".into();
    }
    if let Some((p, _)) = st.overdue() {
        return format!("Next: {}\n", end(p));
    }
    if v.trial.is_some() {
        return "Next: ringwise confirm\n".into();
    }
    if let Some(n) = v.newer.first() {
        return format!("Next: ringwise history {}\n", n.transaction);
    }
    if let Some(e) = &st.stuck {
        return format!("Next: ringwise history {}\n", e.id);
    }
    if st.service.as_ref().is_some_and(|s| s.problem.is_some()) {
        return "Next: journalctl -e -u ringwise-daemon\n".into();
    }
    if v.drifted().any(was_read) {
        let dev = v.drifted().find_map(|d| d.want.address()?.dev().map(str::to_string));
        let show = dev.map(|d| format!("      ringwise show {d}\n")).unwrap_or_default();
        return format!("Next: ringwise verify\n{show}");
    }
    otherwise(s, worst, how, style)
}

fn otherwise(s: &Snapshot, worst: Option<&Worst>, how: StatusOptions, style: &Style) -> String {
    if !s.nics.iter().any(|n| text::is_listed(n) && n.has_own_queues()) {
        return "No interface has queues of its own to tune.\n".into();
    }
    let plan = || match how.better_goal {
        Some(goal) => format!("ringwise plan --goal {goal}"),
        None => "ringwise plan".into(),
    };
    let then = worst.map_or_else(plan, |w| format!("ringwise show {}", w.nic.name()));
    format!("Next: {}\n      {}\n", style.recording.reads("ringwise check"), style.recording.reads(then))
}

#[cfg(test)]
mod tests {
    use ringwise_model::{ControlPath, ControlReason, Fact};
    use ringwise_testkit::sim::build;

    use super::*;

    #[test]
    fn a_route_over_an_interface_with_unknown_ports_is_a_remark_about_every_port() {
        let mut s = build::host(4, 1).igb("eth0", 0, 4).igb("eth1", 0, 4).done();
        s.control = Fact::Known(vec![ControlPath {
            reason: ControlReason::DefaultRoute { gateway: None },
            out: Some("ppp0".into()),
            via: vec!["ppp0".into()],
            members: Fact::unknown("ppp0", "it is unknown where packets of ppp0 (a ppp) go"),
        }]);
        let st = HostStatus::default();
        let of = |s: &Snapshot, dev: &str| remarks(s, &st).get(dev).cloned();
        let may = Some("may carry the default route (ppp0)".to_string());
        assert_eq!((of(&s, "eth0"), of(&s, "eth1")), (may.clone(), may.clone()));
        // A port without a link carries nothing.
        s.nics[1].link.operstate = Fact::Known("down".into());
        s.nics[1].link.carrier = Fact::Known(false);
        assert_eq!((of(&s, "eth0"), of(&s, "eth1")), (may, None));
    }
}
