//! Reading one address again gives the same value as a complete discovery.

use std::sync::Arc;
use std::time::Duration;

use ringwise_discover::{Options, read_address, snapshot};
use ringwise_knob::{Address, Setting, VectorName, live, live_of_device};
use ringwise_model::{CpuId, Fact, Snapshot};
use ringwise_sys::Host;
use ringwise_testkit::sim::{Sim, build};

use crate::common::machine::{Machine, eth1_plan};

const TIME: Duration = Duration::from_secs(60);

fn whole(host: &Arc<dyn Host>) -> Snapshot {
    snapshot(host, &Options { deadline: TIME, ..Options::all() }).unwrap()
}

/// Every setting of the host, known or not.
fn addresses(s: &Snapshot) -> Vec<Address> {
    let mut out: Vec<Address> = s.nics.iter().flat_map(|n| live_of_device(s, n.name()).into_keys()).collect();
    out.push(Address::RfsEntries);
    out.extend(s.host.sysctls.keys().map(|name| Address::Sysctl { name: name.clone() }));
    out.extend(s.host.cpu_latency.keys().map(|cpu| Address::CpuLatency { cpu: *cpu }));
    out
}

#[test]
fn an_address_reads_as_the_whole_host_does() {
    let first = build::host(8, 2).kernel("6.12").igb("eth1", 0, 8).mqnic("mq0", 1, 8).done();
    let dev = first.nics.iter().find(|n| n.rx_queues.len() > 2).unwrap().dev.name.clone();
    let d = || dev.clone();
    let set = |list: &str| list.parse().unwrap();
    let changes = [
        Setting::Rings { dev: d(), values: ringwise_model::RingValues::sizes(Some(512), None) },
        Setting::IrqCpus { dev: d(), of: VectorName::Rx(1), cpus: set("3"), on: None },
        Setting::XpsCpus { dev: d(), queue: 1, cpus: set("1-2") },
        Setting::XpsRxqs { dev: d(), queue: 2, rxqs: vec![1] },
        Setting::RpsCpus { dev: d(), queue: 1, cpus: set("0,2") },
        Setting::RpsFlowCnt { dev: d(), queue: 1, entries: 500 },
        Setting::RfsEntries { entries: 5000 },
        Setting::CpuLatency { cpu: CpuId(1), value: "7".into() },
        Setting::Sysctl { name: "net.core.netdev_budget".into(), value: "555".into() },
        Setting::Sysctl { name: "net.core.rps_default_mask".into(), value: "3".into() },
    ];
    let then = ringwise_testkit::project::project(&first, &changes);
    let (before, after): (Arc<dyn Host>, Arc<dyn Host>) = (Arc::new(Sim::new(&first)), Arc::new(Sim::new(&then)));
    let (mut now, target) = (whole(&before), whole(&after));
    for c in &changes {
        let a = c.address().unwrap();
        assert_ne!(live(&now, &a), live(&target, &a), "{a}: the test changes nothing");
    }
    let all = addresses(&target);
    assert!(all.len() > 40, "{}", all.len());
    for a in &all {
        assert_eq!(read_address(&after, &mut now, a, TIME), live(&target, a), "{a}");
    }
    // The machine's other parts were not touched.
    now.host.irqbalance = target.host.irqbalance.clone();
    assert_eq!(addresses(&now), all);
}

#[test]
fn an_errno_means_the_same_in_both() {
    let mut m = Machine::new(8, 2);
    m.nic(&eth1_plan("igb"));
    let mut whole_tree = m.finish();
    for queue in 0..2 {
        let dev = || "eth1".to_string();
        let files = [
            (Address::XpsCpus { dev: dev(), queue }, "3"),
            (Address::XpsRxqs { dev: dev(), queue }, "1"),
            (Address::RpsCpus { dev: dev(), queue }, "c"),
            (Address::RpsFlowCnt { dev: dev(), queue }, "512"),
        ];
        files.into_iter().for_each(|(a, text)| _ = whole_tree.file(a.file().unwrap(), text));
    }
    let s = whole(&whole_tree.shared());
    let mut seen = 0;
    for a in addresses(&s) {
        let Some(path) = a.file().filter(|p| whole_tree.files.contains_key(p)) else { continue };
        for errno in [1, 5, 13] {
            let mut t = whole_tree.clone();
            t.error(path.clone(), errno);
            let host = t.shared();
            let (mut now, target) = (s.clone(), whole(&host));
            let (got, expected) = (read_address(&host, &mut now, &a, TIME), live(&target, &a));
            assert!(matches!(&got, Fact::Unknown(u) if u.errno == Some(errno)), "{a}: {got:?}");
            assert_eq!(got, expected, "{a}");
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}
