//! The number of queues of one direction is unknown: the plan must not calculate with 0.

use ringwise_knob::{Address, Setting};
use ringwise_model::{Channels, ConfiguredBy, Count, CpuSet, Dir, Fact, Intent, Knob, Snapshot, Unread, Wish};
use ringwise_plan::{Obstacle, Plan, Refusal, plan};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::topo::CpuSpec;

/// Four receive queues and four transmit queues, but sysfs lists no directory of a transmit queue.
fn host(channels: Fact<Channels>) -> Snapshot {
    let nic = NicSpec::new("eth1", "ice", Some(0), 4, 8);
    let mut s = machines::host("edge3", CpuSpec::flat(8, 1), vec![nic]).snapshot();
    s.nics[0].tx_queues.clear();
    s.nics[0].channels = channels;
    s
}

fn channels(rx: Option<u32>, tx: Option<u32>, combined: Option<u32>) -> Fact<Channels> {
    let count = |n: Option<u32>| n.map(|now| Count { now, max: 8 });
    Fact::Known(Channels { rx: count(rx), tx: count(tx), combined: count(combined), other: None })
}

fn unread() -> Fact<Channels> {
    Fact::Unknown(Unread::new("channels-get eth1", Some(5), "input/output error"))
}

fn wish(knob: Knob) -> Intent {
    let wish = Wish {
        dev: Some("eth1".into()),
        knob,
        by: ConfiguredBy::Flag { name: "--set".into() },
        params_by: Default::default(),
    };
    Intent { wishes: vec![wish], allow_disruption: true, ..Intent::default() }
}

fn ok(s: &Snapshot, intent: &Intent) -> Plan {
    plan(s, intent, &[]).unwrap_or_else(|r| panic!("{r}"))
}

#[test]
fn counts_come_from_the_driver_or_the_directories() {
    let of = |s: &Snapshot| (s.nics[0].queues_in_use(Dir::Rx), s.nics[0].queues_in_use(Dir::Tx));
    assert_eq!(of(&host(channels(None, None, Some(4)))), (Some(4), Some(4)));
    assert_eq!(of(&host(channels(Some(4), None, None))), (Some(4), None));
    assert_eq!(of(&host(channels(None, None, None))), (Some(4), None));
    assert_eq!(of(&host(channels(None, None, Some(2)))), (Some(2), Some(2)), "no more than the driver reports");
    let mut s = host(unread());
    s.nics[0].rx_queues.clear();
    assert_eq!(of(&s), (None, None));
    assert!(matches!(plan(&s, &Intent::default(), &[]), Err(Refusal::NothingTunable { .. })));
}

#[test]
fn unknown_transmit_queues_get_no_xps_and_are_reported() {
    let p = ok(&host(unread()), &Intent::default());
    assert!(p.target.iter().all(|t| !matches!(t, Setting::XpsCpus { .. })), "{:?}", p.target);
    let why: Vec<String> = p.refused.iter().filter(|r| r.what == "eth1 XPS CPUs").map(|r| r.why.to_string()).collect();
    assert_eq!(why, ["the number of its transmit queues is unknown"]);
    // Receive interrupts are still placed.
    assert!(p.steps.iter().any(|s| matches!(s.setting, Setting::IrqCpus { .. })));
}

#[test]
fn the_current_number_of_queues_is_no_change() {
    let intent = Intent { queues: Some(4), allow_disruption: true, ..Intent::default() };
    let four = |s: &Snapshot| ok(s, &intent).steps.iter().any(|s| matches!(s.setting, Setting::Channels { .. }));
    assert!(!four(&host(channels(None, None, Some(4)))), "no interruption for a direction that is not listed");
}

#[test]
fn settings_of_unknown_queues_cannot_be_configured() {
    let cpus: CpuSet = "3".parse().unwrap();
    for queues in [None, Some(vec![2])] {
        let p = ok(&host(unread()), &wish(Knob::XpsCpus { queues, cpus: cpus.clone() }));
        let configured = |why: &Obstacle| match why {
            Obstacle::Configured { obstacle, .. } => Some((**obstacle).clone()),
            _ => None,
        };
        let why: Vec<Obstacle> = p.refused.iter().filter_map(|r| configured(&r.why)).collect();
        assert_eq!(why, [Obstacle::QueueCountUnknown { direction: "tx".into() }]);
    }
}

#[test]
fn a_driver_that_counts_one_direction_keeps_the_other() {
    let fewer = Knob::Channels { rx: Some(2), tx: None, combined: None };
    let p = ok(&host(channels(Some(4), None, None)), &wish(fewer));
    let want = Setting::Channels { dev: "eth1".into(), rx: Some(2), tx: None, combined: None };
    assert!(p.steps.iter().any(|s| s.setting == want), "{:?}", p.steps);
    assert!(!p.steps.iter().any(|s| matches!(s.setting.address(), Some(Address::XpsCpus { .. }))));
    // A count of 0 is still refused, with the direction that is known.
    let none = wish(Knob::Channels { rx: Some(0), tx: None, combined: None });
    let Err(Refusal::WrongWishes { wrong }) = plan(&host(channels(Some(4), None, None)), &none, &[]) else { panic!() };
    assert_eq!((wrong[0].mistake.found().as_str(), wrong.len()), ("0 receive queues would be left", 1));
}
