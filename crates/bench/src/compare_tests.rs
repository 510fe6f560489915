use super::*;
use crate::result::{CpuUse, Design, HostSide, State};
use crate::rng::Rng;

fn session(workload: &str, states: &[&str], blocks: u32) -> Session {
    let state = |name: &&str| State { name: (*name).to_owned(), ..State::default() };
    let design = Design { seed: 3, blocks, alpha: 0.05, equivalent_percent: 2.0, ..Design::default() };
    Session { workload: workload.to_owned(), states: states.iter().map(state).collect(), design, ..Session::default() }
}

fn trial(state: &str, block: u32, rate: f64, p99_us: f64) -> Trial {
    let latency = Some(Latency { mean_us: p99_us / 2.0, p99_us, ..Latency::default() });
    let load = LoadResult { done_per_s: rate, latency, ..LoadResult::default() };
    Trial { state: state.to_owned(), block, loads: vec![load], ..Trial::default() }
}

/// Rate 5 % up, latency 10 % up, at 1 % noise.
fn trials(blocks: u32) -> Vec<Trial> {
    let mut rng = Rng::new(1);
    let mut near = |x: f64| x * (1.0 + 0.007 * rng.normal());
    (0..blocks)
        .flat_map(|b| [trial("before", b, near(1000.0), near(50.0)), trial("after", b, near(1050.0), near(55.0))])
        .collect()
}

fn find(list: &[Comparison], metric: Metric) -> &Comparison {
    list.iter().find(|c| c.metric == metric).unwrap()
}

#[test]
fn more_is_better_for_a_rate_and_worse_for_a_latency() {
    let list = compare(&session("burst", &["before", "after"], 12), &trials(12));
    let rate = find(&list, Rate);
    assert_eq!(
        (rate.verdict, rate.pairs, rate.base.as_str(), rate.with.as_str()),
        (Verdict::Better, 12, "before", "after")
    );
    assert!((rate.change_percent.unwrap() - 5.0).abs() < 1.0 && rate.notes.is_empty(), "{rate:?}");
    assert!(rate.low_percent.unwrap() > 2.0 && rate.high_percent.unwrap() < 8.0);
    assert!((0.5..2.0).contains(&rate.detectable_percent.unwrap()));
    // A metric that was never measured is not compared; p50 is 0 in all trials, so it is equal.
    assert!(list.iter().all(|c| ![Loss, Cpu, Delay, LatencyP999].contains(&c.metric)));
    assert_eq!(find(&list, LatencyP99).verdict, Verdict::Worse);
    assert_eq!(find(&list, LatencyP50).verdict, Verdict::Equivalent);
    assert_eq!(list, compare(&session("burst", &["before", "after"], 12), &trials(12)));
}

#[test]
fn primary_metrics_have_half_of_alpha_for_themselves() {
    let list = compare(&session("burst", &["before", "after"], 12), &trials(12));
    let (rate, p99) = (find(&list, Rate), find(&list, LatencyP99));
    assert_eq!((list.len(), rate.p, p99.p), (5, Some(2.0 / 4096.0), Some(2.0 / 4096.0)));
    assert_eq!(rate.p_corrected, Some(4.0 / 4096.0));
    // Two of the four other metrics are equal in all trials.
    assert_eq!(p99.p_corrected, Some(2.0 * 4.0 * 2.0 / 4096.0));
}

/// Two points, two states beside the first, seven metrics, and no real difference.
#[test]
fn in_a_session_of_nothing_anything_is_found_in_5_of_100() {
    let states = ["before", "b", "c"];
    let mut rng = Rng::new(12);
    let sessions = 120;
    let mut wrong = 0;
    for _ in 0..sessions {
        let mut list = Vec::new();
        for i in 0..2 * 3 * 11 {
            let mut t = trial(
                states[i % 3],
                i as u32 / 6,
                1e3 * (1.0 + 0.03 * rng.normal()),
                50.0 * (1.0 + 0.1 * rng.normal()),
            );
            t.point.queues = Some(i as u32 / 3 % 2);
            t.host.cpu_ns_per_packet = Some(300.0 + 5.0 * rng.normal());
            t.host.interrupts_per_packet = Some(0.1 + 0.03 * rng.unit());
            list.push(t);
        }
        let out = compare(&session("mixed", &states, 11), &list);
        assert_eq!(out.len(), 2 * 2 * 7);
        wrong += u32::from(out.iter().any(|c| matches!(c.verdict, Verdict::Better | Verdict::Worse)));
    }
    // 6 are expected at most, deviation 2.4.
    assert!(wrong <= 13, "{wrong} of {sessions}");
}

#[test]
fn blocks_without_a_pair_are_skipped_and_reported() {
    let mut list = trials(10);
    list.retain(|t| !(t.block == 4 && t.state == "after"));
    list[0].loads.clear();
    list.iter_mut().filter(|t| t.block < 3).for_each(|t| t.doubts.push("another program was busy".to_owned()));
    let out = compare(&session("burst", &["before", "after"], 10), &list);
    let rate = find(&out, Rate);
    assert_eq!(rate.pairs, 8);
    assert_eq!(rate.notes, ["8 of 10 blocks have both values", "4 of 16 trials: another program was busy"]);
}

#[test]
fn a_point_is_compared_with_itself_only() {
    let mut list = trials(8);
    let mut far = trials(8);
    far.iter_mut().for_each(|t| {
        t.point.size_bytes = Some(64);
        t.loads[0].done_per_s *= 7.0;
    });
    list.append(&mut far);
    let out = compare(&session("burst", &["before", "after"], 8), &list);
    let rates: Vec<&Comparison> = out.iter().filter(|c| c.metric == Rate).collect();
    assert_eq!(rates.len(), 2);
    assert!(rates.iter().all(|c| (c.change_percent.unwrap() - 5.0).abs() < 1.5 && c.pairs == 8));
    assert!(rates[1].base_mean > 6000.0 && rates[1].point.size_bytes == Some(64));
}

#[test]
fn calibration_is_its_own_noise() {
    let mut list = trials(8);
    for (block, (a, b)) in [(100.0, 103.0), (100.0, 97.0), (100.0, 100.0)].into_iter().enumerate() {
        for (order, rate) in [a, b].into_iter().enumerate() {
            let t = trial("before", block as u32, rate, 10.0);
            list.push(Trial { phase: Phase::Calibration, order: order as u32, ..t });
        }
    }
    let out = compare(&session("burst", &["before", "after"], 8), &list);
    let noise = find(&out, Rate).calibration_noise_percent.unwrap();
    assert!((noise - 6f64.sqrt()).abs() < 1e-9, "{noise}");
    assert_eq!(find(&out, Rate).pairs, 8);
    list.truncate(18);
    assert_eq!(find(&compare(&session("burst", &["before", "after"], 8), &list), Rate).calibration_noise_percent, None);
}

#[test]
fn what_the_generator_could_do_is_not_the_hosts_rate() {
    let mut rng = Rng::new(2);
    let mut list: Vec<Trial> =
        (0..16).map(|i| trial(["before", "after"][i % 2], i as u32 / 2, 1e6 + rng.unit(), 1.0)).collect();
    let states = ["before", "after"];
    assert_eq!(find(&compare(&session("forward", &states, 8), &list), Rate).verdict, Verdict::Equivalent);
    list.iter_mut().for_each(|t| t.limit = Limit::Generator("99 % of a CPU".to_owned()));
    let out = compare(&session("forward", &states, 8), &list);
    let rate = find(&out, Rate);
    assert_eq!(rate.verdict, Verdict::Inconclusive);
    assert!(rate.notes[0].contains("the host's own limit was not reached"), "{:?}", rate.notes);
    list.iter_mut().for_each(|t| t.limit = Limit::Link("eth3".to_owned()));
    let out = compare(&session("forward", &states, 8), &list);
    assert_eq!(find(&out, Rate).notes.last().unwrap(), "16 of 16 trials: the link eth3 was the limit");
}

#[test]
fn one_outlying_block_is_reported_and_counted() {
    let mut list = trials(10);
    list.iter_mut().filter(|t| t.block == 6 && t.state == "after").for_each(|t| t.loads[0].done_per_s = 2000.0);
    let out = compare(&session("burst", &["before", "after"], 10), &list);
    let rate = find(&out, Rate);
    assert!(rate.change_percent.unwrap() > 10.0 && rate.pairs == 10);
    assert!(rate.notes.iter().any(|n| n.starts_with("outlier, but counted: block 6 (+")), "{:?}", rate.notes);
}

#[test]
fn values_come_from_the_group_they_belong_to() {
    let mut t = trial("before", 0, 10.0, 1.0);
    t.loads[0].group = "latency".to_owned();
    assert_eq!((value(&t, Rate), value(&t, LatencyP99)), (Some(10.0), Some(1.0)));
    let mut other = trial("before", 0, 99.0, 77.0).loads.remove(0);
    other.group = "throughput".to_owned();
    (other.unit, other.bits_per_s, other.lost_percent) = (Unit::Bytes, 5e9, Some(0.1));
    t.loads.push(other);
    assert_eq!((value(&t, Rate), value(&t, LatencyP99), value(&t, Loss)), (Some(5e9), Some(1.0), Some(0.1)));
    t.loads[0].group = "a".to_owned();
    t.loads[1].group = "b".to_owned();
    assert_eq!((value(&t, Rate), value(&t, LatencyMean)), (None, None));
    t.loads.clear();
    assert_eq!(Metric::ALL.map(|m| value(&t, m)), [None; 11]);
    let cpu = |busy_percent, delay_p99_us| CpuUse { busy_percent, delay_p99_us, ..CpuUse::default() };
    t.host = HostSide {
        cpus: vec![cpu(90.0, Some(7.0)), cpu(30.0, Some(9.0)), cpu(0.0, None)],
        cpu_ns_per_packet: Some(f64::NAN),
        interrupts_per_packet: Some(0.25),
        ..HostSide::default()
    };
    let got = [Cpu, Delay, CpuNsPerPacket, InterruptsPerPacket].map(|m| value(&t, m));
    assert_eq!(got, [Some(120.0), Some(9.0), None, Some(0.25)]);
}

#[test]
fn environments_that_differ_say_in_what() {
    let facts = |list: &[(&str, &str)]| list.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let a = Environment { facts: facts(&[("kernel", "6.12"), ("cpu", "X")]), ..Environment::default() };
    assert!(comparable(&a, &a).is_empty());
    let mut b = a.clone();
    b.facts = facts(&[("kernel", "6.18"), ("cpu", "X"), ("governor", "performance")]);
    b.peer = facts(&[("kernel", "6.1")]);
    let told = comparable(&a, &b);
    assert_eq!(told, ["governor: unknown and performance", "kernel: 6.12 and 6.18", "peer kernel: unknown and 6.1"]);
    let hash = Environment { hash: "x".to_owned(), ..a.clone() };
    assert_eq!(comparable(&a, &hash).len(), 1);
}

#[test]
fn rates_that_were_found_are_compared_by_block() {
    let session = Session {
        states: ["before", "tuned"].map(|n| State { name: n.into(), ..State::default() }).into(),
        design: Design { blocks: 8, alpha: 0.05, equivalent_percent: 2.0, seed: 3, ..Design::default() },
        ..Session::default()
    };
    let mut list = Vec::new();
    for block in 0..8 {
        for (state, rate) in [("before", 1000.0 + f64::from(block)), ("tuned", 1300.0 - f64::from(block % 3))] {
            for (loss_percent, more) in [(0.0, 0.0), (0.5, 50.0)] {
                let found_per_s = (loss_percent == 0.0 || block != 7).then_some(rate + more);
                list.push(result::Rate { state: state.into(), block, loss_percent, found_per_s, ..Default::default() });
            }
        }
    }
    let out = rates(&session, &list);
    assert_eq!(out.iter().map(|c| c.metric).collect::<Vec<_>>(), [Metric::RateWithoutLoss, Metric::RateHalfPercent]);
    assert_eq!((out[0].pairs, out[1].pairs), (8, 7));
    assert!(out.iter().all(|c| c.verdict == Verdict::Better), "{out:?}");
    assert!(out[1].notes.iter().any(|n| n == "7 of 8 blocks have both values"));
    assert!((out[0].change_percent.unwrap() - 29.5).abs() < 0.5);
    assert!(out[1].notes.iter().any(|n| n == "tuned: not even the lowest rate passed in 1 block, skipped"), "{out:?}");
    // Compared together with the trials of the session, they are corrected for those as well.
    let all = compare_all(&session, &[], &list);
    assert_eq!(all, out);
    let trials: Vec<Trial> = (0..16).map(|i| trial(["before", "tuned"][i % 2], i as u32 / 2, 100.0, 1.0)).collect();
    let all = compare_all(&session, &trials, &list);
    // Two families, three in this one.
    assert_eq!((out[0].p_corrected, all[0].p_corrected), (Some(2.0 * 2.0 / 256.0), Some(2.0 * 3.0 * 2.0 / 256.0)));
    list.iter_mut().for_each(|r| {
        r.limit = Limit::Generator(String::new());
        r.found_per_s = Some(1000.0 + f64::from(r.block));
    });
    const NOT_MET: &str = "the generator sent the same rate: the host's own limit was not reached";
    let out = rates(&session, &list);
    assert_eq!((out[0].verdict, out[0].notes[0].as_str()), (Verdict::Inconclusive, NOT_MET));
    list.iter_mut().for_each(|r| r.limit = Limit::Unknown);
    assert_eq!(rates(&session, &list)[0].verdict, Verdict::Equivalent);
}

#[test]
fn five_per_cent_at_three_per_cent_noise_are_found_in_a_whole_session() {
    let mut rng = Rng::new(21);
    let mut found = 0;
    for _ in 0..50 {
        let mut near = |x: f64| x * (1.0 + 0.03 / 2f64.sqrt() * rng.normal());
        let pair = |b| [trial("before", b, near(1000.0), 1.0), trial("after", b, near(1050.0), 1.0)];
        let list: Vec<Trial> = (0..20).flat_map(pair).collect();
        found += u32::from(
            find(&compare(&session("burst", &["before", "after"], 20), &list), Rate).verdict == Verdict::Better,
        );
    }
    assert!(found >= 40, "{found} of 50");
}
