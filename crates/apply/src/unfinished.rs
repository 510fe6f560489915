//! How the next run treats journals without an end.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::PoisonError;

use ringwise_model::Snapshot;

use crate::journal::{Journal, JournalOrigin, Read};
use crate::record::Record;
use crate::store::{JournalFileId, Lock};
use crate::trial_file::Files;
use crate::{Error, Refusal, Store};

/// Refuses if a transaction of this boot has no end, or is on trial.
pub(crate) fn refuse_unfinished(store: &Store, now: &Snapshot) -> Result<(), Error> {
    for j in Read::all(store)? {
        if let Some(newer) = j.newer_here(&now.host) {
            return Err(Refusal::from(newer).into());
        }
        if (j.unfinished() || j.on_trial().is_some()) && j.whose(&now.host) == JournalOrigin::ThisBoot {
            return match store.held() {
                Some(by) => Err(Refusal::Locked { pid: by.pid, path: j.path, holder: Box::new(by) }.into()),
                None if j.on_trial().is_some() => Err(Refusal::OnTrial { transaction: j.id }.into()),
                None => Err(Refusal::Unfinished { transaction: j.id }.into()),
            };
        }
    }
    Ok(())
}

/// The transaction has its end, and this version reads its journal. A later record changes that only if a guard takes over late;
/// the file then has another size.
fn is_over(j: &Read) -> bool {
    !j.unfinished() && j.on_trial().is_none() && j.newer.is_none()
}

/// Remembers which journals are over. `before`: the files as they were before they were read.
pub(crate) fn remember_over(store: &Store, all: &[Read], before: &[JournalFileId]) {
    let over: BTreeSet<JournalFileId> =
        before.iter().filter(|s| all.iter().any(|j| j.path == s.path && is_over(j))).cloned().collect();
    *store.over.lock().unwrap_or_else(PoisonError::into_inner) = over;
}

/// Whether every journal is over. Only those that were written since the last time are read: the service writes many, and they
/// have megabytes on a large host.
fn all_over(store: &Store) -> Result<bool, Error> {
    let mut over = store.over.lock().unwrap_or_else(PoisonError::into_inner);
    let mut now = BTreeSet::new();
    for (id, path) in store.journals()? {
        let seen = JournalFileId::of(path);
        if !over.contains(&seen) && !is_over(&Read::load(id, &seen.path)?) {
            return Ok(false);
        }
        now.insert(seen);
    }
    *over = now;
    Ok(true)
}

/// Handles interrupted journals: one of this boot is a refusal, the others are closed with the reason.
pub(crate) fn close_others(store: &Store, _lock: &Lock, now: &Snapshot, unix_time: u64) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    if all_over(store)? {
        return Ok(notes);
    }
    let journals = Read::all(store)?;
    // This includes transactions that ended: this version does not know what they set, so nothing can be based on it.
    if let Some(newer) = journals.iter().find_map(|j| j.newer_here(&now.host)) {
        return Err(Refusal::from(newer).into());
    }
    for j in journals.into_iter().filter(|j| (j.unfinished() || j.on_trial().is_some()) && j.newer.is_none()) {
        let why = match j.whose(&now.host) {
            JournalOrigin::Other(why) | JournalOrigin::Newer(why) => why,
            JournalOrigin::ThisBoot if j.on_trial().is_some() => {
                return Err(Refusal::OnTrial { transaction: j.id }.into());
            }
            JournalOrigin::ThisBoot => return Err(Refusal::Unfinished { transaction: j.id }.into()),
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
            Err(e) => notes.push(format!(
                "{text} (this could not be recorded in {}: {})",
                j.path.display(),
                ringwise_sys::io_text(&e)
            )),
        }
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;
    use crate::checksum;

    #[test]
    fn a_journal_that_is_over_is_read_again_only_after_a_change() {
        let dir = ringwise_testkit::dir::Dir::new();
        let store = Store::open(Some(&dir.0));
        let path = dir.0.join("tx-0001.jsonl");
        let write = |record: &Record| {
            let mut line = checksum::add(serde_json::to_vec(record).unwrap());
            line.push(b'\n');
            OpenOptions::new().append(true).create(true).open(&path).unwrap().write_all(&line).unwrap();
        };
        assert!(all_over(&store).unwrap(), "no journal exists");
        write(&Record::PutBack { why: "test".into() });
        assert!(!all_over(&store).unwrap());
        write(&Record::Closed { why: "test".into(), unix_time: 1 });
        // Without a header and with more than a line it would be damaged, had it no end.
        assert!(all_over(&store).unwrap());
        let before = JournalFileId::of(path.clone());
        assert_eq!(*store.over.lock().unwrap(), BTreeSet::from([before.clone()]));
        // The guard took over late: the transaction has no end any more.
        write(&Record::TakenOver { why: "test".into(), unix_time: 2 });
        assert_ne!(JournalFileId::of(path.clone()), before);
        std::fs::write(&path, "{\"record\":\"begin\"").unwrap();
        assert!(!all_over(&store).unwrap());
        // What was remembered for another state of the file does not count.
        remember_over(&store, &[], &[before]);
        assert!(store.over.lock().unwrap().is_empty());
    }
}
