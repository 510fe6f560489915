//! Runs work on many devices in parallel, each with its own deadline.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ringwise_sys::reading::reading;

/// Threads that run at the same time. A late thread is abandoned, and the next one takes its place.
const AT_ONCE: usize = 32;

/// `None`: it did not run, because an earlier one still hangs at the same device.
pub(crate) type Task<T> = Box<dyn FnOnce() -> Option<T> + Send>;

/// Runs every task in a thread of its own and returns the results in order. None: not done within
/// `deadline` of its start, panicked, or no thread could be had. Late threads are never waited for.
pub(crate) fn run<T: Send + 'static>(tasks: Vec<Task<T>>, deadline: Duration) -> Vec<Option<T>> {
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
                let value = reading(move || drop(over.send((index, None))), task);
                // If this is late, the receiver may be gone: the error is ignored.
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

/// Reports the end of the thread even after a panic.
struct Done<T> {
    sender: mpsc::Sender<(usize, Option<T>)>,
    index: usize,
}

impl<T> Drop for Done<T> {
    fn drop(&mut self) {
        // If a value was sent before, the list no longer has an entry for this second message.
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
    fn a_late_job_and_a_panic_affect_no_other_job() {
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
