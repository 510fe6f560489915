//! The guard of tables: a process that restores the base of RSS tables, and of interrupts that were moved, when the service that
//! follows the load is gone. It holds no lock and waits for one only to restore.
//!
//! ```text
//!   service ── arm_for_tables ──► guard             no guard, no move
//!      ├─ dies ──────────────────►├─ restores
//!      ├─ hands over (a file) ───►├─ taken by another service within 15 s ─► leaves │ else ─► restores
//!      └─ moved nothing ────────►└─ leaves
//! ```
//!
//! A rename of the file decides whether another service has taken the tables over; exactly one process can win it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringwise_model::Fact;
use ringwise_sys::Host;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::balance::restore_balanced;
use crate::guardian::{ApplierState, WatchedApplier};
use crate::state_file::{self, SUMMED};
use crate::{Armed, Error, Guardian, Outcome, Policy, Refusal, Request, RunResult, Store};

pub use crate::guardian::FOR_TABLES;

/// How long tables wait for the next service: a restart or an upgrade takes less.
const TAKEN_WITHIN: Duration = Duration::from_secs(15);
const EACH: Duration = Duration::from_millis(100);
/// Attempts after an error, one second apart.
const TRIES: u32 = 60;

/// What a service leaves for the next one.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct HandOver {
    format: u32,
    boot_id: Option<String>,
    state: Value,
}

fn file(store: &Store, name: &str) -> PathBuf {
    store.dirs().first().cloned().unwrap_or_default().join(name)
}

fn waiting(store: &Store) -> PathBuf {
    file(store, "balance.json")
}

/// Starts a guard that restores tables when this process ends. Under the lock, because the guard of a transaction may be started at
/// the same time.
///
/// Errors: another run holds the lock, or no guard could be started.
pub fn arm_for_tables(store: &Store, guardian: &dyn Guardian) -> Result<Box<dyn Armed>, Error> {
    let lock = store.lock()?;
    guardian.arm_for_tables(&lock.dir).map_err(|e| Refusal::NoGuard { why: e.to_string() }.into())
}

/// Leaves the tables, and `state`, to the next service.
///
/// Errors: the file cannot be written; the guard restores the tables then.
pub fn hand_over(store: &Store, host: &dyn Host, state: Value) -> Result<(), Error> {
    let boot_id = boot_id(host);
    store.write_json(&waiting(store), &HandOver { format: SUMMED, boot_id, state })
}

/// Takes over what the last service has left. `None`: it left nothing, or it is too late.
pub fn take_tables(store: &Store, host: &dyn Host) -> Option<Value> {
    let taken = file(store, "balance-taken.json");
    fs::rename(waiting(store), &taken).ok()?;
    let read: Option<HandOver> = state_file::read_whole(&taken);
    let _ = fs::remove_file(&taken); // the next one replaces it
    read.filter(|h| h.boot_id.is_some() && h.boot_id == boot_id(host)).map(|h| h.state)
}

fn boot_id(host: &dyn Host) -> Option<String> {
    let (facts, _) = ringwise_discover::host_without_rivals(host);
    match facts.boot_id {
        Fact::Known(id) => Some(id),
        _ => None,
    }
}

/// Runs the guard of tables until it ends. Returns the outcome of what it restored.
///
/// Errors: the tables could not be restored.
pub fn guard_tables(
    host: &Arc<dyn Host>,
    store: &Store,
    watched: &mut dyn WatchedApplier,
    policy: &Policy,
) -> Result<Option<Outcome>, Error> {
    loop {
        match watched.look(Duration::from_secs(60)) {
            ApplierState::Done { on_trial: false } => {
                watched.answer();
                return Ok(None);
            }
            ApplierState::Done { on_trial: true } => {
                watched.answer();
                return guard_tables_after(host, store, policy);
            }
            ApplierState::Died(_) => return restore(host, store, policy),
            ApplierState::Quiet | ApplierState::Alive | ApplierState::Begun => {}
        }
    }
}

/// For a guard that was started again: `served`: whether a service runs. Without one the tables are restored.
///
/// Errors: the tables could not be restored.
pub fn guard_tables_again(
    host: &Arc<dyn Host>,
    store: &Store,
    served: bool,
    policy: &Policy,
) -> Result<Option<Outcome>, Error> {
    match (waiting(store).exists(), served) {
        (true, _) => guard_tables_after(host, store, policy),
        // It has a guard of its own, or restores them itself.
        (false, true) => Ok(None),
        (false, false) => restore(host, store, policy),
    }
}

/// Waits for another service to take the tables over, and restores them if none does.
///
/// Errors: the tables could not be restored.
fn guard_tables_after(host: &Arc<dyn Host>, store: &Store, policy: &Policy) -> Result<Option<Outcome>, Error> {
    let end = host.since_boot() + TAKEN_WITHIN;
    while waiting(store).exists() && host.since_boot() < end {
        host.sleep(EACH);
    }
    let expired = file(store, "balance-expired.json");
    match fs::rename(waiting(store), &expired) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        // A file that cannot be renamed cannot be taken over either.
        _ => {
            let _ = fs::remove_file(&expired); // the next one replaces it
            restore(host, store, policy)
        }
    }
}

fn restore(host: &Arc<dyn Host>, store: &Store, policy: &Policy) -> Result<Option<Outcome>, Error> {
    let by = Request {
        who: "guard".into(),
        argv: vec!["ringwise".into(), "__guard".into()],
        reason: Some("the service that followed the load is gone".into()),
        ..Request::default()
    };
    let mut failures = 0;
    loop {
        // Another run, or the guard of a trial, may hold the lock for long. The guard of a move that was cut short restores it first.
        if store.held().is_none() {
            match restore_balanced(host, store, None, &by, policy) {
                Ok(None) => return Ok(None),
                Ok(Some(o)) if matches!(o.verdict, RunResult::Applied | RunResult::NothingToDo) => return Ok(Some(o)),
                Err(e) if e.refusal().is_some_and(Refusal::is_temporary) => {}
                other if failures >= TRIES => return other,
                _ => failures += 1,
            }
        }
        host.sleep(if failures > 0 { Duration::from_secs(1) } else { EACH });
    }
}
