//! The pages of `verify`, `history` and `status`: the transactions in effect, and whether the host still matches them.

use std::collections::BTreeSet;

use ringwise_apply::{
    Attention, Ending, HistoryEntry, RunResult, SettingInEffect, TransactionKind, TrialResult, Verify, WouldUndo,
};
use ringwise_knob::{Match, Origin, Setting};
use ringwise_model::order::Order;
use ringwise_model::{CpuId, CpuSet, Fact, Title};
use ringwise_observe::StallKind;
use ringwise_plan::ProgramReport;
use serde::Serialize;
use serde_json::{Value, json};

use super::manual_changes;
use super::{outcome, program_cpus, table};
use ringwise_text::when;
use ringwise_text::{self as text, hang, pad, plural, visible};
use ringwise_text::{Style, Tint};

fn now(s: &SettingInEffect) -> String {
    match (&s.how, &s.now) {
        (Match::Gone, _) => "gone".into(),
        (Match::Unknown(u), _) => format!("unknown ({})", u.why),
        (_, Fact::Known(v)) => v.value_text_beside(&s.want),
        (_, Fact::Absent) => "missing".into(),
        (_, Fact::Unknown(u)) => format!("unknown ({})", u.why),
    }
}

fn address(s: &Setting) -> String {
    s.address().map_or_else(|| s.value_text(), |a| a.to_string())
}

/// Interrupts of one queue over an interval, and the CPUs for which they were configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterruptCount {
    /// Name of the interface.
    pub dev: String,
    /// `rx-3`
    pub queue: String,
    /// CPUs for which the interrupt was configured.
    pub planned: CpuSet,
    /// CPUs that handled interrupts. `None`: not known (the vector appeared, vanished or was reset).
    pub seen_on: Option<CpuSet>,
    /// Interrupts in the interval, on all CPUs. `None`: not known, for the same reasons as `seen_on`.
    pub interrupts: Option<u64>,
    /// Packets received and sent by the queues of the vector. `None`: they are not counted.
    pub packets: Option<u64>,
    /// Its transmit queue is stuck.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<StallKind>,
    /// Packets arrived, but they are not processed on the planned CPU yet: the queue is never empty, so it stays on the
    /// CPU where polling began.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub polled: bool,
    /// The CPU where it is polled. `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polled_on: Option<CpuId>,
}

/// What is wrong with a counted queue. The names in JSON are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueFinding {
    /// Interrupts were handled on other CPUs than planned.
    InterruptsElsewhere,
    /// The transmit queue of the vector is stuck.
    Stuck,
    /// Packets are still processed on another CPU than planned.
    PolledElsewhere,
}

impl InterruptCount {
    /// Everything that is wrong with the queue. A queue that is idle or could not be counted has no finding.
    pub fn findings(&self) -> Vec<QueueFinding> {
        let all = [
            (QueueFinding::InterruptsElsewhere, self.handled_elsewhere()),
            (QueueFinding::Stuck, self.stuck.is_some()),
            (QueueFinding::PolledElsewhere, self.polled),
        ];
        all.into_iter().filter(|(_, is)| *is).map(|(finding, _)| finding).collect()
    }

    /// Whether there is a finding: interrupts on other CPUs, a stuck queue, or a queue that is polled on another CPU.
    pub fn is_finding(&self) -> bool {
        !self.findings().is_empty()
    }

    /// Whether interrupts were handled on other CPUs than planned.
    pub fn handled_elsewhere(&self) -> bool {
        self.seen_on.as_ref().is_some_and(|s| !s.is_subset(&self.planned))
    }

    /// Whether neither an interrupt nor a packet arrived, so that nothing could be verified.
    pub fn idle(&self) -> bool {
        self.interrupts == Some(0) && self.packets.is_none_or(|n| n == 0) && self.stuck.is_none()
    }
}

/// What `verify` finds besides the settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Observed<'a> {
    /// The counts of `--for`, and the length of the interval in seconds.
    pub counted: Option<(&'a [InterruptCount], f64)>,
    /// Listening programs and the CPUs that are proposed for them. `None`: no CPUs are proposed, or it is a recording.
    pub programs: Option<&'a ProgramReport>,
}

/// The document `ringwise.verify`: the comparison, why the host needs attention, and what else was found.
pub fn document(v: &Verify, observed: &Observed) -> Value {
    let (mut attention, counted) = (v.attention(), observed.counted);
    if counted.is_some_and(|(list, _)| list.iter().any(InterruptCount::is_finding)) {
        attention.push(Attention::QueueFindings);
    }
    let mut doc = json!(v);
    doc["attention"] = json!(attention);
    if let Some((list, seconds)) = counted {
        let queue = |c: &InterruptCount| {
            let mut queue = json!(c);
            queue["findings"] = json!(c.findings());
            queue
        };
        doc["counted"] = json!({ "seconds": seconds, "queues": list.iter().map(queue).collect::<Vec<_>>() });
    }
    if let Some(programs) = observed.programs {
        doc["programs"] = json!(programs);
    }
    doc
}

/// The page of `verify`.
pub fn verify(host: &str, v: &Verify, observed: &Observed, advice: &manual_changes::Advice, style: &Style) -> String {
    let w = style.width;
    let host = visible(host);
    let mut out = String::new();
    if v.settings.is_empty() {
        out.push_str(&format!("{host}: no setting of ringwise is in effect in this boot.\n"));
    } else {
        let ids: BTreeSet<u64> = v.settings.iter().map(|s| s.transaction).collect();
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        let text = format!(
            "{host}: {} of {} settings as applied by transaction {}",
            v.holding(),
            v.settings.len(),
            ids.join(", ")
        );
        let all = v.holding() == v.settings.len();
        out.push_str(&style.paint(if all { Tint::Green } else { Tint::Yellow }, &text));
        out.push('\n');
    }
    let drifted: Vec<&SettingInEffect> = v.drifted().collect();
    let width = drifted.iter().map(|s| address(&s.want).len()).max().unwrap_or(0);
    let mut last = None;
    for s in &drifted {
        let when = manual_changes::changed(s, &mut last, advice.now, style.utc);
        let text = format!("applied {}   now {}{when}", s.want.value_text(), now(s));
        out.push_str(&hang(&format!("  {}  ", pad(&address(&s.want), width)), &text, w));
    }
    let pending = v.pending().count();
    if pending > 0 {
        out.push_str(&hang(
            "  ",
            &format!("{} not yet seen on the new CPU: idle since the change", plural(pending, "interrupt")),
            w,
        ));
    }
    if let Some((c, seconds)) = observed.counted {
        out.push_str(&counts(c, seconds, style));
    }
    out.push_str(&observed.programs.map_or_else(String::new, |p| program_cpus::lines(p, style)));
    if let Some(h) = &v.running {
        let who = h.pid.map_or("another ringwise".into(), |p| format!("process {p}"));
        out.push_str(&format!("a transaction is running ({who}); run verify again when it has ended\n"));
    }
    if let Some(id) = v.unfinished {
        let text = format!("transaction {id} was interrupted and is partly applied");
        out.push_str(&format!("{}\n", style.paint(Tint::Red, &text)));
        out.push_str(&format!("Finish:   {}\n", style.recording.there("ringwise recover")));
    } else if !drifted.is_empty() {
        let changed = v.manual_changes().iter().any(|h| h.origin == Origin::ByHand);
        out.push_str(&manual_changes::next_steps(&drifted, changed, advice, style));
    }
    for n in &v.newer {
        out.push_str(&manual_changes::newer(n, style));
    }
    out
}

fn counts(list: &[InterruptCount], seconds: f64, style: &Style) -> String {
    let astray: Vec<&InterruptCount> = list.iter().filter(|c| c.handled_elsewhere()).collect();
    let untold = list.iter().filter(|c| c.seen_on.is_none()).count();
    let idle = list.iter().filter(|c| c.idle()).count();
    let stuck = list.iter().filter(|c| c.stuck.is_some()).count();
    let polled = list.iter().filter(|c| c.polled && c.stuck.is_none()).count();
    let plain = |c: &&InterruptCount| {
        !c.handled_elsewhere() && c.seen_on.is_some() && !c.idle() && c.stuck.is_none() && !c.polled
    };
    let good = list.iter().filter(plain).count();
    let mut parts = vec![format!("{good} only on their CPU")];
    if idle > 0 {
        parts.push(format!("{idle} idle"));
    }
    if !astray.is_empty() {
        parts.push(format!("{} on other CPUs", astray.len()));
    }
    if untold > 0 {
        parts.push(format!("{untold} unknown (counters restarted)"));
    }
    if stuck > 0 {
        parts.push(format!("{stuck} stuck"));
    }
    if polled > 0 {
        parts.push(format!("{polled} still polled on another CPU"));
    }
    let text = format!("{}: {}", plural(list.len(), "queue interrupt"), parts.join(", "));
    let mut out = hang(&format!("  counted for {seconds:.1} s: "), &text, style.width);
    let shown =
        list.iter().filter(|c| style.verbose > 0 || style.width.is_none() || c.is_finding() || c.seen_on.is_none());
    for c in shown {
        let seen = c.seen_on.as_ref().map_or("unknown".into(), text::set);
        let n = c.interrupts.map_or("unknown".into(), text::thousands);
        let line = format!("    {} {}  planned CPU {}  seen on {seen}  interrupts {n}", c.dev, c.queue, c.planned);
        out.push_str(&if c.is_finding() { style.paint(Tint::Yellow, &line) } else { line });
        out.push('\n');
        if let Some(text) = queue_problem(c) {
            out.push_str(&hang("      ", &style.paint(Tint::Yellow, &text), style.width));
        }
    }
    out
}

/// Findings of a queue that are not about the CPU of its interrupt.
fn queue_problem(c: &InterruptCount) -> Option<String> {
    match c.stuck {
        Some(StallKind::NothingCompleted { ms, bytes }) => {
            return Some(format!("stuck: completed nothing for {} s, {bytes} bytes in flight", ms / 1000));
        }
        Some(StallKind::TimedOut { times }) => {
            return Some(format!(
                "stuck: timed out, {} according to the kernel's watchdog",
                plural(times as usize, "time")
            ));
        }
        None => {}
    }
    let packets = c.packets.filter(|_| c.polled)?;
    let place = c.polled_on.map_or_else(|| "another CPU".into(), |cpu| format!("CPU {cpu}"));
    Some(format!("still polled on {place} ({}): it moves once the queue is empty", plural(packets as usize, "packet")))
}

fn state(e: &HistoryEntry) -> String {
    if let Some(by) = e.undone_by {
        return format!("undone by {by}");
    }
    if let Some(text) = trial(e) {
        return text;
    }
    match &e.ending {
        Ending::OnTrial { .. } => "on trial: ringwise confirm".into(),
        // A rollback leaves no setting of ringwise in effect.
        Ending::Kept if e.this_boot && matches!(e.kind, TransactionKind::Rollback { .. }) => "done".into(),
        Ending::Kept if e.this_boot => "in effect".into(),
        Ending::Kept => e.elsewhere.clone().unwrap_or_else(|| "lost at reboot".into()),
        Ending::PutBack => "failed, restored".into(),
        Ending::PutBackIncomplete => "NOT fully restored".into(),
        Ending::Unfinished => "unfinished: ringwise recover".into(),
        Ending::Running { pid: Some(pid) } => format!("running (process {pid})"),
        Ending::Running { pid: None } => "running".into(),
        Ending::Closed { why } => format!("closed: {why}"),
    }
}

/// `undone by timer`; `None` if the ending alone is enough.
fn trial(e: &HistoryEntry) -> Option<String> {
    match &e.trial.as_ref()?.fate {
        TrialResult::Undone { by, .. } if e.ending == Ending::PutBack => Some(format!("undone by {by}")),
        TrialResult::Undone { by, .. } => {
            Some(format!("NOT fully undone by {by}")).filter(|_| e.ending == Ending::PutBackIncomplete)
        }
        TrialResult::Pending if !e.this_boot && matches!(e.ending, Ending::Kept | Ending::Closed { .. }) => {
            Some("on trial, ended by a reboot".into())
        }
        _ => None,
    }
}

/// `goal forward`, `rollback of 12`.
pub fn title(e: &HistoryEntry) -> String {
    match &e.kind {
        TransactionKind::Rollback { before: 0 } => "rollback to the initial state".into(),
        TransactionKind::Rollback { before } => format!("rollback of {before}"),
        _ => e.title.to_string(),
    }
}

fn what(e: &HistoryEntry) -> String {
    if e.unix_time == 0 {
        return "unknown".into();
    }
    let mut parts = vec![title(e)];
    let kept = e.outcome.as_ref().filter(|o| o.verdict == RunResult::Applied && !o.unmet.is_empty());
    parts.push(match (&e.kind, kept) {
        (TransactionKind::Adopt, _) => plural(e.steps, "setting"),
        // The same numbers as `apply` printed.
        (_, Some(o)) => outcome::changes(o),
        _ => plural(e.steps, "change"),
    });
    if let Some(r) = &e.reason {
        parts.push(r.clone());
    }
    parts.join(", ")
}

/// The last transaction of this boot that the user applied and that is in effect.
pub fn last_in_effect(list: &[HistoryEntry]) -> Option<&HistoryEntry> {
    let stands = |e: &&HistoryEntry| matches!(e.ending, Ending::Kept | Ending::OnTrial { .. }) && e.undone_by.is_none();
    list.iter().filter(|e| e.this_boot && e.kind == TransactionKind::Apply && !e.is_of_service()).rfind(stands)
}

/// The last transaction of this boot, if it is a rollback that was kept.
pub fn last_rollback(list: &[HistoryEntry]) -> Option<&HistoryEntry> {
    let kept = |e: &&HistoryEntry| e.this_boot && matches!(e.ending, Ending::Kept | Ending::OnTrial { .. });
    let last = list.iter().rfind(|e| kept(e) && !e.is_of_service())?;
    Some(last).filter(|e| matches!(e.kind, TransactionKind::Rollback { .. }))
}

/// The transaction that `rollback` proposes: the newest in effect, and one of the service only if there is no other. To undo
/// what a person applied also undoes what the service wrote again since.
pub fn to_undo(list: &[HistoryEntry]) -> Option<&HistoryEntry> {
    let in_effect = |e: &&HistoryEntry| e.is_in_effect();
    let forward = |e: &&HistoryEntry| !matches!(e.kind, TransactionKind::Rollback { .. });
    list.iter().filter(in_effect).filter(forward).max_by_key(|e| (!e.is_of_service(), e.id))
}

/// What `recover` would restore: the interrupted transaction, otherwise the last one if a part of it could not be
/// restored.
pub fn to_recover(list: &[HistoryEntry]) -> Option<&HistoryEntry> {
    // A trial without a guard is recovered as well; a guard that is running holds the lock.
    let open = |e: &&HistoryEntry| matches!(e.ending, Ending::Unfinished | Ending::OnTrial { .. });
    let cut = list.iter().filter(|e| e.this_boot).find(open);
    cut.or_else(|| list.iter().rfind(|e| e.this_boot).filter(|e| e.ending == Ending::PutBackIncomplete))
}

/// The last transaction of this boot, if it is a rollback that could not restore everything because CPUs were offline.
pub fn waiting(list: &[HistoryEntry]) -> Option<&HistoryEntry> {
    let last = list.iter().rfind(|e| e.this_boot).filter(|e| e.ending == Ending::Kept)?;
    Some(last).filter(|e| e.outcome.as_ref().is_some_and(|o| !o.waiting.is_empty()))
}

/// A run of transactions of the service that has at least this many gets one line.
const RUN: usize = 3;

/// Transactions by which the service kept the layout, with nothing between them. Others are alone.
fn runs<'a>(newest_first: &[&'a HistoryEntry], all: bool) -> Vec<Vec<&'a HistoryEntry>> {
    let keep = |e: &HistoryEntry| matches!(e.title, Title::Keep { .. } | Title::Balance { .. });
    let kept = |e: &HistoryEntry| keep(e) && e.ending == Ending::Kept && e.undone_by.is_none() && e.damaged == 0;
    let alike =
        |a: &HistoryEntry, b: &HistoryEntry| std::mem::discriminant(&a.title) == std::mem::discriminant(&b.title);
    let together = newest_first.chunk_by(|a, b| kept(a) && kept(b) && alike(a, b) && a.this_boot == b.this_boot);
    together
        .flat_map(|run| if all || run.len() < RUN { run.chunks(1).collect() } else { vec![run] })
        .map(<[_]>::to_vec)
        .collect()
}

/// The line of a run: the numbers of its first and last transaction, the time and the user of the last.
fn run_row(run: &[&HistoryEntry], style: &Style) -> Option<Vec<String>> {
    let (newest, oldest) = (run.first()?, run.last()?);
    let devs: BTreeSet<&str> = run.iter().flat_map(|e| e.devices.iter().map(String::as_str)).collect();
    let devs = devs.into_iter().collect::<Vec<_>>().join(" ");
    let changes = plural(run.iter().map(|e| e.steps).sum::<usize>(), "change");
    let ids = format!("{}-{}", oldest.id, newest.id);
    let verb = if matches!(newest.title, Title::Balance { .. }) { "balance" } else { "keep" };
    let what = format!("{verb} {devs}, {} times, {changes}", run.len());
    Some(vec![ids, when::minute(newest.unix_time, style.utc), newest.who.clone(), what, state(newest)])
}

/// One line for each transaction, newest first. Without `all`, repeated transactions of the service share one line.
pub fn history(list: &[HistoryEntry], all: bool, style: &Style) -> String {
    if list.is_empty() {
        return "No transaction yet. Next: ringwise plan\n".into();
    }
    let head = ["ID", if style.utc { "WHEN (UTC)" } else { "WHEN (local)" }, "WHO", "WHAT", "STATE"];
    let mut rows = vec![head.map(String::from).to_vec()];
    let mut newest: Vec<&HistoryEntry> = list.iter().collect();
    newest.order_by_key(|e| std::cmp::Reverse(e.id));
    for run in runs(&newest, all) {
        if let Some(row) = (run.len() > 1).then(|| run_row(&run, style)).flatten() {
            rows.push(row);
            continue;
        }
        let Some(e) = run.first() else { continue };
        // The header of the journal is lost, so these values are unknown; a time of 0 would be shown as 1970.
        let unknown = || "unknown".to_string();
        let (time, who) = match e.unix_time {
            0 => (unknown(), unknown()),
            t => (when::minute(t, style.utc), e.who.clone()),
        };
        rows.push(vec![e.id.to_string(), time, who, what(e), state(e)]);
    }
    if list.iter().any(|e| e.this_boot) {
        rows.push(["0", "-", "-", "initial state since boot", "rollback 0"].map(String::from).to_vec());
    }
    table::plain(&rows, &[0])
}

/// The page of `rollback -n`: each setting with its present value and the value that would be restored.
pub fn would_undo(id: u64, w: &WouldUndo, style: &Style) -> String {
    let then = match id {
        0 => "from before the first transaction of this boot".to_string(),
        id => format!("from before transaction {id}"),
    };
    let mut out = match w.steps.len() {
        0 => format!("Nothing to restore: every setting has its value {then}.\n"),
        n => format!("Would restore {} to the value {then}:\n", plural(n, "setting")),
    };
    for st in &w.steps {
        let now = match &st.from {
            Fact::Known(v) => v.value_text_beside(&st.setting),
            Fact::Absent => "missing".into(),
            Fact::Unknown(u) => format!("unknown ({})", u.why),
        };
        out.push_str(&hang(
            &format!("~ {}  ", address(&st.setting)),
            &format!("{now} -> {}", st.setting.value_text()),
            style.width,
        ));
    }
    for n in &w.notes {
        out.push_str(&hang("note: ", n, style.width));
    }
    if w.steps.iter().any(|st| st.interrupts_traffic) {
        out.push_str("Some of these steps interrupt traffic.\n");
    }
    if !w.moved.is_empty() {
        let list: Vec<String> = w.moved.iter().map(|m| m.address.to_string()).collect();
        let text = format!("{} changed outside ringwise since: {}", plural(list.len(), "setting"), list.join(", "));
        out.push_str(&hang("A rollback would be refused: ", &text, style.width));
        out.push_str(&format!("To overwrite them: ringwise rollback {id} --take-over\n"));
    }
    out.push_str("Nothing was changed.\n");
    out
}

/// The page about one transaction.
pub fn entry(e: &HistoryEntry, style: &Style) -> String {
    let time = if e.unix_time == 0 { "time unknown".into() } else { when::full(e.unix_time, style.utc) };
    let mut out = format!("transaction {}  {time}\n", e.id);
    let mut line = |k: &str, v: &str| out.push_str(&hang(&pad(k, 10), v, style.width));
    line("what", &what(e));
    line("state", &state(e));
    line("who", &e.who);
    line("command", &e.command);
    line("devices", &e.devices.join(" "));
    if let Some(TrialResult::Undone { why, .. }) = e.trial.as_ref().map(|t| &t.fate) {
        line("undone", why);
    }
    if let Some(TrialResult::Confirmed { by }) = e.trial.as_ref().map(|t| &t.fate) {
        line("confirmed", by.as_deref().unwrap_or("by an unknown user"));
    }
    if e.damaged > 0 {
        line("damaged", &format!("{} of the journal cannot be read", plural(e.damaged, "line")));
    }
    line("journal", &e.path.display().to_string());
    if let Some(o) = &e.outcome {
        out.push('\n');
        for s in &o.applied {
            out.push_str(&format!("applied   {} = {}\n", address(s), s.value_text()));
        }
        for s in &o.put_back {
            out.push_str(&format!("restored  {} = {}\n", address(s), s.value_text()));
        }
        out.push_str(&outcome::summary(o, outcome::Run::History, style));
    }
    if !e.undo.is_empty() {
        out.push_str("\nManual undo, with the interrupt numbers of that time:\n");
        for c in &e.undo {
            out.push_str(&format!("  {c}\n"));
        }
    }
    out
}
