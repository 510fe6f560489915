//! Commands that a plan prints.

use ringwise_model::{CpuId, CpuSet, Goal, GoalChoice, Intent, IntentFlags, Knob, RingValues};
use ringwise_plan::plan;

use crate::wishes::{host, intent};

#[test]
fn commands_repeat_the_flags_and_not_the_configuration_file() {
    let rings = vec![Knob::Rings { values: RingValues::sizes(Some(1024), None) }];
    let reserve: CpuSet = [CpuId(0)].into_iter().collect();
    let merged = Intent {
        goal: Goal::Forward,
        reserve: reserve.clone(),
        wishes: intent(rings).wishes,
        config: Some("/root/r.toml".into()),
        ..Intent::default()
    };
    let command = |i: &Intent| plan(&host(), i, &[]).unwrap().left_out[0].command.clone();
    let given = |f: IntentFlags| Intent { given: Some(Box::new(f)), ..merged.clone() };
    let file = IntentFlags { config: Some("/root/r.toml".into()), ..IntentFlags::default() };
    assert_eq!(command(&given(file.clone())), "ringwise plan --config /root/r.toml --allow-disruption");
    let goal = Some(GoalChoice::Of(Goal::Forward));
    let flags = IntentFlags { goal, override_config: true, strict: true, ..file };
    assert_eq!(
        command(&given(flags)),
        "ringwise plan --goal forward --config /root/r.toml --override-config --allow-disruption --strict"
    );
    let without = IntentFlags { config: Some("none".into()), goal, reserve: Some(reserve), ..IntentFlags::default() };
    let alone = Intent { config: None, ..given(without) };
    assert_eq!(command(&alone), "ringwise plan --goal forward --config none --reserve 0 --allow-disruption");
    // An intent that no command stated.
    let derived = Intent { config: None, given: None, ..merged.clone() };
    assert_eq!(command(&derived), "ringwise plan --goal forward --reserve 0 --allow-disruption");
}
