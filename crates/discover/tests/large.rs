//! A big machine is read whole; its time and memory are measured by the benchmarks of `crates/cli`.

use std::time::Duration;

use crate::common::Tree;
use crate::common::machine::{Machine, NicPlan, igb};
use ringwise_discover::{Options, snapshot};

fn big() -> Tree {
    let mut m = Machine::new(512, 8);
    for i in 0..16 {
        let (name, bus) = (format!("eth{i}"), format!("0000:{:02x}:00.0", i + 16));
        m.nic(&NicPlan {
            name: &name,
            driver: "ixgbe",
            bus: &bus,
            node: i % 8,
            queues: 128,
            vectors: igb(&name, 128),
            up: true,
            genl_first: None,
        });
    }
    m.finish()
}

#[test]
fn half_a_thousand_cpus_and_two_thousand_queues() {
    let tree = big();
    let host = tree.shared();
    drop(tree);
    // Debug builds on a loaded machine are slower than the deadline of a device.
    let options = Options { deadline: Duration::from_secs(60), ..Options::all() };
    let s = snapshot(&host, &options).unwrap();
    assert_eq!(s.topology.cpus.len(), 512);
    assert_eq!(s.nics.iter().map(|n| n.queue_vectors().count()).sum::<usize>(), 2048);
    assert!(s.nics.iter().all(|n| n.unread.is_empty()));
}
