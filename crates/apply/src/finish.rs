//! The end of a transaction: its record on disk, its trial, and the release of the guard.

use std::time::Duration;

use ringwise_sys::io_text;

use crate::host_access::HostAccess;
use crate::record::Record;
use crate::store::Lock;
use crate::takeover::{Lost, took_over};
use crate::trial_file::{Files, ProcessId, Stage, Trial, TrialResult, decide, file};
use crate::tx::{Tx, guard_gone};
use crate::{Error, Failure, Holder, OnTrial, Outcome, RunResult, Store};

impl Tx<'_> {
    /// Records the end on disk. If that fails, later runs could not find what was done, so the settings are restored.
    pub(crate) fn finish(mut self, store: &Store, lock: &Lock, begin: Duration, holder: Option<Holder>) -> Outcome {
        // A failure for another reason proves nothing about a device, except that the kernel does not support a setting at all.
        let kept = self.out.verdict == RunResult::Applied;
        let learned = std::mem::take(&mut self.learned).into_iter().filter(|l| kept || l.what.is_not_supported());
        if let Err(e) = store.learn(lock, &learned.collect::<Vec<_>>()) {
            self.note(format!("refused and ignored settings could not be recorded: {e}"));
        }
        self.out.took_ms = took(&self.cx, begin);
        if let (RunResult::Applied, Some(time), Some(holder)) = (self.out.verdict, self.cx.policy.trial, holder)
            && let Err(failure) = self.begin_trial(store, lock, time, holder)
        {
            self.restore(*failure);
        }
        let failed = self.end().err();
        if let Some(e) = failed {
            let failure = self.journal_failure(&e);
            if self.out.verdict == RunResult::Applied {
                self.restore(failure);
            } else {
                let path = self.journal.path().display();
                self.note(format!(
                    "{}: {path}: {}; ringwise recover will find nothing to do",
                    failure.meaning, failure.words
                ));
            }
            self.out.took_ms = took(&self.cx, begin);
            if let Err(e) = self.end() {
                let text = format!(
                    "the end of the transaction could not be written to {}: {}; run ringwise recover once the file \
                     can be written",
                    self.journal.path().display(),
                    io_text(&e)
                );
                self.note(text);
            }
        }
        self.dismiss(store, lock);
        // During a trial the guard holds the lock, so the guard is published as the holder.
        store.publish(if self.out.trial.is_some() { store.held() } else { None }.as_ref());
        self.out
    }

    pub(crate) fn end(&mut self) -> std::io::Result<()> {
        let record = Record::End { outcome: Box::new(self.out.clone()), after: self.after() };
        self.journal.add_durably(&record)
    }

    /// The trial is recorded before the end: a run that dies in between counts as interrupted, never as kept without a trial.
    pub(crate) fn begin_trial(
        &mut self,
        store: &Store,
        lock: &Lock,
        time: Duration,
        holder: Holder,
    ) -> Result<(), Box<Failure>> {
        if self.guard.as_mut().is_some_and(|g| !g.is_there()) {
            return Err(self.guard_lost().into());
        }
        let id = self.out.transaction.unwrap_or_default();
        let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let trial = Trial {
            ms: ms(time),
            until_boot_ms: ms(self.cx.now() + time),
            until_unix: self.cx.host.unix_time().saturating_add(time.as_secs()),
            boot_id: self.now.host.boot_id.known().cloned(),
            who: holder.who.clone().unwrap_or_default(),
            tied: if self.cx.policy.tied { ProcessId::me(self.cx.host.as_ref()) } else { None },
        };
        let path = file(&lock.dir, id, Stage::Trial);
        store.write_json(&path, &trial).map_err(|e| {
            // The file may exist even though its directory could not be synced.
            Files::clear(&lock.dir, id);
            let (words, errno) = match &e {
                Error::State { source, .. } => (io_text(source), source.raw_os_error()),
                other => (other.to_string(), None),
            };
            let path = Some(path.display().to_string());
            Failure { path, errno, ..Failure::new(words, "the trial cannot be recorded") }
        })?;
        self.out.trial = Some(OnTrial::new(&trial, TrialResult::Pending));
        lock.note(&Holder { trial_until_unix: Some(trial.until_unix), ..holder });
        self.journal.add(&Record::Trial(trial)).map_err(|e| self.journal_failure(&e).into())
    }

    /// The failure that is reported when the guard is gone.
    pub(crate) fn guard_lost(&mut self) -> Failure {
        match self.guard.as_mut().map(|g| g.lost()) {
            Some(Lost::TookOver) => {
                self.guard = None;
                took_over()
            }
            _ => guard_gone(),
        }
    }

    /// Reports to the guard that the transaction has ended.
    pub(crate) fn dismiss(&mut self, store: &Store, lock: &Lock) {
        let id = self.out.transaction.unwrap_or_default();
        let on_trial = self.out.trial.is_some() && self.out.verdict == RunResult::Applied;
        if !on_trial && self.out.trial.take().is_some() {
            Files::clear(&lock.dir, id);
        }
        let Some(mut guard) = self.guard.take() else { return };
        if on_trial && let Err(why) = guard.done(true) {
            // Without a guard the trial would never end. A confirmation that arrives at this moment is undone as well.
            let renamed = decide(store, &lock.dir, id, Stage::Expired).is_ok();
            let (by, unix_time) = ("ringwise".to_string(), self.cx.host.unix_time());
            let _ = self.journal.add(&Record::TrialOver { by, why: why.to_string(), unix_time });
            self.restore(match guard.lost() {
                Lost::TookOver => took_over(),
                Lost::Died => Failure { words: format!("the guard is gone: {why}"), ..guard_gone() },
            });
            self.out.trial = None;
            if let Err(e) = self.end() {
                self.note(format!(
                    "the end of the transaction could not be written to {}: {}",
                    self.journal.path().display(),
                    io_text(&e)
                ));
            } else if renamed {
                Files::clear(&lock.dir, id);
            }
        } else if !on_trial && let Err(why) = guard.done(false) {
            match (guard.lost(), self.out.verdict) {
                (Lost::TookOver, RunResult::Applied) => {
                    self.restore(took_over());
                    if let Err(e) = self.end() {
                        self.note(format!(
                            "the end of the transaction could not be written to {}: {}",
                            self.journal.path().display(),
                            io_text(&e)
                        ));
                    }
                }
                (Lost::TookOver, _) => {}
                (Lost::Died, _) => self.note(format!("the guard did not end as expected: {why}")),
            }
        }
    }
}

fn took(cx: &HostAccess, begin: Duration) -> u64 {
    u64::try_from(cx.now().saturating_sub(begin).as_millis()).unwrap_or(u64::MAX)
}
