//! The line on a terminal that shows how long a command still waits.

use std::time::Duration;

use ringwise_sys::Host;

use crate::args::Common;
use crate::out::Progress;

/// The seconds that are left of a wait. Not shown for waits of at most a second.
pub(super) struct Countdown {
    line: Option<Progress>,
    what: &'static str,
    /// The seconds on the screen.
    shown: Option<u64>,
}

impl Countdown {
    /// `what`: what the command does meanwhile, such as `counting packets`.
    pub(super) fn new(what: &'static str, time: Duration, common: &Common) -> Self {
        let long = time > Duration::from_secs(1);
        Self { line: Progress::new(common.quiet).filter(|_| long), what, shown: None }
    }

    /// Shows the time that is left, if its seconds have changed.
    pub(super) fn left(&mut self, left: Duration) {
        let seconds = whole_seconds(left);
        let changed = self.shown != Some(seconds);
        if let Some(line) = self.line.as_mut().filter(|_| changed) {
            line.show(&text(self.what, seconds));
            self.shown = Some(seconds);
        }
    }

    /// Whether the wait is visible.
    pub(super) fn is_shown(&self) -> bool {
        self.line.is_some()
    }
}

/// Waits for `time`, and shows how much of it is left.
pub(super) fn wait(host: &dyn Host, time: Duration, what: &'static str, common: &Common) {
    wait_and(host, time, what, common, || ());
}

/// As `wait`; does something after half of the time.
pub(super) fn wait_and(host: &dyn Host, time: Duration, what: &'static str, common: &Common, halfway: impl FnOnce()) {
    let mut countdown = Countdown::new(what, time, common);
    let end = host.since_boot() + time;
    wait_until(host, &mut countdown, end.saturating_sub(time / 2), end);
    halfway();
    wait_until(host, &mut countdown, end, end);
}

/// `end`: when the time is over that the countdown shows.
fn wait_until(host: &dyn Host, countdown: &mut Countdown, moment: Duration, end: Duration) {
    if !countdown.is_shown() {
        return host.sleep(moment.saturating_sub(host.since_boot()));
    }
    loop {
        let now = host.since_boot();
        let left = moment.saturating_sub(now);
        if left.is_zero() {
            return;
        }
        countdown.left(end.saturating_sub(now));
        host.sleep(left.min(Duration::from_millis(200)));
    }
}

/// Rounded up, so that the last second is 1.
fn whole_seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

fn text(what: &str, seconds: u64) -> String {
    match seconds {
        0..60 => format!("ringwise: {what}, {seconds} s left"),
        _ => format!("ringwise: {what}, {} min {:02} s left", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_and_counts_down() {
        assert_eq!(whole_seconds(Duration::from_millis(1)), 1);
        assert_eq!(whole_seconds(Duration::from_secs(5)), 5);
        assert_eq!(text("counting", 5), "ringwise: counting, 5 s left");
        assert_eq!(text("counting", 125), "ringwise: counting, 2 min 05 s left");
    }

    #[test]
    fn a_short_wait_and_a_quiet_command_show_nothing() {
        let quiet = Common { quiet: true, ..Common::default() };
        assert!(!Countdown::new("counting", Duration::from_secs(9), &quiet).is_shown());
        assert!(!Countdown::new("counting", Duration::from_secs(1), &Common::default()).is_shown());
    }
}
