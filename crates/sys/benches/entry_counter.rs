//! `cargo bench -p ringwise-sys`: what counting by table entry costs for each packet, on a veth pair in a network namespace of
//! its own. Needs root.
//!
//! One thread sends; the kernel also receives in this thread, so its CPU time has both. Rounds with and without the counter
//! take turns, and the order changes from pair to pair. The same comparison without any counter shows the noise.

#[path = "../tests/ip/mod.rs"]
mod ip;
#[path = "../tests/pair/mod.rs"]
mod pair;

use std::net::UdpSocket;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use ringwise_sys::CountEntries as _;
use ringwise_sys::entry_counter::EntryCounter;
use ringwise_sys::load::{pin, thread_cpu_time};
use ringwise_sys::packets::PacketListener;

const INSIDE: &str = "RINGWISE_IN_NETNS";
const PACKETS: u32 = 10_000;
const PAIRS: usize = 200;

/// What looks at the packets that arrive.
#[derive(Clone, Copy)]
enum Watcher {
    Nothing,
    /// A packet socket as `watch --per-flow` has it, with a filter that draws a random number and samples almost no packet.
    Socket,
    /// A counter for a table with this many entries.
    Counter(usize),
}

struct Bench {
    socket: UdpSocket,
    index: u32,
}

impl Bench {
    /// CPU time of a round.
    fn round(&self) -> Duration {
        let start = thread_cpu_time();
        for _ in 0..PACKETS {
            self.socket.send(&[7; 18]).expect("the pair is up");
        }
        thread_cpu_time() - start
    }

    fn counter(&self, entries: usize) -> EntryCounter {
        EntryCounter::open(self.index, &vec![0; entries]).expect("root may count")
    }

    /// CPU time of a round with this on the interface.
    fn with(&self, watcher: Watcher) -> Duration {
        match watcher {
            Watcher::Nothing => self.round(),
            Watcher::Socket => {
                let _tap = PacketListener::open("v0", 0, 1 << 31).expect("root may listen");
                self.round()
            }
            Watcher::Counter(entries) => {
                let mut counter = self.counter(entries);
                let time = self.round();
                // If another thread of the kernel had received a part of them, their cost would be missing.
                let total = counter.read().expect("the interface exists").total().packets;
                assert_eq!(total, u64::from(PACKETS), "some packets were received later");
                time
            }
        }
    }

    /// Prints quartiles of the differences of pairs, in nanoseconds for each packet.
    fn compare(&self, name: &str, watcher: Watcher) {
        let (mut differences, mut without) = (Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            let (off, on) = if pair % 2 == 0 {
                let off = self.round();
                (off, self.with(watcher))
            } else {
                let on = self.with(watcher);
                (self.round(), on)
            };
            let each = |time: Duration| time.as_nanos() as f64 / f64::from(PACKETS);
            differences.push(each(on) - each(off));
            without.push(each(off));
        }
        differences.sort_by(f64::total_cmp);
        without.sort_by(f64::total_cmp);
        let quarter = |of: &[f64], n: usize| of[of.len() * n / 4];
        println!(
            "{name:<28} {:>7.1} ns a packet (quartiles {:.1} to {:.1}), beside {:.0} ns for sending and receiving",
            quarter(&differences, 2),
            quarter(&differences, 1),
            quarter(&differences, 3),
            quarter(&without, 2),
        );
    }

    fn read(&self, entries: usize) {
        let mut counter = self.counter(entries);
        let (rounds, start) = (50, thread_cpu_time());
        for _ in 0..rounds {
            std::hint::black_box(counter.read().expect("the interface exists"));
        }
        let each = (thread_cpu_time() - start) / rounds;
        let start = Instant::now();
        drop(counter);
        let closed = start.elapsed();
        let start = Instant::now();
        let counter = self.counter(entries);
        println!(
            "{:<28} {:>7.1} us of CPU; opening took {:.1} ms, closing {:.1} ms",
            format!("one reading, {entries} entries"),
            each.as_nanos() as f64 / 1000.0,
            start.elapsed().as_secs_f64() * 1000.0,
            closed.as_secs_f64() * 1000.0,
        );
        drop(counter);
    }
}

fn inside() {
    pair::connected_pair(4);
    pin(0).expect("CPU 0 is online");
    let socket = UdpSocket::bind("0.0.0.0:0").expect("an address");
    // A connected socket gives its packets a hash.
    socket.connect("10.1.0.2:9").expect("a route");
    let bench = Bench { socket, index: ringwise_sys::ifindex("ifindex v0", "v0").expect("v0 exists") };
    for _ in 0..20 {
        bench.round();
    }
    let segments = bench.counter(1).counts_segments();
    println!("{PAIRS} pairs of rounds with {PACKETS} packets each; segments are counted: {segments}");
    bench.compare("nothing (noise)", Watcher::Nothing);
    bench.compare("sampling hardly any packet", Watcher::Socket);
    bench.compare("128 entries", Watcher::Counter(128));
    bench.compare("4,096 entries", Watcher::Counter(4096));
    bench.compare("100 entries (by division)", Watcher::Counter(100));
    bench.compare("nothing again (noise)", Watcher::Nothing);
    bench.read(128);
    bench.read(4096);
}

fn main() -> ExitCode {
    if std::env::var_os(INSIDE).is_some() {
        inside();
        return ExitCode::SUCCESS;
    }
    let me = std::env::current_exe().expect("this program has a path");
    let script = "mount -t sysfs sysfs /sys && exec \"$0\"";
    let child =
        Command::new("unshare").args(["--net", "--mount", "sh", "-c", script]).arg(me).env(INSIDE, "1").status();
    match child {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => {
            eprintln!("not measured: {status} (root is needed)");
            ExitCode::FAILURE
        }
        Err(e) => {
            eprintln!("not measured: unshare: {e}");
            ExitCode::FAILURE
        }
    }
}
