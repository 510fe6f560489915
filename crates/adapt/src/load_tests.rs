use super::*;

/// A second in which queue i is served by CPU i with `loads[i]` percent.
fn sample(second: u64, loads: &[f64]) -> LoadSample {
    let queue =
        |cpu: u32| QueueSample { cpu: Some(cpu), packets: Some(1000), drops: Some(0), ..QueueSample::default() };
    let cpu =
        |(i, l): (u32, &f64)| (i, CpuLoadSample { busy_percent: Some(*l), node: Some(0), ..CpuLoadSample::default() });
    LoadSample {
        at: Duration::from_secs(second),
        queues: (0..loads.len() as u32).map(queue).collect(),
        cpus: (0..).zip(loads).map(cpu).collect(),
        out_of_order: Some(0),
        ..LoadSample::default()
    }
}

const HOT: [f64; 4] = [80.0, 40.0, 40.0, 40.0];
const CALM: [f64; 4] = [41.0, 40.0, 40.0, 40.0];

fn suspect(state: LoadState) -> bool {
    matches!(state, LoadState::Suspect(_))
}

#[test]
fn six_hot_samples_of_ten_are_suspect_and_five_are_not() {
    let mut w = LoadWindow::default();
    for second in 1..=20 {
        let state = w.push(sample(second, if second % 2 == 0 { &HOT } else { &CALM }));
        assert!(!suspect(state), "half of the samples: {second}");
    }
    let mut w = LoadWindow::default();
    for second in 1..=5 {
        assert!(!suspect(w.push(sample(second, &HOT))), "{second}");
    }
    let LoadState::Suspect(SuspectReason::UnevenCpus { cpu, busy_percent, mean_percent, samples }) =
        w.push(sample(6, &HOT))
    else {
        panic!("six hot samples")
    };
    assert_eq!((cpu, busy_percent, mean_percent, samples), (0, 80.0, 50.0, 6));
}

#[test]
fn both_thresholds_must_be_reached() {
    for (loads, expected) in [
        ([64.0, 10.0, 10.0, 10.0], false),
        ([66.0, 10.0, 10.0, 10.0], true),
        ([90.0, 80.0, 80.0, 80.0], false),
        ([100.0, 80.0, 80.0, 80.0], true),
    ] {
        let mut w = LoadWindow::default();
        let last = (1..=10).map(|second| w.push(sample(second, &loads))).last().unwrap();
        assert_eq!(suspect(last), expected, "{loads:?}");
    }
}

#[test]
fn it_stays_suspect_until_the_means_are_close() {
    let mut w = LoadWindow::default();
    (1..=10).for_each(|second| _ = w.push(sample(second, &HOT)));
    // 9 points above the mean: no longer hot, not yet even.
    let between = [62.0, 50.0, 50.0, 50.0];
    for second in 11..=40 {
        assert!(suspect(w.push(sample(second, &between))), "{second}");
    }
    let states: Vec<bool> = (41..=50).map(|second| suspect(w.push(sample(second, &CALM)))).collect();
    assert!(states[0] && !states[9], "{states:?}");
}

#[test]
fn after_a_change_of_the_table_new_samples_decide() {
    let mut w = LoadWindow::default();
    (1..=10).for_each(|second| _ = w.push(sample(second, &HOT)));
    w.clear();
    for second in 11..=14 {
        assert!(suspect(w.push(sample(second, &CALM))), "too few samples to decide: {second}");
    }
    assert_eq!(w.push(sample(15, &CALM)), LoadState::Even);
}

#[test]
fn unknown_is_never_zero() {
    let mut w = LoadWindow::default();
    // The load of CPU 1 is unknown. As zero it would make the load look uneven.
    for second in 1..=20 {
        let mut s = sample(second, &[70.0, 70.0, 70.0, 70.0]);
        s.cpus.get_mut(&1).unwrap().busy_percent = None;
        assert_eq!(w.push(s), LoadState::Unknown { known: 0 }, "{second}");
    }
    // Unknown samples do not make it even, either.
    let mut w = LoadWindow::default();
    (1..=10).for_each(|second| _ = w.push(sample(second, &HOT)));
    for second in 11..=40 {
        let mut s = sample(second, &CALM);
        s.queues[2].cpu = None;
        assert!(suspect(w.push(s)), "{second}");
    }
}

#[test]
fn drops_of_a_hot_queue_are_suspect_below_the_load_of_a_hot_cpu() {
    let run = |loads: &[f64; 4], dropping: &[u64], drops: Option<u64>| {
        let mut w = LoadWindow::default();
        let step = |second: u64| {
            let mut s = sample(second, loads);
            s.queues[0].drops = if dropping.contains(&second) { drops } else { Some(0) };
            w.push(s)
        };
        (1..=10).map(step).last().unwrap()
    };
    let warm = [58.0, 40.0, 40.0, 40.0];
    assert_eq!(
        run(&warm, &[2, 5, 9], Some(7)),
        LoadState::Suspect(SuspectReason::DropsOnHotQueue { queue: 0, cpu: 0, samples: 3 })
    );
    assert_eq!(run(&warm, &[2, 5], Some(7)), LoadState::Even, "two samples are too few");
    assert_eq!(run(&warm, &[2, 5, 9], None), LoadState::Even, "unknown drops are no drops");
    assert_eq!(run(&[45.0, 20.0, 20.0, 20.0], &[2, 5, 9], Some(7)), LoadState::Even, "the CPU is not busy");
    assert_eq!(run(&[97.0, 96.0, 95.0, 96.0], &[2, 5, 9], Some(7)), LoadState::Even, "every CPU is as busy");
}

#[test]
fn excluded_queues_do_not_count() {
    let mut w = LoadWindow::default();
    for second in 1..=20 {
        let mut s = sample(second, &HOT);
        s.queues[0].excluded = Some(Exclusion::BusyPolled);
        assert!(!suspect(w.push(s)), "{second}");
    }
    let mut only_one = sample(1, &[80.0, 10.0]);
    only_one.queues[1].excluded = Some(Exclusion::AfXdp);
    assert_eq!(only_one.cpu_loads(), None, "one CPU cannot be uneven");
}

#[test]
fn old_samples_are_forgotten() {
    let mut w = LoadWindow::default();
    (1..=5).for_each(|second| _ = w.push(sample(second, &HOT)));
    // The service was restarted: a minute passed.
    assert_eq!(w.push(sample(65, &HOT)), LoadState::Unknown { known: 1 });
}

#[test]
fn means_need_the_same_cpus() {
    let s = [sample(1, &[10.0, 30.0]), sample(2, &[20.0, 50.0])];
    assert_eq!(mean_loads(s.iter(), 2), Some([(0, 15.0), (1, 40.0)].into()));
    assert_eq!(mean_loads(s.iter(), 3), None);
    let mut s = [sample(1, &[10.0, 30.0, 20.0]), sample(2, &[20.0, 50.0, 20.0])];
    s[1].queues[1].cpu = Some(0);
    assert_eq!(mean_loads(s.iter(), 1), None, "CPU 1 serves no queue any more");
}
