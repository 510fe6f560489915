use super::*;

fn back(r: &Reason) -> Reason {
    serde_json::from_value(serde_json::to_value(r).unwrap()).unwrap()
}

#[test]
fn a_code_its_facts_and_a_text() {
    let among: CpuSet = "0-7".parse().unwrap();
    let r = Reason::FreeToMove { among: among.clone(), arrived: true, moved: None };
    let json = serde_json::json!({
        "code": "free_to_move", "facts": { "among": "0-7", "arrived": true },
        "text": "already on the right CPU, but free to move among CPUs 0-7: pin it",
    });
    assert_eq!(serde_json::to_value(&r).unwrap(), json);
    let json = serde_json::json!({ "code": "rfs_off", "text": "RFS is off for this goal" });
    assert_eq!(serde_json::to_value(&Reason::RfsOff).unwrap(), json);
    let by = ConfiguredBy::File { path: "/etc/a.toml".into(), line: 3 };
    let group = Box::new(Reason::TableOfGroup { group: "web".into() });
    let all = [
        r.clone(),
        Reason::RfsOff,
        Reason::Reset { by: ResetBy::Rings, reason: Box::new(r) },
        Reason::Configured { by: vec![by.clone()], with: Some(SideEffect::AdaptiveOff) },
        Reason::OfConfiguredGroup { reason: group, by },
        Reason::Adaptive { own_mode: [("rx-usecs".to_string(), 3)].into() },
        Reason::IrqbalanceMoves { interval_s: None, forgets: Some(BanLossCause::NotByUnit) },
        Reason::FarNode { dev: "eth1".into(), node: None },
        Reason::OneQueue { cpu: Some(CpuId(0)), helpers: among },
        Reason::Undone { transaction: None },
    ];
    all.iter().for_each(|r| assert_eq!(back(r), *r));
}

#[test]
fn texts_of_earlier_versions_and_codes_of_later_ones_are_kept() {
    let old: Reason = serde_json::from_str("\"its CPU is on node 1, away from eth1\"").unwrap();
    assert_eq!(old, Reason::Text("its CPU is on node 1, away from eth1".into()));
    assert_eq!(back(&old), old);
    for later in [
        serde_json::json!({ "code": "a_later_one", "facts": { "x": 1 }, "text": "because" }),
        serde_json::json!({ "code": "far_node", "facts": { "distance": 21 }, "text": "because" }),
    ] {
        let r: Reason = serde_json::from_value(later.clone()).unwrap();
        assert_eq!((r.to_string().as_str(), serde_json::to_value(&r).unwrap()), ("because", later));
    }
    assert!(serde_json::from_str::<Reason>("3").is_err());
}

/// Facts also come from files, so inconsistent facts must not panic.
#[test]
fn inconsistent_numbers_do_not_panic() {
    let one = |r: Reason| r.to_string();
    assert_eq!(
        one(Reason::OneQueueACpu { now: 8, cpus: 6 }),
        "one queue per CPU: 8 queues for the 6 usable CPUs of its node; each queue costs interrupts"
    );
    assert_eq!(
        one(Reason::OneQueueACpu { now: 1, cpus: 6 }),
        "one queue per CPU: 1 queue leaves 5 of the 6 usable CPUs of its node idle"
    );
    assert_eq!(
        one(Reason::OneQueueACore { now: 0, cores: 0 }),
        "one queue per physical core: 0 queues leave 0 of the 0 usable cores of its node idle"
    );
    assert_eq!(
        one(Reason::OneQueueAPermittedCpu { now: 12, cpus: 8 }),
        "one queue per CPU that the options permit: 12 queues for 8 CPUs; each queue costs interrupts"
    );
    assert_eq!(one(Reason::QueuesRequested { queues: 1, now: 4 }), "1 queue was requested; now there are 4");
}
