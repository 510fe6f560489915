//! The full screen, for this host or for a recording.

use std::time::Duration;

use ringwise_recording::{Tape, events};
use ringwise_sys::proc;
use ringwise_text::plural;
use ringwise_tui::{LoopAction, Mode, ScreenSession, Speed, View, WaitEnd};

use super::live::Live;
use crate::args::{Common, WatchArgs};
use crate::exit::{Fail, Result, Status};
use crate::source;

/// The first interval is shorter, so that the screen shows rates soon.
const FIRST: Duration = Duration::from_millis(500);

fn wrong(e: ringwise_tui::Error) -> Fail {
    let fail = Fail::error(e.to_string());
    if matches!(e, ringwise_tui::Error::Terminal(_)) { fail.next("ringwise watch --plain") } else { fail }
}

pub(super) fn live(a: &WatchArgs, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let host = source.host.as_ref();
    let mut live = Live::begin(&source, a, common, true)?;
    let recorded_to = a.record.as_ref().map(|f| f.display().to_string());
    let mut view = View::new(&live.host, crate::style::detect(common), Mode::Live { recorded_to });
    let mut session = ScreenSession::begin().map_err(wrong)?;
    session.draw(&view).map_err(wrong)?;
    let start = (proc::cpu_time(), host.since_boot());
    let first = live.sample();
    view.unread = first.unread.iter().map(ToString::to_string).collect();
    live.first(first)?;
    let mut next = host.since_boot() + a.interval.min(FIRST);
    let mut left = a.count;
    loop {
        match session.wait(&mut view, host, next.saturating_sub(host.since_boot())).map_err(wrong)? {
            WaitEnd::End(signal) => {
                session.end_by(signal);
                return Ok(Status::Ok);
            }
            WaitEnd::Act(LoopAction::Quit) => return Ok(Status::Ok),
            WaitEnd::Act(_) => continue,
            WaitEnd::Time => {}
        }
        next = (next + a.interval).max(host.since_boot());
        let before = proc::cpu_time();
        let now = live.sample();
        let took = proc::cpu_time() - before;
        if let Some(rates) = live.take(now)? {
            let events = events(&live.before, &live.now, &rates);
            view.push(rates, events);
        }
        let passed = host.since_boot().saturating_sub(start.1).as_secs_f64();
        let all = (proc::cpu_time() - start.0).as_secs_f64();
        let (ms, percent) = (took.as_secs_f64() * 1e3, all * 100.0 / passed.max(1e-3));
        view.cost = Some(format!("own cost {ms:.2} ms, {percent:.2}% CPU"));
        if let Some(n) = &mut left {
            *n -= 1;
            if *n == 0 {
                return Ok(Status::Ok);
            }
        }
    }
}

pub(super) fn replay(file: &std::path::Path, a: &WatchArgs, common: &Common) -> Result<Status> {
    // The live host is only needed for its clock.
    let source = source::live()?;
    let mut tape = Tape::open(file).map_err(super::unopened)?;
    let seek = a.seek.map_or(0, |s| u64::try_from(s.as_micros()).unwrap_or(u64::MAX));
    let at = tape.nearest(tape.after(seek).max(1))?;
    let speed = Speed { from: at, times: a.speed.unwrap_or(1.0), count: a.count };
    let mode = Mode::Replay { at, of: tape.samples() - 1, speed: speed.times };
    let mut view = View::new(tape.host(at), crate::style::detect(common), mode);
    if tape.damaged() > 0 {
        view.unread.push(format!("{} of {}", plural(tape.damaged() as usize, "line"), file.display()));
    }
    ringwise_tui::replay(&mut tape, &mut view, speed, source.host.as_ref()).map_err(wrong)?;
    Ok(Status::Ok)
}
