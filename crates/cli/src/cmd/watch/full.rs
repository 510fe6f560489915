//! The full screen: the loop around the view, live and from a recording.

use std::time::Duration;

use ratatui_core::terminal::Terminal;
use ringwise_sys::terminal::{self, Event};
use ringwise_sys::{Host, proc};

use super::live::Live;
use super::tape::Tape;
use crate::args::{Common, WatchArgs};
use crate::exit::{Fail, Result, Status};
use crate::source;
use crate::tui::{Act, Keys, Mode, Screen, View, draw, events};
use ringwise_text::plural;

/// What comes after an escape comes at once.
const SEQUENCE: Duration = Duration::from_millis(50);
/// The first interval: an answer is wanted soon.
const FIRST: Duration = Duration::from_millis(500);
/// Intervals before the one that is looked for, for the curves.
const BEFORE: usize = 200;
const STILL: Duration = Duration::from_secs(3600);

/// Whether there is a person with a terminal that can do it.
pub(super) fn possible() -> bool {
    let dumb = std::env::var("TERM").is_ok_and(|t| t == "dumb");
    proc::is_tty(&std::io::stdin()) && proc::is_tty(&std::io::stdout()) && !dumb
}

/// The terminal while it is ours. Given back when dropped, and by the panic hook.
struct Taken {
    screen: Terminal<Screen>,
    keys: Keys,
    /// Pressed and not yet looked at.
    pressed: std::collections::VecDeque<crate::tui::Key>,
    terminal: terminal::Terminal,
}

/// Why a wait is over.
enum Over {
    Time,
    Act(Act),
    End(i32),
}

impl Taken {
    fn take() -> Result<Self> {
        let terminal = terminal::enter().map_err(|e| Fail::error(e.to_string()).next("ringwise watch --plain"))?;
        let screen = Terminal::new(Screen::default()).map_err(wrong)?;
        Ok(Self { screen, keys: Keys::default(), pressed: Default::default(), terminal })
    }

    fn draw(&mut self, view: &View) -> Result<()> {
        self.screen.draw(|f| draw(view, f.area(), f.buffer_mut())).map_err(wrong)?;
        Ok(())
    }

    /// Draws, and lets the person do as he likes for so long.
    fn wait(&mut self, view: &mut View, host: &dyn Host, time: Duration) -> Result<Over> {
        let until = host.since_boot() + time;
        loop {
            while let Some(key) = self.pressed.pop_front() {
                if cfg!(debug_assertions)
                    && key == crate::tui::Key::Char('!')
                    && std::env::var_os("RINGWISE_PANIC").is_some()
                {
                    panic!("as asked for");
                }
                match view.key(key) {
                    Act::Nothing => {}
                    Act::Redraw => self.screen.clear().map_err(wrong)?,
                    act => return Ok(Over::Act(act)),
                }
            }
            self.draw(view)?;
            let left = until.saturating_sub(host.since_boot());
            let left = if self.keys.waits() { left.min(SEQUENCE) } else { left };
            let keys = match self.terminal.wait(left) {
                Event::Keys(bytes) => self.keys.read(&bytes, false),
                Event::Time if self.keys.waits() => self.keys.read(&[], true),
                Event::Time if host.since_boot() >= until => return Ok(Over::Time),
                Event::Time => continue,
                Event::Redraw => {
                    self.screen.clear().map_err(wrong)?;
                    continue;
                }
                Event::End(signal) => return Ok(Over::End(signal)),
                Event::Gone => return Ok(Over::Act(Act::Quit)),
            };
            self.pressed.extend(keys);
        }
    }
}

fn wrong(e: std::io::Error) -> Fail {
    Fail::error(format!("standard output: {e}"))
}

/// Ends as programs do that do not handle the signal, the terminal in order.
fn ended(taken: Taken, signal: i32) -> Result<Status> {
    drop(taken);
    terminal::end_by(signal);
    Ok(Status::Ok)
}

pub(super) fn live(a: &WatchArgs, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let host = source.host.as_ref();
    let mut live = Live::begin(&source, a, common, true)?;
    let recorded_to = a.record.as_ref().map(|f| f.display().to_string());
    let mut view = View::new(&live.host, crate::style::detect(common), Mode::Live { recorded_to });
    let mut taken = Taken::take()?;
    taken.draw(&view)?;
    let start = (proc::cpu_time(), host.since_boot());
    let first = live.sample();
    view.unread = first.unread.iter().map(ToString::to_string).collect();
    live.first(first)?;
    let mut next = host.since_boot() + a.interval.min(FIRST);
    let mut left = a.count;
    loop {
        match taken.wait(&mut view, host, next.saturating_sub(host.since_boot()))? {
            Over::End(signal) => return ended(taken, signal),
            Over::Act(Act::Quit) => return Ok(Status::Ok),
            Over::Act(_) => continue,
            Over::Time => {}
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
    // Only for the clock.
    let source = source::live()?;
    let host = source.host.as_ref();
    let mut tape = Tape::open(file)?;
    let seek = a.seek.map_or(0, |s| u64::try_from(s.as_micros()).unwrap_or(u64::MAX));
    let mut speed = a.speed.unwrap_or(1.0);
    let mut at = tape.after(seek).max(1);
    at = tape.nearest(at)?;
    let mut view =
        View::new(tape.host(at), crate::style::detect(common), Mode::Replay { at, of: tape.len() - 1, speed });
    if tape.damaged() > 0 {
        view.unread.push(format!("{} of {}", plural(tape.damaged() as usize, "line"), file.display()));
    }
    enter(&mut view, &mut tape, at)?;
    let mut taken = Taken::take()?;
    let mut left = a.count;
    let mut next = None;
    loop {
        view.mode = Mode::Replay { at, of: tape.len() - 1, speed };
        let more = !view.paused && at + 1 < tape.len();
        let step = Duration::from_secs_f64((tape.step_us(at + 1) as f64 / 1e6 / speed).min(3600.0));
        let due = *next.get_or_insert_with(|| host.since_boot() + step);
        let time = if more { due.saturating_sub(host.since_boot()) } else { STILL };
        let paused = view.paused;
        let over = taken.wait(&mut view, host, time)?;
        if paused != view.paused {
            next = None;
        }
        let wanted = match over {
            Over::End(signal) => return ended(taken, signal),
            Over::Act(Act::Quit) => return Ok(Status::Ok),
            Over::Act(Act::Faster) => {
                (speed, next) = ((speed * 2.0).min(1024.0), None);
                continue;
            }
            Over::Act(Act::Slower) => {
                (speed, next) = ((speed / 2.0).max(1.0 / 64.0), None);
                continue;
            }
            Over::Act(Act::Seek(n)) => at.saturating_add_signed(n as isize).clamp(1, tape.len() - 1),
            Over::Act(Act::First) => 1,
            Over::Act(Act::Last) => tape.len() - 1,
            Over::Act(_) => continue,
            Over::Time if more && !view.paused => {
                next = None;
                at += 1;
                if let Some((rates, events)) = tape.frame(at)? {
                    view.take(rates, events);
                }
                if let Some(n) = &mut left {
                    *n -= 1;
                    if *n == 0 {
                        return Ok(Status::Ok);
                    }
                }
                continue;
            }
            Over::Time => continue,
        };
        next = None;
        at = tape.nearest(wanted)?;
        enter(&mut view, &mut tape, at)?;
    }
}

/// Shows this moment, with what was before it.
pub(super) fn enter(view: &mut View, tape: &mut Tape, at: usize) -> Result<()> {
    view.forget();
    view.host = tape.host(at).to_string();
    for i in at.saturating_sub(BEFORE)..=at {
        if let Some((rates, events)) = tape.frame(i)? {
            view.take(rates, events);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "screens_tests.rs"]
mod tests;
