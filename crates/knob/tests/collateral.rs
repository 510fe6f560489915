//! Side effects of a write on other settings: they are recorded before the write and restored if they changed.

use std::collections::BTreeSet;

use ringwise_knob::{Address, Family, VectorName, collateral, live};
use ringwise_model::{Count, Fact, Feature, Rings, Rss, Snapshot};
use ringwise_testkit::machines::{HostSpec, NicSpec};
use ringwise_testkit::topo::CpuSpec;

fn host() -> Snapshot {
    let nic = |name: &str| NicSpec::new(name, "ice", Some(0), 4, 4);
    let mut s = HostSpec {
        name: "edge3".into(),
        cpu: CpuSpec::flat(8, 1),
        nics: vec![nic("eth0"), nic("eth1")],
        bonds: Vec::new(),
        rps_sock_flow_entries: 0,
        control: Vec::new(),
        held: Vec::new(),
    }
    .snapshot();
    for n in &mut s.nics {
        let count = |now| Some(Count { now, max: 4096 });
        n.rings = Fact::Known(Rings { rx: count(512), tx: count(512), ..Rings::default() });
        n.rss = Fact::Known(Rss {
            table: vec![0, 1, 2, 3],
            function: Fact::Absent,
            key: Fact::Absent,
            fields: Default::default(),
            symmetric: Fact::Absent,
            contexts: Fact::Absent,
        });
        let feature = |on| Feature { on, wanted: on, fixed: false };
        n.features =
            Fact::Known([("rx-gro".to_string(), feature(true)), ("rx-lro".to_string(), feature(false))].into());
    }
    s
}

fn families(s: &Snapshot, touched: &[Address]) -> BTreeSet<Family> {
    collateral(s, touched).keys().map(Address::family).collect()
}

#[test]
fn a_change_of_channels_disturbs_what_belongs_to_queues() {
    let s = host();
    let all = collateral(&s, &[Address::Channels { dev: "eth0".into() }]);
    let queue = 3;
    for address in [
        Address::IrqCpus { dev: "eth0".into(), of: VectorName::Rx(queue) },
        Address::XpsCpus { dev: "eth0".into(), queue },
        Address::RpsCpus { dev: "eth0".into(), queue },
        Address::RpsFlowCnt { dev: "eth0".into(), queue },
        Address::RssTable { dev: "eth0".into() },
        Address::Rings { dev: "eth0".into() },
    ] {
        assert_eq!(all.get(&address), live(&s, &address).known(), "{address}");
    }
    // The written setting itself is no side effect, and the other device stays unchanged.
    assert!(!all.contains_key(&Address::Channels { dev: "eth0".into() }));
    assert!(all.keys().all(|a| a.dev() == Some("eth0")), "{all:?}");
}

#[test]
fn a_change_of_rings_leaves_rps_and_rfs() {
    let found = families(&host(), &[Address::Rings { dev: "eth0".into() }]);
    assert!(found.is_superset(&[Family::Rss, Family::Irq, Family::Xps].into()), "{found:?}");
    assert!(found.is_disjoint(&[Family::Rings, Family::Rps, Family::Rfs].into()), "{found:?}");
}

/// A feature that the kernel handles alone affects only other features; a feature of the device may restart the device.
#[test]
fn a_feature_of_software_disturbs_less() {
    let of = |name: &str| families(&host(), &[Address::Feature { dev: "eth0".into(), name: name.into() }]);
    assert_eq!(of("rx-gro"), [Family::Features].into());
    assert!(of("rx-lro").is_superset(&[Family::Features, Family::Rss, Family::Irq].into()));
}

#[test]
fn a_mask_disturbs_nothing_and_each_device_counts() {
    let s = host();
    let mask = Address::XpsCpus { dev: "eth0".into(), queue: 0 };
    assert!(collateral(&s, [&mask]).is_empty());
    let rings = |dev: &str| Address::Rings { dev: dev.into() };
    let (one, two) = (collateral(&s, [&rings("eth0")]), collateral(&s, &[rings("eth0"), mask, rings("eth1")]));
    assert_eq!((two.len(), two.keys().filter(|a| a.dev() == Some("eth1")).count()), (2 * one.len(), one.len()));
    assert!(collateral(&s, [&rings("eth7")]).is_empty(), "a device that does not exist");
}

/// Some drivers report a table without entries: there is nothing to write or to restore.
#[test]
fn an_rss_table_without_entries_is_absent() {
    let mut s = host();
    let address = Address::RssTable { dev: "eth0".into() };
    assert!(live(&s, &address).is_known());
    let Fact::Known(rss) = &mut s.nics[0].rss else { panic!("there is one") };
    rss.table.clear();
    assert!(live(&s, &address).is_absent());
    assert!(!collateral(&s, &[Address::Channels { dev: "eth0".into() }]).contains_key(&address));
}
