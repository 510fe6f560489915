//! Received packets, which go to the queue that the RSS table has for their hash, and counting them by table entry. What a
//! counter reports of them is shown on a running kernel by crates/sys/tests/entry_counter.rs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ringwise_model::errno::ENODEV;
use ringwise_model::{Fact, IfIndex};
use ringwise_sys::entry_counter::check_table;
use ringwise_sys::{CountEntries, EntryCount, EntryCounts, Error, Result};

use super::refusal::no;
use super::{Sim, State};

/// By which queue packets arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalQueue {
    /// By that of the NIC's present RSS table.
    ByTable,
    /// By this one, because of a rule or aRFS.
    Fixed(u32),
    /// The driver does not report it.
    Unknown,
}

/// Packets that arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivingPackets {
    /// Hash that the NIC computed. 0: none.
    pub hash: u32,
    /// By which queue they arrive.
    pub queue: ArrivalQueue,
    /// How many, in sum with their bytes and the frames of which they were merged.
    pub packets: u64,
    /// Bytes with Ethernet headers.
    pub bytes: u64,
    /// Frames; equals `packets` if none was merged.
    pub segments: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    open: Vec<Weak<Mutex<Counting>>>,
    refused: Option<i32>,
}

impl Counters {
    fn of(&mut self, device: Option<IfIndex>) -> Vec<Arc<Mutex<Counting>>> {
        self.open.retain(|c| c.strong_count() > 0);
        self.open.iter().filter_map(Weak::upgrade).filter(|c| lock(c).device == device).collect()
    }

    pub(super) fn device_is_gone(&mut self, device: Option<IfIndex>) {
        for counter in self.of(device) {
            lock(&counter).gone = true;
        }
    }
}

#[derive(Debug)]
struct Counting {
    what: String,
    device: Option<IfIndex>,
    gone: bool,
    table: Vec<u32>,
    counts: EntryCounts,
}

fn lock(counting: &Mutex<Counting>) -> MutexGuard<'_, Counting> {
    counting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counting {
    fn add(&mut self, arrival: &ArrivingPackets, queue: Option<u32>) {
        let entry = arrival.hash as usize % self.table.len();
        let count = if arrival.hash == 0 { &mut self.counts.unhashed } else { &mut self.counts.entries[entry] };
        count.packets += arrival.packets;
        count.bytes += arrival.bytes;
        count.segments += arrival.segments;
        match queue {
            None => count.unknown_queue += arrival.packets,
            Some(queue) if arrival.hash != 0 && queue != self.table[entry] => count.other_queue += arrival.packets,
            Some(_) => {}
        }
    }
}

#[derive(Debug)]
struct SimulatedCounter(Arc<Mutex<Counting>>);

impl CountEntries for SimulatedCounter {
    fn counts_segments(&self) -> bool {
        true
    }

    fn read(&mut self) -> Result<EntryCounts> {
        let counting = lock(&self.0);
        if counting.gone { Err(Error::errno(&counting.what, ENODEV)) } else { Ok(counting.counts.clone()) }
    }

    fn set_table(&mut self, table: &[u32]) -> Result<()> {
        let mut counting = lock(&self.0);
        check_table(&counting.what, table, Some(counting.table.len()))?;
        counting.table = table.to_vec();
        Ok(())
    }
}

pub(super) fn open(s: &mut State, dev: &str, table: &[u32]) -> Result<Box<dyn CountEntries>> {
    let what = format!("count packets by table entry on {dev}");
    let i = s.index(dev).ok_or_else(|| Error::errno(&what, ENODEV))?;
    check_table(&what, table, None)?;
    if let Some(errno) = s.entry_counters.refused {
        return Err(Error { what, ..no(errno) });
    }
    let counts = EntryCounts { entries: vec![EntryCount::default(); table.len()], ..EntryCounts::default() };
    let device = s.nics[i].dev.ifindex;
    let counting = Arc::new(Mutex::new(Counting { what, device, gone: false, table: table.to_vec(), counts }));
    s.entry_counters.open.push(Arc::downgrade(&counting));
    Ok(Box::new(SimulatedCounter(counting)))
}

impl Sim {
    /// Packets arrive. They are counted for those who count by table entry, and raise no interrupt.
    ///
    /// # Panics
    /// The device has no RSS table, and the queue is to be found there.
    pub fn receive(&self, dev: &str, arrival: ArrivingPackets) {
        let mut s = self.lock();
        let Some(i) = s.index(dev) else { return };
        let queue = match (arrival.queue, &s.nics[i].rss) {
            (ArrivalQueue::Unknown, _) => None,
            (ArrivalQueue::Fixed(queue), _) => Some(queue),
            (ArrivalQueue::ByTable, Fact::Known(rss)) => Some(rss.table[arrival.hash as usize % rss.table.len()]),
            (ArrivalQueue::ByTable, _) => panic!("{dev} has no RSS table"),
        };
        let device = s.nics[i].dev.ifindex;
        for counter in s.entry_counters.of(device) {
            lock(&counter).add(&arrival, queue);
        }
    }

    /// The kernel refuses to count packets by table entry with this errno; `None`: no longer.
    pub fn refuse_counting(&self, errno: Option<i32>) {
        self.lock().entry_counters.refused = errno;
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::errno::EPERM;
    use ringwise_sys::Host as _;

    use super::super::build;
    use super::*;

    fn arrival(hash: u32, packets: u64) -> ArrivingPackets {
        ArrivingPackets { hash, queue: ArrivalQueue::ByTable, packets, bytes: 100 * packets, segments: 3 * packets }
    }

    fn table(sim: &Sim) -> Vec<u32> {
        sim.lock().nics[0].rss.known().unwrap().table.clone()
    }

    #[test]
    fn packets_are_counted_where_the_table_of_the_nic_sends_them() {
        let sim = Sim::new(&build::host(4, 1).igb("eth0", 0, 4).linked().done());
        let mut expected = table(&sim);
        let mut counter = sim.count_entries("eth0", &expected).unwrap();
        let entries = expected.len() as u32;
        sim.receive("eth0", arrival(entries + 5, 7));
        sim.receive("eth0", arrival(0, 2));
        sim.receive("eth0", ArrivingPackets { queue: ArrivalQueue::Unknown, ..arrival(6, 4) });
        let counts = counter.read().unwrap();
        let seven = EntryCount { packets: 7, bytes: 700, segments: 21, ..EntryCount::default() };
        assert_eq!((counts.entries[5], counts.unhashed.packets), (seven, 2));
        assert_eq!((counts.entries[6].unknown_queue, counts.total().other_queue), (4, 0));

        // Another program moves the entry, and then the counter learns of it.
        expected[5] = (expected[5] + 1) % 4;
        sim.ethtool_x("eth0", &expected).unwrap();
        sim.receive("eth0", arrival(5, 3));
        let moved = counter.read().unwrap().since(&counts);
        assert_eq!((moved.entries[5].packets, moved.entries[5].other_queue), (3, 3));
        counter.set_table(&expected).unwrap();
        sim.receive("eth0", arrival(5, 1));
        sim.receive("eth0", ArrivingPackets { queue: ArrivalQueue::Fixed(expected[5] + 1), ..arrival(5, 10) });
        let after = counter.read().unwrap().since(&counts);
        assert_eq!((after.entries[5].packets, after.entries[5].other_queue), (14, 13));
    }

    #[test]
    fn refusals_and_the_end_of_a_device() {
        let sim = Sim::new(&build::host(4, 1).igb("eth0", 0, 4).linked().done());
        assert_eq!(sim.count_entries("eth9", &[0]).unwrap_err().errno, Some(ENODEV));
        assert!(sim.count_entries("eth0", &[]).unwrap_err().errno.is_none());
        sim.refuse_counting(Some(EPERM));
        assert_eq!(sim.count_entries("eth0", &[0]).unwrap_err().errno, Some(EPERM));
        sim.refuse_counting(None);
        let mut counter = sim.count_entries("eth0", &[0, 1]).unwrap();
        assert!(counter.set_table(&[0]).unwrap_err().errno.is_none());
        sim.unplug("eth0");
        assert!(counter.read().unwrap_err().is_absent());
    }
}
