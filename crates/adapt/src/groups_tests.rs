use super::*;

const fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn choice(latency_queues: u32, policy: GroupPolicy) -> GroupChoice {
    GroupChoice { latency_queues, policy }
}

fn by(latency_queues: u32, busy_percent: u32) -> SuggestedGroups {
    SuggestedGroups { latency_queues: Some(latency_queues), busy_percent: Some(busy_percent) }
}

fn two_of_eight() -> Groups {
    Groups::new(choice(2, GroupPolicy::Bulk))
}

#[test]
fn one_sample_changes_nothing() {
    let mut g = two_of_eight();
    assert_eq!(g.step(s(30), by(5, 80)), None);
    assert_eq!(g.step(s(60), by(2, 10)), None, "the traffic is as before");
    assert_eq!(g.step(s(90), by(5, 10)), None);
    let to = choice(4, GroupPolicy::Bulk);
    assert_eq!(g.step(s(120), by(4, 10)), Some(GroupChange { from: choice(2, GroupPolicy::Bulk), to }), "the nearer");
}

#[test]
fn a_sample_without_information_changes_nothing() {
    let mut g = two_of_eight();
    for n in 1..10 {
        assert_eq!(g.step(s(30 * n), SuggestedGroups::default()), None);
    }
    assert_eq!(g.step(s(330), SuggestedGroups { busy_percent: Some(90), ..SuggestedGroups::default() }), None);
    let change = g.step(s(360), SuggestedGroups { busy_percent: Some(90), ..SuggestedGroups::default() }).unwrap();
    assert_eq!(change.to, choice(2, GroupPolicy::Cpu), "the sizes stay");
}

#[test]
fn sizes_on_both_sides_change_nothing() {
    let mut g = Groups::new(choice(4, GroupPolicy::Bulk));
    for n in 1..20 {
        assert_eq!(g.step(s(30 * n), by(if n % 2 == 0 { 3 } else { 6 }, 10)), None);
    }
}

/// Policy cpu lowers the load of a host at 55 % to 45 %: that must not switch it off again.
#[test]
fn the_effect_of_a_policy_does_not_end_it() {
    let mut g = two_of_eight();
    let (mut changes, mut now) = (0, 0);
    while now < 24 * 3600 {
        now += 30;
        let busy = if g.present().policy == GroupPolicy::Cpu { 45 } else { 55 };
        if let Some(change) = g.step(s(now), by(2, busy)) {
            g.written(s(now), change);
            changes += 1;
        }
    }
    assert_eq!((changes, g.present().policy), (1, GroupPolicy::Cpu));
}

/// A load that changes between 10 and 90 % every five minutes for a day.
#[test]
fn to_and_fro_waits_longer_each_time() {
    let mut g = two_of_eight();
    let mut changes: Vec<u64> = Vec::new();
    for n in 1..=2880 {
        let now = 30 * n;
        let busy = if (now / 300) % 2 == 0 { 90 } else { 10 };
        if let Some(change) = g.step(s(now), by(2, busy)) {
            g.written(s(now), change);
            changes.push(now);
        }
    }
    let first_hour = changes.iter().filter(|t| **t <= 3600).count();
    assert!((2..=6).contains(&first_hour), "{changes:?}");
    assert!(changes.len() <= 30, "{} changes: {changes:?}", changes.len());
    assert!(changes.windows(2).skip(6).all(|w| w[1] - w[0] >= 1800), "{changes:?}");
}

#[test]
fn a_restored_change_waits() {
    let mut g = two_of_eight();
    g.step(s(30), by(5, 10));
    let change = g.step(s(60), by(5, 10)).unwrap();
    g.written(s(60), change);
    assert!(g.has_changed());
    g.restored(s(66), change);
    assert!(!g.has_changed());
    assert_eq!(g.waits_until(s(70)), Some(s(66 + 240)));
    assert_eq!((g.step(s(90), by(5, 10)), g.step(s(120), by(5, 10))), (None, None));
    assert_eq!(g.step(s(330), by(5, 10)), Some(change));
    g.written(s(330), change);
    g.begin_again(choice(3, GroupPolicy::Bulk));
    assert!(!g.has_changed(), "the driver was loaded again");
    assert_eq!(g.present().latency_queues, 3, "with another number of queues");
}

/// A change that does harm each time is tried less and less often.
#[test]
fn each_restored_change_waits_longer() {
    let (mut g, mut at) = (two_of_eight(), Vec::new());
    for n in 1..=2880 {
        let now = 30 * n;
        if let Some(change) = g.step(s(now), by(5, 10)) {
            g.written(s(now), change);
            g.restored(s(now + 5), change);
            at.push(now);
        }
    }
    let waits: Vec<u64> = at.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(waits.windows(2).all(|w| w[1] >= w[0]) && waits.last().is_some_and(|w| *w >= 3600), "{waits:?}");
    assert!(at.len() <= 30, "{at:?}");
}

#[test]
fn a_kept_change_shortens_the_wait_again() {
    let mut g = two_of_eight();
    let change = GroupChange { from: choice(2, GroupPolicy::Bulk), to: choice(5, GroupPolicy::Bulk) };
    g.written(s(100), change);
    g.restored(s(105), change);
    g.written(s(1000), change);
    g.kept();
    assert_eq!(g.waits_until(s(1000)), Some(s(1120)));
}

#[test]
fn changes_that_take_the_link_down_end_for_hours() {
    let mut g = two_of_eight();
    let change = GroupChange { from: choice(2, GroupPolicy::Bulk), to: choice(5, GroupPolicy::Bulk) };
    for (at, hours) in [(100, 1), (100_000, 2), (200_000, 4), (300_000, 8), (400_000, 8)] {
        g.written(s(at), change);
        g.link_went_down(s(at + 4));
        assert_eq!(g.waits_until(s(at + 10)), Some(s(at + 4 + hours * 3600)));
    }
    assert_eq!(g.waits_until(s(500_000)), None, "and then there may be another one");
}

#[test]
fn a_change_is_judged_by_what_it_is_for() {
    let change = |a, b| GroupChange { from: choice(2, a), to: choice(2, b) };
    let of = |drops: f64, interrupts: f64| Counted {
        drops_per_s: Some(drops),
        out_of_order_per_s: Some(10.0),
        interrupts_per_packet: Some(interrupts),
    };
    let to_cpu = change(GroupPolicy::Bulk, GroupPolicy::Cpu);
    assert_eq!(judge(to_cpu, &of(0.0, 0.5), &of(0.0, 0.25)), Ok(()));
    let same = judge(to_cpu, &of(0.0, 0.5), &of(0.0, 0.48));
    assert_eq!(same, Err(RestoreReason::AsManyInterrupts { before: 0.5, after: 0.48 }));
    assert!(matches!(judge(to_cpu, &of(0.0, 0.5), &of(500.0, 0.2)), Err(RestoreReason::Drops { .. })));
    let to_bulk = change(GroupPolicy::Cpu, GroupPolicy::Bulk);
    assert_eq!(judge(to_bulk, &of(0.0, 0.2), &of(0.0, 0.5)), Ok(()), "more interrupts are what it is for");
    let reordered = Counted { out_of_order_per_s: Some(900.0), ..of(0.0, 0.5) };
    assert!(matches!(judge(to_bulk, &of(0.0, 0.2), &reordered), Err(RestoreReason::OutOfOrder { .. })));
    assert_eq!(judge(to_cpu, &Counted::default(), &Counted::default()), Ok(()), "unknown counters show nothing bad");
    assert_eq!(judge(to_cpu, &of(0.0, 0.5), &Counted::default()), Err(RestoreReason::NotMeasured));
}

#[test]
fn the_state_can_be_handed_over() {
    let mut g = two_of_eight();
    g.step(s(30), by(5, 80));
    let change = g.step(s(60), by(5, 80)).unwrap();
    g.written(s(60), change);
    let text = serde_json::to_string(&g).unwrap();
    assert_eq!(serde_json::from_str::<Groups>(&text).unwrap(), g);
}
