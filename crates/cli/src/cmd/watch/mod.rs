//! `ringwise watch`: samples and the rates between them, live or from a recording.

pub(super) mod flows;
mod full;
mod live;
mod unhashed;

use std::io::{ErrorKind, Write};
use std::time::Duration;

use ringwise_observe::{Counters, Layout, Rates};
use ringwise_sys::{Host, proc};

use crate::args::{Common, WatchArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source;
use live::Live;
use ringwise_recording::{RecordingLine, Replay};
use ringwise_text::Style;
use ringwise_text::visible;
use ringwise_tui::lines::{self as watch, Shape};

pub(super) fn run(a: &WatchArgs, common: &Common) -> Result<Status> {
    let shape = match () {
        () if a.format.json(common) => Shape::Json,
        () if a.once => Shape::Page,
        () if a.queues => Shape::Queues,
        () => Shape::Lines,
    };
    let full = shape == Shape::Lines && !a.plain && !a.per_flow && ringwise_tui::possible();
    match &a.replay {
        Some(file) if full => return full::replay(file, a, common),
        None if full => return full::live(a, common),
        _ => {}
    }
    let style = crate::style::detect(common);
    let left = if a.once { Some(1) } else { a.count };
    let mut screen = Screen { shape, style, lines: 0, left, printed: watch::Printed::default() };
    if a.per_flow {
        return flows::run(a, &mut screen);
    }
    match &a.replay {
        Some(file) => replay(&mut Replay::open(file, a.seek).map_err(unopened)?, &mut screen, common),
        None => live(a, &mut screen, common),
    }
}

/// Where lines are printed, and how many intervals are left.
struct Screen {
    shape: Shape,
    style: Style,
    lines: usize,
    left: Option<u64>,
    printed: watch::Printed,
}

impl Screen {
    /// Prints the text. False: the reader has closed the pipe.
    fn put(&mut self, text: &str) -> Result<bool> {
        self.lines += text.lines().count();
        let mut to = std::io::stdout().lock();
        let text = if self.shape == Shape::Json { visible::json(text) } else { out::safe(text) };
        match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(e) => Err(Fail::io("standard output", &e)),
        }
    }

    fn head(&mut self, host: &str, unix: u64, seconds: f64) -> Result<bool> {
        let text = watch::head(self.shape, host, unix, seconds, &self.style);
        self.put(&text)
    }

    /// Prints an interval. False: stop.
    fn show(&mut self, rates: &Rates, host: &str) -> Result<bool> {
        // A terminal gets the header again on every screen; a file has one header.
        if self.style.width.is_some() && self.lines > 23 {
            self.lines = 0;
            let text = watch::columns(self.shape);
            self.put(text)?;
        }
        let text = match self.shape {
            Shape::Json => watch::json(rates),
            Shape::Page => watch::page(host, rates, &self.style),
            Shape::Lines | Shape::Queues => watch::lines(self.shape, rates, &mut self.printed, &self.style),
        };
        self.print_interval(&text)
    }

    /// Prints the text of an interval. False: stop.
    fn print_interval(&mut self, text: &str) -> Result<bool> {
        let read = self.put(text)?;
        if let Some(n) = &mut self.left {
            *n -= 1;
        }
        Ok(read && self.left != Some(0))
    }
}

/// The error for a recording that cannot be read, with the command that makes one if the file does not exist.
fn unopened(e: ringwise_recording::Error) -> Fail {
    let missing =
        matches!(&e, ringwise_recording::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
    let fail = Fail::from(e);
    if missing { fail.next("ringwise watch --record FILE") } else { fail }
}

fn replay(from: &mut Replay, screen: &mut Screen, common: &Common) -> Result<Status> {
    let (mut host, mut layout, mut before) = (String::new(), Layout::default(), None::<Counters>);
    let mut headed = false;
    let mut shown = false;
    while let Some(entry) = from.next_entry()? {
        match entry {
            RecordingLine::Begin { host: name, .. } => (host, before) = (name, None),
            RecordingLine::Layout(l) => layout = l,
            RecordingLine::Sample(now) => {
                let rates = before.as_ref().and_then(|b| Rates::between(&layout, b, &now));
                if let Some(rates) = rates {
                    if !headed {
                        screen.head(&host, rates.unix_time, rates.seconds)?;
                        headed = true;
                    }
                    shown = true;
                    if !screen.show(&rates, &host)? {
                        return Ok(Status::Ok);
                    }
                }
                before = Some(now);
            }
        }
    }
    for note in from.notes() {
        out::note(common.quiet, &format!("ringwise: {note}"));
    }
    if shown { Ok(Status::Ok) } else { Err(ringwise_recording::Error::NoInterval.into()) }
}

fn live(a: &WatchArgs, screen: &mut Screen, common: &Common) -> Result<Status> {
    let source = source::live()?;
    // The small files of each queue are only read for formats that show their values.
    let detail = a.once || a.record.is_some() || screen.shape == Shape::Json;
    let mut live = Live::begin(&source, a, common, detail)?;
    let real = source.host.as_ref();
    screen.head(&live.host, real.unix_time(), a.interval.as_secs_f64())?;
    let mut cost = Cost::new(common, real);
    let before = live.sample();
    let mut next = real.since_boot() + a.interval;
    cost.print_cost(real);
    print_unread(&before, common);
    live.first(before)?;
    loop {
        real.sleep(next.saturating_sub(real.since_boot()));
        next = (next + a.interval).max(real.since_boot());
        cost.begin();
        let now = live.sample();
        cost.print_cost(real);
        if let Some(rates) = live.take(now)?
            && !screen.show(&rates, &live.host)?
        {
            return Ok(Status::Ok);
        }
    }
}

/// Prints what could not be read, once.
fn print_unread(c: &Counters, common: &Common) {
    for u in &c.unread {
        out::note(common.quiet, &format!("ringwise: could not read {u}"));
    }
}

/// The CPU time of the samples, for `-v`.
struct Cost {
    wanted: bool,
    start: (Duration, Duration),
    before: Duration,
}

impl Cost {
    fn new(common: &Common, host: &dyn Host) -> Self {
        let now = proc::cpu_time();
        Self { wanted: common.verbose > 0 && !common.quiet, start: (now, host.since_boot()), before: now }
    }

    fn begin(&mut self) {
        self.before = proc::cpu_time();
    }

    fn print_cost(&self, host: &dyn Host) {
        if !self.wanted {
            return;
        }
        let now = proc::cpu_time();
        let (used, passed) = (now - self.start.0, host.since_boot().saturating_sub(self.start.1));
        let mut text =
            format!("ringwise: the sample took {:.2} ms of CPU time", (now - self.before).as_secs_f64() * 1e3);
        // The first sample is not representative.
        if passed > Duration::from_millis(50) {
            text += &format!(", {:.2} % of a CPU since the start", used.as_secs_f64() * 100.0 / passed.as_secs_f64());
        }
        out::error(&text);
    }
}
