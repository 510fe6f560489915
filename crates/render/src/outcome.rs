//! The output of `apply`, `rollback` and `recover`: a line for each event, and the outcome.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_apply::{Event, Failure, NotPutBack, OnTrial, Outcome, Phase, RunResult, TrialResult};
use ringwise_knob::{Address, Match, Setting};
use ringwise_model::{CpuSet, Fact};

use ringwise_text::when;
use ringwise_text::{Style, Tint};
use ringwise_text::{hang, one_line, pad, plural};

/// The settings before the change, for `0-15 -> 0`.
pub type ValuesBefore = BTreeMap<Address, String>;

fn address(s: &Setting) -> String {
    s.address().map_or_else(|| s.value_text(), |a| a.to_string())
}

fn took(d: std::time::Duration) -> String {
    if d.as_millis() < 500 { String::new() } else { format!("  {:.1} s", d.as_secs_f64()) }
}

fn line(clock: &str, phase: Phase, what: &str, end: &str) -> String {
    let undo = match phase {
        Phase::Apply => "",
        Phase::SideEffect => "side effect: ",
        Phase::PutBack => "undo ",
    };
    format!("{clock}  {}  {end}", pad(&format!("{undo}{what}"), 58)).trim_end().to_string()
}

fn failure(f: &Failure) -> Vec<String> {
    let mut out = vec![format!("          {}: {}", one_line(&f.words), f.meaning)];
    if let (Some(p), Some(d)) = (&f.path, &f.data) {
        out.push(format!("          {p} <- \"{}\"", d.trim_end()));
    }
    out
}

/// One or more lines for an event; `None` if the event is not shown.
pub fn event(e: &Event, before: &ValuesBefore, clock: &str, style: &Style) -> Option<String> {
    let change = |s: &Setting| {
        let was = s.address().and_then(|a| before.get(&a).cloned());
        let now = s.value_text();
        match was {
            Some(w) if w != now => format!("{}  {w} -> {now}", address(s)),
            _ => format!("{}  {now}", address(s)),
        }
    };
    let red = |t: &str| style.paint(Tint::Red, t);
    let yellow = |t: &str| style.paint(Tint::Yellow, t);
    Some(match e {
        Event::Begun { transaction, steps } => {
            format!("{clock}  transaction {transaction} begins: {}", plural(*steps, "change"))
        }
        Event::Note { text } => format!("{clock}  {}", one_line(text)),
        Event::AlreadySo { phase, setting } if style.verbose > 0 => {
            line(clock, *phase, &change(setting), "already set")
        }
        Event::Done { phase, setting, now, how, took: t } => {
            let end = match how {
                Match::Same => "ok".to_string(),
                Match::Pending => "ok, pending".into(),
                Match::Adjusted => yellow(&format!("adjusted to {}", now.value_text_beside(setting))),
                Match::Differs => yellow(&format!("reads back as {}", now.value_text_beside(setting))),
                Match::Gone => yellow("gone"),
                Match::Unknown(u) => yellow(&format!("not readable: {}", u.why)),
            };
            line(clock, *phase, &change(setting), &format!("{end}{}", took(*t)))
        }
        Event::Refused { phase, setting, failure: f } => {
            let mut out = vec![line(clock, *phase, &change(setting), &yellow("refused"))];
            out.extend(failure(f));
            out.join("\n")
        }
        Event::Ignored { phase, setting, now } => {
            let kept = now.as_ref().map_or("unknown".into(), Setting::value_text);
            line(clock, *phase, &change(setting), &yellow(&format!("ignored, still {kept}")))
        }
        Event::Failed { phase, failure: f } => {
            let what = f.setting.as_ref().map_or_else(|| "stopped".to_string(), change);
            let mut out = vec![line(clock, *phase, &what, &red("FAILED"))];
            out.extend(failure(f));
            out.join("\n")
        }
        Event::Writing { setting, .. } if setting.address().is_some_and(|a| a.interrupts_traffic()) => {
            format!("{clock}  {}  takes some seconds ...", change(setting))
        }
        Event::LinkWait { dev } => format!("{clock}  {dev} waiting for the link"),
        Event::LinkBack { dev, took: t } => {
            line(clock, Phase::Apply, &format!("{dev} link is back"), &format!("ok{}", took(*t)))
        }
        Event::BondWait { dev, bond } => format!("{clock}  {dev} waiting for {bond} to use it"),
        Event::BondBack { dev, bond, took: t } => {
            line(clock, Phase::Apply, &format!("{dev} {bond} uses it again"), &format!("ok{}", took(*t)))
        }
        Event::Replanned { steps } => {
            format!("{clock}  planned again without the refused settings: {}", plural(*steps, "change"))
        }
        Event::PuttingBack { why } => format!("{clock}  {}", red(&format!("restoring: {why}"))),
        Event::Verified { phase, ok, of, pending } => {
            let what = match phase {
                Phase::PutBack => "as before",
                _ => "read back as requested",
            };
            let mut text = format!("{clock}  verify: {ok} of {of} settings {what}");
            if !pending.is_empty() {
                text.push_str(&format!("; {} pending: they move at the next interrupt of their queue", pending.len()));
            }
            if ok == of { text } else { yellow(&text) }
        }
        _ => return None,
    })
}

fn seconds(o: &Outcome) -> String {
    format!("{:.1} s", o.took_ms as f64 / 1000.0)
}

/// The changes that were made, counted as in `plan` and `history`: `41 changes`, `4 of 8 changes`.
pub fn changes(o: &Outcome) -> String {
    let made = o.changes();
    match o.unmet.len() {
        0 => plural(made, "change"),
        n => format!("{made} of {}", plural(made + n, "change")),
    }
}

/// The settings that were read back at the end.
fn read_back(o: &Outcome) -> String {
    let beside = o.verified_of.saturating_sub(o.changes());
    match (o.verified == o.verified_of, beside) {
        (false, _) => format!("{} of {} settings read back", o.verified, o.verified_of),
        (true, 0) => "all read back".into(),
        (true, n) => format!("all read back, and {} that they may reset", plural(n, "setting")),
    }
}

/// `8 changes,` or `4 of 8 changes; 4 refused by the kernel or the driver: EIO;`
fn count(o: &Outcome) -> String {
    let mut text = changes(o);
    if o.unmet.is_empty() {
        return text + ",";
    }
    let is_unmet = |s: &Setting| s.address().is_some_and(|a| o.unmet.contains(&a));
    let refused: Vec<&Failure> = o.refused.iter().filter(|r| is_unmet(&r.asked)).map(|r| &r.failure).collect();
    let ignored = o.ignored.iter().filter(|i| is_unmet(&i.asked)).count();
    if !refused.is_empty() {
        let words: BTreeSet<&str> = refused.iter().map(|f| f.words.as_str()).collect();
        let words: Vec<&str> = words.into_iter().collect();
        text.push_str(&format!("; {} refused by the kernel or the driver: {}", refused.len(), words.join(", ")));
    }
    if ignored > 0 {
        text.push_str(&format!("; {ignored} accepted by the driver but not kept"));
    }
    let impossible = o.unmet.len().saturating_sub(refused.len() + ignored);
    if impossible > 0 {
        text.push_str(&format!("; {impossible} cannot be set on this host"));
    }
    text + ";"
}

/// What to do after `apply`.
pub const AFTER_APPLY: &str = "Next: ringwise verify   shows whether the settings are still as applied
      ringwise persist  applies them at every boot, or the configuration file if
                        there is one; now a reboot loses them
";

/// What a transaction was made by, or where its outcome is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// `apply`
    Apply,
    /// `apply --boot`: its output goes to the log, so it proposes no next command.
    ApplyAtBoot,
    /// `rollback`
    RollBack,
    /// `recover`
    Recover,
    /// `history` shows it later.
    History,
}

impl Run {
    fn verb(self) -> &'static str {
        match self {
            Self::Apply | Self::ApplyAtBoot | Self::History => "Applied",
            Self::RollBack => "Rolled back",
            Self::Recover => "Recovered",
        }
    }
}

/// The outcome.
pub fn summary(o: &Outcome, run: Run, style: &Style) -> String {
    let w = style.width;
    let mut out = not_as_requested(o, w);
    out.push_str(&super::manual_changes::outcome(&o.kept, style));
    let stands = matches!(o.verdict, RunResult::Applied | RunResult::NothingToDo);
    if stands && !o.pending.is_empty() {
        let names: Vec<String> = o.pending.iter().map(ToString::to_string).collect();
        let text = if style.width.is_some() && names.len() > 4 {
            format!("{} and {} more", names[..3].join(", "), names.len() - 3)
        } else {
            names.join(", ")
        };
        out.push_str(&hang("not yet seen on the new CPU (idle): ", &text, w));
    }
    out.push_str(&verdict(o, run, style));
    if stands && !o.waiting.is_empty() {
        out.push_str(&style.paint(Tint::Yellow, &format!("{} not restored yet:", plural(o.waiting.len(), "setting"))));
        out.push('\n');
        for n in &o.waiting {
            out.push_str(&hang("  ", &left(n), w));
        }
        let again = if o.transaction.is_some() { "ringwise recover" } else { "the same command again" };
        out.push_str(&hang("", &format!("When {} online again: {again}", is(&offline(&o.waiting))), w));
    }
    for n in &o.notes {
        out.push_str(&hang("note: ", n, w));
    }
    out
}

/// Settings that the kernel or the driver refused or changed to other values.
fn not_as_requested(o: &Outcome, w: Option<usize>) -> String {
    let mut out = String::new();
    for r in &o.refused {
        let text = format!("{} {}: {}", address(&r.asked), r.failure.words, r.failure.meaning);
        out.push_str(&hang("refused: ", &text, w));
    }
    for i in &o.ignored {
        let now = fact(&i.now);
        out.push_str(&hang(
            "ignored: ",
            &format!("{} requested {}, is {now}; remembered", address(&i.asked), i.asked.value_text()),
            w,
        ));
    }
    out.push_str(&super::moderation::instead(o, w));
    for a in &o.adjusted_by_driver {
        out.push_str(&hang(
            "adjusted: ",
            &format!("{} requested {}, driver set {}", address(&a.asked), a.asked.value_text(), a.kept.value_text()),
            w,
        ));
    }
    out
}

fn verdict(o: &Outcome, run: Run, style: &Style) -> String {
    let w = style.width;
    let id = o.transaction.map(|t| t.to_string()).unwrap_or_default();
    let mut out = String::new();
    match o.verdict {
        RunResult::NothingToDo if o.already_so.is_empty() => out.push_str("Nothing to do. Nothing was written.\n"),
        RunResult::NothingToDo => {
            out.push_str(&format!(
                "Nothing to do: {} already as requested. Nothing was written.\n",
                plural(o.already_so.len(), "setting")
            ));
        }
        RunResult::Applied => {
            let text = format!("{} as transaction {id} in {}: {} {}.", run.verb(), seconds(o), count(o), read_back(o));
            let tint = if o.unmet.is_empty() { Tint::Green } else { Tint::Yellow };
            out.push_str(&style.paint(tint, hang("", &text, w).trim_end()));
            out.push('\n');
            match o.trial.as_ref().filter(|t| t.fate == TrialResult::Pending) {
                Some(t) => out.push_str(&on_trial(t, style)),
                None => out.push_str(&format!("Undo: ringwise rollback {id}\n")),
            }
            let learned = !o.refused.is_empty() || !o.ignored.is_empty() || !o.instead.is_empty();
            if learned && matches!(run, Run::Apply | Run::ApplyAtBoot | Run::History) {
                let text = "Refused and ignored settings are remembered; later plans skip them.";
                out.push_str(&hang("", text, w));
                out.push_str("List: ringwise learned\n");
            }
            // A transaction on trial must be confirmed first; the text about the trial explains how.
            if run == Run::Apply && o.trial.as_ref().is_none_or(|t| t.fate != TrialResult::Pending) {
                out.push_str(AFTER_APPLY);
            }
        }
        RunResult::Recovered => {
            let text = format!(
                "Recovered in {}: the host is as before transaction {id} ({} of {} settings).",
                seconds(o),
                o.verified,
                o.verified_of
            );
            out.push_str(&style.paint(Tint::Green, hang("", &text, w).trim_end()));
            out.push('\n');
        }
        RunResult::PutBack => {
            if let Some(f) = &o.failed {
                out.push_str(&failed(f, w));
            }
            out.push_str(&hang(
                "",
                &format!(
                    "Failed and restored. Nothing of transaction {id} remains ({} of {} settings as before).",
                    o.verified, o.verified_of
                ),
                w,
            ));
            out.push_str(&format!("Details: ringwise history {id}\n"));
        }
        RunResult::PutBackIncomplete => {
            if let Some(f) = &o.failed {
                out.push_str(&failed(f, w));
            }
            out.push_str(&style.paint(Tint::Red, "NOT fully restored."));
            out.push_str(&format!(" {} of {} settings are as before; the others:\n", o.verified, o.verified_of));
            for n in &o.put_back_incomplete {
                out.push_str(&not_back(n, w));
            }
            out.push_str(&format!("Details: ringwise history {id}. Finish later: ringwise recover\n"));
        }
    }
    out
}

/// The offline CPUs that these settings need.
pub fn offline(list: &[NotPutBack]) -> CpuSet {
    list.iter().fold(CpuSet::new(), |all, n| all.union(&n.offline))
}

/// `CPU 3 is`, `CPUs 3-5 are`
pub fn is(cpus: &CpuSet) -> String {
    if cpus.len() == 1 { format!("CPU {cpus} is") } else { format!("CPUs {cpus} are") }
}

fn on_trial(t: &OnTrial, style: &Style) -> String {
    let until = when::clock(t.until_unix, style.utc);
    let head = format!("ON TRIAL until {until} ({} s).", t.seconds);
    let end = format!(
        "Without confirmation everything is restored at {until}, even if this session, this process or sshd has ended."
    );
    format!(
        "{}\n{}Next: ringwise confirm   from any session, if everything works\n",
        style.paint(Tint::Yellow, &head),
        hang("", &end, style.width)
    )
}

fn failed(f: &Failure, w: Option<usize>) -> String {
    let what = f.setting.as_ref().map(|s| format!("{} -> {}: ", address(s), s.value_text())).unwrap_or_default();
    let mut out = hang("failed: ", &format!("{what}{}: {}", f.words, f.meaning), w);
    if let (Some(p), Some(d)) = (&f.path, &f.data) {
        out.push_str(&format!("        {p} <- \"{}\"\n", d.trim_end()));
    }
    out
}

fn fact(f: &Fact<Setting>) -> String {
    match f {
        Fact::Known(s) => s.value_text(),
        Fact::Absent => "missing".into(),
        Fact::Unknown(u) => format!("unknown ({})", u.why),
    }
}

fn left(n: &NotPutBack) -> String {
    format!("{}  was {}, now {}: {}", n.address, n.was.value_text(), fact(&n.now), n.why)
}

fn not_back(n: &NotPutBack, w: Option<usize>) -> String {
    let mut out = hang("  ", &left(n), w);
    match &n.command {
        _ if !n.offline.is_empty() => {
            out.push_str(&format!("    when {} online again:  ringwise recover\n", is(&n.offline)));
        }
        Some(c) => out.push_str(&format!("    manually:  {c}\n")),
        None => out.push_str("    nothing to write to now; when it is back: ringwise recover\n"),
    }
    out
}
