//! `apply --measure`: counts before the transaction, and as long after it. The counters are stored beside the journal
//! as a recording of `watch`: first the window before, then the window after.
//!
//! Measuring never decides about the transaction: an applied transaction stays applied even if measuring fails.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringwise_apply::{Outcome, RunResult};
use ringwise_observe::Layout;
use ringwise_recording::measured::{self, MeasuredWindow};

use super::counting::follow;
use super::progress::Countdown;
use super::transaction::{fail, store};
use crate::args::Common;
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::Source;

pub(super) struct Measure<'a> {
    source: &'a Source,
    common: &'a Common,
    devs: Vec<String>,
    time: Duration,
    host: String,
    before: Option<MeasuredWindow>,
}

/// How a wait ended.
#[derive(PartialEq, Eq)]
enum Waited {
    ToTheEnd,
    Stopped,
}

impl<'a> Measure<'a> {
    pub(super) fn new(source: &'a Source, common: &'a Common, devs: Vec<String>, time: Duration) -> Self {
        Self { source, common, devs, time, host: String::new(), before: None }
    }

    /// Measures before the transaction. If it is interrupted, nothing was changed and nothing will be.
    pub(super) fn before(&mut self, stop: &AtomicBool) -> Result<()> {
        let (mut counting, host) = follow(self.source, &self.devs, self.common, false)?;
        let first = counting.read();
        let layout = counting.layout().clone();
        self.host = host;
        if self.wait("before", stop) == Waited::Stopped {
            return Err(Fail::refused("stopped", "stopped while measuring; nothing was touched"));
        }
        // Uses the vectors and queues of the beginning, because new ones have no earlier count.
        self.before = Some(MeasuredWindow { layout, first, last: Some(counting.read()) });
        Ok(())
    }

    fn wait(&self, when: &str, stop: &AtomicBool) -> Waited {
        let host = self.source.host.as_ref();
        let seconds = self.time.as_secs_f64();
        out::note(self.common.quiet, &format!("ringwise: measuring {when} the transaction for {seconds} s"));
        let mut countdown = Countdown::new("measuring", self.time, self.common);
        let until = host.since_boot() + self.time;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Waited::Stopped;
            }
            let left = until.saturating_sub(host.since_boot());
            if left.is_zero() {
                return Waited::ToTheEnd;
            }
            countdown.left(left);
            host.sleep(left.min(Duration::from_millis(100)));
        }
    }

    /// Stores the counters right after the transaction. Unless the host reboots, later counters are compared with them.
    pub(super) fn applied(&self, o: &Outcome) -> Option<PathBuf> {
        let id = o.transaction.filter(|_| o.verdict == RunResult::Applied)?;
        let written = self.write(id);
        match written {
            Ok(path) => Some(path),
            Err(e) => {
                self.not_kept(&e);
                None
            }
        }
    }

    fn not_kept(&self, e: &Fail) {
        out::note(
            self.common.quiet,
            &format!("ringwise: applied, but the measurement could not be stored: {}", e.message),
        );
    }

    fn write(&self, id: u64) -> Result<PathBuf> {
        let path = measured::file_beside_journal(&journal_of(self.source, self.common, id)?, id);
        let window = self.before.as_ref().ok_or_else(|| Fail::error("the first window was not measured"))?;
        measured::write(&path, &self.host, window)?;
        begin_after(self.source, self.common, &self.devs, &path)?;
        measured::thin_out(&path);
        Ok(path)
    }

    /// Measures the second window and stores it. If it is interrupted, the window is shorter.
    pub(super) fn after(&self, path: &Path, trial: bool, stop: &AtomicBool) {
        let measured = || -> Result<()> {
            if trial {
                // Counts from the trial do not belong to the window.
                begin_after(self.source, self.common, &self.devs, path)?;
            }
            if self.wait("after", stop) == Waited::Stopped {
                out::note(
                    self.common.quiet,
                    "ringwise: the measurement was interrupted; the transaction stays applied",
                );
            }
            let layout = measured::read(path)?.after.map(|w| w.layout).unwrap_or_default();
            let (mut counting, _) = follow(self.source, &links(&layout), self.common, false)?;
            Ok(measured::end(path, &counting.read())?)
        };
        if let Err(e) = measured() {
            self.not_kept(&e);
        }
    }
}

/// Names of the counted interfaces.
fn links(layout: &Layout) -> Vec<String> {
    layout.links.keys().cloned().collect()
}

/// Begins the second window now, and discards an earlier beginning.
pub(super) fn begin_after(source: &Source, common: &Common, devs: &[String], path: &Path) -> Result<()> {
    let (mut counting, host) = follow(source, devs, &Common { quiet: true, ..common.clone() }, false)?;
    let first = counting.read();
    Ok(measured::begin(path, &host, counting.layout(), first)?)
}

/// Begins the second window of a measured transaction when it is confirmed.
pub(super) fn confirmed(source: &Source, common: &Common, id: u64) {
    let Ok(path) = journal_of(source, common, id).map(|j| measured::file_beside_journal(&j, id)) else { return };
    let Ok(m) = measured::read(&path) else { return };
    // The process that waits for the confirmation writes the same a little later.
    if let Err(e) = begin_after(source, common, &links(&m.before.layout), &path) {
        out::note(common.quiet, &format!("ringwise: cannot measure the time after the confirmation: {}", e.message));
    }
}

/// The path of a transaction's journal.
fn journal_of(source: &Source, common: &Common, id: u64) -> Result<PathBuf> {
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let list = ringwise_apply::history(&store(common), &host).map_err(|e| fail(&e))?;
    let entry = list.into_iter().find(|e| e.id == id);
    entry.map(|e| e.path).ok_or_else(|| {
        Fail::error(format!("there is no transaction {id}")).code("unknown_transaction").next("ringwise history")
    })
}

/// Ends an `apply --measure` whose transaction was applied: measures the second window and compares.
pub(super) fn finish(
    m: &Measure<'_>,
    o: &Outcome,
    path: &Path,
    ended: Result<Status>,
    as_json: bool,
    stop: &AtomicBool,
) -> Result<Status> {
    let status = ended?;
    let Some(id) = o.transaction.filter(|_| status == Status::Ok) else { return Ok(status) };
    let (host, _) = ringwise_discover::host(m.source.host.as_ref());
    let waits = ringwise_apply::pending(&store(m.common), &host).is_ok_and(|p| p.is_some());
    let report = format!("ringwise report --since {id}");
    if waits {
        let text = format!("ringwise: the first window is measured; after ringwise confirm: {report}");
        out::note(m.common.quiet, &text);
        return Ok(status);
    }
    m.after(path, o.trial.is_some(), stop);
    if as_json {
        out::note(m.common.quiet, &format!("ringwise: measured; to show it: {report} -j"));
        return Ok(status);
    }
    super::report::print(m.source, m.common, id)?;
    Ok(status)
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod on_a_host;
