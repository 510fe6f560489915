//! Reads all devices in one thread as long as each of them answers: waking a thread costs more than reading most
//! devices.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ringwise_model::Unread;
use ringwise_sys::Host;

use crate::device::{Dev, Notes, Reading};
use crate::worker::Worker;

pub(crate) struct SharedReader {
    slots: Slots,
    worker: Worker<()>,
}

/// A device, and its reading of this round.
struct Slot {
    /// Absent while the device is being read.
    dev: Option<Box<Dev>>,
    reading: Option<(Reading, Vec<Unread>)>,
}

#[derive(Clone)]
struct Slots(Arc<Mutex<Vec<Slot>>>);

impl Slots {
    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a device when another one was too late.
pub(crate) enum Left {
    /// It has been read.
    Read(Box<Dev>, Reading, Vec<Unread>),
    /// It has not been read yet.
    NotRead(Box<Dev>),
    /// It is the one that does not answer.
    Unanswered(UnansweredDevice),
}

/// The slot of a device that does not answer.
pub(crate) struct UnansweredDevice(Slots, usize);

impl UnansweredDevice {
    /// Returns the device once it has answered. The late reading is dropped.
    pub(crate) fn back(&mut self) -> Option<Box<Dev>> {
        self.0.lock().get_mut(self.1)?.dev.take()
    }
}

impl SharedReader {
    pub(crate) fn start(devs: impl Iterator<Item = Box<Dev>>, host: &Arc<dyn Host>) -> Self {
        let slots = Slots(Arc::new(Mutex::new(devs.map(|d| Slot { dev: Some(d), reading: None }).collect())));
        let (all, host) = (slots.clone(), host.clone());
        let work = move || {
            let count = all.lock().len();
            for i in 0..count {
                // The lock is not held while the device is being read.
                let Some(mut dev) = all.lock().get_mut(i).and_then(|s| s.dev.take()) else { continue };
                let mut notes = Notes(Vec::new());
                let reading = dev.read(host.as_ref(), &mut notes);
                if let Some(slot) = all.lock().get_mut(i) {
                    *slot = Slot { dev: Some(dev), reading: Some((reading, notes.0)) };
                }
            }
        };
        Self { slots, worker: Worker::start(work) }
    }

    pub(crate) fn ask(&mut self) {
        self.worker.ask();
    }

    /// The readings in the order of the devices; `None` if one is late: see [`SharedReader::part`].
    pub(crate) fn answer(&mut self, until: Instant) -> Option<Vec<(Reading, Vec<Unread>)>> {
        self.worker.answer(until)?;
        self.slots.lock().iter_mut().map(|s| s.reading.take()).collect()
    }

    /// Ends reading in one thread. Returns the state of each device, in their order.
    pub(crate) fn part(self) -> Vec<Left> {
        let mut slots = self.slots.lock();
        let left = slots.iter_mut().enumerate().map(|(i, s)| match (s.dev.take(), s.reading.take()) {
            (Some(dev), Some((reading, said))) => Left::Read(dev, reading, said),
            (Some(dev), None) => Left::NotRead(dev),
            (None, _) => Left::Unanswered(UnansweredDevice(self.slots.clone(), i)),
        });
        left.collect()
    }
}
