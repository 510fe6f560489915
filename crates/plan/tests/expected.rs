//! What a plan promises under *Better*.

use ringwise_model::{CpuSet, Knob};
use ringwise_plan::plan;

use crate::wishes::{host, intent};

#[test]
fn cpus_in_no_xps_mask_are_counted_from_the_masks_of_the_plan() {
    let s = host();
    let unmasked = |knobs: Vec<Knob>| {
        let p = plan(&s, &intent(knobs), &[]).expect("can be planned");
        let of_xps = p.expected.into_iter().find(|e| e.unit == "CPUs" && e.text.contains("XPS"));
        of_xps.map(|e| (e.before, e.after))
    };
    assert_eq!(unmasked(vec![]), Some((Some(8.0), Some(0.0))));
    let two: CpuSet = "0-1".parse().expect("a list");
    assert_eq!(unmasked(vec![Knob::XpsCpus { queues: None, cpus: two }]), Some((Some(8.0), Some(6.0))));
}
