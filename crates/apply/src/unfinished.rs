//! How the next run treats journals without an end.

use std::path::Path;

use ringwise_model::Snapshot;

use crate::journal::{Journal, JournalOrigin, Read};
use crate::record::Record;
use crate::store::Lock;
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

/// Handles interrupted journals: one of this boot is a refusal, the others are closed with the reason.
pub(crate) fn close_others(store: &Store, _lock: &Lock, now: &Snapshot, unix_time: u64) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
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
