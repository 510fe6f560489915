//! Moderation that drivers are known to refuse, for goals, groups and configured values.

use std::collections::BTreeMap;

use ringwise_knob::learned::LearnedWrite;
use ringwise_knob::{Learned, Reason, ReplacedValue, Setting, VectorName};
use ringwise_model::{
    Coalesce, ConfiguredBy, Fact, Goal, GroupQueues, GroupWish, Intent, Knob, Napi, NapiInstance, NapiValues, Snapshot,
    Wish,
};
use ringwise_plan::{Obstacle, Plan, Refusal, plan};
use ringwise_testkit::machines::{self, NicSpec, Vectors};
use ringwise_testkit::topo::CpuSpec;

fn params(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
    list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
}

/// Eight cores, one device with eight queues, as its driver reports moderation.
fn host(driver: &str, vectors: Vectors, now: &[(&str, u32)]) -> Snapshot {
    let mut s = machines::host(
        "m",
        CpuSpec::flat(8, 1),
        vec![NicSpec { vectors, ..NicSpec::new("eth0", driver, Some(0), 8, 8) }],
    )
    .snapshot();
    s.host.kernel = Fact::Known("6.12.0".into());
    s.nics[0].coalesce = Fact::Known(Coalesce(params(now)));
    s.nics[0].queue_coalesce = Fact::Absent;
    s
}

/// One interrupt for both directions.
fn igb() -> Snapshot {
    host("igb", Vectors::Paired, &[("rx-usecs", 3), ("tx-usecs", 0)])
}

/// One interrupt for each direction.
fn split() -> Snapshot {
    host("igb", Vectors::Split, &[("rx-usecs", 3), ("tx-usecs", 3)])
}

fn with_instances(mut s: Snapshot) -> Snapshot {
    let values = NapiValues { defer_hard_irqs: Some(0), gro_flush_timeout_ns: Some(0), ..NapiValues::default() };
    let one =
        |q: u32| NapiInstance { id: 100 + q, rx: vec![q], tx: vec![q], values: Fact::Known(values), thread: None };
    s.nics[0].napi = Fact::Known(Napi { device: NapiValues::default(), instances: (0..8).map(one).collect() });
    s
}

fn mixed() -> Intent {
    Intent { goal: Goal::Mixed, ..Intent::default() }
}

fn wishes(list: &[(&str, u32)]) -> Intent {
    let knob = Knob::Coalesce { queues: None, params: params(list) };
    Intent {
        wishes: vec![Wish {
            dev: Some("eth0".into()),
            knob,
            by: ConfiguredBy::Flag { name: "--set".into() },
            params_by: Default::default(),
        }],
        ..Intent::default()
    }
}

fn device(p: &Plan) -> &ringwise_knob::Step {
    p.steps.iter().find(|s| matches!(s.setting, Setting::Coalesce { .. })).expect("a step for the device")
}

fn values(all: &[Setting]) -> Vec<String> {
    all.iter().map(Setting::value_text).collect()
}

/// A refusal as the kernel reported it.
fn refused(s: &Snapshot, asked: Setting) -> Learned {
    Learned {
        device: s.nics[0].dev.clone(),
        driver: s.nics[0].driver.known().cloned(),
        kernel: s.host.kernel.known().unwrap().clone(),
        address: asked.address().unwrap(),
        asked,
        what: LearnedWrite::Refused { errno: 22, words: "Invalid argument".into() },
        unix_time: 1,
    }
}

#[test]
fn the_policy_of_a_group_is_adapted_to_the_driver() {
    let p = plan(&igb(), &mixed(), &[]).unwrap();
    assert_eq!(device(&p).setting.value_text(), "rx-usecs 62");
    let no = p.refused.iter().find(|r| r.what == "eth0 tx-usecs").expect("reported");
    assert_eq!((no.needed, &no.why), (false, &Obstacle::OneInterval));
    // If instances defer interrupts, the device gets the latency policy, which this driver does not support.
    let p = plan(&with_instances(igb()), &mixed(), &[]).unwrap();
    assert_eq!(device(&p).setting.value_text(), "rx-usecs 10");
    let Reason::GroupPolicyForAll { moved, .. } = &device(&p).reason else { panic!("{:?}", device(&p).reason) };
    assert_eq!(*moved, [ReplacedValue { name: "rx-usecs".into(), wanted: 5, takes: 10 }]);
    let instance =
        |q: u32| p.target.iter().any(|t| matches!(t, Setting::Napi { of: VectorName::Rx(n), .. } if *n == q));
    assert!((0..8).all(instance));
}

#[test]
fn rx_usecs_alone_replaces_a_refused_pair() {
    let p = plan(&split(), &mixed(), &[]).unwrap();
    assert_eq!(device(&p).setting.value_text(), "rx-usecs 62 tx-usecs 122");
    assert_eq!(values(&device(&p).instead), ["rx-usecs 62"]);
    let p = plan(&split(), &mixed(), &[refused(&split(), device(&p).setting.clone())]).unwrap();
    assert_eq!(device(&p).setting.value_text(), "rx-usecs 62");
    let no = p.refused.iter().find(|r| r.what == "eth0 moderation rx-usecs 62 tx-usecs 122").expect("reported");
    let Obstacle::Instead { instead, .. } = &no.why else { panic!("{no:?}") };
    assert_eq!((no.needed, instead.value_text().as_str()), (false, "rx-usecs 62"));
}

#[test]
fn a_value_that_the_driver_is_known_to_refuse_is_requested_with_a_warning() {
    let p = plan(&igb(), &wishes(&[("rx-usecs", 5)]), &[]).unwrap();
    assert_eq!(device(&p).setting.value_text(), "rx-usecs 5");
    assert!(device(&p).instead.is_empty());
    let five = "eth0 moderation rx-usecs 5: igb is known to refuse it: it accepts 0, 10 to 10000, and 1 3 for its own modes; \
                the nearest value is 10 (configured by --set)";
    assert!(p.warnings.iter().any(|w| w == five), "{:?}", p.warnings);
    // The other parameter of the request is not lost.
    let p = plan(&igb(), &wishes(&[("rx-usecs", 62), ("tx-usecs", 20)]), &[]).unwrap();
    assert_eq!(device(&p).setting.value_text(), "rx-usecs 62 tx-usecs 20");
    assert_eq!(values(&device(&p).instead), ["rx-usecs 62"]);
    assert!(
        p.warnings.iter().any(|w| w.starts_with("eth0 moderation tx-usecs 20: igb is known to refuse it: one inter"))
    );
    let asked = refused(&igb(), device(&p).setting.clone());
    let mut s = igb();
    s.nics[0].coalesce = Fact::Known(Coalesce(params(&[("rx-usecs", 62), ("tx-usecs", 0)])));
    let p = plan(&s, &wishes(&[("rx-usecs", 62), ("tx-usecs", 20)]), &[asked]).unwrap();
    assert!(!p.steps.iter().any(|s| matches!(s.setting, Setting::Coalesce { .. })));
    assert_eq!(
        values(&p.target.iter().filter(|t| matches!(t, Setting::Coalesce { .. })).cloned().collect::<Vec<_>>()),
        ["rx-usecs 62"]
    );
    let no = p.refused.iter().find(|r| r.what == "eth0 moderation rx-usecs 62 tx-usecs 20").expect("reported");
    assert!(no.needed && no.why.to_string().ends_with("; rx-usecs 62 instead (configured by --set)"), "{}", no.why);
}

#[test]
fn accepted_values_give_no_warning() {
    for list in
        [&[("rx-usecs", 10), ("tx-usecs", 0)], &[("rx-usecs", 1), ("tx-usecs", 0)], &[("rx-usecs", 0), ("tx-usecs", 0)]]
    {
        let p = plan(&igb(), &wishes(list), &[]).unwrap();
        assert!(
            device(&p).instead.is_empty() && !p.warnings.iter().any(|w| w.contains("moderation")),
            "{:?}",
            p.warnings
        );
    }
    let p = plan(&split(), &wishes(&[("rx-usecs", 10), ("tx-usecs", 20)]), &[]).unwrap();
    assert!(device(&p).instead.is_empty() && !p.warnings.iter().any(|w| w.contains("moderation")), "{:?}", p.warnings);
    let ice = host("ice", Vectors::Paired, &[("rx-usecs", 50), ("tx-usecs", 50)]);
    let p = plan(&ice, &wishes(&[("rx-usecs", 5)]), &[]).unwrap();
    assert!(p.warnings.iter().any(|w| w == "eth0 moderation rx-usecs 5: ice rounds it to 4 (configured by --set)"));
}

#[test]
fn refused_values_are_an_error_with_strict() {
    let i = Intent { strict: true, ..wishes(&[("rx-usecs", 5), ("tx-usecs", 20)]) };
    let Err(Refusal::WrongWishes { wrong }) = plan(&igb(), &i, &[]) else { panic!("not refused") };
    let text: Vec<String> = wrong.iter().map(|w| format!("{}; {}", w.what, w.mistake.right())).collect();
    assert_eq!(text, ["eth0 moderation rx-usecs 5; the nearest value is 10", "eth0 moderation tx-usecs 20; remove it"]);
}

fn group(policy: &str, queues: Vec<u32>) -> GroupWish {
    GroupWish {
        name: "web".into(),
        dev: "eth0".into(),
        policy: policy.into(),
        queues: GroupQueues::These(queues),
        cpus: None,
        weight: None,
        context: false,
        flows: Vec::new(),
        by: ConfiguredBy::File { path: "ringwise.toml".into(), line: 9 },
    }
}

#[test]
fn the_moderation_of_a_group_is_described() {
    let mut s = host("ice", Vectors::Paired, &[("rx-usecs", 50), ("tx-usecs", 50), ("use-adaptive-rx", 1)]);
    let now = s.nics[0].coalesce.known().unwrap().clone();
    s.nics[0].queue_coalesce = Fact::Known((0..8).map(|q| (q, now.clone())).collect());
    let said = |queues: Vec<u32>| {
        let knob = Knob::Coalesce { queues: Some(vec![0]), params: params(&[("rx-usecs", 99)]) };
        let wishes = vec![Wish {
            dev: Some("eth0".into()),
            knob,
            by: ConfiguredBy::Flag { name: "--set".into() },
            params_by: Default::default(),
        }];
        let p = plan(&s, &Intent { wishes, groups: vec![group("latency", queues)], ..Intent::default() }, &[]).unwrap();
        let step = p.steps.iter().find(|s| matches!(s.setting, Setting::QueueCoalesce { queue: 0, .. })).unwrap();
        assert_eq!(step.setting.value_text(), "rx-usecs 99 use-adaptive-rx 0");
        let warned =
            "eth0: the user configured the moderation of queue 0, so policy latency of group web is not applied there";
        assert!(p.warnings.iter().any(|w| w == warned), "{:?}", p.warnings);
        p.groups[0].moderation.clone().unwrap()
    };
    assert_eq!(said(vec![0]), "rx-usecs 99 on each queue as configured");
    assert_eq!(said(vec![0, 1, 2]), "rx-usecs 99 on queue 0 as configured, rx-usecs 5 tx-usecs 10 on queues 1-2");
    // A setting that was refused before is not reported as being in effect.
    let asked = Setting::QueueCoalesce {
        dev: "eth0".into(),
        queue: 2,
        params: params(&[("rx-usecs", 5), ("tx-usecs", 10), ("use-adaptive-rx", 0)]),
    };
    let i = Intent { groups: vec![group("latency", vec![1, 2])], ..Intent::default() };
    let p = plan(&s, &i, &[refused(&s, asked)]).unwrap();
    assert_eq!(p.groups[0].moderation.as_deref(), Some("rx-usecs 5 tx-usecs 10 on queue 1, unchanged on queue 2"));
}

#[test]
fn moderation_of_the_device_configured_beside_groups() {
    let p = plan(&igb(), &Intent { goal: Goal::Mixed, ..wishes(&[("rx-usecs", 20)]) }, &[]).unwrap();
    assert_eq!(device(&p).setting.value_text(), "rx-usecs 20");
    assert!(p.groups.iter().all(|g| g.moderation.as_deref() == Some("rx-usecs 20 for the whole device as configured")));
    let no = p.refused.iter().find(|r| r.what == "eth0 moderation of single queues").unwrap();
    assert_eq!(no.why, Obstacle::ModerationConfigured);
}

/// igb is known to refuse microseconds: a number of frames with the same value is no interval.
#[test]
fn a_number_of_frames_is_no_interval() {
    let s = host("igb", Vectors::Split, &[("rx-usecs", 3), ("tx-usecs", 3), ("rx-max-frames", 64)]);
    let p = plan(&s, &wishes(&[("rx-max-frames", 5)]), &[]).unwrap();
    assert_eq!((device(&p).setting.value_text(), device(&p).instead.len()), ("rx-max-frames 5".to_string(), 0));
    let about = |p: &Plan, text: &str| p.warnings.iter().any(|w| w.contains(text));
    assert!(p.refused.is_empty() && !about(&p, "is known to refuse"), "{:?}", p.warnings);
    // The same number of microseconds is refused.
    let p = plan(&s, &wishes(&[("rx-usecs", 5)]), &[]).unwrap();
    assert!(about(&p, "rx-usecs 5: igb is known to refuse it"), "{:?}", p.warnings);
}
