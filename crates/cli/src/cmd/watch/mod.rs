//! `ringwise watch`: samples, and what happened between them, live or from a recording.

mod flows;
pub(super) mod record;

use std::io::{ErrorKind, Write};
use std::time::Duration;

use ringwise_discover::{Options, Parts};
use ringwise_observe::{Counters, Layout, Rates, Sampler};
use ringwise_sys::{Host, proc};

use super::show;
use crate::args::{Common, WatchArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::render::text::host_name;
use crate::render::watch::{self, Shape};
use crate::source::{self, Source};
use crate::style::Style;
use record::{Entry, Recorder, Replay};

pub fn run(a: &WatchArgs, common: &Common) -> Result<Status> {
    let shape = match () {
        () if a.format.json(common) => Shape::Json,
        () if a.once => Shape::Page,
        () if a.queues => Shape::Queues,
        () => Shape::Lines,
    };
    let style = Style::detect(common);
    let mut screen = Screen { shape, style, lines: 0, left: if a.once { Some(1) } else { a.count } };
    if a.per_flow {
        return flows::run(a, &mut screen);
    }
    match &a.replay {
        Some(file) => replay(&mut Replay::open(file, a.seek)?, &mut screen, common),
        None => live(a, &mut screen, common),
    }
}

/// Where lines go, and how many intervals are still wanted.
struct Screen {
    shape: Shape,
    style: Style,
    lines: usize,
    left: Option<u64>,
}

impl Screen {
    /// Whether somebody still reads.
    fn put(&mut self, text: &str) -> Result<bool> {
        self.lines += text.lines().count();
        let mut to = std::io::stdout().lock();
        match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(e) => Err(Fail::error(format!("standard output: {e}"))),
        }
    }

    fn head(&mut self, host: &str, unix: u64, seconds: f64) -> Result<bool> {
        let text = watch::head(self.shape, host, unix, seconds, &self.style);
        self.put(&text)
    }

    /// Whether to go on.
    fn show(&mut self, rates: &Rates, host: &str) -> Result<bool> {
        // Above every screenful on a terminal; a file has one header.
        if self.style.width.is_some() && self.lines > 23 {
            self.lines = 0;
            let text = watch::columns(self.shape);
            self.put(text)?;
        }
        let text = match self.shape {
            Shape::Json => watch::json(rates),
            Shape::Page => watch::page(host, rates, &self.style),
            Shape::Lines | Shape::Queues => watch::lines(self.shape, rates, &self.style),
        };
        self.told(&text)
    }

    /// The text of an interval; whether to go on.
    fn told(&mut self, text: &str) -> Result<bool> {
        let read = self.put(text)?;
        if let Some(n) = &mut self.left {
            *n -= 1;
        }
        Ok(read && self.left != Some(0))
    }
}

fn replay(from: &mut Replay, screen: &mut Screen, common: &Common) -> Result<Status> {
    let (mut host, mut layout, mut before) = (String::new(), Layout::default(), None::<Counters>);
    let mut headed = false;
    let mut shown = false;
    while let Some(entry) = from.next()? {
        match entry {
            Entry::Begin { host: name, .. } => (host, before) = (name, None),
            Entry::Layout(l) => layout = l,
            Entry::Sample(now) => {
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
    if shown { Ok(Status::Ok) } else { Err(Fail::error("the recording holds no two samples one after the other")) }
}

fn live(a: &WatchArgs, screen: &mut Screen, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let (mut layout, host) = look(&source, a, common)?;
    if layout.links.is_empty() {
        let next = "ringwise show --all";
        return Err(Fail::error("no interface has queues of its own; name one, e.g. ringwise watch lo").next(next));
    }
    let real = source.host.as_ref();
    // Small files of each queue: not for lines that do not show them.
    let detail = a.once || a.record.is_some() || screen.shape == Shape::Json;
    let deadline = Options::default().deadline;
    let mut sampler = Sampler::new(real, &layout, detail).with_deadline(&source.host, deadline);
    let mut recorder = a.record.as_ref().map(|f| Recorder::open(f, &host, real.unix_time())).transpose()?;
    if let Some(r) = &mut recorder {
        r.write(&Entry::Layout(layout.clone()))?;
    }
    screen.head(&host, real.unix_time(), a.interval.as_secs_f64())?;
    let mut names = interfaces(real);
    let mut cost = Cost::new(common, real);
    let mut before = sampler.read(real);
    let mut next = real.since_boot() + a.interval;
    cost.tell(real);
    said(&before, common);
    if let Some(r) = &mut recorder {
        r.write(&Entry::Sample(before.clone()))?;
    }
    loop {
        real.sleep(next.saturating_sub(real.since_boot()));
        next = (next + a.interval).max(real.since_boot());
        cost.begin();
        let now = sampler.read(real);
        cost.tell(real);
        let there = interfaces(real);
        if there != names || stale(&before, &now) {
            names = there;
            // Devices that are busy with a change may not answer; what was known stays.
            if let Ok((l, _)) = look(&source, a, &Common { quiet: true, ..common.clone() })
                && l != layout
            {
                layout = l;
                sampler = sampler.again(&layout);
                if let Some(r) = &mut recorder {
                    r.write(&Entry::Layout(layout.clone()))?;
                }
            }
        }
        if let Some(r) = &mut recorder {
            r.write(&Entry::Sample(now.clone()))?;
        }
        if let Some(rates) = Rates::between(&layout, &before, &now)
            && !screen.show(&rates, &host)?
        {
            return Ok(Status::Ok);
        }
        before = now;
    }
}

/// Interfaces, queues, vectors and nodes as they are, and the host's name.
fn look(source: &Source, a: &WatchArgs, common: &Common) -> Result<(Layout, String)> {
    let options = Options { skip_rivals: true, skip_control: true, parts: Parts::LEAST, ..Options::only(&a.devs) };
    let s = source.snapshot(&options, common)?;
    let named: Vec<String> = show::named(&s, &a.devs)?.iter().map(|n| n.name().to_string()).collect();
    Ok((Layout::of(&s, &named), host_name(&s)))
}

pub(super) fn interfaces(host: &dyn Host) -> Vec<String> {
    let mut names = host.list("/sys/class/net").unwrap_or_default();
    names.sort();
    names
}

/// Queues, vectors or links are others than those of the sample before.
pub(super) fn stale(before: &Counters, now: &Counters) -> bool {
    // It cannot be looked at either.
    if !now.silent.is_empty() {
        return false;
    }
    let same = before.links.len() == now.links.len()
        && before.irqs.keys().eq(now.irqs.keys())
        && before.links.iter().zip(&now.links).all(|((n, b), (m, a))| {
            let carrier = |l: &ringwise_observe::Link| l.counts.get("carrier_changes").copied();
            n == m
                && b.ifindex == a.ifindex
                && b.rx.keys().eq(a.rx.keys())
                && b.tx.keys().eq(a.tx.keys())
                && carrier(b) == carrier(a)
        });
    !same
}

/// What could not be read, once.
fn said(c: &Counters, common: &Common) {
    for u in &c.unread {
        out::note(common.quiet, &format!("ringwise: not read: {u}"));
    }
}

/// What the samples cost this machine, for `-v`.
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

    fn tell(&self, host: &dyn Host) {
        if !self.wanted {
            return;
        }
        let now = proc::cpu_time();
        let (used, passed) = (now - self.start.0, host.since_boot().saturating_sub(self.start.1));
        let mut text =
            format!("ringwise: the sample took {:.2} ms of CPU time", (now - self.before).as_secs_f64() * 1e3);
        // The first says nothing about what comes.
        if passed > Duration::from_millis(50) {
            text += &format!(", all so far {:.2} % of a CPU", used.as_secs_f64() * 100.0 / passed.as_secs_f64());
        }
        out::error(&text);
    }
}
