//! `ringwise confirm`: what is on trial is kept.

use std::time::Duration;

use ringwise_apply::guard::settle;
use ringwise_apply::{Confirmed, Outcome, Policy, Store, Verdict};

use super::transaction::{fail, finish, store, who};
use crate::args::{Common, ConfirmArgs};
use crate::exit::{Fail, Result, Status};
use crate::logbook::Logbook;
use crate::out;
use crate::source::{self, Source};
use crate::style::Style;

/// For a guard to put back what is too late, channels and links included.
const BOUND: Duration = Duration::from_secs(120);

pub fn run(a: &ConfirmArgs, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let style = Style::detect(common);
    let store = store(common);
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let waits = ringwise_apply::pending(&store, &host).ok().flatten().map(|p| p.transaction);
    let status = decide(&source, &store, a.format.json(common), &style)?;
    if let (Status::Ok, Some(id)) = (status, waits) {
        super::measure::confirmed(&source, common, id);
    }
    Ok(status)
}

/// Confirms, waits until the guard has let go, and says what became of it.
pub fn decide(source: &Source, store: &Store, as_json: bool, style: &Style) -> Result<Status> {
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let said = ringwise_apply::confirm(store, &host, &who(), source.host.unix_time()).map_err(|e| fail(&e))?;
    let (id, kept) = match said {
        Confirmed::Nothing => {
            return Err(Fail::refused("nothing is on trial: the last transaction of this boot waits for nobody")
                .next("ringwise history"));
        }
        Confirmed::Kept { transaction, noted } => {
            if let Err(e) = noted {
                out::error(&format!("ringwise: it is kept, and its journal does not say so: {e}"));
            }
            (transaction, "is kept")
        }
        Confirmed::Already { transaction } => (transaction, "was confirmed before"),
        Confirmed::TooLate { transaction, by, why } => {
            out::error(&format!("ringwise: too late: transaction {transaction} is undone by {by}: {why}"));
            return end(source, store, transaction, as_json, style);
        }
    };
    let o = outcome(source, store, id)?;
    match o {
        Some(o) if o.verdict == Verdict::Applied => {
            Logbook::of(Some(id)).outcome(&o);
            if as_json {
                out::json(&o)?;
            } else {
                out::answer(&format!("Transaction {id} {kept}. Undo: ringwise rollback {id}\n"))?;
            }
            Ok(Status::Ok)
        }
        _ => end(source, store, id, as_json, style),
    }
}

fn outcome(source: &Source, store: &Store, id: u64) -> Result<Option<Outcome>> {
    settle(&source.host, store, id, BOUND, &Policy::default(), &mut |_| {}).map_err(|e| fail(&e))
}

/// What a transaction came to that is not kept: status 4, or 5 where not all of it could be put back.
pub fn end(source: &Source, store: &Store, id: u64, as_json: bool, style: &Style) -> Result<Status> {
    match outcome(source, store, id)? {
        Some(o) if matches!(o.exit_status(), 4 | 5) => finish(&o, "Applied", as_json, style),
        // It was recovered: as before, and not kept.
        Some(o) if o.verdict != Verdict::Applied => finish(&o, "Applied", as_json, style).map(|_| Status::PutBack),
        _ => Err(Fail::new(Status::PutBack, format!("transaction {id} is still being put back"))
            .next(format!("ringwise history {id}"))),
    }
}
