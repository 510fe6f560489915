//! Kernel calls on a faulty device can hang where no timeout applies. Such work runs in a thread of its own, which is abandoned
//! when it exceeds its deadline.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::reading::reading;

/// The result of `work`, or `None` if it took longer than `time`. A late thread is abandoned and never joined: it must own what
/// it uses (an `Arc` of the host), and its result is discarded. A panic ends the process in release builds.
pub fn with_deadline<T: Send + 'static>(time: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let started = thread::Builder::new().name("reader".into()).spawn(move || {
        // If it is late, no thread receives the result.
        let _ = sender.send(work());
    });
    // Detached. If no thread could be started, the sender is gone, and receiving ends at once.
    drop(started);
    receiver.recv_timeout(time).ok()
}

/// The same for work that only reads: if it panics, the answer is `None` at once, in release builds too ([`reading`]).
pub fn read_with_deadline<T: Send + 'static>(time: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    let started = thread::Builder::new().name("reader".into()).spawn(move || {
        let over = sender.clone();
        let value = reading(move || drop(over.send(None)), work);
        // If it is late, no thread receives the result.
        let _ = sender.send(Some(value));
    });
    drop(started);
    receiver.recv_timeout(time).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn in_time_and_late() {
        assert_eq!(with_deadline(Duration::from_secs(5), || 7), Some(7));
        let begin = Instant::now();
        let late = with_deadline(Duration::from_millis(50), || thread::sleep(Duration::from_secs(30)));
        assert_eq!(late, None);
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
}
