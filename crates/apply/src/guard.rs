//! The guard: a process outside the applier that restores all settings if the applier dies, or if a trial ends without a
//! confirmation. Guard and applier share the lock, so the lock is held without interruption.
//!
//! ```text
//!   applier ── arm ──► guard                          no guard, no write
//!      │ works           │ waits
//!      ├─ dies ─────────►├─ journal without an end ─► put back
//!      ├─ silent ───────►├─ journal without an end ─► marked as taken over, put back
//!      └─ done ─────────►├─ on trial ─► confirmed: leaves │ deadline, undone: put back
//!                        └─ else ─► leaves
//! ```
//!
//! What to do when the applier is done or dead is recorded on disk, so a guard that is started again continues where the last one
//! was. The guard also keeps the journal in memory as it last read it: if the journal vanishes or is damaged before the
//! transaction is over, the guard restores all settings.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringwise_knob::Step;
use ringwise_model::Snapshot;
use ringwise_observe::Stuck;
use ringwise_sys::Host;

use crate::host_access::HostAccess;
use crate::journal::{JournalOrigin, Read};
use crate::names::DeviceRenames;
use crate::record::Record;
use crate::store::{Lock, OpenLock};
use crate::takeover::{halted, take_over, taken};
use crate::trial::note;
use crate::trial_file::{Files, Stage, TrialResult, decide, file};
use crate::undo::{resume, rollback};
use crate::watch::{self, Watch};
use crate::{Error, Event, Failure, Holder, OnTrial, Outcome, Policy, Refusal, Request, RunResult, Store};

pub use crate::guardian::{ApplierState, WatchedApplier};
pub use crate::table_guard::{FOR_TABLES, guard_tables, guard_tables_again};

/// How often the guard looks. It only checks files and clocks, so a look costs two system calls.
const EACH: Duration = Duration::from_millis(200);
/// Attempts to discover the host, one second apart, before the guard gives up.
const TRIES: u32 = 60;
/// Attempts to find the journal, [`EACH`] apart, before it counts as gone.
const LOOKS: u32 = 5;

/// Runs a guard until it ends. `watched`: `None` when the guard was started again, or when its applier is known to be gone;
/// `lock`: `None` when no process handed it over; the guard waits for the lock then. Returns the outcome of what the guard
/// restored.
///
/// Errors: the host could not be read for a minute, or the journal cannot be read and never could be; nothing was restored then.
pub fn guard(
    host: &Arc<dyn Host>,
    store: &Store,
    transaction: u64,
    lock: Option<OpenLock<OwnedFd>>,
    watched: Option<&mut dyn WatchedApplier>,
    policy: &Policy,
    events: &mut dyn FnMut(&Event),
) -> Result<Option<Outcome>, Error> {
    let cx = HostAccess { host, policy };
    let dir = store.dirs().first().cloned().unwrap_or_default();
    let lock = match lock {
        Some(open) => Lock::handed(&dir, open),
        None => wait_for_lock(&cx, store)?,
    };
    let Heard { why, mut known, hung } = match watched {
        Some(watched) => listen(&cx, store, transaction, watched)?,
        None => Heard { why: "the process that applied it is gone".into(), known: None, hung: None },
    };
    // A disk that cannot be read now may be readable later, and no other process would try again.
    let mut tries = 1;
    let out = loop {
        match from_disk(&cx, store, &lock, transaction, &why, &mut known, events) {
            Err(Error::State { .. }) if known.is_none() && tries < TRIES => cx.host.sleep(Duration::from_secs(1)),
            other => break other,
        }
        tries += 1;
    };
    if let Some(pid) = hung {
        // The hung applier shares the lock: no other run gets the lock before it ends.
        let header = known.as_ref().and_then(|k| k.header.as_ref());
        let (who, command) = header.map(|h| (h.who.clone(), h.command.clone())).unzip();
        lock.note(&Holder { pid: Some(pid), who, command, transaction: Some(transaction), trial_until_unix: None });
    }
    out
}

/// What the guard knows when its applier is done, dead or silent.
struct Heard {
    /// Why the settings are restored, if they are.
    why: String,
    /// The journal as last read completely. `None`: it was never read, or losing it now changes nothing.
    known: Option<Read>,
    /// Process of an applier that still exists but no longer responds.
    hung: Option<u32>,
}

/// Listens to the applier until it is done, dies, or has been silent for too long.
fn listen(cx: &HostAccess, store: &Store, transaction: u64, watched: &mut dyn WatchedApplier) -> Result<Heard, Error> {
    let mut heard = Heard { why: "the process that applied it is gone".into(), known: None, hung: None };
    let mut silent = Duration::ZERO;
    loop {
        let begin = cx.now();
        let seen = watched.look(EACH);
        // A guard that was suspended itself, or had no CPU, did not listen for all of that time.
        let listened = cx.now().saturating_sub(begin).min(EACH * 2);
        silent = if seen == ApplierState::Quiet { silent + listened } else { Duration::ZERO };
        match seen {
            ApplierState::Quiet if silent < cx.policy.silence => {}
            ApplierState::Quiet => {
                match Read::of(store, transaction) {
                    // The end record of the journal decides what to do; only the applier's message is missing.
                    Ok(Some(read)) if read.end.is_some() => {
                        watched.answer();
                        if read.on_trial().is_none() {
                            heard.known = None;
                        }
                    }
                    read => {
                        let (pid, halt) = watched.halted();
                        heard.why = halted(pid, halt, silent);
                        heard.hung = pid;
                        take_over(cx, store, read.ok().flatten().as_ref().or(heard.known.as_ref()), &heard.why);
                        watched.take_over();
                    }
                }
                return Ok(heard);
            }
            ApplierState::Alive => {}
            ApplierState::Begun => {
                heard.known = whole(Read::of(store, transaction)?);
                // Without an answer the applier writes nothing.
                if heard.known.is_some() {
                    watched.answer();
                }
            }
            ApplierState::Done { on_trial } => {
                watched.answer();
                if !on_trial {
                    // The journal has an end, and the applier reports the end itself, so losing the journal now changes
                    // nothing.
                    heard.known = None;
                }
                return Ok(heard);
            }
            ApplierState::Died(how) => return Ok(Heard { why: how, ..heard }),
        }
    }
}

/// Only a journal with a header that can be relied on.
fn whole(read: Option<Read>) -> Option<Read> {
    read.filter(|r| r.header.is_some() && r.newer.is_none())
}

fn wait_for_lock(cx: &HostAccess, store: &Store) -> Result<Lock, Error> {
    loop {
        match store.lock() {
            Err(e) if e.refusal().is_some_and(Refusal::is_locked) => cx.host.sleep(EACH),
            other => return other,
        }
    }
}

/// Continues a transaction whose applier is gone: restores the settings where the journal has no end, waits while the transaction
/// is on trial. `known`: its journal as last read completely.
pub(crate) fn from_disk(
    cx: &HostAccess,
    store: &Store,
    lock: &Lock,
    transaction: u64,
    why: &str,
    known: &mut Option<Read>,
    events: &mut dyn FnMut(&Event),
) -> Result<Option<Outcome>, Error> {
    let mut missing = 0;
    let mut announced = false;
    let mut watch = None;
    let mut stuck: Option<String> = None;
    let (facts, _) = ringwise_discover::host_without_rivals(cx.host.as_ref());
    loop {
        let read = match (journal(cx, store, transaction), &known) {
            (Ok(JournalState::Whole(read)), _) => *read,
            (Ok(_), None) => return Ok(None),
            (Err(e), None) => return Err(e),
            (lost, Some(last)) => {
                let how = match lost {
                    Ok(JournalState::Damaged) => "its journal is damaged".to_string(),
                    Ok(_) => "its journal is gone".into(),
                    Err(e) => format!("its journal cannot be read: {e}"),
                };
                return restore(cx, store, lock, last.clone(), over("guard", &how), events).map(Some);
            }
        };
        *known = Some(read.clone());
        // The settings of another boot are gone, so nothing is restored in this one.
        let is_over = read.closed.is_some() || matches!(read.whose(&facts), JournalOrigin::Other(_));
        let Some(header) = read.header.as_ref().filter(|_| !is_over) else {
            return Ok(None);
        };
        let path = read.path.clone();
        let holder = Holder {
            pid: Some(std::process::id()),
            who: Some(header.who.clone()),
            command: Some(header.command.clone()),
            transaction: Some(transaction),
            trial_until_unix: read.on_trial().map(|t| t.until_unix),
        };
        if !announced {
            lock.note(&holder);
            store.publish(Some(&holder));
            announced = true;
        }
        let Some(trial) = read.on_trial().cloned() else {
            if read.end.is_some() {
                return Ok(None);
            }
            let failure = match (&read.taken, &read.trial) {
                (Some(why), _) => taken(why),
                (None, Some((_, TrialResult::Undone { by, why }))) => over(&by.to_string(), why),
                _ => died(why),
            };
            return restore(cx, store, lock, read, failure, events).map(Some);
        };
        let dir = path.parent().unwrap_or(Path::new("."));
        let left = trial.left(cx.now());
        let waits = file(dir, transaction, Stage::Trial);
        let gone = || trial.tied.as_ref().is_some_and(|k| k.is_gone(cx.host.as_ref()));
        if waits.exists() && !left.is_zero() && !gone() && stuck.is_none() {
            let watch = watch.get_or_insert_with(|| LateWatch::begin(cx, &read));
            // A look costs few calls: the journal is read again only after a decision.
            while waits.exists() && !trial.left(cx.now()).is_zero() && !gone() && stuck.is_none() {
                cx.host.sleep(left.min(EACH));
                stuck = watch.as_mut().and_then(|w| w.look(cx)).map(|s| s.0);
            }
            continue;
        }
        // If the trial file is gone without a confirmation (for example because it was deleted), the trial counts as not
        // confirmed.
        let ended = left.is_zero() || gone() || stuck.is_some();
        let won = if ended { decide(store, dir, transaction, Stage::Expired) } else { Ok(false) };
        if matches!(won, Ok(false)) && missing < 3 {
            missing += 1;
            cx.host.sleep(EACH);
            continue;
        }
        let (by, why) = trial_end(won, stuck.as_deref(), left, trial.ms);
        let unix_time = cx.host.unix_time();
        // The settings are restored even if the journal cannot be written.
        let _ = note(store, &path, &Record::TrialOver { by: by.into(), why: why.clone(), unix_time });
        return restore(cx, store, lock, read, over(by, &why), events).map(Some);
    }
}

/// Who ended a trial that was not confirmed, and why. `expired`: whether this guard marked it as expired.
fn trial_end<E: std::fmt::Display>(
    expired: Result<bool, E>,
    stuck: Option<&str>,
    left: Duration,
    trial_ms: u64,
) -> (&'static str, String) {
    match (expired, stuck) {
        (Ok(true), Some(stuck)) => ("guard", stuck.to_string()),
        (Ok(true), None) if !left.is_zero() => ("guard", "the process that requested the trial is gone".to_string()),
        (Ok(true), None) => ("timer", format!("it was not confirmed within {} s", trial_ms.div_ceil(1000))),
        (Ok(false), _) => ("timer", "its trial file is gone".to_string()),
        (Err(e), _) => ("timer", format!("it was not confirmed, and its trial file cannot be renamed: {e}")),
    }
}

/// The watch for stuck queues that continues after the run.
struct LateWatch {
    watch: Watch,
    until: Duration,
    steps: Vec<Step>,
    stuck_before: Vec<Stuck>,
    now: Snapshot,
}

impl LateWatch {
    /// `None`: nothing is to be watched, or the host cannot be discovered.
    fn begin(cx: &HostAccess, read: &Read) -> Option<Self> {
        let header = read.header.as_ref().filter(|h| h.watch_ms > 0)?;
        let now = cx.look().ok()?;
        let names = DeviceRenames::new(&header.devices, &now);
        let steps: Vec<Step> = header.steps.iter().map(|s| names.step(s)).collect();
        let watch = Watch::new(cx, &now, &watch::devices(&steps))?;
        let until = cx.now() + Duration::from_millis(header.watch_ms);
        Some(Self { watch, until, steps, stuck_before: header.stuck_before.clone(), now })
    }

    fn is_over(&self, cx: &HostAccess) -> bool {
        cx.now() >= self.until
    }

    /// Queues that are stuck now, as text and as values.
    fn look(&mut self, cx: &HostAccess) -> Option<(String, Vec<Stuck>)> {
        if self.is_over(cx) {
            return None;
        }
        self.watch.look(cx);
        let stuck = self.watch.new_stuck(&self.stuck_before);
        (!stuck.is_empty()).then(|| (watch::words(&stuck, &self.steps, &self.now), stuck))
    }
}

/// After a run that was kept: continues to look for stuck queues, without the lock, and rolls back if one is found. Ends when a
/// later transaction begins.
///
/// Errors: as [`rollback`], which refuses if the settings were changed outside ringwise since.
pub fn watch_on(
    host: &Arc<dyn Host>,
    store: &Store,
    transaction: u64,
    policy: &Policy,
    events: &mut dyn FnMut(&Event),
) -> Result<Option<Outcome>, Error> {
    let cx = HostAccess { host, policy };
    let kept = |r: &Read| r.end.as_ref().is_some_and(|(o, _)| o.verdict == RunResult::Applied) && r.trial.is_none();
    let Some(read) = Read::of(store, transaction)?.filter(kept) else { return Ok(None) };
    let Some(mut late) = LateWatch::begin(&cx, &read) else { return Ok(None) };
    while !late.is_over(&cx) {
        cx.host.sleep(EACH);
        if store.journals()?.last().is_none_or(|(id, _)| *id != transaction) {
            return Ok(None);
        }
        if let Some((words, stuck)) = late.look(&cx) {
            let request = Request {
                who: "guard".into(),
                argv: vec!["ringwise".into(), "__guard".into()],
                reason: Some(words),
                stuck,
                ..Request::default()
            };
            return rollback(host, store, transaction, &request, policy, events).map(Some);
        }
    }
    Ok(None)
}

enum JournalState {
    Whole(Box<Read>),
    Damaged,
    Gone,
}

/// The journal as it is on disk. Looks more than once, because a directory may be missing only for a moment.
fn journal(cx: &HostAccess, store: &Store, transaction: u64) -> Result<JournalState, Error> {
    let mut tries = 0;
    loop {
        let found = Read::of(store, transaction).map(|r| match r {
            None => JournalState::Gone,
            Some(r) if r.header.is_some() && r.newer.is_none() => JournalState::Whole(r.into()),
            Some(_) => JournalState::Damaged,
        });
        tries += 1;
        if matches!(found, Ok(JournalState::Whole(_))) || tries == LOOKS {
            return found;
        }
        cx.host.sleep(EACH);
    }
}

fn died(why: &str) -> Failure {
    Failure::new(why, "its guard restored everything")
}

fn over(by: &str, why: &str) -> Failure {
    Failure::new(why, format!("undone by {by}"))
}

fn restore(
    cx: &HostAccess,
    store: &Store,
    lock: &Lock,
    read: Read,
    failure: Failure,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let mut tries = 0;
    let now = loop {
        match cx.look() {
            Ok(now) => break now,
            Err(e) if tries == TRIES => return Err(e),
            Err(_) => tries += 1,
        }
        cx.host.sleep(Duration::from_secs(1));
    };
    let id = read.id;
    let out = resume(*cx, store, lock, read, now, Some(failure), events)?;
    // What was restored counts, whether or not its journal can still be read.
    if let Ok(Some(Read { end: Some(_), .. })) = Read::of(store, id) {
        Files::clear(&lock.dir, id);
    }
    Ok(out)
}

/// Which process holds the lock now. During a trial, and until its guard has released the lock, this is the guard.
pub fn holder(store: &Store) -> Option<Holder> {
    store.held()
}

/// Waits until the guard of a decided trial has released the lock, and restores the settings itself if the guard left the
/// transaction without an end. Returns the outcome; `None`: it takes longer than `bound`.
///
/// Errors: as [`guard`].
pub fn settle(
    host: &Arc<dyn Host>,
    store: &Store,
    transaction: u64,
    bound: Duration,
    policy: &Policy,
    events: &mut dyn FnMut(&Event),
) -> Result<Option<Outcome>, Error> {
    let cx = HostAccess { host, policy };
    let end = cx.now() + bound;
    loop {
        let by = store.held();
        let read = Read::of(store, transaction)?;
        let cut = read.as_ref().is_some_and(Read::unfinished);
        match by {
            None if cut => match store.lock() {
                Ok(lock) => {
                    from_disk(&cx, store, &lock, transaction, "its guard is gone", &mut None, events)?;
                }
                // Another process took the lock first, perhaps the guard that was started again.
                Err(e) if e.refusal().is_some_and(Refusal::is_locked) => {}
                Err(e) => return Err(e),
            },
            Some(h) if cut || h.transaction == Some(transaction) => {}
            _ => {
                let Some(Read { end: Some((mut out, _)), trial, .. }) = read else { return Ok(None) };
                out.trial = trial.map(|(t, fate)| OnTrial::new(&t, fate));
                return Ok(Some(out));
            }
        }
        if cx.now() >= end {
            return Ok(None);
        }
        cx.host.sleep(EACH);
    }
}
