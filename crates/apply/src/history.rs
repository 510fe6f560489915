//! What earlier transactions of this boot requested and what they left behind: `history`, `verify`, and the basis of a rollback.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use ringwise_knob::{Address, Setting, SettingMap, VectorName, alike, compare, goes_with_layout, irq, live, overlap};
use ringwise_model::{Requested, Snapshot};
use ringwise_sys::Host;

use crate::committed::CommittedTx;
use crate::drift_log;
use crate::group_settings;
use crate::host_access::HostAccess;
use crate::journal::{JournalOrigin, Read};
use crate::names::DeviceRenames;
use crate::outcome::VERSION;
use crate::record::Header;
use crate::trial::{OnTrial, pending_of};
use crate::{Ending, Error, HistoryEntry, Outcome, Policy, RunResult, SettingInEffect, Store, TransactionKind, Verify};

fn map<'a>(names: &DeviceRenames, settings: impl IntoIterator<Item = &'a Setting>) -> SettingMap {
    settings
        .into_iter()
        .map(|s| names.setting(s))
        .filter_map(|s| s.address().map(|a| (a, s)))
        .collect::<BTreeMap<_, _>>()
}

/// The kept transactions of this boot in order, without those that a rollback has undone. If a rollback is undone itself, the
/// transactions that it had undone are in effect again.
pub(crate) fn in_force(journals: &[Read], now: &Snapshot) -> Vec<CommittedTx> {
    let mut out: Vec<Rc<CommittedTx>> = Vec::new();
    // The transactions that were in effect before each of them.
    let mut earlier: BTreeMap<u64, Vec<Rc<CommittedTx>>> = BTreeMap::from([(0, Vec::new())]);
    for j in journals.iter().filter(|j| j.whose(&now.host) == JournalOrigin::ThisBoot) {
        let (Some(h), Some((outcome, after))) = (&j.header, &j.end) else { continue };
        if outcome.verdict != RunResult::Applied {
            continue;
        }
        earlier.insert(j.id, out.clone());
        if let TransactionKind::Rollback { before } = h.kind {
            let undone: BTreeSet<Address> = out
                .iter()
                .filter(|k| k.id >= before)
                .flat_map(|k| k.start.keys().chain(k.wants.keys()))
                .cloned()
                .collect();
            match earlier.get(&before) {
                Some(then) => out.clone_from(then),
                None => out.retain(|k| k.id < before),
            }
            // It restores the base, and not earlier moves.
            out.retain(|k| !(k.balance && k.wants.keys().any(|a| undone.contains(a))));
        }
        let names = DeviceRenames::new(&h.devices, now);
        let refused = outcome.refused.iter().map(|r| &r.asked);
        let other = outcome.instead.iter().map(|i| &i.asked);
        let given_up = refused.chain(outcome.ignored.iter().map(|i| &i.asked)).chain(other);
        let given_up: BTreeMap<Option<Address>, Vec<&Setting>> = given_up.fold(BTreeMap::new(), |mut by, s| {
            by.entry(s.address()).or_default().push(s);
            by
        });
        let kept = |s: &&Setting| !given_up.get(&s.address()).is_some_and(|list| list.contains(s));
        let steps = h.steps.iter().map(|s| &s.setting).filter(kept);
        let wants = h.already.iter().chain(steps).chain(outcome.instead.iter().map(|i| &i.kept));
        let groups = h.steps.iter().filter(|s| goes_with_layout(&s.rule));
        let for_groups = groups.filter_map(|s| names.setting(&s.setting).address()).collect::<BTreeSet<_>>();
        out.push(Rc::new(CommittedTx {
            id: j.id,
            kind: h.kind.clone(),
            correction: j.is_correction(),
            balance: j.is_balance(),
            base: map(&names, &h.base),
            ended: h.unix_time.saturating_add(outcome.took_ms / 1000),
            start: map(&names, &h.start),
            wants: map(&names, wants),
            after: map(&names, after),
            for_groups,
        }));
    }
    drop(earlier);
    out.into_iter().map(|k| Rc::try_unwrap(k).unwrap_or_else(|k| (*k).clone())).collect()
}

/// Number of queues that exist with the given channels; `None`: unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QueueCounts {
    rx: Option<u32>,
    tx: Option<u32>,
}

impl QueueCounts {
    /// The counts with these channels. Counts that the setting leaves open keep their value from `before`.
    fn of(setting: &Setting, before: Option<&Setting>) -> Option<Self> {
        let counts = |s: &Setting| match s {
            Setting::Channels { rx, tx, combined, .. } => Some((*rx, *tx, *combined)),
            _ => None,
        };
        let (rx, tx, combined) = counts(setting)?;
        let (rx_before, tx_before, combined_before) = before.and_then(counts).unwrap_or_default();
        let combined = combined.or(combined_before).unwrap_or(0);
        // A device has at least one queue of each direction. If no count is above 0, the driver reported none.
        let sum = |own: Option<u32>| Some(combined + own.unwrap_or(0)).filter(|n| *n > 0);
        Some(Self { rx: sum(rx.or(rx_before)), tx: sum(tx.or(tx_before)) })
    }
}

/// Whether the setting belongs to a queue beyond these counts. Unknown counts limit nothing.
fn beyond(address: &Address, counts: QueueCounts) -> bool {
    let QueueCounts { rx, tx } = counts;
    match address {
        Address::IrqCpus { of: VectorName::Rx(q), .. }
        | Address::RpsCpus { queue: q, .. }
        | Address::RpsFlowCnt { queue: q, .. }
        | Address::Napi { of: VectorName::Rx(q), .. }
        | Address::NapiThread { of: VectorName::Rx(q), .. } => rx.is_some_and(|n| *q >= n),
        Address::QueueCoalesce { queue: q, .. } => rx.zip(tx).is_some_and(|(rx, tx)| *q >= rx.max(tx)),
        Address::IrqCpus { of: VectorName::Tx(q), .. }
        | Address::Napi { of: VectorName::Tx(q), .. }
        | Address::NapiThread { of: VectorName::Tx(q), .. }
        | Address::XpsCpus { queue: q, .. }
        | Address::XpsRxqs { queue: q, .. } => tx.is_some_and(|n| *q >= n),
        _ => false,
    }
}

/// Whether this is a NAPI thread that the other settings of the map end, so that its CPUs cannot be set.
fn ends(address: &Address, settings: &SettingMap) -> bool {
    let Address::NapiThread { dev, of } = address else { return false };
    let threaded = |a: Address| match settings.get(&a) {
        Some(Setting::NapiDevice { values, .. } | Setting::Napi { values, .. }) => values.threaded,
        _ => None,
    };
    let own = threaded(Address::Napi { dev: dev.clone(), of: *of });
    own.or_else(|| threaded(Address::NapiDevice { dev: dev.clone() })) == Some(0)
}

/// Removes settings of queues that do not exist with the channels in the map (or the present channels), and settings of threads
/// that the map ends. Returns device-wide settings whose value names such a queue.
pub(crate) fn drop_doomed(settings: &mut SettingMap, now: &Snapshot) -> Vec<Address> {
    let ended = settings.keys().filter(|a| ends(a, settings)).cloned().collect::<BTreeSet<_>>();
    settings.retain(|a, _| !ended.contains(a));
    let mut counts: BTreeMap<String, QueueCounts> = BTreeMap::new();
    for nic in &now.nics {
        let address = Address::Channels { dev: nic.dev.name.clone() };
        let now = live(now, &address);
        let then = settings.get(&address).or(now.known()).and_then(|s| QueueCounts::of(s, now.known()));
        counts.extend(then.map(|n| (nic.dev.name.clone(), n)));
    }
    settings.retain(|a, _| !a.dev().and_then(|d| counts.get(d)).is_some_and(|n| beyond(a, *n)));
    let names_one = |a: &Address, s: &Setting| a.dev().and_then(|d| counts.get(d)).is_some_and(|n| names_beyond(s, *n));
    let doomed = settings.iter().filter(|(a, s)| names_one(a, s)).map(|(a, _)| a.clone()).collect::<BTreeSet<_>>();
    settings.retain(|a, _| !doomed.contains(a));
    doomed.into_iter().collect()
}

/// Whether a table or rule steers to a receive queue beyond these counts.
fn names_beyond(setting: &Setting, counts: QueueCounts) -> bool {
    let Some(rx) = counts.rx else { return false };
    match setting {
        Setting::RssTable { table, .. } | Setting::RssContext { table: Some(table), .. } => {
            table.iter().any(|q| *q >= rx)
        }
        Setting::FlowRule { rule: Some(rule), .. } => ringwise_knob::rules::queue(rule).is_some_and(|q| q >= rx),
        _ => false,
    }
}

/// A setting before the service moved it because of the load.
struct BeforeMoves<'a> {
    in_effect: Option<(&'a CommittedTx, Setting)>,
    base: Option<&'a Setting>,
}

/// The latest value that ringwise applied for each setting, and the transaction that applied it.
fn standing<'a>(kept: &'a [CommittedTx], now: &Snapshot) -> BTreeMap<Address, (&'a CommittedTx, Setting)> {
    let mut out: BTreeMap<Address, (&CommittedTx, Setting)> = BTreeMap::new();
    let mut before_moves: BTreeMap<&Address, BeforeMoves> = BTreeMap::new();
    for k in kept.iter().filter(|k| !matches!(k.kind, TransactionKind::Rollback { .. })) {
        let counts = k.wants.iter().filter_map(|(a, s)| Some((s.dev()?, QueueCounts::of(s, k.start.get(a))?)));
        let counts: BTreeMap<&str, QueueCounts> = counts.collect();
        if !counts.is_empty() {
            out.retain(|a, _| !a.dev().and_then(|d| counts.get(d)).is_some_and(|n| beyond(a, *n)));
        }
        for (address, setting) in &k.wants {
            for gone in replaced(&out, setting, k.id) {
                out.remove(&gone);
            }
            if k.balance {
                let base = || k.base_of(address);
                let before = || BeforeMoves { in_effect: out.get(address).cloned(), base: base() };
                let before = before_moves.entry(address).or_insert_with(before);
                let last = out.get(address).map(|(_, s)| s);
                if out.get(address).is_some_and(|(by, _)| by.balance) && k.start.get(address) != last {
                    // It was written outside ringwise since the last move, or journals in between were removed.
                    before.base = base();
                }
                if before.base == Some(setting) {
                    // What was requested before is in effect again, or nothing.
                    match before.in_effect.take() {
                        Some(earlier) => _ = out.insert(address.clone(), earlier),
                        None => _ = out.remove(address),
                    }
                    before_moves.remove(address);
                    continue;
                }
            } else {
                before_moves.remove(address);
            }
            out.insert(address.clone(), (k, setting.clone()));
        }
    }
    // A later transaction may have changed what an earlier one requested without naming it; the value that it left behind counts.
    let mut settings: SettingMap = out.iter().map(|(a, (_, s))| (a.clone(), s.clone())).collect::<BTreeMap<_, _>>();
    drop_doomed_by_wants(&mut settings, now);
    out.retain(|a, _| settings.contains_key(a));
    let shared: BTreeSet<Address> = out.keys().filter(|a| is_second_name(a, &out, now)).cloned().collect();
    out.retain(|a, _| !shared.contains(a));
    out
}

/// Whether this interrupt has another name now, for which a value was applied too: receive and transmit queue have shared one
/// vector since the channels changed.
fn is_second_name(a: &Address, all: &BTreeMap<Address, (&CommittedTx, Setting)>, now: &Snapshot) -> bool {
    let Address::IrqCpus { dev, of } = a else { return false };
    let name = now.nic(dev).and_then(|n| irq::vector(n, *of)).and_then(irq::canonical);
    name.is_some_and(|n| n != *of && all.contains_key(&Address::IrqCpus { dev: dev.clone(), of: n }))
}

/// Settings of earlier transactions that this one replaces. Only a device-wide setting replaces settings of single queues;
/// searching all settings for each of them would take quadratic time.
fn replaced(all: &BTreeMap<Address, (&CommittedTx, Setting)>, setting: &Setting, id: u64) -> Vec<Address> {
    let first = match setting {
        Setting::Coalesce { dev, .. } => Address::QueueCoalesce { dev: dev.clone(), queue: 0 },
        Setting::NapiDevice { dev, .. } => Address::Napi { dev: dev.clone(), of: VectorName::Rx(0) },
        _ => return Vec::new(),
    };
    let of_queues = alike(all.range(&first..), &first);
    let gone = of_queues.filter(|(_, (by, earlier))| by.id != id && overlap::replaces(setting, earlier));
    gone.map(|(a, _)| a.clone()).collect()
}

/// Only channels that ringwise set itself make the settings of queues beyond them obsolete. If channels were changed outside
/// ringwise, those settings are drift.
fn drop_doomed_by_wants(settings: &mut SettingMap, now: &Snapshot) {
    let mut counts: BTreeMap<String, QueueCounts> = BTreeMap::new();
    for nic in &now.nics {
        let address = Address::Channels { dev: nic.dev.name.clone() };
        let wanted = settings.get(&address).and_then(|s| QueueCounts::of(s, live(now, &address).known()));
        counts.extend(wanted.map(|n| (nic.dev.name.clone(), n)));
    }
    settings.retain(|a, _| !a.dev().and_then(|d| counts.get(d)).is_some_and(|n| beyond(a, *n)));
}

/// What the transactions in effect requested, and whether the host matches it. Writes nothing.
///
/// Errors: the host or the state directory cannot be read.
pub fn verify(host: &Arc<dyn Host>, store: &Store, policy: &Policy) -> Result<Verify, Error> {
    let now = HostAccess { host, policy }.look()?;
    verify_in(&now, store)
}

/// The same with a snapshot that exists already.
pub fn verify_in(now: &Snapshot, store: &Store) -> Result<Verify, Error> {
    Ok(verify_of(&Read::all(store)?, now, store))
}

pub(crate) fn verify_of(journals: &[Read], now: &Snapshot, store: &Store) -> Verify {
    let kept = in_force(journals, now);
    let settings = standing(&kept, now)
        .into_iter()
        .map(|(address, (by, want))| SettingInEffect {
            transaction: by.id,
            unix_time: by.ended,
            adopted: by.kind == TransactionKind::Adopt,
            how: compare(&want, now),
            now: live(now, &address),
            want,
            changed: None,
        })
        .collect();
    let unfinished =
        journals.iter().find(|j| j.unfinished() && j.whose(&now.host) == JournalOrigin::ThisBoot).map(|j| j.id);
    // A transaction that is still running was not interrupted.
    let running = unfinished.and_then(|_| store.held());
    let unfinished = unfinished.filter(|_| running.is_none());
    let trial = pending_of(journals, store, &now.host);
    let newer = journals.iter().filter_map(|j| j.newer_here(&now.host)).collect();
    let made = group_settings::made(&kept, now);
    let mut v = Verify {
        schema: "ringwise.verify".into(),
        version: VERSION,
        settings,
        unfinished,
        running,
        newer,
        trial,
        made,
    };
    drift_log::windows(drift_log::read(store, now).as_ref(), now, &mut v);
    v
}

/// Every transaction in the state directory, oldest first.
pub fn history(store: &Store, host: &ringwise_model::Host) -> Result<Vec<HistoryEntry>, Error> {
    Ok(history_of(&Read::all(store)?, host, store))
}

/// Whether the last apply in effect had other goals, or unknown ones. If so, an apply that changes nothing is recorded as well.
pub fn replaces_another(store: &Store, host: &ringwise_model::Host, requested: &Requested) -> Result<bool, Error> {
    let list = history(store, host)?;
    let last =
        list.iter().filter(|e| e.is_in_effect()).rfind(|e| e.kind == TransactionKind::Apply && !e.is_of_service());
    Ok(last.is_some_and(|e| !e.requested.as_ref().is_some_and(|r| r.has_goals_of(requested))))
}

pub(crate) fn history_of(journals: &[Read], host: &ringwise_model::Host, store: &Store) -> Vec<HistoryEntry> {
    let mut out: Vec<HistoryEntry> = journals.iter().map(|j| entry(j, host)).collect();
    if let Some(last) = out.last_mut().filter(|e| e.ending == Ending::Unfinished)
        && let Some(by) = store.held()
    {
        last.ending = Ending::Running { pid: by.pid };
    }
    let rollbacks: Vec<(u64, u64)> = out
        .iter()
        .filter(|e| e.this_boot && e.ending == Ending::Kept)
        .filter_map(|e| match e.kind {
            TransactionKind::Rollback { before } => Some((e.id, before)),
            _ => None,
        })
        .collect();
    for (by, before) in rollbacks {
        for e in out.iter_mut().filter(|e| e.this_boot && e.ending == Ending::Kept) {
            if (before..by).contains(&e.id) {
                e.undone_by.get_or_insert(by);
            } else if e.undone_by.is_some_and(|u| (before..by).contains(&u)) {
                // The rollback that had undone it was itself undone by this one.
                e.undone_by = None;
            }
        }
    }
    out
}

fn entry(j: &Read, host: &ringwise_model::Host) -> HistoryEntry {
    let whose = j.whose(host);
    let ending = match (&j.end, &j.closed, &whose) {
        (Some(_), _, JournalOrigin::ThisBoot) if j.on_trial().is_some() => {
            Ending::OnTrial { until_unix: j.on_trial().map_or(0, |t| t.until_unix) }
        }
        (Some((o, _)), _, _) => match o.verdict {
            RunResult::Applied | RunResult::NothingToDo => Ending::Kept,
            RunResult::PutBack | RunResult::Recovered => Ending::PutBack,
            RunResult::PutBackIncomplete => Ending::PutBackIncomplete,
        },
        (None, Some(why), _) => Ending::Closed { why: why.clone() },
        (None, None, JournalOrigin::ThisBoot | JournalOrigin::Newer(_)) => Ending::Unfinished,
        (None, None, JournalOrigin::Other(why)) => Ending::Closed { why: why.clone() },
    };
    let trial = j.trial.as_ref().map(|(t, fate)| OnTrial::new(t, fate.clone()));
    let h = j.header.as_ref();
    let elsewhere = match &whose {
        JournalOrigin::Other(why) => Some(why.clone()),
        _ => None,
    };
    let text = |f: fn(&Header) -> &String| h.map(|h| f(h).clone()).unwrap_or_default();
    HistoryEntry {
        id: j.id,
        kind: h.map_or(TransactionKind::Other, |h| h.kind.clone()),
        title: h.map(|h| h.title.clone()).unwrap_or_default(),
        who: text(|h| &h.who),
        command: text(|h| &h.command),
        requested: h.and_then(|h| h.requested.clone()),
        argv: h.map(|h| h.argv.clone()).unwrap_or_default(),
        reason: h.and_then(|h| h.reason.clone()),
        unix_time: h.map_or_else(|| j.newer.as_ref().map_or(0, |n| n.unix_time), |h| h.unix_time),
        this_boot: elsewhere.is_none(),
        elsewhere,
        devices: h.map(|h| h.devices.iter().map(|d| d.name.clone()).collect()).unwrap_or_default(),
        steps: h.map_or(0, |h| h.steps.len()),
        ending,
        undone_by: None,
        trial: trial.clone(),
        stuck: h.map(|h| h.stuck.clone()).unwrap_or_default(),
        damaged: j.damaged,
        // The outcome was written while the trial was pending; this adds the trial's present state.
        outcome: j.end.as_ref().map(|(o, _)| Outcome { trial: trial.clone(), ..o.clone() }),
        undo: h.map(|h| h.undo.clone()).or_else(|| j.newer.as_ref().map(|n| n.undo.clone())).unwrap_or_default(),
        path: j.path.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_without_a_count_is_unknown() {
        let channels = |rx, tx, combined| Setting::Channels { dev: "eth0".into(), rx, tx, combined };
        let of = |s, before: Option<Setting>| {
            let c = QueueCounts::of(&s, before.as_ref()).unwrap();
            (c.rx, c.tx)
        };
        assert_eq!(of(channels(None, None, Some(4)), None), (Some(4), Some(4)));
        // Only receive queues were changed: the transmit queues are as before, not gone.
        assert_eq!(of(channels(Some(2), None, None), None), (Some(2), None));
        assert_eq!(of(channels(Some(2), None, None), Some(channels(Some(4), Some(8), None))), (Some(2), Some(8)));
        assert_eq!(of(channels(Some(1), None, None), Some(channels(Some(2), None, Some(4)))), (Some(5), Some(4)));
        // A driver that reports no count of queues still has queues.
        let nothing = QueueCounts::of(&channels(None, None, None), None).unwrap();
        assert_eq!(nothing, QueueCounts { rx: None, tx: None });
        let xps = Address::XpsCpus { dev: "eth0".into(), queue: 0 };
        assert!(!beyond(&xps, nothing) && !beyond(&xps, QueueCounts { rx: Some(2), tx: None }));
        let table = Setting::RssTable { dev: "eth0".into(), table: vec![0, 1] };
        assert!(!names_beyond(&table, nothing));
    }

    #[test]
    fn beyond_the_channels_is_counted_for_each_direction() {
        let dev = || "eth0".to_string();
        let counts = QueueCounts { rx: Some(4), tx: Some(2) };
        let rps = |queue| Address::RpsCpus { dev: dev(), queue };
        let xps = |queue| Address::XpsCpus { dev: dev(), queue };
        let coalesce = |queue| Address::QueueCoalesce { dev: dev(), queue };
        let first = |of: &dyn Fn(u32) -> Address| (0..9).find(|q| beyond(&of(*q), counts));
        assert_eq!((first(&rps), first(&xps)), (Some(4), Some(2)));
        // One address for both directions: it exists as long as one of them does.
        assert_eq!(first(&coalesce), Some(4));
        assert_eq!((0..9).find(|q| beyond(&coalesce(*q), QueueCounts { rx: Some(1), tx: Some(3) })), Some(3));
        assert!(!beyond(&Address::RfsEntries, counts));
    }
}
