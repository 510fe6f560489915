//! Manual changes: marked, kept, adopted.

use ringwise_knob::{ChangeWindow, ManualChange, Origin, Setting, VectorName};
use ringwise_model::{CpuSet, Fact, Goal, Intent, Snapshot};
use ringwise_plan::{ManualChanges, Plan, plan, plan_around};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::topo::CpuSpec;

fn set(s: &str) -> CpuSet {
    s.parse().expect("a list")
}

/// Two nodes of four cores with two threads, tuned except for what the tests change.
fn tuned() -> Snapshot {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) };
    let nic = NicSpec::new("eth1", "igb", Some(0), 4, 8);
    let mut s = machines::host("edge3", cpu, vec![nic]).snapshot();
    for step in plan(&s, &Intent::default(), &[]).expect("can be planned").steps {
        set_to(&mut s, &step.setting);
    }
    assert!(plan(&s, &Intent::default(), &[]).expect("can be planned").steps.is_empty());
    s
}

fn set_to(s: &mut Snapshot, to: &Setting) {
    let nic = s.nics.iter_mut().find(|n| n.dev.name == "eth1").expect("there");
    match to {
        Setting::IrqCpus { of: VectorName::Rx(q), cpus, .. } => {
            let v = nic.vectors.iter_mut().find(|v| v.rx().contains(q)).expect("there");
            (v.asked, v.effective) = (Fact::Known(cpus.clone()), Fact::Known(cpus.clone()));
        }
        Setting::XpsCpus { queue, cpus, .. } => nic.tx_queues[*queue as usize].xps_cpus = Fact::Known(cpus.clone()),
        Setting::RpsCpus { queue, cpus, .. } => nic.rx_queues[*queue as usize].rps_cpus = Fact::Known(cpus.clone()),
        other => panic!("{other:?}"),
    }
}

fn hand(origin: Origin, setting: Setting, applied: &str) -> ManualChange {
    let was = match &setting {
        Setting::IrqCpus { dev, of, .. } => {
            Setting::IrqCpus { dev: dev.clone(), of: *of, cpus: set(applied), on: None }
        }
        Setting::XpsCpus { dev, queue, .. } => Setting::XpsCpus { dev: dev.clone(), queue: *queue, cpus: set(applied) },
        other => other.clone(),
    };
    let changed = (origin == Origin::ByHand).then_some(ChangeWindow { after: 100, by: Some(130) });
    ManualChange { origin, setting, applied: was, transaction: 12, changed }
}

/// The interrupt of queue 2 was moved manually to CPU 9 on the remote node.
fn moved() -> (Snapshot, Setting) {
    let mut s = tuned();
    let setting = Setting::IrqCpus { dev: "eth1".into(), of: VectorName::Rx(2), cpus: set("9"), on: None };
    set_to(&mut s, &setting);
    (s, setting)
}

fn around(s: &Snapshot, hands: ManualChanges) -> Plan {
    plan_around(s, &Intent::default(), &[], &hands).expect("can be planned")
}

#[test]
fn a_step_that_undoes_a_manual_change_is_marked() {
    let (s, setting) = moved();
    let h = hand(Origin::ByHand, setting.clone(), "4");
    let other = hand(Origin::ByHand, Setting::XpsCpus { dev: "eth9".into(), queue: 0, cpus: set("1") }, "2");
    let p = around(&s, ManualChanges { mark: vec![h.clone(), other], keep: vec![], ..ManualChanges::default() });
    assert_eq!(p.steps, around(&s, ManualChanges::default()).steps);
    assert_eq!(p.steps.len(), 1);
    assert_eq!((p.by_hand, p.kept.len()), (vec![h], 0));
}

#[test]
fn a_kept_change_is_no_step_and_is_part_of_the_layout() {
    let (s, setting) = moved();
    for origin in [Origin::ByHand, Origin::Adopted] {
        let h = hand(origin, setting.clone(), "4");
        let p = around(&s, ManualChanges { keep: vec![h.clone()], mark: vec![], ..ManualChanges::default() });
        assert!(p.steps.is_empty(), "{:?}", p.steps);
        assert_eq!(p.kept.len(), 1);
        assert_eq!((&p.kept[0].hand, p.kept[0].wanted.value_text()), (&h, "4".into()));
        assert!(p.target.contains(&setting));
        assert_eq!(p.warnings, around(&s, ManualChanges::default()).warnings);
        assert_eq!(p.already, p.target.len());
        let at = &p.layout[0].queues[2];
        assert_eq!((at.cpu.map(|c| c.0), at.far), (Some(9), Some(true)));
        // The plan changes nothing, so it expects no effect.
        assert!(p.expected.is_empty(), "{:?}", p.expected);
    }
}

#[test]
fn a_kept_value_that_equals_the_plan_is_not_reported() {
    let s = tuned();
    let setting = Setting::IrqCpus { dev: "eth1".into(), of: VectorName::Rx(2), cpus: set("4"), on: None };
    let p = around(
        &s,
        ManualChanges { keep: vec![hand(Origin::Adopted, setting, "4")], mark: vec![], ..ManualChanges::default() },
    );
    assert!(p.steps.is_empty() && p.kept.is_empty());
}

#[test]
fn a_kept_interrupt_is_kept_for_all_queues_of_its_vector() {
    let (s, _) = moved();
    let setting = Setting::IrqCpus { dev: "eth1".into(), of: VectorName::Tx(2), cpus: set("9"), on: None };
    let h = hand(Origin::ByHand, setting, "4");
    assert!(
        around(&s, ManualChanges { keep: vec![h.clone()], mark: vec![], ..ManualChanges::default() }).steps.is_empty()
    );
    assert_eq!(around(&s, ManualChanges { mark: vec![h], keep: vec![], ..ManualChanges::default() }).by_hand.len(), 1);
}

#[test]
fn other_settings_are_planned_as_if_nothing_were_kept() {
    let (mut s, setting) = moved();
    set_to(&mut s, &Setting::IrqCpus { dev: "eth1".into(), of: VectorName::Rx(1), cpus: set("0-15"), on: None });
    set_to(&mut s, &Setting::XpsCpus { dev: "eth1".into(), queue: 3, cpus: CpuSet::new() });
    let p = around(
        &s,
        ManualChanges {
            keep: vec![hand(Origin::ByHand, setting.clone(), "4")],
            mark: vec![],
            ..ManualChanges::default()
        },
    );
    let free = around(&s, ManualChanges::default());
    let others: Vec<_> = free.steps.iter().filter(|st| st.setting.address() != setting.address()).cloned().collect();
    assert_eq!((p.steps.len(), free.steps.len()), (2, 3));
    assert_eq!(p.steps, others);
}

#[test]
fn the_plan_uses_kept_channel_counts() {
    let s = tuned();
    let channels = Setting::Channels { dev: "eth1".into(), rx: None, tx: None, combined: Some(4) };
    let h = hand(Origin::ByHand, channels.clone(), "");
    let intent = Intent { goal: Goal::Balanced, queues: Some(8), allow_disruption: true, ..Intent::default() };
    let p = plan_around(&s, &intent, &[], &ManualChanges { keep: vec![h], mark: vec![], ..ManualChanges::default() })
        .expect("can be planned");
    assert!(!p.interrupts_traffic());
    assert_eq!(p.layout[0].queues.len(), 4);
    assert_eq!(p.kept.iter().map(|k| k.wanted.value_text()).collect::<Vec<_>>(), ["combined 8"]);
    // If a channel change would reset the setting, the kept value is no step: apply restores it.
    let (s, setting) = moved();
    let p = plan_around(
        &s,
        &intent,
        &[],
        &ManualChanges {
            keep: vec![hand(Origin::Adopted, setting.clone(), "4")],
            mark: vec![],
            ..ManualChanges::default()
        },
    )
    .expect("can be planned");
    assert!(p.interrupts_traffic());
    assert!(
        !p.steps
            .iter()
            .any(|st| matches!(&st.setting, Setting::IrqCpus { of: VectorName::Rx(2) | VectorName::Tx(2), .. }))
    );
    assert_eq!(p.target.iter().filter(|t| **t == setting).count(), 1);
}
