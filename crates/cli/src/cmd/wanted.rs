//! The requested settings of a command line: see `ringwise_intent`. Notes are printed here.

use std::io::ErrorKind;

use ringwise_config::{Config, Fault};
use ringwise_intent::{Class, Error, Wanted};
use ringwise_model::{Intent, Snapshot};

use crate::args::{Common, IntentArgs};
use crate::error_details::FaultPlace;
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::Source;
use ringwise_text::when;

pub(super) fn read(devs: &[String], a: &IntentArgs, recorded: bool) -> Result<Wanted> {
    Ok(ringwise_intent::read(&a.flags(devs), a.config.as_deref(), recorded)?)
}

/// The intent for this host.
pub(super) fn intent(w: &Wanted, source: &Source, s: &Snapshot, common: &Common) -> Result<Intent> {
    let (intent, notes) = w.intent(s).map_err(|e| about(e, source))?;
    print(&notes, common);
    Ok(intent)
}

/// The error with a next command that reads the same recording.
pub(super) fn about(e: Error, source: &Source) -> Fail {
    let show = shows(&e).map(|show| source.recording.reads(show));
    let fail = Fail::from(e);
    match show {
        Some(show) => fail.next(show),
        None => fail,
    }
}

/// The command that shows what exists, for an error about a name or a CPU that does not.
fn shows(e: &Error) -> Option<&'static str> {
    match e {
        Error::Unbound(_) => Some("ringwise show --all"),
        Error::Set(_) => Some("ringwise help ringwise.toml"),
        Error::Plan(ringwise_plan::Refusal::CpuBeyondMachine { .. }) => Some("ringwise show"),
        _ => None,
    }
}

/// The equivalent configuration file, with the settings that its goals imply as comments.
pub(super) fn file(w: &Wanted, host: impl FnOnce() -> Result<Snapshot>, common: &Common) -> Result<String> {
    let (c, notes): (Config, _) = w.joined(host)?;
    print(&notes, common);
    Ok(ringwise_config::print(&c) + &ringwise_intent::implied(&c))
}

fn print(notes: &[String], common: &Common) {
    notes.iter().for_each(|n| out::note(common.quiet, &format!("ringwise: {n}")));
}

impl From<Error> for Fail {
    fn from(e: Error) -> Self {
        fail(e, false)
    }
}

/// Converts the error. `utc`: print times in UTC.
pub(super) fn fail(e: Error, utc: bool) -> Fail {
    let status = match e.class() {
        Class::Usage => Status::Usage,
        Class::Failed => Status::Error,
        Class::Refused => Status::Refused,
    };
    let message = match &e {
        Error::PlanExpired { path, end, now } => {
            format!("{} expired at {}; now it is {}", path.display(), when::full(*end, utc), when::full(*now, utc))
        }
        other => other.faults().join("\nerror: "),
    };
    let next = match &e {
        Error::OtherGoal { goal, .. } => {
            Some(format!("--goal {goal} --override-config, or --config none to ignore the file"))
        }
        // If the file exists, creating another one does not help.
        Error::Config { error, .. } if error.kind() == ErrorKind::NotFound => {
            Some("ringwise config init > FILE".into())
        }
        Error::PlanUnreadable { error, .. } if error.kind() == ErrorKind::NotFound => {
            Some("ringwise plan --out FILE".into())
        }
        Error::NotAPlan(_) => Some("ringwise plan --out FILE".into()),
        Error::PlanRefused { path, .. } | Error::PlanExpired { path, .. } => {
            Some(format!("ringwise plan --out {}", path.display()))
        }
        _ => shows(&e).map(str::to_string),
    };
    let mut fail = Fail { next, ..Fail::new(status, message) }.code(e.code()).errno(e.errno());
    if let Error::Plan(refusal) = &e {
        fail = fail.tagged("kind", refusal);
    }
    if let Some(file) = e.file() {
        fail = fail.file(file);
    }
    if let Error::Faults(faults) = &e {
        let place = |((line, column), f): ((usize, usize), &Fault)| FaultPlace {
            line,
            column,
            found: f.found.clone(),
            expected: f.right.clone(),
        };
        fail = fail.places(faults.places().zip(&faults.all).map(place).collect());
    }
    fail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_has_expired() {
        let e = Error::PlanExpired { path: "x.plan".into(), end: 1_003_600, now: 1_003_600 };
        let f = fail(e, true);
        let text = "x.plan expired at 1970-01-12T14:46:40Z; now it is 1970-01-12T14:46:40Z";
        assert_eq!((f.status, f.message.as_str()), (Status::Refused, text));
        assert_eq!(f.next.as_deref(), Some("ringwise plan --out x.plan"));
    }
}
