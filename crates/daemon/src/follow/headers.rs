//! Counts by table entry from sampled headers: where the driver reports no hash, or another one than that which the device uses,
//! the entry of a packet is computed from its header, the key and the hashed fields.
//!
//! Merged frames occupy much memory of a socket, so a thread reads the sockets 50 times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ringwise_adapt::buckets::{CountMethod, EntryEvidence, ReceivedByEntry};
use ringwise_flow::{Steering, Tuple};
use ringwise_kfmt::packet;
use ringwise_observe::sampling_divisor;
use ringwise_sys::packets::VNET;
use ringwise_sys::{Error, Host, Result, SampleHeaders};

/// `LINKTYPE_ETHERNET`.
const ETHERNET: u32 = 1;
/// Time between reads of the sockets.
const PAUSE: Duration = Duration::from_millis(20);
/// A larger part of the sample must not be lost: what is lost belongs to the queues with most packets. In percent.
const LOST_PERCENT: u64 = 1;

/// Counts by entry of one table.
#[derive(Debug)]
struct EntryTally {
    steering: Steering,
    entries: Vec<ReceivedByEntry>,
    unhashed: u64,
    unknown_queue: u64,
}

impl EntryTally {
    fn new(steering: Steering) -> Self {
        let entries = vec![ReceivedByEntry { segments: Some(0), ..ReceivedByEntry::default() }; steering.table().len()];
        Self { steering, entries, unhashed: 0, unknown_queue: 0 }
    }

    /// Adds a packet that begins with `head`, and was merged from `segments` frames with `bytes` bytes together. `queue`: by which it
    /// came.
    fn add(&mut self, queue: Option<u32>, head: &[u8], segments: u64, bytes: u64) {
        let tuple = packet::parse_frame(ETHERNET, head).ok().map(|p| Tuple::of_packet(&p));
        let Some(at) = tuple.and_then(|t| self.steering.bucket(&t)) else {
            self.unhashed += 1;
            return;
        };
        let by_table = self.steering.table().get(at).copied();
        let Some(entry) = self.entries.get_mut(at) else { return };
        entry.packets += 1;
        entry.segments = entry.segments.map(|s| s + segments);
        entry.bytes += bytes;
        match queue {
            None => self.unknown_queue += 1,
            Some(q) if Some(q) != by_table => entry.elsewhere += 1,
            Some(_) => {}
        }
    }

    fn all(&self) -> u64 {
        self.unhashed + self.entries.iter().map(|e| e.packets).sum::<u64>()
    }
}

/// A sample that is running.
#[derive(Debug)]
pub(crate) struct HeaderSampling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<EntryEvidence>>>,
}

impl HeaderSampling {
    /// `packets_per_s`: what the interface receives, about.
    ///
    /// Errors: see [`Host::sample_headers`].
    pub(super) fn start(host: &dyn Host, dev: &str, steering: &Steering, packets_per_s: u64) -> Result<Self> {
        let queues = steering.queues().unwrap_or(0);
        let mut tap = host.sample_headers(dev, queues, sampling_divisor(packets_per_s as f64))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (ended, mut tally, dev) = (stop.clone(), EntryTally::new(steering.clone()), dev.to_string());
        let run = move || sample(tap.as_mut(), &ended, &mut tally, &dev);
        let thread = std::thread::Builder::new().name("headers".into()).spawn(run);
        let thread = thread.map_err(|e| Error::other("start a thread", e.to_string()))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// What was counted so far.
    pub(super) fn finish(mut self) -> Result<EntryEvidence> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().and_then(|t| t.join().ok());
        ended.unwrap_or_else(|| Err(Error::other("sample headers", "the thread ended without a result")))
    }
}

impl Drop for HeaderSampling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn sample(tap: &mut dyn SampleHeaders, stop: &AtomicBool, tally: &mut EntryTally, dev: &str) -> Result<EntryEvidence> {
    let begin = Instant::now();
    loop {
        let last = stop.load(Ordering::Relaxed);
        tap.drain(&mut |seen| {
            let Some((vnet, head)) = seen.bytes.split_first_chunk::<VNET>() else { return };
            let (segments, bytes) = packet::put_together(vnet, seen.length as u64);
            tally.add(seen.queue, head, segments, bytes);
        })?;
        if last {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    let duration = begin.elapsed();
    let lost = tap.lost()?;
    if lost * 100 > tally.all() * LOST_PERCENT {
        let words = format!("{lost} sampled frames were lost, {} were read", tally.all());
        return Err(Error::other(format!("listen on {dev}"), words));
    }
    Ok(EntryEvidence {
        method: CountMethod::SampledHeaders,
        duration,
        entries: std::mem::take(&mut tally.entries),
        unhashed: tally.unhashed,
        unknown_queue: tally.unknown_queue,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use ringwise_adapt::buckets::Unusable;
    use ringwise_kfmt::packet::{Flow, frame_of};
    use ringwise_model::{Fact, Rss, Rules};
    use ringwise_sys::packets::CapturedPacket;
    use ringwise_testkit::machines::{self, NicSpec};
    use ringwise_testkit::topo::CpuSpec;

    /// A NIC whose driver shows key, fields and table.
    fn steering() -> Steering {
        let nics = vec![NicSpec::new("eth0", "mlx5_core", Some(0), 8, 8)];
        let mut s = machines::host("w", CpuSpec::flat(8, 1), nics).snapshot();
        s.nics[0].rss = Fact::Known(Rss {
            table: (0..128).map(|i| i % 8).collect(),
            function: Fact::Known("toeplitz".into()),
            key: Fact::Known("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa".into()),
            fields: [("udp4".to_string(), "sdfn".to_string())].into(),
            symmetric: Fact::Absent,
            contexts: Fact::Known(BTreeMap::new()),
        });
        s.nics[0].rules = Fact::Known(Rules::default());
        Steering::new(&s.nics[0], &Fact::Absent)
    }

    fn flow(port: u16) -> Flow {
        let (from, to) = ("192.0.2.1".parse().unwrap(), "198.51.100.7".parse().unwrap());
        Flow::Ip { protocol: 17, from, to, ports: Some((port, 53)) }
    }

    /// Frames of 2,000 flows, by the queue that `queue` makes of the right one.
    struct Frames {
        steering: Steering,
        queue: fn(u32) -> Option<u32>,
        left: u16,
        lost: u64,
    }

    impl SampleHeaders for Frames {
        fn drain(&mut self, each: &mut dyn FnMut(CapturedPacket)) -> Result<()> {
            for port in 0..std::mem::take(&mut self.left) {
                let flow = flow(port);
                let right = self.steering.queue(&Tuple::of_flow(&flow).unwrap()).unwrap();
                let mut bytes = vec![0; VNET];
                bytes.extend(frame_of(&flow));
                each(CapturedPacket { queue: (self.queue)(right), bytes: &bytes, length: bytes.len() - VNET });
            }
            Ok(())
        }

        fn lost(&mut self) -> Result<u64> {
            Ok(self.lost)
        }
    }

    fn sampled(queue: fn(u32) -> Option<u32>, lost: u64) -> Result<EntryEvidence> {
        let steering = steering();
        let mut tap = Frames { steering: steering.clone(), queue, left: 2000, lost };
        let mut e = sample(&mut tap, &AtomicBool::new(true), &mut EntryTally::new(steering), "eth0")?;
        e.duration = Duration::from_secs(3);
        Ok(e)
    }

    #[test]
    fn packets_count_for_the_entry_of_their_computed_hash() {
        let e = sampled(Some, 0).unwrap();
        let table = steering().table().to_vec();
        let checked = e.check(&table).unwrap();
        assert_eq!(checked.packets, 2000);
        assert!(checked.entries.iter().filter(|c| c.packets > 0).count() > table.len() / 2);
        assert_eq!(e.entries.iter().map(|c| c.segments.unwrap()).sum::<u64>(), 2000);
        assert_eq!(e.method, CountMethod::SampledHeaders);
    }

    #[test]
    fn packets_by_another_queue_make_the_counts_unusable() {
        let table = steering().table().to_vec();
        let e = sampled(|q| Some((q + 1) % 8), 0).unwrap();
        assert_eq!(e.check(&table).unwrap_err(), Unusable::Elsewhere { percent: 100.0 });
        let e = sampled(|_| None, 0).unwrap();
        assert_eq!(e.check(&table).unwrap_err(), Unusable::UnknownQueue { percent: 100.0 });
    }

    #[test]
    fn frames_that_are_not_ip_have_no_entry() {
        let mut tally = EntryTally::new(steering());
        tally.add(Some(0), &frame_of(&Flow::Other(0x8864)), 1, 60);
        tally.add(Some(0), &[0; 9], 1, 60);
        assert_eq!((tally.unhashed, tally.all()), (2, 2));
    }

    #[test]
    fn a_sample_with_losses_is_not_used() {
        assert!(sampled(Some, 20).is_ok());
        let e = sampled(Some, 21).unwrap_err();
        assert!(e.to_string().contains("21 sampled frames were lost, 2000 were read"), "{e}");
    }
}
