//! All devices in one thread, as long as each of them answers: waking a thread costs more than most devices do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ringwise_model::Unread;
use ringwise_sys::Host;

use crate::device::{Dev, Notes, Reading};
use crate::worker::Worker;

pub(crate) struct Together {
    seats: Seats,
    worker: Worker<()>,
}

/// A device, and what it has told in this round.
struct Seat {
    /// Absent while it is asked.
    dev: Option<Box<Dev>>,
    told: Option<(Reading, Vec<Unread>)>,
}

#[derive(Clone)]
struct Seats(Arc<Mutex<Vec<Seat>>>);

impl Seats {
    fn lock(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where one of them stands when another was too late.
pub(crate) enum Left {
    /// It has told.
    Told(Box<Dev>, Reading, Vec<Unread>),
    /// Its turn had not come.
    Waits(Box<Dev>),
    /// It is the one that does not answer.
    Asked(Late),
}

/// The seat of a device that does not answer.
pub(crate) struct Late(Seats, usize);

impl Late {
    /// It has answered in the meantime; what it said then is told to nobody.
    pub(crate) fn back(&mut self) -> Option<Box<Dev>> {
        self.0.lock().get_mut(self.1)?.dev.take()
    }
}

impl Together {
    pub(crate) fn start(devs: impl Iterator<Item = Box<Dev>>, host: &Arc<dyn Host>) -> Self {
        let seats = Seats(Arc::new(Mutex::new(devs.map(|d| Seat { dev: Some(d), told: None }).collect())));
        let (all, host) = (seats.clone(), host.clone());
        let work = move || {
            let count = all.lock().len();
            for i in 0..count {
                // The lock is not held while the device is asked.
                let Some(mut dev) = all.lock().get_mut(i).and_then(|s| s.dev.take()) else { continue };
                let mut notes = Notes(Vec::new());
                let reading = dev.read(host.as_ref(), &mut notes);
                if let Some(seat) = all.lock().get_mut(i) {
                    *seat = Seat { dev: Some(dev), told: Some((reading, notes.0)) };
                }
            }
        };
        Self { seats, worker: Worker::start(work) }
    }

    pub(crate) fn ask(&mut self) {
        self.worker.ask();
    }

    /// In their order; `None` when one of them is late: see [`Together::part`].
    pub(crate) fn answer(&mut self, until: Instant) -> Option<Vec<(Reading, Vec<Unread>)>> {
        self.worker.answer(until)?;
        self.seats.lock().iter_mut().map(|s| s.told.take()).collect()
    }

    /// From now on each for itself, in their order.
    pub(crate) fn part(self) -> Vec<Left> {
        let mut seats = self.seats.lock();
        let left = seats.iter_mut().enumerate().map(|(i, s)| match (s.dev.take(), s.told.take()) {
            (Some(dev), Some((reading, said))) => Left::Told(dev, reading, said),
            (Some(dev), None) => Left::Waits(dev),
            (None, _) => Left::Asked(Late(self.seats.clone(), i)),
        });
        left.collect()
    }
}
