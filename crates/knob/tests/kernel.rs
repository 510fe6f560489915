//! How the kernel treats settings: the masks that it prints, removed queues, and the meaning of its errors.

use ringwise_knob::{Address, Family, Match, Reaction, Setting, VectorName, compare, project, react};
use ringwise_model::errno::ENOSPC;
use ringwise_model::{CpuId, Dir, Fact};

use crate::commands::host;

/// Masks have groups of 32 CPUs separated by commas, with or without leading zeros.
#[test]
fn masks_of_more_than_32_cpus_are_compared_by_cpu() {
    let name = "net.core.flow_limit_cpu_bitmap";
    let compared = |want: &str, live: &str| {
        let mut s = host();
        s.host.sysctls.insert(name.into(), Fact::Known(live.into()));
        compare(&Setting::Sysctl { name: name.into(), value: want.into() }, &s)
    };
    for same in ["00000001,00000000", "1,0"] {
        assert_eq!(compared("1,00000000", same), Match::Same, "{same}");
    }
    for other in ["2", "1", "00000002,00000000", "1,00000000,00000000"] {
        assert_eq!(compared("1,00000000", other), Match::Differs, "{other}");
    }
}

#[test]
fn interrupts_of_removed_queues_are_removed() {
    let mut s = host();
    let fewer = Setting::Channels { dev: "eth0".into(), rx: None, tx: None, combined: Some(2) };
    project(&mut s, &fewer).expect("can be projected");
    let nic = s.nic("eth0").expect("there");
    let left = |dir| (0..4).filter(|q| nic.vector_of(dir, *q).is_some()).collect::<Vec<u32>>();
    assert_eq!((left(Dir::Rx), left(Dir::Tx)), (vec![0, 1], vec![0, 1]));
    assert_eq!(nic.queue_vectors().count(), 2);
}

/// Reaction and message of an error depend on the setting.
#[test]
fn the_meaning_of_an_error_depends_on_the_setting() {
    const ENOENT: i32 = 2;
    const EINVAL: i32 = 22;
    let sysctl = Address::Sysctl { name: "net.core.netdev_budget".into() };
    let (reaction, why) = react(&sysctl, Some(ENOENT));
    assert!(reaction == Reaction::Refused && why.contains("no such sysctl"), "{why}");
    let queue = Address::RpsCpus { dev: "eth0".into(), queue: 3 };
    let (reaction, why) = react(&queue, Some(ENOENT));
    assert!(reaction == Reaction::Fail && why.contains("the queue no longer exists"), "{why}");
    for (address, word) in [
        (Address::NapiThread { dev: "eth0".into(), of: VectorName::Rx(0) }, "no CPU of the set is online"),
        (Address::IrqCpus { dev: "eth0".into(), of: VectorName::Rx(0) }, "no CPU of the set is online"),
        (Address::RssTable { dev: "eth0".into() }, "a queue that does not exist"),
        (Address::FlowRule { dev: "eth0".into(), location: 1 }, "the driver refuses the rule"),
    ] {
        let (reaction, why) = react(&address, Some(EINVAL));
        assert!(reaction == Reaction::Fail && why.contains(word), "{address}: {why}");
    }
    const EOPNOTSUPP: i32 = 95;
    for (address, errno) in [
        (Address::CpuLatency { cpu: CpuId(0) }, ENOENT),
        (Address::Feature { dev: "eth0".into(), name: "rx-lro".into() }, EOPNOTSUPP),
    ] {
        assert_eq!(react(&address, Some(errno)).0, Reaction::Refused, "{address}");
    }
}

#[test]
fn families_have_the_names_that_people_use() {
    let dev = || "eth0".to_string();
    for (address, title) in [
        (Address::XpsCpus { dev: dev(), queue: 0 }, "XPS CPUs"),
        (Address::IrqCpus { dev: dev(), of: VectorName::Rx(0) }, "interrupt CPU"),
        (Address::Pause { dev: dev() }, "pause frames"),
        (Address::Coalesce { dev: dev() }, "moderation"),
        (Address::FlowRule { dev: dev(), location: 1 }, "flow rules"),
        (Address::RfsEntries, "RFS entries"),
    ] {
        assert_eq!(address.family().title(), title);
    }
    assert_eq!(Family::Rss.title(), "RSS");
}

/// Both errors of exhausted vectors name the page with what frees some.
#[test]
fn exhausted_vectors_have_a_next_step() {
    let channels = Address::Channels { dev: "eth0".into() };
    let irq = Address::IrqCpus { dev: "eth0".into(), of: VectorName::Rx(0) };
    for address in [channels, irq] {
        let (reaction, why) = react(&address, Some(ENOSPC));
        assert_eq!(reaction, Reaction::Fail, "{address}");
        assert!(why.contains("vector") && why.ends_with("(ringwise check --explain A10)"), "{address}: {why}");
    }
}
