//! From the request to the outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ringwise_knob::{Address, Match, Setting, SettingMap, Step, compare};
use ringwise_model::{DevId, Snapshot};
use ringwise_observe::Stuck;
use ringwise_sys::Host;

use crate::adopt::write_down;
use crate::guardian::ReleasedGuard;
use crate::history::replaces_another;
use crate::host_access::HostAccess;
use crate::journal::Journal;
use crate::ledger::Ledger;
use crate::names::DeviceRenames;
use crate::preflight::settled_preflight;
use crate::published::Publishing;
use crate::record::Header;
use crate::start::start_of;
use crate::store::{Disk, Lock};
use crate::takeover::SignalingHost;
use crate::tx::{Done, Tx};
use crate::unfinished::{close_others, refuse_unfinished};
use crate::watch::{self, Watch};
use crate::{
    Armed, Error, Event, Holder, Job, Outcome, Phase, Policy, Refusal, Request, RunResult, Store, TransactionKind,
    irqbalance,
};

/// Applies the steps of `request` as one transaction: either all of them are kept, or the host is restored.
///
/// Errors: refused or failed before anything was changed. Failures after the first write are reported in the [`Outcome`].
pub fn run(
    host: &Arc<dyn Host>,
    request: &Request,
    store: &Store,
    policy: &Policy,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let cx = HostAccess::new(host, policy)?;
    let mut writes = true;
    if !policy.differs {
        let now = cx.look()?;
        let (request, notes) = follow(request, &now)?;
        if holds(&request, &now) {
            refuse_unfinished(store, &now)?;
            if !for_another_goal(&request, store, &now)? {
                return Ok(nothing_to_do(&request, &now, notes));
            }
            writes = false;
        }
    }
    if writes {
        cx.writable()?;
    }
    let lock = lock_for(store, &request.who)?;
    let disk = Disk { store, lock: &lock };
    // Read under the lock: another run may have changed the host until now.
    let now = cx.look()?;
    if !writes && !holds(&follow(request, &now)?.0, &now) {
        // The host was changed between the two looks.
        cx.writable()?;
    }
    run_under_lock(cx, request, now, disk, events)
}

/// Takes the lock. Others wait for the service, so they have to know from the beginning who has it.
pub(crate) fn lock_for(store: &Store, who: &str) -> Result<Lock, Error> {
    let lock = store.lock()?;
    lock.note(&Holder { pid: Some(std::process::id()), who: Some(who.into()), ..Holder::default() });
    Ok(lock)
}

/// The same for a host that can be written, with a snapshot that was taken under the lock.
pub(crate) fn run_under_lock(
    cx: HostAccess,
    request: &Request,
    now: Snapshot,
    disk: Disk,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let (request, mut notes) = follow(request, &now)?;
    notes.extend(close_others(disk.store, disk.lock, &now, cx.host.unix_time())?);
    if holds(&request, &now) && (cx.policy.record || for_another_goal(&request, disk.store, &now)?) {
        return replace(cx, request, &now, notes, disk, events);
    }
    transact(cx, request, TransactionKind::Apply, now, notes, disk, events)
}

/// Whether every step, and every setting that a reviewed plan relies on, has its value already.
fn holds(request: &Request, now: &Snapshot) -> bool {
    request.steps.iter().map(|s| &s.setting).chain(&request.relies_on).all(|s| compare(s, now).holds())
}

/// Whether the settings in effect were applied for another goal: then a transaction without a write records the new one.
fn for_another_goal(request: &Request, store: &Store, now: &Snapshot) -> Result<bool, Error> {
    match request.requested.as_ref().filter(|_| !request.already.is_empty()) {
        Some(requested) => replaces_another(store, &now.host, requested),
        None => Ok(false),
    }
}

/// Whether the host is still as the steps of `request` expect it, to be called before the user confirms them. Writes
/// nothing. `true`: a step differs from the host ([`Policy::differs`]).
///
/// Errors: the refusals that [`run`] would return for this reason.
pub fn still_fits(host: &Arc<dyn Host>, request: &Request, policy: &Policy) -> Result<bool, Error> {
    let cx = HostAccess::new(host, policy)?;
    let now = cx.look()?;
    let (request, _) = follow(request, &now)?;
    let now = settled_preflight(&cx, now, &request)?;
    Ok(!holds(&request, &now))
}

/// The request with the present device names. Refused if a device is gone or a setting is of a newer version.
fn follow(request: &Request, now: &Snapshot) -> Result<(Request, Vec<String>), Error> {
    let names = DeviceRenames::new(&request.devices, now);
    if let Some(device) = names.gone.first() {
        return Err(Refusal::Vanished { device: device.clone() }.into());
    }
    let mut out = request.clone();
    out.steps = request.steps.iter().map(|s| names.step(s)).collect();
    out.relies_on = request.relies_on.iter().map(|s| names.setting(s)).collect();
    let so = |s: &Setting| compare(s, now).holds();
    out.already = request.already.iter().map(|s| names.setting(s)).collect();
    irqbalance::hold_too(&mut out, now);
    out.already.retain(so);
    for d in &mut out.devices {
        if let Some(n) = now.nics.iter().find(|n| d.same_device(&n.dev)) {
            *d = n.dev.clone();
        }
    }
    for s in &out.steps {
        match s.setting.address() {
            None => return Err(Refusal::Unknown { text: s.setting.value_text() }.into()),
            Some(a) => {
                if let Some(device) = a.dev().filter(|d| now.nic(d).is_none()) {
                    return Err(Refusal::Vanished { device: device.to_string() }.into());
                }
            }
        }
    }
    Ok((out, names.changed().map(|(a, b)| format!("{a} was renamed to {b}")).collect()))
}

/// Nothing has to be written to the host: the journal only records the new goal.
fn replace(
    cx: HostAccess,
    mut request: Request,
    now: &Snapshot,
    mut notes: Vec<String>,
    disk: Disk,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    request.already.extend(std::mem::take(&mut request.steps).into_iter().map(|s| s.setting));
    request.already.retain(|s| compare(s, now).holds());
    notes.push("every setting already has the requested value; nothing was written to the host".into());
    write_down(cx, request, TransactionKind::Apply, now, notes, disk, events)
}

fn nothing_to_do(request: &Request, now: &Snapshot, notes: Vec<String>) -> Outcome {
    let mut out = Outcome::nothing();
    let pending = |s: &&Step| compare(&s.setting, now) == Match::Pending;
    out.pending = request.steps.iter().filter(pending).filter_map(|s| s.setting.address()).collect();
    out.already_so = request.steps.iter().map(|s| s.setting.clone()).collect();
    out.kept.clone_from(&request.kept);
    out.waiting.clone_from(&request.waiting);
    (out.verified, out.verified_of) = (out.already_so.len(), out.already_so.len());
    out.notes = notes;
    out
}

/// The transaction under the lock, from the preflight on.
pub(crate) fn transact(
    cx: HostAccess,
    mut request: Request,
    kind: TransactionKind,
    now: Snapshot,
    mut notes: Vec<String>,
    disk: Disk,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let begin = cx.now();
    let Disk { store, lock } = disk;
    notes.extend(lock.notes.iter().cloned());
    let now = settled_preflight(&cx, now, &request)?;
    if request.steps.iter().all(|s| compare(&s.setting, &now).holds()) {
        return Ok(nothing_to_do(&request, &now, notes));
    }
    notes.extend(checked(&cx, &request, &kind, &now)?);
    crate::bond::order_steps(&now, &mut request.steps);
    let forward = kind == TransactionKind::Apply;
    let start = start_of(&now, &request.steps);
    let id = store.next_transaction()?;
    let holder = Holder {
        pid: Some(std::process::id()),
        who: Some(request.who.clone()),
        command: Some(request.command()),
        transaction: Some(id),
        trial_until_unix: None,
    };
    lock.note(&holder);
    // Reading all journals for it takes time, and nothing waits for it.
    let publishing = Publishing::begin(store, &holder);
    // Before anything is written to disk: a refusal here leaves nothing behind.
    let mut guard = ReleasedGuard(arm(&cx, lock, id)?);
    notes.extend(guard.0.as_ref().and_then(|g| g.note()));
    let sign = guard.0.as_ref().and_then(|g| g.sign_of_life());
    let living: Option<Arc<dyn Host>> = sign.map(|sign| Arc::new(SignalingHost { host: cx.host.clone(), sign }) as _);
    let cx = HostAccess { host: living.as_ref().unwrap_or(cx.host), ..cx };
    let watch = if forward { cx.policy.watch } else { Duration::ZERO };
    let mut watched = if watch.is_zero() { None } else { Watch::new(&cx, &now, &watch::devices(&request.steps)) };
    let stuck_before = watched.as_mut().map(|w| w.already(&cx)).unwrap_or_default();
    if !stuck_before.is_empty() {
        notes.push(format!("already stuck before anything was changed: {}", watch::words(&stuck_before, &[], &now)));
    }
    notes.extend(note_origins(disk, &request, &start, &now, forward)?);
    let header = Header {
        devices: devices(&request, &now),
        already: request.already.clone(),
        start: start.values().cloned().collect(),
        undo: start.values().filter_map(|s| s.command(&now)).collect(),
        watch_ms: guard_watch_ms(watch),
        stuck_before: stuck_before.clone(),
        ..Header::of(id, kind, &request, &now, cx.host.unix_time())
    };
    let devices = header.devices.clone();
    let journal = Journal::begin(store, lock, header)?;
    if let Some(why) = guard.0.as_mut().and_then(|g| g.begun().err()) {
        // Nothing was changed, so a journal would be misleading.
        let _ = std::fs::remove_file(journal.path());
        return Err(Refusal::NoGuard { why: format!("it was ready, but does not answer any more: {why}") }.into());
    }
    let mut out = Outcome::nothing();
    out.transaction = Some(id);
    out.kept.clone_from(&request.kept);
    out.waiting.clone_from(&request.waiting);
    events(&Event::Begun { transaction: id, steps: request.steps.len() });
    let mut tx = Tx::new(cx, events, journal, now, out);
    (tx.devices, tx.steps, tx.start, tx.guard) = (devices, request.steps, start, guard.keep());
    notes.into_iter().for_each(|n| tx.note(n));
    let asked = if forward { tx.ask_for_support(disk) } else { Ok(()) };
    match asked.and_then(|()| tx.forward(disk)).and_then(|()| tx.still_sends(watched, watch, &stuck_before)) {
        Ok(()) => tx.succeeded(request.unmet),
        Err(failure) => tx.restore(*failure),
    }
    publishing.end();
    Ok(tx.finish(store, lock, begin, Some(holder)))
}

/// Checks, beyond the preflight, that refuse a request before anything is changed. Returns notes for the user.
fn checked(cx: &HostAccess, request: &Request, kind: &TransactionKind, now: &Snapshot) -> Result<Vec<String>, Error> {
    crate::bond::check(now, &request.steps)?;
    let mut notes = crate::control::check(cx, now, &request.steps)?;
    match crate::cpu_timers::check(cx, now, &request.steps) {
        Ok(timer_notes) => notes.extend(timer_notes),
        // A rollback is never refused.
        Err(e) if *kind != TransactionKind::Apply => notes.push(e.to_string()),
        Err(e) => return Err(e),
    }
    notes.extend(irqbalance::note_restart(now, &request.steps));
    Ok(notes)
}

fn arm(cx: &HostAccess, lock: &Lock, transaction: u64) -> Result<Option<Box<dyn Armed>>, Error> {
    let Some(guardian) = &cx.policy.guard else { return Ok(None) };
    let job = Job { dir: &lock.dir, lock: lock.open(), transaction };
    Ok(Some(guardian.arm(&job).map_err(|e| Refusal::NoGuard { why: e.to_string() })?))
}

/// Adds to the ledger of origins: settings that the steps change, and settings that have the requested value already, because
/// ringwise manages them from now on too.
fn note_origins(
    disk: Disk,
    request: &Request,
    start: &SettingMap,
    now: &Snapshot,
    forward: bool,
) -> Result<Option<String>, Error> {
    let mut origin: SettingMap =
        request.already.iter().filter_map(|s| Some((s.address()?, s.clone()))).collect::<BTreeMap<_, _>>();
    origin.extend(start.clone());
    let noted = Ledger::read(disk.lock, &now.host).and_then(|l| l.note(disk.store, disk.lock, now, &origin));
    match noted {
        Ok(_) => Ok(None),
        // A rollback is never refused.
        Err(e @ Error::Damaged { .. }) if !forward => Ok(Some(e.to_string())),
        Err(Error::State { path, source }) => Err(Refusal::State { path, why: ringwise_sys::io_text(&source) }.into()),
        Err(e) => Err(e),
    }
}

/// The guard watches three times as long as the run itself, so it finds what happens later.
fn guard_watch_ms(watch: Duration) -> u64 {
    u64::try_from(watch.as_millis()).unwrap_or(u64::MAX).saturating_mul(3)
}

/// Devices of the request and of its steps, as found now.
fn devices(request: &Request, now: &Snapshot) -> Vec<DevId> {
    let mut out = request.devices.clone();
    for name in
        request.steps.iter().filter_map(|s| s.setting.address()).filter_map(|a: Address| a.dev().map(str::to_string))
    {
        if let Some(n) = now.nic(&name)
            && !out.iter().any(|d| d.name == name)
        {
            out.push(n.dev.clone());
        }
    }
    out
}

impl Tx<'_> {
    fn succeeded(&mut self, unmet: Vec<Address>) {
        self.out.verdict = RunResult::Applied;
        let refused = self.unmet();
        self.out.unmet = unmet.into_iter().chain(refused).collect::<BTreeSet<_>>().into_iter().collect();
        let text = crate::irq::elsewhere(&self.now, self.out.applied.iter());
        text.into_iter().for_each(|t| self.note(t));
        self.out.changed = !(self.out.applied.is_empty() && self.out.side_effects.is_empty());
    }

    /// Looks for queues that are stuck since the steps. An error means that the settings have to be restored.
    fn still_sends(&mut self, watch: Option<Watch>, time: Duration, before: &[Stuck]) -> Done {
        let Some(mut watch) = watch else { return Ok(()) };
        watch.follow(&self.cx, &self.now, watch::devices(&self.steps));
        let stuck = watch.after(&self.cx, time, before);
        // A signal ends the watch early; without a guard no process would continue it.
        self.check_stop()?;
        if stuck.is_empty() {
            return Ok(());
        }
        let failure = watch::failure(watch::words(&stuck, &self.steps, &self.now));
        self.event(Event::Failed { phase: Phase::Apply, failure: failure.clone() });
        Err(failure.into())
    }
}
