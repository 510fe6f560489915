//! A recording that can be read from any sample. An index holds the position of each sample, and its layout and host.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ringwise_observe::{Counters, Layout, Rates};

use crate::error::{Error, Result};
use crate::events::{Event, events};
use crate::record::{RecordingLine, at_us, known, parse};

/// A recording with an index of its samples. Samples are numbered from 0, across all recordings in the file.
pub struct Tape {
    file: File,
    path: PathBuf,
    points: Vec<Point>,
    layouts: Vec<Span>,
    hosts: Vec<String>,
    /// The layout that was read last, because it applies to many samples.
    layout: Option<(usize, Layout)>,
    damaged: u64,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    at: u64,
    length: usize,
}

/// One sample.
#[derive(Debug, Clone, Copy)]
struct Point {
    line: Span,
    at_us: u64,
    /// Index in `layouts`, and below it the index in `hosts`.
    layout: Option<usize>,
    host: usize,
}

impl Tape {
    /// Reads the file once and keeps the position of each sample.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path))?;
        let mut lines = BufReader::with_capacity(1 << 16, file.try_clone().map_err(Error::io(path))?);
        let mut t = Self {
            file,
            path: path.into(),
            points: Vec::new(),
            layouts: Vec::new(),
            hosts: Vec::new(),
            layout: None,
            damaged: 0,
        };
        let (mut at, mut line) = (0, Vec::new());
        loop {
            line.clear();
            let length = lines.read_until(b'\n', &mut line).map_err(Error::io(path))?;
            if length == 0 {
                break;
            }
            let span = Span { at, length };
            at += length as u64;
            t.take(&line, span)?;
        }
        if t.hosts.is_empty() {
            return Err(Error::NotARecording { path: path.into() });
        }
        Ok(t)
    }

    fn take(&mut self, line: &[u8], span: Span) -> Result<()> {
        let whole = line.ends_with(b" .\n");
        if line.starts_with(b"begin ") {
            match parse(line) {
                Some(RecordingLine::Begin { recording, host, .. }) => {
                    known(&self.path, recording)?;
                    self.hosts.push(host);
                }
                _ => self.damaged += 1,
            }
        } else if self.hosts.is_empty() {
            return Err(Error::NotARecording { path: self.path.clone() });
        } else if let Some(at_us) = at_us(line).filter(|_| whole) {
            let layout = self.layouts.len().checked_sub(1);
            self.points.push(Point { line: span, at_us, layout, host: self.hosts.len() - 1 });
        } else if line.starts_with(b"layout") && whole {
            self.layouts.push(span);
        } else if !line.trim_ascii().is_empty() {
            self.damaged += 1;
        }
        Ok(())
    }

    /// The number of samples.
    pub fn samples(&self) -> usize {
        self.points.len()
    }

    /// Name of the host that recorded sample `i`; empty if this sample does not exist.
    pub fn host(&self, i: usize) -> &str {
        self.points.get(i).map_or("", |p| &self.hosts[p.host])
    }

    /// Microseconds between sample `i` and the one before it; 0 for the first one.
    pub fn step_us(&self, i: usize) -> u64 {
        let at = |i: usize| self.points.get(i).map_or(0, |p| p.at_us);
        if i == 0 { 0 } else { at(i).saturating_sub(at(i - 1)) }
    }

    /// The first sample at least `us` microseconds after the very first; the number of samples if none is that late.
    pub fn after(&self, us: u64) -> usize {
        let from = self.points.first().map_or(0, |p| p.at_us).saturating_add(us);
        self.points.iter().position(|p| p.at_us >= from).unwrap_or(self.points.len())
    }

    /// How many lines cannot be read.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    fn line(&mut self, s: Span) -> Result<Vec<u8>> {
        let mut line = vec![0; s.length];
        let read = self.file.seek(SeekFrom::Start(s.at)).and_then(|_| self.file.read_exact(&mut line));
        read.map_err(Error::io(&self.path))?;
        Ok(line)
    }

    fn sample(&mut self, p: Point) -> Result<Option<Counters>> {
        let line = self.line(p.line)?;
        Ok(match parse(&line) {
            Some(RecordingLine::Sample(c)) => Some(c),
            _ => None,
        })
    }

    /// The rates and events between the sample before and this one. `None`: another recording begins here, or a sample
    /// is damaged.
    pub fn frame(&mut self, i: usize) -> Result<Option<(Rates, Vec<Event>)>> {
        let (Some(b), Some(p)) = (i.checked_sub(1).and_then(|b| self.points.get(b)), self.points.get(i)) else {
            return Ok(None);
        };
        let (b, p) = (*b, *p);
        if b.host != p.host {
            return Ok(None);
        }
        let (Some(before), Some(now)) = (self.sample(b)?, self.sample(p)?) else { return Ok(None) };
        if let Some(n) = p.layout
            && self.layout.as_ref().is_none_or(|(have, _)| *have != n)
        {
            let line = self.line(self.layouts[n])?;
            if let Some(RecordingLine::Layout(l)) = parse(&line) {
                self.layout = Some((n, l));
            }
        }
        let none = Layout::default();
        let layout = self.layout.as_ref().filter(|_| p.layout.is_some()).map_or(&none, |(_, l)| l);
        Ok(Rates::between(layout, &before, &now).map(|r| {
            let e = events(&before, &now, &r);
            (r, e)
        }))
    }

    /// The sample with a frame at or after `i`, otherwise the last one before it.
    pub fn nearest(&mut self, i: usize) -> Result<usize> {
        for at in (i..self.samples()).chain((0..i.min(self.samples())).rev()) {
            if self.frame(at)?.is_some() {
                return Ok(at);
            }
        }
        Err(Error::NoInterval)
    }
}
