//! `recover`: after an interrupted run. `rollback`: to an earlier state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ringwise_knob::{
    Address, Family, IfRefused, Reason, Setting, SettingMap, Step, compare, diff, live, offline, order,
};
use ringwise_model::{DevId, Fact, Nic, Snapshot, Title};
use ringwise_sys::{Host, proc};

use crate::adopt::write_down;
use crate::committed::CommittedTx;
use crate::error::fact_text;
use crate::history::{drop_doomed, in_force};
use crate::host_access::HostAccess;
use crate::irqbalance::moved_by_it;
use crate::journal::{Journal, JournalOrigin, Read};
use crate::ledger::Ledger;
use crate::names::DeviceRenames;
use crate::record::Record;
use crate::run::transact;
use crate::store::{Disk, Lock};
use crate::trial::{note, undo_now};
use crate::tx::Tx;
use crate::unfinished::close_others;
use crate::{
    ChangedSetting, Error, Event, Failure, NotPutBack, Outcome, Policy, Refusal, Request, RunResult, Store,
    TransactionKind,
};

/// Restores the host to the state before a transaction of this boot that was interrupted, or that could not be restored
/// completely at the time. Otherwise restores what the last rollback skipped because CPUs were offline. If there is nothing to
/// recover, the [`Outcome`] is empty.
///
/// Errors: as [`crate::run`].
pub fn recover(
    host: &Arc<dyn Host>,
    store: &Store,
    policy: &Policy,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let cx = HostAccess::new(host, policy)?;
    let facts = cx.facts();
    let journals = Read::all(store)?;
    if let Some(newer) = journals.iter().find_map(|j| j.newer_here(&facts)) {
        return Err(Refusal::from(newer).into());
    }
    if to_recover(&journals, &facts).is_none() {
        if rest(&journals, &cx.look()?).is_some() {
            cx.writable()?;
            return finish_rollback(cx, store, events);
        }
        let mut out = Outcome::nothing();
        out.notes.push("no transaction of this boot was cut short or is on trial".into());
        out.notes.extend(journals.iter().filter_map(|j| open_elsewhere(j, &facts)));
        return Ok(out);
    }
    cx.writable()?;
    let lock = store.lock()?;
    // The process that held the lock until now may have ended the transaction.
    let Some(read) = to_recover(&Read::all(store)?, &facts) else {
        return Ok(Outcome::nothing());
    };
    let now = cx.look()?;
    if read.on_trial().is_some() {
        // This process holds the lock, so no guard is left; a user may still confirm the trial.
        let by = proc::user_name();
        let why = "ringwise recover was run";
        let (id, unix_time) = (read.id, host.unix_time());
        if !undo_now(store, id, &by, why, unix_time)? {
            if Read::of(store, id)?.is_none_or(|r| r.on_trial().is_none()) {
                let mut out = Outcome::nothing();
                out.notes.push(format!("transaction {id} was confirmed meanwhile"));
                return Ok(out);
            }
            // Neither the file nor the journal records a confirmation. The settings are restored even if this cannot be recorded.
            let _ = note(store, &read.path, &Record::TrialOver { by, why: why.into(), unix_time });
        }
    }
    resume(cx, store, &lock, read, now, None, events)
}

/// Restores the state before a transaction whose applier is gone. `failed`: why the guard does it; `None` for `recover`.
pub(crate) fn resume(
    cx: HostAccess,
    store: &Store,
    lock: &Lock,
    read: Read,
    now: Snapshot,
    failed: Option<Failure>,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let begin = cx.now();
    let unsure = read.unsure(&now.host);
    let Some(header) = read.header else { return Ok(Outcome::nothing()) };
    let names = DeviceRenames::new(&header.devices, &now);
    let journal = match Journal::resume(store, &read.path) {
        Ok(journal) => journal,
        // Restoring only moves towards the start, which is no worse without a journal.
        Err(e) => Journal::lost(store, &read.path, &e),
    };
    let start: SettingMap = header
        .start
        .iter()
        .map(|s| names.setting(s))
        .filter_map(|s| s.address().map(|a| (a, s)))
        .collect::<BTreeMap<_, _>>();
    let mut out = Outcome::nothing();
    out.transaction = Some(read.id);
    let steps = header.steps.iter().map(|s| names.step(s)).collect();
    let mut tx = Tx::new(cx, events, journal, now, out);
    (tx.devices, tx.steps, tx.start) = (header.devices, steps, start);
    for (old, new) in names.changed() {
        tx.note(format!("{old} was renamed to {new}"));
    }
    lock.notes.iter().for_each(|n| tx.note(n.clone()));
    if let Some(text) = unsure {
        tx.note(text);
    }
    if let Some(failure) = failed {
        tx.restore(failure);
        return Ok(tx.finish(store, lock, begin, None));
    }
    tx.back_to_start(format!("transaction {} was cut short", read.id));
    let whole = tx.out.put_back_incomplete.is_empty();
    tx.out.verdict = if whole { RunResult::Recovered } else { RunResult::PutBackIncomplete };
    tx.out.changed = !tx.out.put_back.is_empty();
    Ok(tx.finish(store, lock, begin, None))
}

/// What kind of unfinished journal of another boot or machine this is, and why nothing of it is restored.
fn open_elsewhere(j: &Read, host: &ringwise_model::Host) -> Option<String> {
    let was = match (j.unfinished(), j.on_trial()) {
        (true, _) => "was cut short",
        (_, Some(_)) => "was on trial",
        _ => return None,
    };
    let JournalOrigin::Other(why) = j.whose(host) else { return None };
    Some(format!("transaction {} {was}; nothing of it is restored: {why}", j.id))
}

/// The interrupted transaction, or the last one of which something is still to be restored.
fn to_recover(journals: &[Read], host: &ringwise_model::Host) -> Option<Read> {
    let ours = |j: &&Read| j.whose(host) == JournalOrigin::ThisBoot && j.header.is_some();
    let left = |j: &&Read| j.end.as_ref().is_some_and(|(o, _)| o.verdict == RunResult::PutBackIncomplete);
    let cut = journals.iter().filter(ours).find(|j| j.unfinished() || j.on_trial().is_some());
    cut.or_else(|| journals.iter().rfind(|j| ours(j)).filter(left)).cloned()
}

/// Rolls back to the state before transaction `id` (of this boot). 0: every setting that ringwise ever changed in this boot is
/// restored to its value as first found, including settings changed outside ringwise since. Rollbacks to other transactions are
/// refused if settings changed since, and list them, unless `policy.take_over` is set.
///
/// The rollback is a transaction of its own, and can be rolled back as one.
pub fn rollback(
    host: &Arc<dyn Host>,
    store: &Store,
    id: u64,
    request: &Request,
    policy: &Policy,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let cx = HostAccess::new(host, policy)?;
    cx.writable()?;
    let lock = store.lock()?;
    let disk = Disk { store, lock: &lock };
    let now = cx.look()?;
    let mut notes = close_others(store, &lock, &now, host.unix_time())?;
    let journals = Read::all(store)?;
    let way = RollbackPath::back(&journals, || Ledger::read(&lock, &now.host), &now, id)?;
    if id != 0 && !way.moved.is_empty() && !policy.take_over {
        return Err(Refusal::Changed { moved: way.moved }.into());
    }
    notes.extend(way.notes());
    let mut request = request.clone();
    request.devices = devices(&now, &way.target);
    request.steps = way.steps(&now);
    request.waiting = way.waiting;
    request.unmet = way.doomed;
    if request.title.is_empty() {
        request.title = Title::BackToBefore { transaction: id };
    }
    let kind = TransactionKind::Rollback { before: id };
    let undone = |k: &CommittedTx| k.id >= id && (k.id == id || !matches!(k.kind, TransactionKind::Rollback { .. }));
    if request.steps.is_empty() && in_force(&journals, &now).iter().any(undone) {
        // The host has these values already (they were only adopted, or restored manually), but the record of what is requested
        // changes.
        return write_down(cx, request, kind, &now, notes, disk, events);
    }
    transact(cx, request, kind, now, notes, disk, events)
}

/// What [`rollback`] would do now.
#[derive(Debug, Clone, PartialEq)]
pub struct WouldUndo {
    /// Steps in the order in which they would be written.
    pub steps: Vec<Step>,
    /// Changed outside ringwise since. A rollback to a transaction other than 0 overwrites them only with `take_over`.
    pub moved: Vec<ChangedSetting>,
    /// Sentences about devices that are gone or renamed, and settings that have to wait.
    pub notes: Vec<String>,
}

/// Computes it without the lock and without a write.
///
/// Errors: those of [`rollback`] that concern the transaction and its records.
pub fn would_undo(now: &Snapshot, store: &Store, id: u64) -> Result<WouldUndo, Error> {
    let journals = Read::all(store)?;
    let dirs = store.dirs();
    let first = dirs.iter().find(|d| d.is_dir()).or(dirs.first());
    let dir = first.ok_or(Refusal::UnknownTransaction { transaction: id })?;
    let way = RollbackPath::back(&journals, || Ledger::read_in(dir, &now.host), now, id)?;
    let waiting = way.waiting.iter().map(|w| format!("{} cannot be restored before its CPUs are online", w.address));
    let notes = way.notes().chain(waiting).collect();
    Ok(WouldUndo { steps: way.steps(now), notes, moved: if id == 0 { Vec::new() } else { way.moved } })
}

/// The way from the present state of the host to an earlier one.
struct RollbackPath {
    id: u64,
    target: SettingMap,
    /// Settings that were changed since ringwise wrote them.
    moved: Vec<ChangedSetting>,
    /// Devices of the target that do not exist any more.
    gone: Vec<String>,
    /// Settings whose earlier value names queues that do not exist any more.
    doomed: Vec<Address>,
    waiting: Vec<NotPutBack>,
}

impl RollbackPath {
    fn back(
        journals: &[Read],
        ledger: impl FnOnce() -> Result<Ledger, Error>,
        now: &Snapshot,
        id: u64,
    ) -> Result<Self, Error> {
        let left = last_left(journals, now, id);
        let (mut target, gone) = if id == 0 {
            ledger()?.settings(now)
        } else {
            exists(journals, now, id)?;
            (before(journals, now, id), Vec::new())
        };
        // Settings of a device that went away cannot be restored.
        target.retain(|a, _| a.dev().is_none_or(|d| now.nic(d).is_some()));
        let doomed = drop_doomed(&mut target, now);
        let waiting = wait_for_cpus(&mut target, now);
        let forgotten = |dev: &str| {
            let ban = left.get(&Address::IrqbalanceBan { dev: dev.to_string() });
            ban.is_some_and(|b| !compare(b, now).holds())
        };
        let moved: Vec<ChangedSetting> = left
            .iter()
            .filter(|(a, _)| !moved_by_it(a, forgotten))
            // When a CPU goes offline, the kernel moves away what was pinned to it.
            .filter(|(_, s)| offline::missing(s, now).is_empty())
            .filter(|(a, s)| target.contains_key(*a) && !compare(s, now).holds() && !compare(&target[*a], now).holds())
            .map(|(a, s)| ChangedSetting { address: a.clone(), expected: Fact::Known(s.clone()), now: live(now, a) })
            .collect();
        Ok(Self { id, target, moved, gone, doomed, waiting })
    }

    fn steps(&self, now: &Snapshot) -> Vec<Step> {
        steps(now, &self.target, &Reason::Undone { transaction: Some(self.id).filter(|id| *id > 0) })
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        // Rollback 0 overwrites manual changes, so they are only reported.
        let reported = if self.id == 0 { self.moved.as_slice() } else { &[] };
        let gone = self.gone.iter().map(|d| format!("{d} does not exist any more and is skipped"));
        let moved =
            reported.iter().map(|m| format!("{} was changed outside ringwise to {}", m.address, fact_text(&m.now)));
        let doomed = self
            .doomed
            .iter()
            .map(|a| format!("{a} is not restored: its earlier value names queues that do not exist now"));
        gone.chain(moved).chain(doomed).collect::<Vec<_>>().into_iter()
    }
}

/// Takes out of the target what cannot be restored while CPUs are offline, and returns it. The part of a value that the kernel
/// accepts stays in the target.
fn wait_for_cpus(target: &mut SettingMap, now: &Snapshot) -> Vec<NotPutBack> {
    let waiting: Vec<NotPutBack> = target.values().filter_map(|s| NotPutBack::waiting(s, now)).collect();
    for w in &waiting {
        match offline::accepted(&w.was, &now.topology.online) {
            Some(part) => _ = target.insert(w.address.clone(), part),
            None => _ = target.remove(&w.address),
        }
    }
    waiting
}

/// If the last transaction of this boot is a rollback: what it skipped until CPUs are online again.
fn rest(journals: &[Read], now: &Snapshot) -> Option<(u64, TransactionKind, SettingMap)> {
    let j = journals.iter().rfind(|j| j.whose(&now.host) == JournalOrigin::ThisBoot && j.header.is_some())?;
    let (header, (outcome, _)) = (j.header.as_ref()?, j.end.as_ref()?);
    let names = DeviceRenames::new(&header.devices, now);
    let left = outcome.waiting.iter().map(|w| names.setting(&w.was));
    let still = |s: &Setting| !compare(s, now).holds() || !offline::missing(s, now).is_empty();
    let left: SettingMap = left.filter(still).filter_map(|s| s.address().map(|a| (a, s))).collect::<BTreeMap<_, _>>();
    let rollback = matches!(header.kind, TransactionKind::Rollback { .. }) && outcome.verdict == RunResult::Applied;
    (rollback && !left.is_empty()).then(|| (j.id, header.kind.clone(), left))
}

/// Restores what a rollback skipped, as another rollback to the same state.
fn finish_rollback(cx: HostAccess, store: &Store, events: &mut dyn FnMut(&Event)) -> Result<Outcome, Error> {
    let lock = store.lock()?;
    let disk = Disk { store, lock: &lock };
    let now = cx.look()?;
    let notes = close_others(store, &lock, &now, cx.host.unix_time())?;
    let Some((id, kind, mut target)) = rest(&Read::all(store)?, &now) else { return Ok(Outcome::nothing()) };
    target.retain(|a, _| a.dev().is_none_or(|d| now.nic(d).is_some()));
    let unmet = drop_doomed(&mut target, &now);
    let waiting = wait_for_cpus(&mut target, &now);
    let request = Request {
        unmet,
        devices: devices(&now, &target),
        steps: steps(&now, &target, &Reason::CpuWasOffline { transaction: id }),
        waiting,
        title: Title::RestOf { transaction: id },
        who: proc::user_name(),
        argv: vec!["ringwise".into(), "recover".into()],
        ..Request::default()
    };
    transact(cx, request, kind, now, notes, disk, events)
}

/// The transaction must be of this boot, kept, and not undone since.
fn exists(journals: &[Read], now: &Snapshot, id: u64) -> Result<(), Error> {
    let no = |why: String| Err(Refusal::NoTransaction { why }.into());
    let Some(j) = journals.iter().find(|j| j.id == id) else {
        return Err(Refusal::UnknownTransaction { transaction: id }.into());
    };
    if let JournalOrigin::Other(why) | JournalOrigin::Newer(why) = j.whose(&now.host) {
        return no(format!("transaction {id} cannot be rolled back here: {why}"));
    }
    match &j.end {
        Some((o, _)) if o.verdict == RunResult::Applied => {}
        Some(_) => return no(format!("nothing of transaction {id} was kept: there is nothing to roll back")),
        None => return no(format!("transaction {id} was cut short: run ringwise recover")),
    }
    if in_force(journals, now).iter().any(|k| k.id == id) {
        Ok(())
    } else {
        no(format!("transaction {id} was rolled back already"))
    }
}

/// For each setting, the earliest value before any of the transactions from `id` on. What the service wrote again had, before those
/// transactions, the value that earlier ones left, and not the one that a driver had given it meanwhile.
fn before(journals: &[Read], now: &Snapshot, id: u64) -> SettingMap {
    let mut target = SettingMap::new();
    // A transaction that changes channels records all settings of the device. Settings that only later transactions recorded did
    // not exist before, and are removed where possible.
    let mut whole: BTreeSet<String> = BTreeSet::new();
    // A rollback and the transactions that it undid cancel each other out.
    let counts = |k: &CommittedTx| k.id >= id && (k.id == id || !matches!(k.kind, TransactionKind::Rollback { .. }));
    let kept = in_force(journals, now);
    let before: Vec<CommittedTx> = kept.iter().filter(|k| k.id < id).cloned().collect();
    let earlier = left_by(before.iter());
    // Without a service that follows the load, what it moved would stay.
    let moved = crate::balance::of(&before);
    for k in kept.into_iter().filter(counts) {
        let corrected = (k.correction || k.balance) && k.id != id;
        let changed = k.start.keys().filter(|a| a.family() == Family::Channels).filter_map(Address::dev);
        let changed: Vec<String> = changed.map(str::to_string).collect();
        for (a, s) in k.start {
            if s.is_nothing() || !a.dev().is_some_and(|d| whole.contains(d)) {
                let value = earlier.get(&a).filter(|_| corrected).cloned();
                target.entry(a).or_insert(value.unwrap_or(s));
            }
        }
        whole.extend(changed);
    }
    for t in moved {
        if let Some(value) = t.moved.address().and_then(|a| target.get_mut(&a)).filter(|v| **v == t.moved) {
            *value = t.base;
        }
    }
    target
}

/// The value of each setting as the last of these transactions left it. Settings that a transaction removed, for example
/// with fewer channels, are left out.
fn last_left(journals: &[Read], now: &Snapshot, id: u64) -> SettingMap {
    left_by(in_force(journals, now).iter().filter(|k| k.id >= id))
}

fn left_by<'a>(kept: impl Iterator<Item = &'a CommittedTx>) -> SettingMap {
    let mut left = SettingMap::new();
    for k in kept {
        left.retain(|a, _| !k.start.contains_key(a));
        left.extend(k.after.iter().map(|(a, s)| (a.clone(), s.clone())));
    }
    left
}

fn devices(now: &Snapshot, target: &SettingMap) -> Vec<DevId> {
    let named = |n: &&Nic| target.keys().any(|a| a.dev() == Some(n.name()));
    now.nics.iter().filter(named).map(|n| n.dev.clone()).collect()
}

/// The settings that differ. For a device that has to be restarted, all settings, because the restart may lose any of them.
fn steps(now: &Snapshot, target: &SettingMap, reason: &Reason) -> Vec<Step> {
    let differs: BTreeSet<Address> = diff(now, target).into_iter().map(|c| c.address).collect();
    let restarted: BTreeSet<&str> =
        differs.iter().filter(|a| a.interrupts_traffic_on(now)).filter_map(Address::dev).collect();
    let step = |(a, s): (&Address, &Setting)| Step {
        setting: s.clone(),
        from: live(now, a),
        rule: "rollback".into(),
        reason: reason.clone(),
        source: "the journal of ringwise".into(),
        interrupts_traffic: a.interrupts_traffic_on(now),
        if_refused: IfRefused::PutBack,
        instead: Vec::new(),
    };
    let mut steps: Vec<Step> = target
        .iter()
        .filter(|(a, _)| differs.contains(a) || a.dev().is_some_and(|d| restarted.contains(d)))
        .map(step)
        .collect();
    order(&mut steps, |s| (&s.from, &s.setting));
    steps
}
