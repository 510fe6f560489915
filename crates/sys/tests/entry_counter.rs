//! Counting by table entry on the real kernel, with a veth pair in a private network namespace.
//!
//! The hash of a received packet is that of the sending socket: each connected UDP socket has one, chosen at random, and an
//! unconnected one has none. XPS chooses the queue. `PacketListener` reports the queue of each packet independently.

mod ip;
mod netns;
mod pair;

use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use ip::ip;
use netns::in_private_netns;
use pair::connected_pair;
use ringwise_sys::entry_counter::EntryCounter;
use ringwise_sys::packets::PacketListener;
use ringwise_sys::{CountEntries as _, EntryCount, EntryCounts, Host, Real, ifindex};

const PAYLOAD_BYTES: usize = 100;
/// With the headers of UDP, IPv4 and Ethernet.
const FRAME_BYTES: u64 = PAYLOAD_BYTES as u64 + 8 + 20 + 14;
const TABLE: usize = 128;
const PATIENCE: Duration = Duration::from_secs(60);

fn write(path: &str, text: &str) {
    Real::new().unwrap().write(path, text.as_bytes()).unwrap();
}

fn read(path: &str) -> String {
    Real::new().unwrap().read_text(path).unwrap()
}

/// Sockets that are created from now on send through this queue of v1.
fn send_through(queue: u32) {
    let all = format!("{:x}", (1u64 << std::thread::available_parallelism().unwrap().get().min(32)) - 1);
    for q in 0..4 {
        let cpus = if q == queue { all.as_str() } else { "0" };
        write(&format!("/sys/class/net/v1/queues/tx-{q}/xps_cpus"), cpus);
    }
}

/// A flow: its packets have one hash.
fn flow(to: &str) -> UdpSocket {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((to, 9)).unwrap();
    socket
}

fn send(socket: &UdpSocket, packets: usize) {
    for _ in 0..packets {
        socket.send(&[7; PAYLOAD_BYTES]).unwrap();
    }
}

struct Instrument {
    counter: EntryCounter,
    tap: PacketListener,
    before: EntryCounts,
}

impl Instrument {
    /// The counts, when this many packets have arrived since the last call; and the queue that the tap has seen for all of
    /// them.
    fn arrived(&mut self, packets: u64) -> (EntryCounts, Option<u32>) {
        let deadline = Instant::now() + PATIENCE;
        let mut queues = Vec::new();
        loop {
            self.tap.drain(|p| queues.push(p.queue)).unwrap();
            let now = self.counter.read().unwrap();
            let new = now.since(&self.before);
            if new.total().packets >= packets && queues.len() as u64 >= packets {
                assert_eq!((new.total().packets, queues.len() as u64), (packets, packets));
                assert!(queues.iter().all(|q| *q == queues[0]), "{queues:?}");
                self.before = now;
                return (new, queues[0]);
            }
            assert!(Instant::now() < deadline, "{packets} packets were sent: {new:?}, {queues:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The only entry that has packets.
fn only(counts: &EntryCounts) -> (usize, EntryCount) {
    let used: Vec<_> = counts.entries.iter().copied().enumerate().filter(|(_, c)| c.packets > 0).collect();
    assert_eq!((used.len(), counts.unhashed), (1, EntryCount::default()), "{counts:?}");
    used[0]
}

fn packets(packets: u64) -> EntryCount {
    EntryCount { packets, bytes: packets * FRAME_BYTES, segments: packets, ..EntryCount::default() }
}

/// A counter on v0 whose table sends everything to queue 0; `None`: not permitted here.
fn open(test: &str, entries: usize) -> Option<EntryCounter> {
    match EntryCounter::open(ifindex("ifindex v0", "v0").unwrap(), &vec![0; entries]) {
        Ok(counter) => Some(counter),
        Err(e) if e.errno == Some(libc::EPERM) => {
            ringwise_testkit::skipped(test, &e.to_string());
            None
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn received_packets_are_counted_by_entry_and_queue() {
    let test = "received_packets_are_counted_by_entry_and_queue";
    if !in_private_netns(test) {
        return;
    }
    connected_pair(4);
    let Some(counter) = open(test, TABLE) else { return };
    let tap = PacketListener::open("v0", 4, 1).unwrap();
    let mut both = Instrument { counter, tap, before: EntryCounts::default() };
    both.before = both.counter.read().unwrap();
    assert_eq!(both.before, EntryCounts { entries: vec![EntryCount::default(); TABLE], ..EntryCounts::default() });

    send_through(3);
    let first = flow("10.1.0.2");
    send(&first, 40);
    let (counts, queue) = both.arrived(40);
    let queue = queue.expect("the queue of a veth is known unless it is the first");
    assert_ne!(queue, 0);
    let (entry, count) = only(&counts);
    assert_eq!(count, EntryCount { other_queue: 40, ..packets(40) }, "the table expects queue 0, not {queue}");

    // The table that is expected is right for this entry alone.
    let mut table = vec![0; TABLE];
    table[entry] = queue;
    both.counter.set_table(&table).unwrap();
    assert_eq!(both.counter.table(), table);
    send(&first, 23);
    assert_eq!(only(&both.arrived(23).0), (entry, packets(23)));
    table[entry] = queue + 1;
    both.counter.set_table(&table).unwrap();
    send(&first, 7);
    assert_eq!(only(&both.arrived(7).0), (entry, EntryCount { other_queue: 7, ..packets(7) }));

    // Another flow through another queue, from each CPU.
    send_through(2);
    let mut second = flow("10.1.0.2");
    let other = loop {
        send(&second, 1);
        let (counts, other) = both.arrived(1);
        if only(&counts).0 != entry {
            break other.unwrap();
        }
        second = flow("10.1.0.2");
    };
    assert_ne!(other, queue);
    both.counter.set_table(&[other; TABLE]).unwrap();
    let cpus = std::thread::available_parallelism().unwrap().get();
    for cpu in 0..cpus {
        std::thread::scope(|s| {
            s.spawn(|| {
                // A cpuset may forbid it, and then the packets come from some other CPU.
                let _ = ringwise_sys::load::pin(cpu as u32);
                send(&second, 11);
            });
        });
    }
    let sent = 11 * cpus as u64;
    assert_eq!(only(&both.arrived(sent).0).1, packets(sent));

    // The first queue of a veth is not reported, and a socket without a connection has no hash.
    send_through(0);
    let third = flow("10.1.0.2");
    send(&third, 5);
    let (counts, queue) = both.arrived(5);
    let unknown = queue.is_none();
    assert_eq!(only(&counts).1.unknown_queue, if unknown { 5 } else { 0 });
    assert_eq!(only(&counts).1.other_queue, if unknown { 0 } else { 5 });
    send_through(3);
    let loose = UdpSocket::bind("0.0.0.0:0").unwrap();
    for _ in 0..6 {
        loose.send_to(&[7; PAYLOAD_BYTES], "10.1.0.2:9").unwrap();
    }
    let (counts, _) = both.arrived(6);
    assert_eq!(counts.unhashed, packets(6));
    assert!(counts.entries.iter().all(|e| *e == EntryCount::default()), "{counts:?}");

    // Sent packets are not counted.
    let sent = || read("/sys/class/net/v0/statistics/tx_packets").parse::<u64>().unwrap();
    let before = sent();
    send(&flow("10.2.0.2"), 9);
    assert_eq!(sent() - before, 9);
    send(&first, 1);
    assert_eq!(only(&both.arrived(1).0).0, entry);
}

#[test]
fn entries_are_remainders_and_merged_frames_are_counted() {
    let test = "entries_are_remainders_and_merged_frames_are_counted";
    if !in_private_netns(test) {
        return;
    }
    connected_pair(4);
    let Some(whole) = open(test, 4000) else { return };
    let mut counters: Vec<EntryCounter> = [100, 128, 4096, 1].map(|n| open(test, n).unwrap()).into();
    counters.push(whole);
    for _ in 0..20 {
        let before: Vec<EntryCounts> = counters.iter_mut().map(|c| c.read().unwrap()).collect();
        send(&flow("10.1.0.2"), 3);
        let mut entries = Vec::new();
        for (counter, before) in counters.iter_mut().zip(&before) {
            let deadline = Instant::now() + PATIENCE;
            let counts = loop {
                let counts = counter.read().unwrap().since(before);
                if counts.total().packets >= 3 {
                    break counts;
                }
                assert!(Instant::now() < deadline, "{counts:?}");
            };
            let (entry, count) = only(&counts);
            assert_eq!((count.packets, count.segments), (3, 3));
            entries.push(entry);
        }
        // One hash: its remainders by 100, 128, 4096, 1 and 4000.
        assert_eq!((entries[0], entries[1], entries[3]), (entries[4] % 100, entries[2] % 128, 0), "{entries:?}");
    }

    // Five frames that the sender leaves to the NIC to separate pass a veth as one packet.
    let counter = &mut counters[0];
    assert!(counter.counts_segments(), "kernels with this test have gso_segs (5.1)");
    let before = counter.read().unwrap();
    let socket = flow("10.1.0.2");
    let size: libc::c_int = 1000;
    // SAFETY: pointer and length describe a live integer.
    let rc = unsafe {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const size).cast(), length)
    };
    assert_eq!(rc, 0, "UDP_SEGMENT: {}", std::io::Error::last_os_error());
    socket.send(&[7; 5000]).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let counts = loop {
        let counts = counter.read().unwrap().since(&before);
        if counts.total().packets >= 1 {
            break counts.total();
        }
        assert!(Instant::now() < deadline, "{counts:?}");
    };
    assert_eq!((counts.packets, counts.segments, counts.bytes), (1, 5, 5000 + 8 + 20 + 14));
}

#[test]
fn a_removed_interface_is_reported_and_other_tables_are_refused() {
    let test = "a_removed_interface_is_reported_and_other_tables_are_refused";
    if !in_private_netns(test) {
        return;
    }
    connected_pair(4);
    let Some(mut counter) = open(test, 64) else { return };
    let e = counter.set_table(&[0; 128]).unwrap_err();
    assert!(e.errno.is_none() && e.reason() == "expected a table of 64 entries, found 128", "{e}");
    let sockets = || read("/proc/net/packet").lines().count();
    let with = sockets();
    ip("link set v0 down");
    counter.read().unwrap();
    ip("link del v0");
    let e = counter.read().unwrap_err();
    assert!(e.is_absent() && e.reason().contains("removed"), "{e}");
    drop(counter);
    assert_eq!(sockets(), with - 1);
    let e = EntryCounter::open(999_999, &[0]).unwrap_err();
    assert_eq!(e.errno, Some(libc::ENODEV), "{e}");
}
