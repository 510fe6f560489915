//! Goal `forward`: a port that appears late gets the layout that the other ports have.

use std::collections::BTreeSet;

use ringwise_knob::Setting;
use ringwise_model::{CpuId, CpuSet, Fact, Goal, Intent, Snapshot};
use ringwise_plan::{ManualChanges, Plan, plan_around};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::topo::CpuSpec;

/// Eight CPUs and two ports with four queues: the interrupt of queue n of eth0 is on CPU n, that of eth1 on CPU 3 - n.
fn host() -> Snapshot {
    let spec = |name| NicSpec::new(name, "igb", Some(0), 4, 4);
    let mut s = machines::host("edge3", CpuSpec::flat(4, 1), vec![spec("eth0"), spec("eth1")]).snapshot();
    for (dev, cpus) in [(0, [0, 1, 2, 3]), (1, [3, 2, 1, 0])] {
        for v in &mut s.nics[dev].vectors {
            if let Some(q) = v.rx().first() {
                let at: CpuSet = [CpuId(cpus[*q as usize])].into_iter().collect();
                (v.asked, v.effective) = (Fact::Known(at.clone()), Fact::Known(at));
            }
        }
    }
    s
}

fn planned(late: &[&str]) -> Plan {
    let late: BTreeSet<String> = late.iter().map(ToString::to_string).collect();
    let intent = Intent { goal: Goal::Forward, ..Intent::default() };
    plan_around(&host(), &intent, &[], &ManualChanges { late, ..ManualChanges::default() }).unwrap()
}

/// Interfaces whose interrupts the plan moves.
fn moved(p: &Plan) -> BTreeSet<String> {
    let steps = p.steps.iter().filter(|s| matches!(s.setting, Setting::IrqCpus { .. }));
    steps.filter_map(|s| s.setting.dev().map(str::to_string)).collect()
}

#[test]
fn a_late_port_gets_the_layout_of_the_other_ports() {
    assert_eq!(moved(&planned(&["eth0"])), ["eth0".to_string()].into());
    assert_eq!(moved(&planned(&["eth1"])), ["eth1".to_string()].into());
}

#[test]
fn ports_that_are_all_late_have_the_layout_of_the_first() {
    assert_eq!(moved(&planned(&["eth0", "eth1"])), moved(&planned(&[])));
    assert_eq!(moved(&planned(&[])), ["eth1".to_string()].into());
}
