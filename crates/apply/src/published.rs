//! The part of the state that every user may read: `/run/ringwise/status.json`, or `status.json` in the directory of
//! `--state-dir`. Only root can read the journals, because reasons and command lines may hold secrets (`--health`).

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use ringwise_knob::Learned;
use ringwise_model::Requested;
use ringwise_sys::trust::{self, ReplacementFile};
use serde::{Deserialize, Serialize};

use crate::journal::Read;
use crate::state_file::{self, SUMMED};
use crate::trial_file::{ProcessId, TrialResult};
use crate::{Holder, Store};

/// How many of the last journals are published; only root needs older ones.
const MOST: usize = 200;

#[derive(Serialize, Deserialize)]
struct Published {
    format: u32,
    journals: Vec<Read>,
    learned: Vec<Learned>,
    /// The holder of the lock when this was written, and its process.
    holder: Option<(Holder, Option<ProcessId>)>,
}

impl Store {
    /// The directory of what every user may read: `/run/ringwise`, or that of `--state-dir`.
    pub fn run_dir(&self) -> &Path {
        let own = self.dirs().first().filter(|_| !self.is_default());
        own.map_or(Path::new("/run/ringwise"), PathBuf::as_path)
    }

    /// The path of the file; `None` for a store without a directory.
    fn public(&self) -> Option<PathBuf> {
        self.dirs().first().map(|_| self.run_dir().join("status.json"))
    }

    /// Publishes the present state. A failure is not an error, because root can read the journals, but then the file is removed,
    /// so that it does not show an outdated state.
    pub(crate) fn publish(&self, holder: Option<&Holder>) {
        if self.try_publish(holder).is_err()
            && let Some(path) = self.public()
        {
            let _ = fs::remove_file(path); // the file does not exist, or the disk does not allow it
        }
    }

    fn try_publish(&self, holder: Option<&Holder>) -> io::Result<()> {
        let Some(path) = self.public() else { return Ok(()) };
        let mut journals = Read::all(self).map_err(io::Error::other)?;
        journals.drain(..journals.len().saturating_sub(MOST));
        journals.iter_mut().for_each(without_secrets);
        let learned = self.learned().unwrap_or_default();
        let holder = holder.map(|h| (Holder { command: None, ..h.clone() }, h.pid.and_then(ProcessId::of)));
        let text = state_file::text(&Published { format: SUMMED, journals, learned, holder })?;
        let dir = path.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
        if trust::others_write(dir).is_some() {
            return Ok(());
        }
        let mut new = ReplacementFile::create(&path, 0o644)?;
        // Independent of the umask.
        new.file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        new.file.write_all(&text)?;
        new.place()
    }

    fn published(&self) -> Option<Published> {
        let path = self.public()?;
        let dir = path.parent()?;
        // Only a file in a directory that other users cannot write to is trusted.
        if trust::others_write(dir).is_some() {
            return None;
        }
        let p: Published = state_file::read_whole(&path)?;
        (p.format == SUMMED).then_some(p)
    }

    /// For users who cannot read the journals.
    pub(crate) fn published_journals(&self) -> Option<Vec<Read>> {
        Some(self.published()?.journals)
    }

    pub(crate) fn published_learned(&self) -> Option<Vec<Learned>> {
        Some(self.published()?.learned)
    }

    /// The holder of the lock, if that process still exists.
    pub(crate) fn published_holder(&self) -> Option<Holder> {
        let (holder, keeper) = self.published()?.holder?;
        let host = ringwise_sys::Real::new().ok()?;
        keeper.filter(|k| !k.is_gone(&host)).map(|_| holder)
    }
}

/// The holder of the lock is being published in a thread of its own. Dropped, this waits for the end, and publishes again: the thread may
/// have read a journal that was removed meanwhile, because its transaction was refused.
pub(crate) struct Publishing {
    thread: Option<JoinHandle<()>>,
    store: Store,
    refused: bool,
}

impl Publishing {
    pub(crate) fn begin(store: &Store, holder: &Holder) -> Self {
        let (in_thread, of) = (store.clone(), holder.clone());
        let thread = std::thread::Builder::new().spawn(move || in_thread.publish(Some(&of))).ok();
        if thread.is_none() {
            store.publish(Some(holder));
        }
        Self { thread, store: store.clone(), refused: true }
    }

    /// Waits for the end. The transaction was not refused, and publishes its own end.
    pub(crate) fn end(mut self) {
        self.refused = false;
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // after a panic, others do not see who holds the lock
        }
        if self.refused {
            self.store.publish(None);
        }
    }
}

/// Removes reasons, command lines and other text that a person typed, and the output of a health command.
fn without_secrets(read: &mut Read) {
    if let Some(h) = &mut read.header {
        h.reason = None;
        h.command = String::new();
        h.argv.truncate(1);
        h.requested = h.requested.take().map(Requested::without_typed_text);
    }
    let mut reason_removed = false;
    if let Some((_, TrialResult::Undone { by, why })) = &mut read.trial
        && !by.is_automatic()
    {
        reason_removed = true;
        *why = String::new();
    }
    if let Some((o, _)) = &mut read.end {
        if let Some(TrialResult::Undone { by, why }) = o.trial.as_mut().map(|t| &mut t.fate)
            && !by.is_automatic()
        {
            *why = String::new();
        }
        if let Some(f) = o.failed.as_mut().filter(|_| reason_removed) {
            f.words = String::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_flipped_bit_never_changes_what_is_shown() {
        let dir = std::env::temp_dir().join(format!("ringwise-published-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("tx-0001.jsonl"), "{\"record\":\"begin\"").unwrap();
        let store = Store::open(Some(&dir));
        store.publish(None);
        let path = dir.join("status.json");
        let (whole, shown) = (fs::read(&path).unwrap(), |s: &Store| s.published_journals().map(|j| format!("{j:?}")));
        let right = shown(&store).unwrap();
        assert!(right.contains("breaks off before its first step"), "{right}");
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            assert!(shown(&store).is_none_or(|t| t == right), "bit {bit}: {:?}", shown(&store));
        }
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_refused_transaction_is_not_shown() {
        let dir = std::env::temp_dir().join(format!("ringwise-refused-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let journal = dir.join("tx-0001.jsonl");
        fs::write(&journal, "{\"record\":\"begin\"").unwrap();
        let store = Store::open(Some(&dir));
        store.publish(None);
        let shown = || store.published_journals().unwrap().len();
        assert_eq!(shown(), 1);
        let publishing = Publishing { thread: None, store: store.clone(), refused: true };
        fs::remove_file(&journal).unwrap();
        drop(publishing);
        assert_eq!(shown(), 0);
        fs::remove_dir_all(&dir).unwrap();
    }
}
