//! Threads that only read. A panic in such a thread costs only its answer, even if a panic ends the process (release builds).
//! Writing threads have no such protection: a panic ends the process, and the guard restores the settings.

use std::cell::RefCell;
use std::thread;

type Over = Box<dyn FnOnce()>;

thread_local! {
    /// Set while this thread reads: notifies the waiting thread that there will be no answer.
    static OVER: RefCell<Option<Over>> = const { RefCell::new(None) };
}

/// Runs `work` as a reading of this thread, which must do nothing else. `over`: notifies the waiting thread that there will
/// be no answer.
pub fn reading<T>(over: impl FnOnce() + 'static, work: impl FnOnce() -> T) -> T {
    OVER.set(Some(Box::new(over)));
    let value = work();
    drop(OVER.take());
    value
}

/// Whether this thread is reading.
pub fn reads() -> bool {
    OVER.try_with(|o| o.try_borrow().map_or(true, |o| o.is_some())).unwrap_or(false)
}

/// To be called by the panic hook. In a release build it does not return in a thread that reads. It returns in every other
/// thread, and if panics unwind.
pub fn panicked() {
    if cfg!(panic = "abort") {
        stay();
    }
}

fn stay() {
    let Some(over) = OVER.try_with(RefCell::take).ok().flatten() else { return };
    over();
    loop {
        thread::park();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    /// What the panic hook does if panics do not unwind. The test cannot use it: the hook of this process belongs to the test
    /// harness.
    #[test]
    fn a_finished_reading_reports_it_and_stays_finished() {
        stay(); // not a reading: returns
        assert_eq!((reading(|| panic!("not over"), || (reads(), 7)), reads()), ((true, 7), false));
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let done = sender.clone();
            reading(move || done.send("over").unwrap(), stay);
            sender.send("back").unwrap();
        });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok("over"));
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "it stays");
    }
}
