//! What a transaction does, line by line, for the system log. The complete record is the journal of the transaction; these
//! lines are for people who read the system log later.
//!
//! Fields in journald: `RINGWISE_TRANSACTION`, `RINGWISE_OUTCOME`, `RINGWISE_DEVICE`, `RINGWISE_SETTING`,
//! `RINGWISE_VALUE`, `RINGWISE_ERRNO`, `RINGWISE_WHO`, `RINGWISE_REASON`, `RINGWISE_LOGINUID`.

use ringwise_apply::{Event, Failure, Outcome, Phase, RunResult};
use ringwise_knob::{Match, Setting};
use ringwise_sys::log::{Log, Priority};

use ringwise_text::plural;

/// A line before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Severity in syslog and journal.
    pub priority: Priority,
    /// One line, without the number of the transaction.
    pub message: String,
    /// Fields for the journal beside the message; names begin with `RINGWISE_`.
    pub fields: Vec<(&'static str, String)>,
}

impl Line {
    fn new(priority: Priority, outcome: &str, message: impl Into<String>) -> Self {
        Self { priority, message: message.into(), fields: vec![("RINGWISE_OUTCOME", outcome.into())] }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    fn about(self, s: &Setting) -> Self {
        let Some(a) = s.address() else { return self };
        let line = match a.dev() {
            Some(d) => self.with("RINGWISE_DEVICE", d),
            None => self,
        };
        line.with("RINGWISE_SETTING", a.to_string()).with("RINGWISE_VALUE", s.value_text())
    }

    fn failed(self, f: &Failure) -> Self {
        let line = match &f.setting {
            Some(s) => self.about(s),
            None => self,
        };
        match f.errno {
            Some(e) => line.with("RINGWISE_ERRNO", e.to_string()),
            None => line,
        }
    }
}

/// The log, and the transaction that its lines belong to.
pub struct Logbook {
    log: Log,
    transaction: Option<u64>,
    who: String,
    reason: Option<String>,
}

impl Logbook {
    /// For a transaction that `who` begins now; its number comes from the first event.
    pub fn open(who: &str, reason: Option<&str>) -> Self {
        Self { log: Log::open(), transaction: None, who: who.into(), reason: reason.map(str::to_string) }
    }

    /// For a transaction that exists already: its guard, its trial, its end.
    pub fn of(transaction: Option<u64>) -> Self {
        Self { transaction, ..Self::open("", None) }
    }

    /// Logs an event, if it has a line of its own.
    pub fn event(&mut self, e: &Event) {
        if let Event::Begun { transaction, .. } = e {
            self.transaction = Some(*transaction);
        }
        if let Some(line) = event(e, &self.who, self.reason.as_deref()) {
            self.line(line);
        }
    }

    /// Logs how the transaction ended, if that has a line of its own.
    pub fn outcome(&self, o: &Outcome) {
        if let Some(line) = outcome(o) {
            self.line(line);
        }
    }

    /// Logs a sentence about the transaction, with the value of `RINGWISE_OUTCOME`.
    pub fn say(&self, priority: Priority, outcome: &str, message: &str) {
        self.line(Line::new(priority, outcome, message));
    }

    fn line(&self, line: Line) {
        let id = self.transaction.map(|t| t.to_string());
        let message = match &id {
            Some(id) => format!("transaction {id}: {}", line.message),
            None => line.message,
        };
        let mut fields: Vec<(&str, &str)> = line.fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
        if let Some(id) = &id {
            fields.push(("RINGWISE_TRANSACTION", id));
        }
        self.log.line(line.priority, &message, &fields);
    }
}

fn named(s: &Setting) -> String {
    let value = s.value_text();
    s.address().map_or_else(|| value.clone(), |a| format!("{a} = {value}"))
}

fn refusal(f: &Failure) -> String {
    let what = f.setting.as_ref().map_or_else(|| "stopped".to_string(), named);
    format!("{what}: {}: {}", f.words, f.meaning)
}

/// The line of an event. `None`: the event is not logged.
pub fn event(e: &Event, who: &str, reason: Option<&str>) -> Option<Line> {
    use Priority::{Error, Info, Notice, Warning};
    let by = |p: &Phase| match p {
        Phase::PutBack => "restored: ",
        Phase::SideEffect => "side effect corrected: ",
        Phase::Apply => "",
    };
    Some(match e {
        Event::Begun { steps, .. } => {
            let why = reason.map(|r| format!(" ({r})")).unwrap_or_default();
            let text = format!("begins: {} by {who}{why}", plural(*steps, "change"));
            let line = Line::new(Notice, "begun", text).with("RINGWISE_WHO", who);
            match reason {
                Some(r) => line.with("RINGWISE_REASON", r),
                None => line,
            }
        }
        Event::Note { text } => Line::new(Info, "note", text.clone()),
        Event::Done { phase, setting, now, how, .. } => {
            let kept = match how {
                Match::Same | Match::Pending => String::new(),
                _ => format!(", reads back as {}", now.value_text()),
            };
            let outcome = if *phase == Phase::Apply { "written" } else { "put_back" };
            let priority = if kept.is_empty() { Info } else { Notice };
            Line::new(priority, outcome, format!("{}{}{kept}", by(phase), named(setting))).about(setting)
        }
        Event::Refused { phase, failure, .. } => {
            Line::new(Warning, "refused", format!("{}refused: {}", by(phase), refusal(failure))).failed(failure)
        }
        Event::Ignored { phase, setting, now } => {
            let still = now.as_ref().map_or("unknown".into(), Setting::value_text);
            let text = format!("{}ignored: {}, still {still}", by(phase), named(setting));
            Line::new(Warning, "ignored", text).about(setting)
        }
        Event::Failed { phase, failure } => {
            Line::new(Error, "failed", format!("{}FAILED: {}", by(phase), refusal(failure))).failed(failure)
        }
        Event::Replanned { steps } => Line::new(
            Notice,
            "planned_again",
            format!("planned again without what was refused: {}", plural(*steps, "change")),
        ),
        Event::PuttingBack { why } => Line::new(Warning, "putting_back", format!("restoring: {why}")),
        Event::Verified { phase, ok, of, .. } => {
            let what = if *phase == Phase::PutBack { "as before" } else { "read back as requested" };
            let priority = if ok == of { Info } else { Warning };
            Line::new(priority, "verified", format!("{ok} of {of} settings {what}"))
        }
        _ => return None,
    })
}

/// The line about the end of a transaction. `None`: nothing was written.
pub fn outcome(o: &Outcome) -> Option<Line> {
    let (priority, word, text) = match o.verdict {
        RunResult::NothingToDo => return None,
        RunResult::Applied => {
            let left = o.refused.len() + o.ignored.len();
            let text = format!("done: {} applied", plural(o.changes(), "change"));
            let applied = match left {
                0 => (Priority::Notice, "applied", text),
                n => (Priority::Warning, "applied", format!("{text}, {n} refused or ignored")),
            };
            match o.waiting.len() {
                0 => applied,
                n => (Priority::Warning, "applied", format!("{}, {n} waiting for offline CPUs", applied.2)),
            }
        }
        RunResult::PutBack => (Priority::Warning, "put_back", "failed and restored".into()),
        RunResult::Recovered => (Priority::Notice, "recovered", "recovered: the host is as before it".into()),
        RunResult::PutBackIncomplete => {
            let n = o.put_back_incomplete.len();
            (Priority::Error, "put_back_incomplete", format!("NOT fully restored: {} remain", plural(n, "setting")))
        }
    };
    let line = Line::new(priority, word, text);
    Some(match &o.failed {
        Some(f) => line.failed(f),
        None => line,
    })
}
