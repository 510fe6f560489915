//! Work that may hang in the kernel, in a thread of its own, which is used repeatedly.
//!
//! A request that is not answered in time stays open. Until its answer arrives no new request is made and no caller
//! waits. The late answer is dropped.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use ringwise_sys::reading::reading;

pub(crate) struct Worker<T> {
    ask: Sender<()>,
    answers: Receiver<T>,
    /// A request has no answer yet.
    open: bool,
    /// A request was made in this round.
    asked: bool,
}

impl<T: Send + 'static> Worker<T> {
    /// If no thread can be started, there are no answers.
    pub(crate) fn start(mut work: impl FnMut() -> T + Send + 'static) -> Self {
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        let thread = thread::Builder::new().name("sampler".into());
        let _ = thread.spawn(move || {
            // If the work panics, the thread ends and no more requests reach it.
            while asked.recv().is_ok() && answer.send(reading(|| {}, &mut work)).is_ok() {}
        });
        Self { ask, answers, open: false, asked: false }
    }

    /// Makes a request, unless an earlier one is still open.
    pub(crate) fn ask(&mut self) {
        if self.open && self.answers.try_recv().is_ok() {
            self.open = false;
        }
        self.asked = !self.open && self.ask.send(()).is_ok();
        self.open |= self.asked;
    }

    /// Waits for the answer. `None`: it did not arrive in time, or no request was made.
    pub(crate) fn answer(&mut self, until: Instant) -> Option<T> {
        if !std::mem::take(&mut self.asked) {
            return None;
        }
        let answer = self.answers.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?;
        self.open = false;
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_late_answer_is_thrown_away() {
        let (go, gate) = channel::<()>();
        let mut n = 0;
        let mut w = Worker::start(move || {
            n += 1;
            if n == 2 {
                let _ = gate.recv();
            }
            n
        });
        let long = || Instant::now() + Duration::from_secs(60);
        let mut round = |until: Instant| {
            w.ask();
            w.answer(until)
        };
        assert_eq!(round(long()), Some(1));
        assert_eq!(round(Instant::now() + Duration::from_millis(20)), None);
        // Without a request there is no wait.
        let begin = Instant::now();
        assert_eq!(round(long()), None);
        assert!(begin.elapsed() < Duration::from_secs(30));
        go.send(()).unwrap();
        let answer = (0..3000).find_map(|_| {
            thread::sleep(Duration::from_millis(10));
            round(long())
        });
        assert_eq!(answer, Some(3), "the second answer is dropped");
    }

    #[test]
    fn a_thread_that_is_gone_does_not_answer() {
        let mut w = Worker::start(|| panic!("on purpose"));
        w.ask();
        let answer: Option<()> = w.answer(Instant::now() + Duration::from_secs(60));
        assert_eq!(answer, None);
    }
}
