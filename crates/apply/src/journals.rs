//! The journals of a state directory, parsed once for all queries.

use std::collections::BTreeSet;
use std::fs;

use ringwise_knob::Family;
use ringwise_model::{Host, Snapshot};

use crate::balance::{self, BalancedSetting};
use crate::journal::Read;
use crate::store::{JournalFileId, LOCK};
use crate::{Error, HistoryEntry, Store, Verify, families, history, reinitialize, unfinished};

/// The journals at the moment of reading, with the files beside them (trials, confirmations).
#[derive(Debug, Clone)]
pub struct Journals {
    all: Vec<Read>,
    files: Files,
}

/// The files of a state directory as they were when the journals were read: small, for a process that waits for the next one.
#[derive(Debug, Clone)]
pub struct Files {
    store: Store,
    seen: Vec<JournalFileId>,
}

impl Files {
    fn of(store: &Store) -> Self {
        Self { store: store.clone(), seen: seen(store) }
    }

    /// Whether nothing was written since.
    pub fn are_current(&self) -> bool {
        seen(&self.store) == self.seen
    }
}

impl Journals {
    /// Errors: the state directory cannot be read.
    pub fn read(store: &Store) -> Result<Self, Error> {
        // Taken before reading, so that anything written meanwhile makes a difference.
        let files = Files::of(store);
        let all = Read::all(store)?;
        unfinished::remember_over(store, &all, &files.seen);
        Ok(Self { all, files })
    }

    /// Reads the journals again if anything was written since: discovery takes time, and a transaction that began or ended
    /// meanwhile must not look like a manual change.
    pub fn fresh(mut self) -> Result<Self, Error> {
        let now = seen(&self.files.store);
        // The file of the lock names its holder, which this process may have become.
        let journals =
            |all: &[JournalFileId]| all.iter().filter(|s| !s.path.ends_with(LOCK)).cloned().collect::<Vec<_>>();
        if journals(&now) == journals(&self.files.seen) {
            self.files.seen = now;
            return Ok(self);
        }
        let store = self.files.store.clone();
        drop(self);
        Self::read(&store)
    }

    /// The files that were read.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Families of the settings of every transaction, including those that are not in effect any more: this may read too much,
    /// but never too little.
    pub fn families(&self) -> BTreeSet<Family> {
        families::of(self.all.iter())
    }

    /// What the transactions in effect requested, and whether this snapshot matches it.
    pub fn verify(&self, now: &Snapshot) -> Verify {
        history::verify_of(&self.all, now, &self.files.store)
    }

    /// What people and the configuration have applied, also to interfaces that appeared: as if the service had never corrected
    /// anything, and never followed the load.
    #[must_use]
    pub fn without_service(mut self) -> Self {
        self.all.retain(|r| !r.is_correction() && !r.is_balance());
        self
    }

    /// Settings in effect that the service has moved because of the load.
    pub fn balanced(&self, now: &Snapshot) -> Vec<BalancedSetting> {
        balance::settings(&self.all, now)
    }

    /// Whether the service has ever moved anything because of the load.
    pub(crate) fn have_moves(&self) -> bool {
        self.all.iter().any(Read::is_balance)
    }

    /// Families of the settings that the service has ever moved because of the load.
    pub(crate) fn families_of_moves(&self) -> BTreeSet<Family> {
        families::of(self.all.iter().filter(|r| r.is_balance()))
    }

    /// Interfaces whose index differs from that in the last transaction in effect that changed them.
    pub fn reinitialized(&self, now: &Snapshot) -> BTreeSet<String> {
        reinitialize::in_journals(&self.all, now)
    }

    /// Every transaction, oldest first.
    pub fn history(&self, host: &Host) -> Vec<HistoryEntry> {
        history::history_of(&self.all, host, &self.files.store)
    }
}

/// Names, sizes and times of the files in the state directory.
fn seen(store: &Store) -> Vec<JournalFileId> {
    let entries = store.dirs().iter().filter_map(|d| fs::read_dir(d).ok()).flatten().flatten();
    // A socket has no content.
    let files = entries.map(|e| e.path()).filter(|p| p.extension().is_none_or(|x| x != "sock"));
    let mut out: Vec<_> = files.map(JournalFileId::of).collect();
    out.sort();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_again_only_what_was_written_to() {
        let dir = std::env::temp_dir().join(format!("ringwise-journals-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let store = Store::open(Some(&dir));
        let file = dir.join("tx-0001.jsonl");
        fs::write(&file, "{\"record\":\"begin\"").unwrap();
        let first = Journals::read(&store).unwrap();
        assert_eq!((first.all.len(), first.all[0].damaged), (1, 0));
        // Nothing was written: the same values, even though the file's content changes afterwards.
        let first = first.fresh().unwrap();
        // Nor was a journal written when the lock has another holder.
        fs::write(dir.join(LOCK), "a holder").unwrap();
        assert!(!first.files.are_current());
        let first = first.fresh().unwrap();
        assert!(first.files.are_current() && first.all[0].damaged == 0);
        fs::write(&file, "no record\nno record\n\n").unwrap();
        let second = first.fresh().unwrap();
        assert_eq!((second.all.len(), second.all[0].damaged), (1, 2));
        fs::write(dir.join("tx-0002.jsonl"), "").unwrap();
        assert_eq!(second.fresh().unwrap().all.len(), 2);
        fs::remove_dir_all(&dir).unwrap();
    }
}
