//! CPU time of a sample with many queues and of the rates since the one before: it covers parsing the kernel's replies,
//! not the kernel's part. `cargo bench -p ringwise-observe` prints microseconds of CPU time.

use std::hint::black_box;

use ringwise_model::{CpuId, IrqId, NodeId};
use ringwise_observe::{Layout, Rates, Sampler, Wiring};
use ringwise_testkit::counting::{Counting, FIRST_IRQ, MachineSize, QUEUE_BYTES, QUEUE_INTERRUPTS, QUEUE_PACKETS};

/// Vectors that raise interrupts between two samples; the files of the others are not read again.
const BUSY: u32 = 64;

fn layout(size: MachineSize) -> Layout {
    let wiring = |nic: u32| {
        let queues = (0..size.queues).map(|q| (q, Some(IrqId(FIRST_IRQ + nic * size.queues + q))));
        Wiring { driver: Some("igb".into()), rx: queues.clone().collect(), tx: queues.collect(), ..Wiring::default() }
    };
    Layout {
        links: (0..size.nics).map(|n| (format!("eth{n}"), wiring(n))).collect(),
        nodes: (0..size.cpus).map(|c| (CpuId(c), NodeId(c / 128))).collect(),
    }
}

/// The CPU time of this thread in nanoseconds: the first number of its `schedstat`.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel counts it");
    text.split(' ').next().and_then(|w| w.parse().ok()).expect("a number")
}

fn main() {
    for (cpus, nics, queues, rounds) in [(64, 1, 64, 2000), (128, 4, 128, 200), (512, 16, 128, 60)] {
        for qstats in [true, false] {
            let size = MachineSize { cpus, nics, queues, busy: BUSY, qstats };
            let machines = [Counting::after(0, size), Counting::after(1, size)];
            let layout = layout(size);
            let mut sampler = Sampler::new(&machines[0], &layout, false);
            let mut before = sampler.read(&machines[0]);
            let check = Rates::between(&layout, &before, &sampler.read(&machines[1])).expect("a second later");
            let q = &check.links["eth0"].queues[5];
            let told = (q.packets, q.bytes, q.drops, q.interrupts);
            assert_eq!(told, (Some(QUEUE_PACKETS), Some(QUEUE_BYTES), Some(1), Some(QUEUE_INTERRUPTS)));
            let (mut reading, mut comparing, mut at) = (0, 0, 1);
            sampler.read(&machines[0]);
            for _ in 0..rounds {
                let start = cpu_ns();
                let now = sampler.read(&machines[at]);
                let read = cpu_ns();
                // Alternate, because files of vectors without new interrupts would not be read.
                let (first, second) = if at == 1 { (&before, &now) } else { (&now, &before) };
                black_box(Rates::between(&layout, first, second));
                before = now;
                at = 1 - at;
                reading += read - start;
                comparing += cpu_ns() - read;
            }
            println!(
                "{cpus:>3} CPUs, {:>4} queues in each direction, {:<10}  reading {:>9.1} us  comparing {:>9.1} us",
                nics * queues,
                if qstats { "qstats" } else { "ethtool -S" },
                reading as f64 / f64::from(rounds) / 1000.0,
                comparing as f64 / f64::from(rounds) / 1000.0,
            );
        }
    }
}
