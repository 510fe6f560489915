//! A host that was recorded while it was read gives the same snapshot again.

use std::sync::Arc;

use crate::common::machine::{Machine, NicPlan, igb};
use ringwise_discover::{Options, forget_others, snapshot};
use ringwise_kfmt::net_shaper_nl::shaper_reply;
use ringwise_model::{Fact, IfIndex, Shaper, ShaperPlace, Shapers};
use ringwise_sys::{CaptureRecorder, Captured, Host, Request};

#[test]
fn recorded_and_read_again() {
    let mut m = Machine::new(8, 2);
    m.tree.file("/proc/4711/comm", "secret-program\n");
    let vectors = igb("eth1", 8);
    let plan = NicPlan {
        name: "eth1",
        driver: "igb",
        bus: "0000:03:00.0",
        node: 1,
        queues: 8,
        vectors,
        up: true,
        genl_first: None,
    };
    m.nic(&plan);
    let vectors = ["virtio4-config", "virtio4-input.0", "virtio4-output.0"].map(str::to_string).to_vec();
    m.nic(&NicPlan { name: "eth2", driver: "virtio_net", bus: "0000:04:00.0", queues: 1, vectors, ..plan });
    let mut tree = m.finish();
    let limit = Shaper {
        parent: Some(ShaperPlace::Device),
        max_rate: Some(100_000_000),
        ..Shaper::unset(ShaperPlace::Queue(3))
    };
    let reply = shaper_reply(IfIndex(2), &limit).unwrap();
    tree.reply(Request::NetShaperDump { dev: "eth1".into() }, vec![reply]);
    // ENOENT: a kernel without the family.
    tree.kernel.insert(Request::NetShaperDump { dev: "eth2".into() }, Err(2));
    tree.error("/proc/irq/31/smp_affinity_list", 13);
    tree.error("/proc/irq/31/smp_affinity", 13);

    let recorder = Arc::new(CaptureRecorder::new(tree.host()));
    let live = snapshot(&(recorder.clone() as Arc<dyn Host>), &Options::all()).unwrap();
    assert_eq!(live.nic("eth2").unwrap().queue_vectors().count(), 2);
    let mut recording = recorder.finish();
    forget_others(&mut recording);
    assert!(!format!("{recording:?}").contains("4711"));

    let path = std::env::temp_dir().join(format!("ringwise-discover-{}.tar.gz", std::process::id()));
    recording.write_tar(&path).unwrap();
    let again: Arc<dyn Host> = Arc::new(Captured::open(&path).unwrap());
    let then = snapshot(&again, &Options::all()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(then.host.rivals, Fact::Known(vec!["irqbalance".into()]));
    assert_eq!(then, live);
    assert_eq!(then.nic("eth1").unwrap().shapers, Fact::Known(Shapers::Set(vec![limit])));
    assert_eq!(then.nic("eth2").unwrap().shapers, Fact::Known(Shapers::NotInKernel));
    assert_eq!(then.nic("eth1").unwrap().unread[0].why, "needs root");
}
