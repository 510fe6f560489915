//! Configured rings: their parameters, and the largest safe size.

use ringwise_model::{Count, Fact, Intent, Knob, NodeMemory, RingValues, Rings, Snapshot};
use ringwise_plan::{Obstacle, Plan, plan};

use crate::wishes::{configured_steps, host, intent, wrong};

/// What prevents configured settings.
fn obstacles(p: &Plan) -> Vec<&Obstacle> {
    let refused = p.refused.iter().map(|n| match &n.why {
        Obstacle::Configured { obstacle, .. } => obstacle.as_ref(),
        other => panic!("not of a configured setting: {other:?}"),
    });
    refused.collect()
}

#[test]
fn ring_parameters_that_the_driver_reports() {
    let (mut s, reported) = (host(), Rings { rx_buf_len: Some(2048), tcp_data_split: Some(false), ..Rings::default() });
    let rings = s.nics[0].rings.known().copied().unwrap();
    let hds_thresh = Some(Count { now: 0, max: 1023 });
    s.nics[0].rings = Fact::Known(Rings { rx: rings.rx, tx: rings.tx, hds_thresh, ..reported });
    let wish = |hds_thresh| RingValues { tcp_data_split: Some(true), hds_thresh, ..RingValues::default() };
    let wanted = |hds_thresh| intent(vec![Knob::Rings { values: wish(hds_thresh) }]);
    let p = plan(&s, &Intent { allow_disruption: true, ..wanted(Some(256)) }, &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 rings: tcp-data-split on hds-thresh 256"]);
    // The greatest value that the driver supports is one of them.
    let p = plan(&s, &Intent { allow_disruption: true, ..wanted(Some(1023)) }, &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 rings: tcp-data-split on hds-thresh 1023"]);
    assert_eq!(
        wrong(&s, &wanted(Some(5000))),
        [
            "eth1 rings hds_thresh 5000: the current value is 0, and the driver supports at most 1023; expected 0 to 1023"
        ]
    );
    // Nothing is requested from a driver that reports no counts: there would be no value to restore.
    let p = plan(&host(), &Intent { allow_disruption: true, ..wanted(None) }, &[]).unwrap();
    assert!(configured_steps(&p).is_empty());
    assert!(p.refused.iter().any(|n| n.why.to_string().contains("the driver reports no tcp_data_split")), "{p:?}");
}

#[test]
fn the_longest_rings_fit_into_the_memory_of_the_node() {
    let mut s = host();
    let memory = |s: &mut Snapshot, memory: Fact<NodeMemory>| {
        let Fact::Known(nodes) = &mut s.topology.nodes else { panic!() };
        nodes.values_mut().for_each(|n| n.memory = memory.clone());
    };
    let of = |bytes: u64| Fact::Known(NodeMemory { total_bytes: bytes });
    let both = intent(vec![Knob::LongestRings { rx: true, tx: true }]);
    let planned = |s: &Snapshot| plan(s, &Intent { allow_disruption: true, ..both.clone() }, &[]).unwrap();
    // The buffers of eight queues take 16 KiB for each descriptor.
    for (gib_64ths, want) in [(64 * 64, "rx 4096 tx 4096"), (64, "rx 1024 tx 1024")] {
        memory(&mut s, of(gib_64ths << 24));
        assert_eq!(configured_steps(&planned(&s)), [format!("eth1 rings: {want}")]);
    }
    // Rings are not made shorter.
    memory(&mut s, of(128 << 20));
    assert!(configured_steps(&planned(&s)).is_empty());
    // Jumbo frames need more.
    memory(&mut s, of(4 << 30));
    s.nics[0].link.mtu = Fact::Known(9000);
    assert!(configured_steps(&planned(&s)).is_empty(), "512 as now");
    memory(&mut s, of(8 << 30));
    assert_eq!(configured_steps(&planned(&s)), ["eth1 rings: rx 1024 tx 1024"]);
    // The queues after the plan count: two instead of eight.
    let fewer = Intent { queues: Some(2), allow_disruption: true, ..both.clone() };
    assert!(configured_steps(&plan(&s, &fewer, &[]).unwrap()).contains(&"eth1 rings: rx 4096 tx 4096".to_string()));
    // A later entry for one end overrides it.
    let mut one = both.clone();
    one.wishes.extend(intent(vec![Knob::Rings { values: RingValues::sizes(None, Some(2048)) }]).wishes);
    let p = plan(&s, &Intent { allow_disruption: true, ..one }, &[]).unwrap();
    assert_eq!(configured_steps(&p), ["eth1 rings: rx 1024 tx 2048"]);
    // Without a size of the memory nothing is guessed.
    memory(&mut s, Fact::Absent);
    let p = planned(&s);
    assert!(configured_steps(&p).is_empty());
    assert_eq!(obstacles(&p), [&Obstacle::NoNodeMemory { why: None }]);
    memory(&mut s, of(8 << 30));
    s.nics[0].node = Fact::unknown("numa_node", "EACCES Permission denied");
    let p = planned(&s);
    assert!(configured_steps(&p).is_empty());
    assert!(matches!(obstacles(&p)[..], [Obstacle::NoNodeMemory { why: Some(_) }]), "{p:?}");
}
