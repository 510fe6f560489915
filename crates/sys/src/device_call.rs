//! Allows at most one thread at a time for each read that may hang: a device that never answers costs one thread, however often
//! a long-running process (exporter, `watch`) reads the host again.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Host;
use crate::deadline::read_with_deadline;

/// The host's address in memory, and what is read there. A hanging thread keeps the host alive, so no other host gets the
/// address.
type Key = (usize, String);

static AT_WORK: Mutex<BTreeMap<Key, Instant>> = Mutex::new(BTreeMap::new());
static ONE_ENDED: Condvar = Condvar::new();

fn at_work() -> MutexGuard<'static, BTreeMap<Key, Instant>> {
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to read `what` of a host, until it is dropped. The reader must hold a reference to that host.
pub struct DeviceCall(Key);

impl DeviceCall {
    /// Waits for an earlier reader until `deadline` after *its* start. `None`: that reader is late, and nothing should be read.
    pub fn new(host: &Arc<dyn Host>, what: impl Into<String>, deadline: Duration) -> Option<Self> {
        let key = (Arc::as_ptr(host).cast::<()>() as usize, what.into());
        let mut all = at_work();
        while let Some(since) = all.get(&key) {
            let left = deadline.checked_sub(since.elapsed()).filter(|d| !d.is_zero())?;
            all = ONE_ENDED.wait_timeout(all, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        all.insert(key.clone(), Instant::now());
        Some(Self(key))
    }
}

impl Drop for DeviceCall {
    fn drop(&mut self) {
        at_work().remove(&self.0);
        ONE_ENDED.notify_all();
    }
}

/// As [`read_with_deadline`], but returns `None` at once while an earlier reading of `what` on this host is late. `work` must own
/// a reference to the host.
pub fn alone_with_deadline<T: Send + 'static>(
    host: &Arc<dyn Host>,
    what: &str,
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let began = Instant::now();
    let alone = DeviceCall::new(host, what, time)?;
    let work = move || {
        let _alone = alone;
        work()
    };
    read_with_deadline(time.saturating_sub(began.elapsed()), work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    use crate::Real;

    fn host() -> Arc<dyn Host> {
        Arc::new(Real::new().unwrap())
    }

    #[test]
    fn what_hangs_costs_one_thread_and_time_once() {
        let host = host();
        let started = Arc::new(AtomicUsize::new(0));
        let (go, gate) = channel::<()>();
        let mut gate = Some(gate);
        let time = Duration::from_millis(100);
        let mut ask = || {
            let (started, gate) = (started.clone(), gate.take());
            alone_with_deadline(&host, "eth0", time, move || {
                started.fetch_add(1, Ordering::SeqCst);
                gate.map(|g| g.recv());
            })
        };
        assert_eq!(ask(), None, "late");
        for _ in 0..200 {
            assert_eq!(ask(), None, "still at it");
        }
        assert_eq!(started.load(Ordering::SeqCst), 1);
        // Another device, and the same device on another host, are not affected.
        assert_eq!(alone_with_deadline(&host, "eth1", Duration::from_secs(60), || 7), Some(7));
        assert_eq!(alone_with_deadline(&self::host(), "eth0", Duration::from_secs(60), || 8), Some(8));
        go.send(()).unwrap();
        let back = (0..3000).find_map(|_| {
            thread::sleep(Duration::from_millis(10));
            ask()
        });
        assert_eq!(back, Some(()), "read again once it has answered");
        assert!(started.load(Ordering::SeqCst) >= 2);
    }

    #[test]
    fn two_that_ask_at_once_take_turns() {
        let host = host();
        let at_once = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (host, at_once) = (host.clone(), at_once.clone());
                thread::spawn(move || {
                    alone_with_deadline(&host, "eth0", Duration::from_secs(60), move || {
                        let others = at_once.fetch_add(1, Ordering::SeqCst);
                        thread::sleep(Duration::from_millis(5));
                        at_once.fetch_sub(1, Ordering::SeqCst);
                        others
                    })
                })
            })
            .collect();
        assert!(threads.into_iter().all(|t| t.join().unwrap() == Some(0)));
    }

    #[test]
    fn a_reader_that_panics_leaves_the_way_free() {
        let host = host();
        let time = Duration::from_secs(60);
        assert_eq!(alone_with_deadline(&host, "eth0", time, || -> u8 { panic!("on purpose") }), None);
        assert_eq!(alone_with_deadline(&host, "eth0", time, || 1), Some(1));
    }
}
