//! From the request to the outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringwise_knob::{Address, Match, Setting, SettingMap, Step, compare, live};
use ringwise_model::{DevId, Fact, Snapshot};
use ringwise_observe::Stuck;
use ringwise_sys::Host;

use crate::adopt::write_down;
use crate::cx::Cx;
use crate::guard::Sent;
use crate::journal::{Header, Journal, Read, Record, Whose};
use crate::ledger::Ledger;
use crate::names::Names;
use crate::past::replaces_another;
use crate::replan::{Disk, Replan};
use crate::store::Lock;
use crate::takeover::Living;
use crate::trial::Files;
use crate::tx::{Done, Tx, start_of};
use crate::watch::{self, Watch};
use crate::{Error, Event, Holder, Job, Kind, Moved, Outcome, Phase, Policy, Refusal, Request, Store, Verdict, rivals};

/// Does the steps of `request` as one transaction: all of it stays, or the host is put back.
///
/// Errors: refused or failed before anything was touched. Everything after the first write is in the
/// [`Outcome`], whatever came of it.
pub fn run(
    host: &Arc<dyn Host>,
    request: &Request,
    store: &Store,
    policy: &Policy,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    // First without the lock: when there is nothing to do, nothing is written, not even a lock file.
    let (cx, now) = Cx::begin(host, policy)?;
    let (request, mut notes) = follow(request, &now)?;
    let so = |s: &Setting| compare(s, &now).holds();
    if request.steps.iter().all(|s| so(&s.setting)) && request.relies_on.iter().all(so) {
        unfinished_of_this_boot(store, &now)?;
        let requested = request.requested.as_ref().filter(|_| !request.already.is_empty());
        if !requested.map_or(Ok(false), |r| replaces_another(store, &now.host, r))? {
            return Ok(nothing_to_do(&request, &now, notes));
        }
        return replace(cx, request, notes, store, events);
    }
    if now.host.read_only.known() == Some(&true) {
        return Err(Refusal::ReadOnly.into());
    }
    let lock = store.lock()?;
    // Meanwhile another run may have been here.
    let now = cx.look()?;
    let (request, more) = follow(&request, &now)?;
    notes.extend(more);
    notes.extend(close_others(store, &lock, &now, host.unix_time())?);
    transact(cx, request, Kind::Apply, now, notes, store, &lock, events)
}

/// Whether the host is still as the steps of `request` expect it, before anyone is asked about them. Nothing is written.
///
/// Errors: what [`run`] would refuse for this reason.
pub fn still_fits(host: &Arc<dyn Host>, request: &Request, policy: &Policy) -> Result<(), Error> {
    let (cx, now) = Cx::begin(host, policy)?;
    let (request, _) = follow(request, &now)?;
    settled_preflight(&cx, now, &request).map(|_| ())
}

/// The preflight, once more where only masks differ: they may be on their way. The host as it is then.
fn settled_preflight(cx: &Cx, now: Snapshot, request: &Request) -> Result<Snapshot, Error> {
    let Err(e) = preflight(&now, &request.steps, &request.relies_on) else { return Ok(now) };
    let Error::Refused(refusal) = &e else { return Err(e) };
    let masks = |m: &Moved| matches!(m.address, Address::IrqCpus { .. });
    if !matches!(&**refusal, Refusal::Changed { moved } if moved.iter().all(masks)) {
        return Err(e);
    }
    cx.host.sleep(cx.policy.retry_wait);
    let now = cx.look()?;
    preflight(&now, &request.steps, &request.relies_on)?;
    Ok(now)
}

/// The request under the names of now. Refused when a device is gone or a setting is not ours to know.
fn follow(request: &Request, now: &Snapshot) -> Result<(Request, Vec<String>), Error> {
    let names = Names::new(&request.devices, now);
    if let Some(device) = names.gone.first() {
        return Err(Refusal::Vanished { device: device.clone() }.into());
    }
    let mut out = request.clone();
    out.steps = request.steps.iter().map(|s| names.step(s)).collect();
    out.relies_on = request.relies_on.iter().map(|s| names.setting(s)).collect();
    let so = |s: &Setting| compare(s, now).holds();
    out.already = request.already.iter().map(|s| names.setting(s)).collect();
    rivals::hold_too(&mut out, now);
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
    Ok((out, names.changed().map(|(a, b)| format!("{a} is {b} now")).collect()))
}

/// Nothing has to be written to the host: the journal records what it is for from now on.
fn replace(
    cx: Cx,
    mut request: Request,
    mut notes: Vec<String>,
    store: &Store,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let lock = store.lock()?;
    let now = cx.look()?;
    notes.extend(close_others(store, &lock, &now, cx.host.unix_time())?);
    request.already.extend(std::mem::take(&mut request.steps).into_iter().map(|s| s.setting));
    request.already.retain(|s| compare(s, &now).holds());
    notes.push("every setting is so already; nothing was written to the host".into());
    write_down(cx, request, Kind::Apply, &now, notes, store, &lock, events)
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

pub(crate) fn unfinished_of_this_boot(store: &Store, now: &Snapshot) -> Result<(), Error> {
    for j in Read::all(store)? {
        if let Some(newer) = j.newer_here(&now.host) {
            return Err(Refusal::from(newer).into());
        }
        if (j.unfinished() || j.on_trial().is_some()) && j.whose(&now.host) == Whose::ThisBoot {
            return match store.held() {
                Some(by) => Err(Refusal::Locked { pid: by.pid, path: j.path, holder: Box::new(by) }.into()),
                None if j.on_trial().is_some() => Err(Refusal::OnTrial { transaction: j.id }.into()),
                None => Err(Refusal::Unfinished { transaction: j.id }.into()),
            };
        }
    }
    Ok(())
}

/// Journals that were cut short: of this boot a refusal, others are closed with why.
pub(crate) fn close_others(store: &Store, _lock: &Lock, now: &Snapshot, unix_time: u64) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    let journals = Read::all(store)?;
    // Also one that ended: what it has set is not known here, so nothing can be built on it.
    if let Some(newer) = journals.iter().find_map(|j| j.newer_here(&now.host)) {
        return Err(Refusal::from(newer).into());
    }
    for j in journals.into_iter().filter(|j| (j.unfinished() || j.on_trial().is_some()) && j.newer.is_none()) {
        let why = match j.whose(&now.host) {
            Whose::Other(why) | Whose::Newer(why) => why,
            Whose::ThisBoot if j.on_trial().is_some() => return Err(Refusal::OnTrial { transaction: j.id }.into()),
            Whose::ThisBoot => return Err(Refusal::Unfinished { transaction: j.id }.into()),
        };
        let close = |path: &Path| {
            let mut journal = Journal::resume(store, path)?;
            journal.add_durably(&Record::Closed { why: why.clone(), unix_time })
        };
        let was = if j.on_trial().is_some() { "was on trial" } else { "was cut short" };
        let text = format!("transaction {} {was} and is closed now: {why}", j.id);
        match close(&j.path) {
            Ok(()) => {
                Files::clear(j.path.parent().unwrap_or(Path::new(".")), j.id);
                notes.push(text);
            }
            Err(e) => notes.push(format!("{text} (not noted in {}: {e})", j.path.display())),
        }
    }
    Ok(notes)
}

/// Everything is checked before the first write: each setting is what the steps say it is, and can be put back.
pub(crate) fn preflight(now: &Snapshot, steps: &[Step], relies_on: &[Setting]) -> Result<(), Error> {
    let mut moved = not_as_reviewed(now, relies_on);
    let mut restarted: BTreeSet<&str> = BTreeSet::new();
    for step in steps {
        let Some(address) = step.setting.address() else { continue };
        let is = live(now, &address);
        let made_before = address.dev().is_some_and(|d| restarted.contains(d));
        if let (true, Some(dev)) = (!address.invalidates().is_empty(), step_dev(step)) {
            restarted.insert(dev);
        }
        if compare(&step.setting, now).holds() {
            continue;
        }
        match (&is, &step.from) {
            (Fact::Unknown(u), _) => {
                let why = u.to_string();
                return Err(Refusal::Unreadable { address, why }.into());
            }
            (Fact::Absent, _) if made_before => {}
            (Fact::Absent, _) if crate::fallback::may_be_absent(step, now) || threaded(&address, steps) => {}
            (Fact::Absent, Fact::Known(_)) | (Fact::Known(_), Fact::Absent) => {
                moved.push(Moved { address, expected: step.from.clone(), now: is });
            }
            (Fact::Absent, _) => return Err(Refusal::NotThere { address }.into()),
            // Whoever made the step could not see it; we can, and can put it back.
            (Fact::Known(_), Fact::Unknown(_)) => {}
            (Fact::Known(_), Fact::Known(from)) => {
                if !compare(from, now).holds() && !rivals::will_be_told(&address, steps, now) {
                    moved.push(Moved { address, expected: step.from.clone(), now: is });
                }
            }
        }
    }
    if moved.is_empty() { Ok(()) } else { Err(Refusal::Changed { moved }.into()) }
}

/// A thread that a step before makes.
fn threaded(address: &Address, steps: &[Step]) -> bool {
    let Address::NapiThread { dev, .. } = address else { return false };
    steps.iter().any(|s| match &s.setting {
        Setting::NapiDevice { dev: d, values } | Setting::Napi { dev: d, values, .. } => {
            d == dev && values.threaded.is_some_and(|t| t > 0)
        }
        _ => false,
    })
}

/// What a reviewed plan found right and left alone, and is otherwise now.
fn not_as_reviewed(now: &Snapshot, relies_on: &[Setting]) -> Vec<Moved> {
    let moved = relies_on.iter().filter(|s| !compare(s, now).holds());
    let entry = |s: &Setting| {
        let address = s.address()?;
        Some(Moved { expected: Fact::Known(s.clone()), now: live(now, &address), address })
    };
    moved.filter_map(entry).collect()
}

fn step_dev(step: &Step) -> Option<&str> {
    match &step.setting {
        Setting::Channels { dev, .. } | Setting::Rings { dev, .. } => Some(dev),
        _ => None,
    }
}

/// Under the lock, from the preflight on.
#[allow(
    clippy::too_many_arguments,
    reason = "one call for apply and rollback; a struct of these would only be unpacked again"
)]
pub(crate) fn transact(
    cx: Cx,
    request: Request,
    kind: Kind,
    now: Snapshot,
    notes: Vec<String>,
    store: &Store,
    lock: &Lock,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let begin = cx.now();
    let mut notes = notes;
    notes.extend(lock.notes.iter().cloned());
    let now = settled_preflight(&cx, now, &request)?;
    if request.steps.iter().all(|s| compare(&s.setting, &now).holds()) {
        return Ok(nothing_to_do(&request, &now, notes));
    }
    crate::bond::check(&now, &request.steps)?;
    notes.extend(crate::control::check(&cx, &now, &request.steps)?);
    match crate::lives::check(&cx, &now, &request.steps) {
        Ok(said) => notes.extend(said),
        // The way back is never refused.
        Err(e) if kind != Kind::Apply => notes.push(e.to_string()),
        Err(e) => return Err(e),
    }
    notes.extend(rivals::note_restart(&now, &request.steps));
    let mut request = request;
    crate::bond::order_steps(&now, &mut request.steps);
    let forward = kind == Kind::Apply;
    let start = start_of(&now, &request.steps);
    let state = |e: Error| -> Error {
        let Error::State { path, source } = e else { return e };
        Refusal::State { path, why: source.to_string() }.into()
    };
    let id = store.journals()?.last().map_or(0, |(id, _)| *id) + 1;
    let holder = Holder {
        pid: Some(std::process::id()),
        who: Some(request.who.clone()),
        command: Some(request.command()),
        transaction: Some(id),
        trial_until_unix: None,
    };
    lock.note(&holder);
    store.publish(Some(&holder));
    // Before anything is written down: what is refused here leaves nothing behind.
    let guard = match &cx.policy.guard {
        Some(g) => {
            let job = Job { dir: &lock.dir, lock: lock.open(), transaction: id };
            Some(g.arm(&job).map_err(|why| Refusal::NoGuard { why })?)
        }
        None => None,
    };
    notes.extend(guard.as_ref().and_then(|g| g.note()));
    let sign = guard.as_ref().and_then(|g| g.sign_of_life());
    let living: Option<Arc<dyn Host>> = sign.map(|sign| Arc::new(Living { host: cx.host.clone(), sign }) as _);
    let cx = Cx { host: living.as_ref().unwrap_or(cx.host), ..cx };
    let guard = Sent(guard);
    let watch = if forward { cx.policy.watch } else { Duration::ZERO };
    let mut watched = if watch.is_zero() { None } else { Watch::new(&cx, &now, &watch::devices(&request.steps)) };
    let stuck_before = watched.as_mut().map(|w| w.already(&cx)).unwrap_or_default();
    if !stuck_before.is_empty() {
        notes.push(format!("stood still before anything was changed: {}", watch::words(&stuck_before, &[], &now)));
    }
    // What is only found right is wanted from now on too: its origin counts as well.
    let mut origin: SettingMap =
        request.already.iter().filter_map(|s| Some((s.address()?, s.clone()))).collect::<BTreeMap<_, _>>();
    origin.extend(start.clone());
    match Ledger::read(lock, &now.host).and_then(|l| l.note(store, lock, &now, &origin)) {
        // The way back is never refused.
        Err(e @ Error::Damaged { .. }) if !forward => notes.push(e.to_string()),
        noted => noted.map_err(state)?,
    }
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
    let mut guard = guard;
    if let Some(why) = guard.0.as_mut().and_then(|g| g.begun().err()) {
        // Nothing was changed, so a journal would only be in the way.
        let _ = std::fs::remove_file(journal.path());
        return Err(Refusal::NoGuard { why: format!("it was armed, and does not answer any more: {why}") }.into());
    }
    let mut out = Outcome::nothing();
    out.transaction = Some(id);
    out.kept.clone_from(&request.kept);
    out.waiting.clone_from(&request.waiting);
    events(&Event::Begun { transaction: id, steps: request.steps.len() });
    let unmet = request.unmet;
    let mut tx = Tx {
        cx,
        events,
        journal,
        devices,
        steps: request.steps,
        before: now.clone(),
        start,
        now,
        stale: BTreeSet::new(),
        out,
        learned: Vec::new(),
        given_up: BTreeSet::new(),
        guard: guard.keep(),
        replan: Replan::default(),
    };
    notes.into_iter().for_each(|n| tx.note(n));
    let disk = Disk { store, lock };
    let asked = if forward { tx.ask_for_support(disk) } else { Ok(()) };
    match asked.and_then(|()| tx.forward(disk)).and_then(|()| tx.still_sends(watched, watch, &stuck_before)) {
        Ok(()) => {
            tx.out.verdict = Verdict::Applied;
            tx.out.unmet = unmet;
            tx.out.unmet.extend(tx.unmet());
            let text = crate::irq::elsewhere(&tx.now, tx.out.applied.iter());
            text.into_iter().for_each(|t| tx.note(t));
            tx.out.changed = !(tx.out.applied.is_empty() && tx.out.side_effects.is_empty());
        }
        Err(failure) => tx.put_back(*failure),
    }
    Ok(tx.finish(store, lock, begin, Some(holder)))
}

/// The guard sees what comes later: three times as long as the run itself.
fn guard_watch_ms(watch: Duration) -> u64 {
    u64::try_from(watch.as_millis()).unwrap_or(u64::MAX).saturating_mul(3)
}

/// Devices of the request and those its steps name, as found now.
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
    /// Looks for queues that stand still since the steps. An error: it has to be put back.
    fn still_sends(&mut self, watch: Option<Watch>, time: Duration, before: &[Stuck]) -> Done {
        let Some(mut watch) = watch else { return Ok(()) };
        watch.follow(&self.cx, &self.now, watch::devices(&self.steps));
        let stuck = watch.after(&self.cx, time, before);
        // A signal ends the watch early; without a guard nothing would look further.
        self.check_stop()?;
        if stuck.is_empty() {
            return Ok(());
        }
        let failure = watch::failure(watch::words(&stuck, &self.steps, &self.now));
        self.event(Event::Failed { phase: Phase::Apply, failure: failure.clone() });
        Err(failure.into())
    }

    /// The account on disk. When that fails, what was done cannot be found again later: it is put back.
    pub(crate) fn finish(mut self, store: &Store, lock: &Lock, begin: Duration, holder: Option<Holder>) -> Outcome {
        // What fails for another reason says nothing about a device, but for what the kernel does not support at all.
        let kept = self.out.verdict == Verdict::Applied;
        let learned = std::mem::take(&mut self.learned).into_iter().filter(|l| kept || l.what.is_not_supported());
        if let Err(e) = store.learn(lock, &learned.collect::<Vec<_>>()) {
            let source = std::error::Error::source(&e).map(|s| s.to_string()).unwrap_or_default();
            self.note(format!("what was refused or ignored could not be remembered: {e}: {source}"));
        }
        self.out.took_ms = took(&self.cx, begin);
        if let (Verdict::Applied, Some(time), Some(holder)) = (self.out.verdict, self.cx.policy.trial, holder)
            && let Err(failure) = self.begin_trial(store, lock, time, holder)
        {
            self.put_back(*failure);
        }
        let failed = self.end().err();
        if let Some(e) = failed {
            let failure = self.journal_failure(&e);
            if self.out.verdict == Verdict::Applied {
                self.put_back(failure);
            } else {
                let path = self.journal.path().display();
                self.note(format!(
                    "{}: {path}: {}; ringwise recover will find nothing left to do",
                    failure.meaning, failure.words
                ));
            }
            self.out.took_ms = took(&self.cx, begin);
            if let Err(e) = self.end() {
                let text = format!(
                    "the end is not in {}: {e}; run ringwise recover once it can be written",
                    self.journal.path().display()
                );
                self.note(text);
            }
        }
        self.dismiss(store, lock);
        // During a trial the guard holds the lock and publishes that.
        store.publish(if self.out.trial.is_some() { store.held() } else { None }.as_ref());
        self.out
    }

    pub(crate) fn end(&mut self) -> std::io::Result<()> {
        let record = Record::End { outcome: Box::new(self.out.clone()), after: self.after() };
        self.journal.add_durably(&record)
    }
}

fn took(cx: &Cx, begin: Duration) -> u64 {
    u64::try_from(cx.now().saturating_sub(begin).as_millis()).unwrap_or(u64::MAX)
}
