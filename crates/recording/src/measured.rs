//! The file of `apply --measure` beside the journal of a transaction: the window before the change, then the one after.

use std::io::Write;
use std::path::{Path, PathBuf};

use ringwise_observe::{Counters, Layout};

use crate::error::{Error, Result};
use crate::record::{Recorder, RecordingLine, Replay};

/// Limits for the number of recordings that are kept and for their bytes together. The oldest are deleted first.
const KEPT: usize = 20;
const BYTES: u64 = 32 << 20;

/// Counters at the beginning and at the end of an interval.
#[derive(Debug, Clone)]
pub struct MeasuredWindow {
    /// Interfaces and queues that are compared; the same for both samples.
    pub layout: Layout,
    /// Beginning of the window.
    pub first: Counters,
    /// End of the window; `None`: the measurement was interrupted.
    pub last: Option<Counters>,
}

/// The content of a recording beside a journal.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Name of the host that recorded it.
    pub host: String,
    /// The window before the change; it always has an end.
    pub before: MeasuredWindow,
    /// The last window that was begun after the change; `None`: no window was begun.
    pub after: Option<MeasuredWindow>,
    /// Lines that could not be read.
    pub notes: Vec<String>,
}

/// The file beside this journal, for transaction `id`.
pub fn file_beside_journal(journal: &Path, id: u64) -> PathBuf {
    journal.with_file_name(name(id))
}

fn name(id: u64) -> String {
    format!("measure-{id:04}.rec")
}

fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix("measure-")?.strip_suffix(".rec")?.parse().ok()
}

/// Creates the file with the window before the change.
pub fn write(path: &Path, host: &str, before: &MeasuredWindow) -> Result<()> {
    // Transaction numbers are used once, so a file of this name belongs to a journal that was deleted.
    let _ = std::fs::remove_file(path);
    let mut r = Recorder::open(path, host, before.first.unix_time)?;
    r.write(&RecordingLine::Layout(before.layout.clone()))?;
    for c in std::iter::once(&before.first).chain(&before.last) {
        r.write(&RecordingLine::Sample(c.clone()))?;
    }
    Ok(())
}

/// Begins the window after the change with this sample. It replaces a window after the change that was begun earlier.
pub fn begin(path: &Path, host: &str, layout: &Layout, first: Counters) -> Result<()> {
    let mut r = Recorder::open(path, host, first.unix_time)?;
    r.write(&RecordingLine::Layout(layout.clone()))?;
    r.write(&RecordingLine::Sample(first))
}

/// Appends the end of the window that was begun last. If the disk is full, the line is incomplete and readers skip it.
pub fn end(path: &Path, c: &Counters) -> Result<()> {
    let line = format!("{} .\n", c.to_line());
    let file = std::fs::OpenOptions::new().append(true).open(path);
    let written = file.and_then(|mut f| f.write_all(line.as_bytes()));
    written.map_err(Error::io(path))
}

/// Reads a measurement. The window before the change must have an end.
pub fn read(path: &Path) -> Result<Measured> {
    let mut lines = Replay::open(path, None)?;
    let mut windows: Vec<MeasuredWindow> = Vec::new();
    let (mut host, mut layout, mut begun) = (String::new(), Layout::default(), false);
    while let Some(entry) = lines.next_entry()? {
        match entry {
            RecordingLine::Begin { host: name, .. } => (host, begun) = (name, true),
            RecordingLine::Layout(l) => layout = l,
            RecordingLine::Sample(c) if begun => {
                windows.push(MeasuredWindow { layout: layout.clone(), first: c, last: None });
                begun = false;
            }
            RecordingLine::Sample(c) => {
                if let Some(w) = windows.last_mut() {
                    w.last = Some(c);
                }
            }
        }
    }
    let notes = lines.notes();
    let mut windows = windows.into_iter();
    let whole = windows.next().filter(|w| w.last.is_some());
    let before = whole.ok_or_else(|| Error::NoWindow { path: path.into() })?;
    Ok(Measured { host, before, after: windows.next_back(), notes })
}

/// Deletes the oldest recordings beside this one, by the number of their transaction. Errors are ignored.
pub fn thin_out(path: &Path) {
    let Some(dir) = path.parent() else { return };
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let mut all: Vec<(u64, u64, PathBuf)> =
        entries.flatten().filter_map(|e| Some((number(&e.path())?, e.metadata().ok()?.len(), e.path()))).collect();
    all.sort();
    let mut bytes = 0;
    for (i, (_, length, path)) in all.iter().rev().enumerate() {
        bytes += length;
        if i >= KEPT || (i > 0 && bytes > BYTES) {
            // A file that cannot be deleted is tried again next time.
            let _ = std::fs::remove_file(path);
        }
    }
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

    fn sample(at_us: u64) -> RecordingLine {
        RecordingLine::Sample(Counters { at_us, ..Counters::default() })
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
        // After the confirmation the second window begins again.
        drop(r);
        let mut r = Recorder::open(&path, "edge3", 3).unwrap();
        r.write(&sample(8)).unwrap();
        drop(r);
        end(&path, &Counters { at_us: 9, ..Counters::default() }).unwrap();
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
        // Limited by size: the newest recording always stays.
        let big = std::fs::File::create(dir.join(name(26))).unwrap();
        big.set_len(BYTES + 1).unwrap();
        thin_out(&dir.join(name(26)));
        assert!(dir.join(name(26)).exists() && !dir.join(name(25)).exists() && dir.join("tx-0001.jsonl").exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
