//! Recordings of `watch`: lines of words, each appended by one write. Readers skip an incomplete line.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringwise_model::words::plural;
use ringwise_observe::{Counters, Layout};

use crate::error::{Error, Result};

/// Format of the file. Readers refuse a later one.
const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordingLine {
    /// A program began to record. Samples after it are not compared with samples before it.
    Begin {
        /// Format of the file.
        recording: u32,
        /// Name of the host.
        host: String,
        /// When the recording began, in seconds since 1970.
        unix_time: u64,
    },
    /// Interfaces and queues of the samples after it.
    Layout(Layout),
    /// Counters of one moment. The layout of the last [`RecordingLine::Layout`] before it applies.
    Sample(Counters),
}

/// Refuses a recording of a later format.
pub(crate) fn known(path: &Path, recording: u32) -> Result<()> {
    if recording > VERSION {
        return Err(Error::Later { path: path.into(), format: recording });
    }
    Ok(())
}

/// Appends entries to a recording.
pub struct Recorder {
    file: File,
    path: PathBuf,
}

impl Recorder {
    /// Opens or creates the file and begins a new recording at its end. A file that is not empty must be a recording.
    pub fn open(path: &Path, host: &str, unix_time: u64) -> Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = file.map_err(Error::io(path))?;
        let length = file.metadata().map_err(Error::io(path))?.len();
        if length > 0 {
            let mut first = Vec::new();
            let begin = BufReader::new(&file).take(4096).read_until(b'\n', &mut first).ok().and_then(|_| parse(&first));
            if !matches!(begin, Some(RecordingLine::Begin { .. })) {
                return Err(Error::NotAppended { path: path.into() });
            }
            let mut last = [0];
            let end = file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last));
            end.map_err(Error::io(path))?;
            if last != *b"\n" {
                file.write_all(b"\n").map_err(Error::io(path))?;
            }
        }
        let mut r = Self { file, path: path.to_path_buf() };
        r.write(&RecordingLine::Begin { recording: VERSION, host: host.into(), unix_time })?;
        Ok(r)
    }

    /// Appends one line, in one write.
    pub fn write(&mut self, entry: &RecordingLine) -> Result<()> {
        let mut line = match entry {
            RecordingLine::Begin { recording, host, unix_time } => format!("begin {recording} {unix_time} {host}"),
            RecordingLine::Layout(l) => l.to_line(),
            RecordingLine::Sample(c) => c.to_line(),
        };
        // This word shows that the line is complete: without it a line could end in the middle of a number.
        line.push_str(END);
        self.file.write_all(line.as_bytes()).map_err(Error::io(&self.path))
    }
}

/// Ends every line.
const END: &str = " .\n";

pub(crate) fn parse(line: &[u8]) -> Option<RecordingLine> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix(END)?;
    if let Some(rest) = line.strip_prefix("begin ") {
        let mut words = rest.splitn(3, ' ');
        let (recording, unix_time) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        return Some(RecordingLine::Begin { recording, unix_time, host: words.next()?.into() });
    }
    let sample = || Counters::from_line(line).map(RecordingLine::Sample);
    sample().or_else(|| Layout::from_line(line).map(RecordingLine::Layout))
}

/// The time of a sample in microseconds, without parsing the rest of the line.
pub(crate) fn at_us(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"sample ")?;
    let mut digits = rest.iter().take_while(|b| b.is_ascii_digit());
    digits.try_fold(0u64, |n, b| n.checked_mul(10)?.checked_add(u64::from(b - b'0')))
}

/// Reads a recording from its beginning, entry by entry.
pub struct Replay {
    lines: BufReader<File>,
    path: PathBuf,
    /// Samples less than this after the first one are skipped.
    seek: Option<Duration>,
    first_us: Option<u64>,
    ready: VecDeque<RecordingLine>,
    damaged: u64,
    torn: bool,
}

impl Replay {
    /// Opens a recording. With `seek`, samples of its first so many seconds are skipped.
    pub fn open(path: &Path, seek: Option<Duration>) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path))?;
        let mut r = Self {
            lines: BufReader::new(file),
            path: path.to_path_buf(),
            seek,
            first_us: None,
            ready: VecDeque::new(),
            damaged: 0,
            torn: false,
        };
        match r.next_entry()? {
            Some(begin @ RecordingLine::Begin { .. }) => r.ready.push_back(begin),
            _ => return Err(Error::NotARecording { path: path.into() }),
        }
        Ok(r)
    }

    /// The next entry that can be read; `None` at the end of the file.
    pub fn next_entry(&mut self) -> Result<Option<RecordingLine>> {
        if let Some(e) = self.ready.pop_front() {
            return Ok(Some(e));
        }
        loop {
            let mut line = Vec::new();
            if self.lines.read_until(b'\n', &mut line).map_err(Error::io(&self.path))? == 0 {
                return Ok(None);
            }
            let whole = line.ends_with(b"\n");
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Some(at) = at_us(&line) {
                let first = *self.first_us.get_or_insert(at);
                let from =
                    self.seek.map_or(0, |s| first.saturating_add(u64::try_from(s.as_micros()).unwrap_or(u64::MAX)));
                if at < from {
                    continue;
                }
            }
            match parse(&line) {
                Some(e) => {
                    if let RecordingLine::Begin { recording, .. } = e {
                        known(&self.path, recording)?;
                    }
                    return Ok(Some(e));
                }
                None if whole => self.damaged += 1,
                None => self.torn = true,
            }
        }
    }

    /// One sentence for each kind of line that was skipped so far.
    pub fn notes(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.damaged > 0 {
            out.push(format!(
                "skipped as unreadable: {} of {}",
                plural(self.damaged as usize, "line"),
                self.path.display()
            ));
        }
        if self.torn {
            out.push(format!("{} ends within a line; that line was skipped", self.path.display()));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_us: u64) -> RecordingLine {
        RecordingLine::Sample(Counters { at_us, ..Counters::default() })
    }

    fn times(r: &mut Replay) -> Vec<u64> {
        let mut out = Vec::new();
        while let Some(e) = r.next_entry().unwrap() {
            if let RecordingLine::Sample(c) = e {
                out.push(c.at_us);
            }
        }
        out
    }

    #[test]
    fn appended_torn_and_sought() {
        let path = std::env::temp_dir().join(format!("ringwise-record-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut r = Recorder::open(&path, "edge3", 9).unwrap();
        for at in [5_000_000, 6_000_000, 7_000_000] {
            r.write(&sample(at)).unwrap();
        }
        assert_eq!(at_us(b"sample 5000000 9 ."), Some(5_000_000));
        let whole = std::fs::read(&path).unwrap();
        // Cut the last line at any place: the lines before it can still be read.
        let start = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        for end in start + 1..whole.len() - 1 {
            std::fs::write(&path, &whole[..end]).unwrap();
            let mut back = Replay::open(&path, None).unwrap();
            assert_eq!(times(&mut back), [5_000_000, 6_000_000], "{end}");
            assert_eq!(back.notes().len(), 1);
        }
        // Another recorder appends after the incomplete line.
        Recorder::open(&path, "edge3", 10).unwrap().write(&sample(8_000_000)).unwrap();
        let mut back = Replay::open(&path, None).unwrap();
        assert_eq!(times(&mut back), [5_000_000, 6_000_000, 8_000_000]);
        let mut late = Replay::open(&path, Some(Duration::from_secs(1))).unwrap();
        assert_eq!(times(&mut late), [6_000_000, 8_000_000]);
        std::fs::write(&path, b"[defaults]\n").unwrap();
        assert!(Recorder::open(&path, "x", 0).is_err() && Replay::open(&path, None).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"[defaults]\n");
        std::fs::write(&path, b"begin 2 1 x .\n").unwrap();
        assert!(matches!(Replay::open(&path, None).err(), Some(Error::Later { format: 2, .. })));
        std::fs::remove_file(&path).unwrap();
    }
}
