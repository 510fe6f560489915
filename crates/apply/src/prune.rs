//! Journals of the service that are not needed any more. A driver that resets its device every minute would otherwise fill the
//! disk, and every command would read all of them.

use std::collections::BTreeSet;
use std::fs;

use ringwise_knob::{Address, Setting};
use ringwise_model::{Host, Title};

use crate::journal::{JournalOrigin, Read};
use crate::{Error, Store, Verdict};

/// Removes the oldest journals of the service until at most `most` are left, as far as a later one of the service has everything
/// that they have: what is in effect and what a rollback restores stay the same. Those of people are never removed. Returns how
/// many were removed.
///
/// Errors: another run holds the lock, or the state directory cannot be read or written.
pub fn prune_service(store: &Store, host: &Host, most: usize) -> Result<usize, Error> {
    let lock = store.lock()?;
    let all = Read::all(store)?;
    let own: Vec<&Read> = all.iter().filter(|r| is_own(r)).collect();
    let mut removed = 0;
    for (i, r) in own.iter().enumerate() {
        if own.len() - removed <= most {
            break;
        }
        let later = &own[i + 1..];
        if r.path.parent() == Some(lock.dir.as_path()) && (is_of_another_boot(r, host) || is_covered(r, later)) {
            fs::remove_file(&r.path).map_err(|source| Error::State { path: r.path.clone(), source })?;
            removed += 1;
        }
    }
    if removed > 0 {
        store.publish(None);
    }
    Ok(removed)
}

/// A transaction of the service that has ended.
fn is_own(r: &Read) -> bool {
    r.header.as_ref().is_some_and(|h| matches!(h.title, Title::Keep { .. })) && r.end.is_some() && r.damaged == 0
}

fn is_of_another_boot(r: &Read, host: &Host) -> bool {
    matches!(r.whose(host), JournalOrigin::Other(_))
}

/// Whether later journals have set all of its settings again and would restore the same values.
fn is_covered(r: &Read, later: &[&Read]) -> bool {
    let applied = |r: &&&Read| r.end.as_ref().is_some_and(|(o, _)| o.verdict == Verdict::Applied);
    if !applied(&&r) {
        // It was restored, so nothing of it is in effect.
        return r.end.as_ref().is_some_and(|(o, _)| o.verdict == Verdict::PutBack);
    }
    let headers = || later.iter().filter(applied).filter_map(|r| r.header.as_ref());
    let start: Vec<&Setting> = headers().flat_map(|h| &h.start).collect();
    let set: BTreeSet<Address> = headers().flat_map(|h| &h.steps).filter_map(|s| s.setting.address()).collect();
    r.header.as_ref().is_some_and(|h| {
        let again = h.steps.iter().map(|s| &s.setting).chain(&h.already);
        h.start.iter().all(|s| start.contains(&s)) && again.filter_map(Setting::address).all(|a| set.contains(&a))
    })
}
