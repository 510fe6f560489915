//! Replays a recording on the full screen, at its own speed or another, from any sample.

use std::time::Duration;

use ringwise_recording::Tape;
use ringwise_sys::Host;

use super::keys::LoopAction;
use super::session::{Result, ScreenSession, WaitEnd};
use super::view::{Mode, View};

/// The number of earlier intervals that are read for the curves.
const BEFORE: usize = 200;
const STILL: Duration = Duration::from_secs(3600);

/// The start, the speed and the end of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// The number of the sample that is shown first, from 1.
    pub from: usize,
    /// How many times faster than recorded.
    pub times: f64,
    /// The replay ends after this many intervals; `None`: when the user quits.
    pub count: Option<u64>,
}

/// Shows the recording until the user quits. Of `host`, only the clock is used.
pub fn replay(tape: &mut Tape, view: &mut View, speed: Speed, host: &dyn Host) -> Result<()> {
    let Speed { from: mut at, times: mut speed, count: mut left } = speed;
    enter(view, tape, at)?;
    let mut session = ScreenSession::begin()?;
    let mut next = None;
    loop {
        view.mode = Mode::Replay { at, of: tape.samples() - 1, speed };
        let more = !view.paused && at + 1 < tape.samples();
        let step = Duration::from_secs_f64((tape.step_us(at + 1) as f64 / 1e6 / speed).min(3600.0));
        let due = *next.get_or_insert_with(|| host.since_boot() + step);
        let time = if more { due.saturating_sub(host.since_boot()) } else { STILL };
        let paused = view.paused;
        let woken = session.wait(view, host, time)?;
        if paused != view.paused {
            next = None;
        }
        let wanted = match woken {
            WaitEnd::End(signal) => {
                session.end_by(signal);
                return Ok(());
            }
            WaitEnd::Act(LoopAction::Quit) => return Ok(()),
            WaitEnd::Act(LoopAction::Faster) => {
                (speed, next) = ((speed * 2.0).min(1024.0), None);
                continue;
            }
            WaitEnd::Act(LoopAction::Slower) => {
                (speed, next) = ((speed / 2.0).max(1.0 / 64.0), None);
                continue;
            }
            WaitEnd::Act(LoopAction::Seek(n)) => at.saturating_add_signed(n as isize).clamp(1, tape.samples() - 1),
            WaitEnd::Act(LoopAction::First) => 1,
            WaitEnd::Act(LoopAction::Last) => tape.samples() - 1,
            WaitEnd::Act(_) => continue,
            WaitEnd::Time if more && !view.paused => {
                next = None;
                at += 1;
                if let Some((rates, events)) = tape.frame(at)? {
                    view.take(rates, events);
                }
                if let Some(n) = &mut left {
                    *n -= 1;
                    if *n == 0 {
                        return Ok(());
                    }
                }
                continue;
            }
            WaitEnd::Time => continue,
        };
        next = None;
        at = tape.nearest(wanted)?;
        enter(view, tape, at)?;
    }
}

/// Shows this sample, and the curves of the intervals before it.
pub fn enter(view: &mut View, tape: &mut Tape, at: usize) -> Result<()> {
    view.forget();
    view.host = tape.host(at).to_string();
    for i in at.saturating_sub(BEFORE)..=at {
        if let Some((rates, events)) = tape.frame(i)? {
            view.take(rates, events);
        }
    }
    Ok(())
}
