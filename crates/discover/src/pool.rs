//! Work on many devices side by side, each with its own deadline.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Threads that run at once; a late one is abandoned and its place given to the next.
const AT_ONCE: usize = 32;

thread_local! {
    /// While a task runs in this thread: tells that nothing more comes of it.
    static TASK: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// For the panic hook. Where a panic ends the process (release builds), a thread that reads a device ends its
/// task without a result and never comes back, so that the fault stays that device's. Returns in every other
/// thread, and where threads unwind.
pub fn panicked() {
    if cfg!(panic = "abort") {
        park();
    }
}

/// Whether this thread reads a device.
pub fn reads() -> bool {
    TASK.try_with(|t| t.try_borrow().map_or(true, |t| t.is_some())).unwrap_or(false)
}

fn park() {
    let Some(over) = TASK.try_with(RefCell::take).ok().flatten() else { return };
    over();
    loop {
        thread::park();
    }
}

/// `None`: it did nothing, because an earlier one still hangs at the same device.
pub type Task<T> = Box<dyn FnOnce() -> Option<T> + Send>;

/// Runs every task in a thread of its own and returns the results in order. None: not done within
/// `deadline` of its start, panicked, or no thread could be had. Late threads are never waited for.
pub fn run<T: Send + 'static>(tasks: Vec<Task<T>>, deadline: Duration) -> Vec<Option<T>> {
    let mut results: Vec<Option<T>> = tasks.iter().map(|_| None).collect();
    let mut waiting: VecDeque<_> = tasks.into_iter().enumerate().collect();
    let mut running: Vec<(usize, Instant)> = Vec::new();
    let (sender, receiver) = mpsc::channel::<(usize, Option<T>)>();
    while !waiting.is_empty() || !running.is_empty() {
        while running.len() < AT_ONCE
            && let Some((index, task)) = waiting.pop_front()
        {
            let sender = Done { sender: sender.clone(), index };
            let started = thread::Builder::new().name(format!("device {index}")).spawn(move || {
                let over = sender.sender.clone();
                TASK.set(Some(Box::new(move || drop(over.send((index, None))))));
                let value = task();
                // Nobody listens any more when this is late.
                let _ = sender.sender.send((index, value));
            });
            if started.is_ok() {
                running.push((index, Instant::now() + deadline));
            }
        }
        let Some(next) = running.iter().map(|(_, end)| *end).min() else { continue };
        match receiver.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok((index, value)) => {
                if running.iter().any(|(i, _)| *i == index) {
                    running.retain(|(i, _)| *i != index);
                    results[index] = value;
                }
            }
            Err(_) => {
                let now = Instant::now();
                running.retain(|(_, end)| *end > now);
            }
        }
    }
    results
}

/// Tells that the thread is over even when it unwound.
struct Done<T> {
    sender: mpsc::Sender<(usize, Option<T>)>,
    index: usize,
}

impl<T> Drop for Done<T> {
    fn drop(&mut self) {
        // After a value this second message finds nobody in the list any more.
        let _ = self.sender.send((self.index, None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task<T>(f: impl FnOnce() -> T + Send + 'static) -> Task<T> {
        Box::new(move || Some(f()))
    }

    #[test]
    fn a_late_one_and_a_panic_spoil_nobody_else() {
        let mut tasks = vec![
            task(|| 1),
            task(|| panic!("on purpose")),
            task(|| {
                loop {
                    thread::park()
                }
            }),
        ];
        tasks.extend((3..100).map(|i| task(move || i)));
        let out = run(tasks, Duration::from_secs(2));
        assert_eq!(out[0], Some(1));
        assert_eq!((out[1], out[2]), (None, None));
        assert!(out[3..].iter().enumerate().all(|(i, v)| *v == Some(i + 3)));
    }

    /// What the panic hook does where panics do not unwind; the hook of this process is the test harness's.
    #[test]
    fn a_parked_one_is_over_at_once_and_spoils_nobody_else() {
        park(); // no task: comes back
        let mut tasks = vec![task(|| {
            park();
            0
        })];
        tasks.extend((1..100).map(|i| task(move || i)));
        // Nobody waits for the deadline.
        let out = run(tasks, Duration::from_secs(86400));
        assert_eq!(out[0], None);
        assert!(out[1..].iter().enumerate().all(|(i, v)| *v == Some(i + 1)));
    }

    #[test]
    fn more_hanging_than_places() {
        let tasks = (0..70)
            .map(|_| {
                task(|| {
                    loop {
                        thread::park()
                    }
                })
            })
            .collect::<Vec<Task<()>>>();
        assert!(run(tasks, Duration::from_millis(50)).iter().all(Option::is_none));
    }
}
