//! Interrupts of network functions whose interface is in another network namespace.

use ringwise_model::{
    CpuId, CpuSet, Fact, FunctionVector, FunctionWithoutInterface, Intent, IrqId, Role, Sample, SampledInterface,
    SampledQueue, Snapshot, TrafficSample,
};
use ringwise_plan::{Obstacle, Plan, plan};
use ringwise_testkit::machines::{NicSpec, host};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::CpuSpec;

/// Eight cores, an interface with four queues, and a function whose queues are on these CPUs.
fn with(elsewhere: &[u32]) -> Snapshot {
    let nic = NicSpec::new("eth1", "igb", Some(0), 4, 4);
    let mut s = host("edge3", CpuSpec::flat(8, 1), vec![nic]).snapshot();
    let vector = |(q, cpu): (u32, &u32)| FunctionVector {
        irq: IrqId(500 + q),
        names: vec![format!("eth5-TxRx-{q}")],
        role: Role::Queues { rx: vec![q], tx: vec![q] },
        cpus: Fact::Known(CpuSet::one(CpuId(*cpu))),
    };
    s.without_interface.push(FunctionWithoutInterface {
        bus_address: "0000:05:00.0".into(),
        driver: "igb".into(),
        in_other_namespace: true,
        vectors: Fact::Known((0..).zip(elsewhere).map(vector).collect()),
    });
    s
}

fn planned(s: &Snapshot) -> Plan {
    plan(s, &Intent::default(), &[]).expect("can be planned")
}

fn cpus(p: &Plan) -> Vec<u32> {
    p.layout[0].queues.iter().filter_map(|q| q.cpu.map(|c| c.0)).collect()
}

#[test]
fn queues_avoid_cpus_that_serve_another_namespace() {
    assert_eq!(cpus(&planned(&with(&[]))), [0, 1, 2, 3]);
    assert_eq!(cpus(&planned(&with(&[0, 2]))), [1, 3, 4, 5]);
    // With all CPUs in use, those with the fewest interrupts are chosen.
    assert_eq!(cpus(&planned(&with(&[0, 0, 1, 2, 3, 4, 5, 6, 7, 2]))), [1, 3, 4, 5]);
}

#[test]
fn queues_leave_a_cpu_that_another_namespace_uses_and_stay_otherwise() {
    let first = planned(&with(&[]));
    let mut s = project(&with(&[6, 7]), &first.target);
    assert_eq!(planned(&s).steps, [], "CPUs 6 and 7 are of no use to eth1");
    s.without_interface = with(&[2, 3]).without_interface;
    let p = planned(&s);
    assert_eq!(cpus(&p)[..2], [0, 1]);
    assert!(cpus(&p)[2..].iter().all(|c| *c > 3), "{:?}", cpus(&p));
    assert_eq!(planned(&project(&s, &p.target)).steps, []);
}

/// The sample does not count the packets of the other namespace, so its CPU is not idle although no packets were counted there.
#[test]
fn a_sample_moves_no_queue_to_a_cpu_of_another_namespace() {
    let nics = vec![NicSpec::new("eth1", "igb", Some(0), 4, 4), NicSpec::new("eth2", "igb", Some(0), 4, 4)];
    let mut s = host("edge3", CpuSpec::flat(5, 1), nics).snapshot();
    s.without_interface = with(&[4, 4, 4, 4]).without_interface;
    let queue = |queue| SampledQueue { queue, packets: Some(10_000), bytes: None, interrupts: None, cpu: None };
    let interface = |dev: &str| SampledInterface {
        dev: dev.into(),
        frames: Some(40_000),
        bytes: None,
        queues: (0..4).map(queue).collect(),
    };
    let interfaces = vec![interface("eth1"), interface("eth2")];
    let sample = Sample::Taken(TrafficSample { duration_ms: 1000, cpus: Vec::new(), interfaces });
    let on_4 = |s: &Snapshot| {
        let p = plan(s, &Intent { sample: Some(sample.clone()), ..Intent::default() }, &[]).unwrap();
        p.layout.iter().flat_map(|d| &d.queues).filter(|q| q.cpu == Some(CpuId(4))).count()
    };
    assert_eq!(on_4(&s), 0);
    s.without_interface.clear();
    assert!(on_4(&s) > 0);
}

#[test]
fn the_function_is_listed_as_skipped() {
    let p = planned(&with(&[0]));
    let why = Obstacle::OtherNamespace { driver: "igb".into() };
    assert!(p.left_alone.iter().any(|l| l.dev == "0000:05:00.0" && l.why == why), "{:?}", p.left_alone);
}
