//! Journals of the service that are not needed any more. A driver that resets its device every minute would otherwise fill the
//! disk, and every command would read all of them.

use std::collections::BTreeSet;
use std::fs;

use ringwise_knob::{Address, Setting};
use ringwise_model::{DevId, Host};

use crate::journal::{JournalOrigin, Read};
use crate::record::Header;
use crate::{Error, RunResult, Store, TransactionKind};

/// Removes the oldest journals of the service until at most `most` are left, as far as others have everything that they have:
/// what is in effect and what a rollback restores stay the same. Those of people are never removed. Returns how many were
/// removed.
///
/// Errors: another run holds the lock, or the state directory cannot be read or written.
pub fn prune_service(store: &Store, host: &Host, most: usize) -> Result<usize, Error> {
    let lock = store.lock()?;
    let all = Read::all(store)?;
    let mut left: Vec<&Read> = all.iter().collect();
    let mut many = all.iter().filter(|r| is_own(r)).count();
    let mut removed = 0;
    for r in all.iter().filter(|r| is_own(r) && r.path.parent() == Some(lock.dir.as_path())) {
        if many <= most {
            break;
        }
        let at = left.partition_point(|x| x.id < r.id);
        if is_of_another_boot(r, host) || is_covered(r, &left[..at], &left[at + 1..], host) {
            fs::remove_file(&r.path).map_err(|source| Error::State { path: r.path.clone(), source })?;
            left.remove(at);
            (many, removed) = (many - 1, removed + 1);
        }
    }
    if removed > 0 {
        store.publish(None);
    }
    Ok(removed)
}

/// A transaction of the service that has ended.
fn is_own(r: &Read) -> bool {
    (r.is_correction() || r.is_balance()) && r.end.is_some() && r.damaged == 0
}

fn is_of_another_boot(r: &Read, host: &Host) -> bool {
    matches!(r.whose(host), JournalOrigin::Other(_))
}

/// What of a journal counts: its header, if it was kept.
fn applied(r: &Read) -> Option<&Header> {
    r.header.as_ref().filter(|_| r.end.as_ref().is_some_and(|(o, _)| o.verdict == RunResult::Applied))
}

fn wants(h: &Header) -> impl Iterator<Item = &Setting> {
    h.already.iter().chain(h.steps.iter().map(|s| &s.setting))
}

/// Whether other journals say the same: each of its settings is set again later, or was set to the same value before; the value
/// that a rollback restores is in an earlier journal, or in a later one of the service; and its interfaces are named later.
fn is_covered(r: &Read, earlier: &[&Read], later: &[&Read], host: &Host) -> bool {
    let Some(h) = applied(r) else {
        // It was restored, so nothing of it is in effect.
        return r.end.as_ref().is_some_and(|(o, _)| o.verdict == RunResult::PutBack);
    };
    // What a rollback has undone does not count.
    let is_rollback = |r: &&Read| r.header.as_ref().is_some_and(|h| matches!(h.kind, TransactionKind::Rollback { .. }));
    let first = earlier.iter().rposition(is_rollback).map_or(0, |i| i + 1);
    let before: Vec<&Header> =
        earlier[first..].iter().filter(|r| !is_of_another_boot(r, host)).filter_map(|r| applied(r)).collect();
    let alike = |l: &&&Read| is_own(l) && l.is_balance() == r.is_balance();
    let after: Vec<&Header> = later.iter().filter(alike).filter_map(|r| applied(r)).collect();
    let addresses: BTreeSet<Address> = wants(h).filter_map(Setting::address).collect();
    let same = |s: &Setting| s.address().is_some_and(|a| addresses.contains(&a));
    let balance = |r: &&Read| applied(r).filter(|h| wants(h).any(same)).map(|_| r.is_balance());
    let mut balances = earlier[first..].iter().filter_map(balance);
    // What is in effect after a run is what the run left. Each of its journals has the base.
    let needed = match r.is_balance() {
        true => h.base.is_empty() || after.iter().any(|h| h.base.is_empty()),
        false => balances.any(|b| b),
    };
    if needed {
        return false;
    }

    let devices: Vec<&DevId> = after.iter().flat_map(|h| &h.devices).collect();
    let set: BTreeSet<Address> = after.iter().flat_map(|h| wants(h)).filter_map(Setting::address).collect();
    let is_set = |s: &Setting| {
        let address = s.address();
        let last = || before.iter().rev().find_map(|h| wants(h).find(|w| w.address() == address));
        address.as_ref().is_some_and(|a| set.contains(a)) || last() == Some(s)
    };
    let found: BTreeSet<Address> = before.iter().flat_map(|h| &h.start).filter_map(Setting::address).collect();
    let restored =
        |s: &Setting| s.address().is_some_and(|a| found.contains(&a)) || after.iter().any(|h| h.start.contains(s));
    h.devices.iter().all(|d| devices.iter().any(|l| d.same_device(l)))
        && h.start.iter().all(restored)
        && wants(h).all(is_set)
}
