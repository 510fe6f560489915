//! `ringwise confirm`: keeps the changes that are on trial.

use std::time::Duration;

use ringwise_apply::guard::{holder, settle};
use ringwise_apply::{Confirmed, Holder, Outcome, Policy, Process, RunResult, Store, pending};

use super::transaction::{fail, finish, store, who};
use crate::args::{Common, ConfirmArgs};
use crate::exit::{Fail, Result, Status};
use crate::logbook::Logbook;
use crate::out;
use crate::source::{self, Source};
use ringwise_render::outcome::Run;
use ringwise_text::Style;

/// Time limit for a guard to restore everything, including channels and links.
const BOUND: Duration = Duration::from_secs(120);
const EACH: Duration = Duration::from_millis(100);

pub(super) fn run(a: &ConfirmArgs, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let style = crate::style::detect(common);
    let store = store(common);
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let waits = pending(&store, &host).ok().flatten().map(|p| p.transaction);
    let status = decide(&source, &store, a.format.json(common), &style)?;
    if let (Status::Ok, Some(id)) = (status, waits) {
        super::measure::confirmed(&source, common, id);
    }
    Ok(status)
}

/// Confirms, waits until the guard has released the lock, and reports the outcome.
pub(super) fn decide(source: &Source, store: &Store, as_json: bool, style: &Style) -> Result<Status> {
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let decision = ringwise_apply::confirm(store, &host, &who(), source.host.as_ref()).map_err(|e| fail(&e))?;
    let (id, before) = match decision {
        Confirmed::Nothing => {
            return Err(Fail::refused(
                "nothing_on_trial",
                "nothing is on trial: no transaction of this boot is waiting for confirmation",
            )
            .next("ringwise history"));
        }
        Confirmed::Kept { transaction, noted } => {
            if let Err(e) = noted {
                out::error(&format!(
                    "ringwise: the changes are kept, but the confirmation could not be written to the journal: {e}"
                ));
            }
            (transaction, false)
        }
        Confirmed::Already { transaction } => (transaction, true),
        Confirmed::TooLate { transaction, by, why } => {
            out::error(&format!("error: too late: transaction {transaction} is undone by {by}: {why}"));
            return end(source, store, transaction, as_json, style);
        }
        Confirmed::Overdue { transaction, late, guard } => {
            let over = format!("too late: the trial of transaction {transaction} ended {} s ago", late.as_secs());
            let Some(guard) = guard else {
                let text = format!("{over}, and its guard is gone, so it was not restored");
                return Err(Fail::refused("trial_overdue", text).next("ringwise recover"));
            };
            out::error(&format!("error: {over}; waiting for its guard{} to restore it", process(&guard)));
            if !ended(source, store)? {
                return Err(idle(transaction, &guard));
            }
            return end(source, store, transaction, as_json, style);
        }
    };
    let kept = if before { "was confirmed before" } else { "is kept" };
    match outcome(source, store, id, prompt())? {
        Some(o) if o.verdict == RunResult::Applied => {
            Logbook::of(Some(id)).outcome(&o);
            if as_json {
                let mut doc = serde_json::json!(o);
                doc["already_confirmed"] = before.into();
                out::json(&doc)?;
            } else {
                out::answer(&format!("Transaction {id} {kept}. Undo: ringwise rollback {id}\n"))?;
            }
            Ok(Status::Ok)
        }
        Some(_) => end(source, store, id, as_json, style),
        None => {
            let guard = holder(store).unwrap_or_default();
            let text = format!(
                "transaction {id} {kept}, but its guard{} does not answer and still holds the lock: no other change can be \
                 applied until it ends",
                process(&guard)
            );
            Err(Fail::new(Status::Findings, text).code("kept_guard_silent").next(kill(&guard, "ringwise")))
        }
    }
}

/// Time limit for a guard to notice the decision.
fn prompt() -> Duration {
    Process::default().bound
}

/// ` (process 812)`
pub(super) fn process(guard: &Holder) -> String {
    guard.pid.map(|p| format!(" (process {p})")).unwrap_or_default()
}

/// Commands that end a guard that does not answer; `then` does the rest.
fn kill(guard: &Holder, then: &str) -> String {
    guard.pid.map_or_else(|| then.to_string(), |p| format!("kill -9 {p}, then {then}"))
}

/// The deadline has passed, and the running guard does not react.
fn idle(id: u64, guard: &Holder) -> Fail {
    let text = format!("transaction {id} is not restored: its guard{} does not answer", process(guard));
    Fail::new(Status::Findings, text).code("not_restored_guard_silent").next(kill(guard, "ringwise recover"))
}

/// Waits until the guard has ended an expired trial. False: it did not end it in time.
fn ended(source: &Source, store: &Store) -> Result<bool> {
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let until = source.host.since_boot() + prompt();
    while pending(store, &host).map_err(|e| fail(&e))?.is_some() {
        if source.host.since_boot() >= until {
            return Ok(false);
        }
        source.host.sleep(EACH);
    }
    Ok(true)
}

fn outcome(source: &Source, store: &Store, id: u64, bound: Duration) -> Result<Option<Outcome>> {
    settle(&source.host, store, id, bound, &Policy::default(), &mut |_| {}).map_err(|e| fail(&e))
}

/// The outcome of a transaction that is not kept: status 4, or 5 if not everything could be restored.
pub(super) fn end(source: &Source, store: &Store, id: u64, as_json: bool, style: &Style) -> Result<Status> {
    match outcome(source, store, id, BOUND)? {
        Some(o) if matches!(o.exit_status(), 4 | 5) => finish(&o, Run::Apply, as_json, style),
        // A recovered transaction is restored, not kept.
        Some(o) if o.verdict != RunResult::Applied => finish(&o, Run::Apply, as_json, style).map(|_| Status::PutBack),
        _ => Err(Fail::new(Status::PutBack, format!("transaction {id} is still being restored"))
            .code("restoring")
            .next(format!("ringwise history {id}"))),
    }
}
