//! Threads that read: what panics there costs its answer and nothing else, also where a panic ends the process (release
//! builds). Writing threads have no such protection: there the process ends, and the guard restores the settings.

use std::cell::RefCell;
use std::thread;

type Over = Box<dyn FnOnce()>;

thread_local! {
    /// While this thread reads: tells whoever waits that there will be no answer.
    static OVER: RefCell<Option<Over>> = const { RefCell::new(None) };
}

/// Does `work` as a reading of this thread, which does nothing else. `over`: tells whoever waits that there will be no answer.
pub fn reading<T>(over: impl FnOnce() + 'static, work: impl FnOnce() -> T) -> T {
    OVER.set(Some(Box::new(over)));
    let value = work();
    drop(OVER.take());
    value
}

/// Whether this thread reads.
pub fn reads() -> bool {
    OVER.try_with(|o| o.try_borrow().map_or(true, |o| o.is_some())).unwrap_or(false)
}

/// For the panic hook. In a release build a thread that reads never comes back from here. Returns in every other thread,
/// and where threads unwind.
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

    /// What the panic hook does where panics do not unwind; the hook of this process is the test harness's.
    #[test]
    fn a_reading_that_is_over_tells_it_and_stays() {
        stay(); // not a reading: comes back
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
