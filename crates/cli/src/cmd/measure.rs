//! `apply --measure`: counters for a while before the transaction and for as long after it. What is measured lies
//! beside the journal as a recording of `watch`: the window before, then the one after.
//!
//! Nothing here decides about the transaction: one that is applied stays so, whatever becomes of the measuring.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringwise_apply::{Outcome, Verdict};
use ringwise_observe::{Counters, Layout};

use super::counting::Counting;
use super::transaction::{fail, store};
use super::watch::record::{Entry, Recorder, Replay};
use crate::args::Common;
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::Source;

/// Recordings that are kept, and their bytes together; older ones go.
const KEPT: usize = 20;
const BYTES: u64 = 32 << 20;

/// Counters at the beginning and, if it came to that, at the end.
#[derive(Debug, Clone)]
pub(super) struct Window {
    pub layout: Layout,
    pub first: Counters,
    pub last: Option<Counters>,
}

/// What a recording beside a journal holds.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub host: String,
    pub before: Window,
    pub after: Option<Window>,
    /// Lines that could not be read.
    pub notes: Vec<String>,
}

pub(super) struct Measure<'a> {
    source: &'a Source,
    common: &'a Common,
    devs: Vec<String>,
    time: Duration,
    host: String,
    before: Option<Window>,
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

    /// Before the transaction. Stopped here, nothing was touched, and nothing is to be.
    pub(super) fn before(&mut self, stop: &AtomicBool) -> Result<()> {
        let mut counting = Counting::new(self.source, &self.devs, self.common, false)?;
        let first = counting.read();
        let layout = counting.layout.clone();
        self.host.clone_from(&counting.host);
        if self.wait("before", stop) == Waited::Stopped {
            return Err(Fail::refused("stopped while it measured; nothing was touched"));
        }
        // Vectors and queues as at the beginning: what is new since then has no count there.
        self.before = Some(Window { layout, first, last: Some(counting.read()) });
        Ok(())
    }

    fn wait(&self, when: &str, stop: &AtomicBool) -> Waited {
        let host = self.source.host.as_ref();
        let seconds = self.time.as_secs_f64();
        out::note(self.common.quiet, &format!("ringwise: measuring {when} the transaction for {seconds} s"));
        let until = host.since_boot() + self.time;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Waited::Stopped;
            }
            let left = until.saturating_sub(host.since_boot());
            if left.is_zero() {
                return Waited::ToTheEnd;
            }
            host.sleep(left.min(Duration::from_millis(100)));
        }
    }

    /// Right after the transaction: what comes later, a reboot excepted, is compared with this.
    pub(super) fn applied(&self, o: &Outcome) -> Option<PathBuf> {
        let id = o.transaction.filter(|_| o.verdict == Verdict::Applied)?;
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
        out::note(self.common.quiet, &format!("ringwise: it is applied; what was measured is not kept: {}", e.message));
    }

    fn write(&self, id: u64) -> Result<PathBuf> {
        let path = journal_of(self.source, self.common, id)?.with_file_name(name(id));
        let window = self.before.as_ref().ok_or_else(|| Fail::error("nothing was measured before"))?;
        // A number is given out once; what lies there is of a journal that somebody took away.
        let _ = std::fs::remove_file(&path);
        let mut r = Recorder::open(&path, &self.host, window.first.unix_time)?;
        r.write(&Entry::Layout(window.layout.clone()))?;
        for c in std::iter::once(&window.first).chain(&window.last) {
            r.write(&Entry::Sample(c.clone()))?;
        }
        begin_after(self.source, self.common, &self.devs, &path)?;
        thin_out(&path);
        Ok(path)
    }

    /// The second window, where it is kept. Interrupted, it is as long as it became.
    pub(super) fn after(&self, path: &Path, trial: bool, stop: &AtomicBool) {
        let measured = || -> Result<()> {
            if trial {
                // What was on trial does not count.
                begin_after(self.source, self.common, &self.devs, path)?;
            }
            if self.wait("after", stop) == Waited::Stopped {
                out::note(self.common.quiet, "ringwise: the measuring was interrupted; the transaction stays");
            }
            let layout = read(path)?.after.map(|w| w.layout).unwrap_or_default();
            let mut counting = Counting::new(self.source, &links(&layout), self.common, false)?;
            append(path, &counting.read())
        };
        if let Err(e) = measured() {
            self.not_kept(&e);
        }
    }
}

/// Names of what is counted.
fn links(layout: &Layout) -> Vec<String> {
    layout.links.keys().cloned().collect()
}

/// The window after begins now; one that began before is forgotten.
pub(super) fn begin_after(source: &Source, common: &Common, devs: &[String], path: &Path) -> Result<()> {
    let mut counting = Counting::new(source, devs, &Common { quiet: true, ..common.clone() }, false)?;
    let first = counting.read();
    let mut r = Recorder::open(path, &counting.host, first.unix_time)?;
    r.write(&Entry::Layout(counting.layout.clone()))?;
    r.write(&Entry::Sample(first))
}

/// The end of the window that was begun last. Whole or, if the disk is full, broken off and passed over.
fn append(path: &Path, c: &Counters) -> Result<()> {
    let line = format!("{} .\n", c.to_line());
    let file = std::fs::OpenOptions::new().append(true).open(path);
    let written = file.and_then(|mut f| f.write_all(line.as_bytes()));
    written.map_err(|e| Fail::error(format!("{}: {e}", path.display())))
}

/// What was confirmed counts from then on; for a transaction that was measured before.
pub(super) fn confirmed(source: &Source, common: &Common, id: u64) {
    let Ok(path) = journal_of(source, common, id).map(|j| j.with_file_name(name(id))) else { return };
    let Ok(m) = read(&path) else { return };
    // Whoever waits for the confirmation writes the same a little later.
    if let Err(e) = begin_after(source, common, &links(&m.before.layout), &path) {
        out::note(common.quiet, &format!("ringwise: the time after the confirmation is not measured: {}", e.message));
    }
}

fn name(id: u64) -> String {
    format!("measure-{id:04}.rec")
}

fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix("measure-")?.strip_suffix(".rec")?.parse().ok()
}

/// Where the journal of a transaction lies.
fn journal_of(source: &Source, common: &Common, id: u64) -> Result<PathBuf> {
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let list = ringwise_apply::history(&store(common), &host).map_err(|e| fail(&e))?;
    let entry = list.into_iter().find(|e| e.id == id);
    entry.map(|e| e.path).ok_or_else(|| Fail::error(format!("there is no transaction {id}")).next("ringwise history"))
}

/// What was measured beside this journal.
pub(super) fn beside(journal: &Path, id: u64) -> Result<Measured> {
    let path = journal.with_file_name(name(id));
    if !path.exists() {
        return Err(Fail::error(format!(
            "transaction {id} was not measured, or that was long ago: there is no {}",
            path.display()
        ))
        .next("ringwise apply --measure 5m, the next time"));
    }
    read(&path)
}

fn read(path: &Path) -> Result<Measured> {
    let mut lines = Replay::open(path, None)?;
    let mut windows: Vec<Window> = Vec::new();
    let (mut host, mut layout, mut begun) = (String::new(), Layout::default(), false);
    while let Some(entry) = lines.next()? {
        match entry {
            Entry::Begin { host: name, .. } => (host, begun) = (name, true),
            Entry::Layout(l) => layout = l,
            Entry::Sample(c) if begun => {
                windows.push(Window { layout: layout.clone(), first: c, last: None });
                begun = false;
            }
            Entry::Sample(c) => {
                if let Some(w) = windows.last_mut() {
                    w.last = Some(c);
                }
            }
        }
    }
    let notes = lines.notes();
    let mut windows = windows.into_iter();
    let whole = windows.next().filter(|w| w.last.is_some());
    let before = whole.ok_or_else(|| Fail::error(format!("{} holds no window before", path.display())))?;
    Ok(Measured { host, before, after: windows.next_back(), notes })
}

/// Takes old recordings away, by number.
fn thin_out(path: &Path) {
    let Some(dir) = path.parent() else { return };
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let mut all: Vec<(u64, u64, PathBuf)> =
        entries.flatten().filter_map(|e| Some((number(&e.path())?, e.metadata().ok()?.len(), e.path()))).collect();
    all.sort();
    let mut bytes = 0;
    for (i, (_, length, path)) in all.iter().rev().enumerate() {
        bytes += length;
        if i >= KEPT || (i > 0 && bytes > BYTES) {
            // One that stays is tried again the next time.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The end of an `apply --measure` whose transaction is applied: the second window, and the comparison.
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
        let text = format!("ringwise: measured before; after ringwise confirm the other half: {report}");
        out::note(m.common.quiet, &text);
        return Ok(status);
    }
    m.after(path, o.trial.is_some(), stop);
    if as_json {
        out::note(m.common.quiet, &format!("ringwise: measured: {report} -j"));
        return Ok(status);
    }
    super::report::print(m.source, m.common, id)?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("ringwise-measure-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn sample(at_us: u64) -> Entry {
        Entry::Sample(Counters { at_us, ..Counters::default() })
    }

    #[test]
    fn windows_in_their_order_also_when_the_second_broke_off() {
        let dir = dir("order");
        let path = dir.join(name(14));
        assert_eq!((number(&path), number(&dir.join("tx-0014.jsonl"))), (Some(14), None));
        let mut r = Recorder::open(&path, "edge3", 1).unwrap();
        r.write(&sample(1)).unwrap();
        assert!(read(&path).is_err(), "no end of the window before");
        r.write(&sample(2)).unwrap();
        assert!(read(&path).unwrap().after.is_none());
        drop(r);
        let mut r = Recorder::open(&path, "edge3", 2).unwrap();
        r.write(&sample(5)).unwrap();
        let m = read(&path).unwrap();
        let after = m.after.unwrap();
        assert_eq!((m.before.last.unwrap().at_us, after.first.at_us, after.last.is_none()), (2, 5, true));
        // Confirmed: it begins again.
        drop(r);
        let mut r = Recorder::open(&path, "edge3", 3).unwrap();
        r.write(&sample(8)).unwrap();
        drop(r);
        append(&path, &Counters { at_us: 9, ..Counters::default() }).unwrap();
        let after = read(&path).unwrap().after.unwrap();
        assert_eq!((after.first.at_us, after.last.unwrap().at_us), (8, 9));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn old_ones_go() {
        let dir = dir("thin");
        for id in 1..=25 {
            std::fs::write(dir.join(name(id)), "x").unwrap();
        }
        std::fs::write(dir.join("tx-0001.jsonl"), "x").unwrap();
        thin_out(&dir.join(name(25)));
        let mut left: Vec<u64> = std::fs::read_dir(&dir).unwrap().filter_map(|e| number(&e.unwrap().path())).collect();
        left.sort_unstable();
        assert_eq!(left, (6..=25).collect::<Vec<_>>());
        // By size: the newest stays in any case.
        let big = std::fs::File::create(dir.join(name(26))).unwrap();
        big.set_len(BYTES + 1).unwrap();
        thin_out(&dir.join(name(26)));
        assert!(dir.join(name(26)).exists() && !dir.join(name(25)).exists() && dir.join("tx-0001.jsonl").exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod on_a_host;
