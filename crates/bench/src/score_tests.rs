use super::*;
use crate::result::{Design, Latency, LoadResult, State};

fn session() -> Session {
    let state = |name: &str| State { name: name.to_owned(), ..State::default() };
    let design = Design { seed: 1, blocks: 8, alpha: 0.05, equivalent_percent: 2.0, ..Design::default() };
    Session { workload: "mixed".to_owned(), states: vec![state("before"), state("bulk")], design, ..Session::default() }
}

fn load(group: &str, mean_us: f64, done_per_s: f64) -> LoadResult {
    let latency = Some(Latency { mean_us, ..Latency::default() });
    LoadResult { group: group.to_owned(), done_per_s, latency, ..LoadResult::default() }
}

fn trials(loads: impl Fn(u32, bool) -> Vec<LoadResult>) -> Vec<Trial> {
    let trial = |block, tuned: bool| Trial {
        state: if tuned { "bulk" } else { "before" }.to_owned(),
        block,
        loads: loads(block, tuned),
        ..Trial::default()
    };
    (0..8).flat_map(|b| [trial(b, false), trial(b, true)]).collect()
}

#[test]
fn a_score_as_calculated_manually() {
    // Latency from 100 to 80 us: 1.25. Throughput from 1000 to 1500: 1.5.
    let list = trials(|b, tuned| {
        let drift = 1.0 + f64::from(b) / 10.0;
        let (us, rate) = if tuned { (80.0, 1500.0) } else { (100.0, 1000.0) };
        vec![load("latency", us * drift, 9.0), load("throughput", 1e9, rate * drift)]
    });
    let s = &scores(&session(), &list, 0.5)[0];
    assert_eq!((s.state.as_str(), s.pairs, s.weight), ("bulk", 8, 0.5));
    for (got, right) in [(s.latency_part, 1.25), (s.throughput_part, 1.5), (Some(s.score), 1.375), (s.low, 1.375)] {
        assert!((got.unwrap() - right).abs() < 1e-9, "{s:?}");
    }
    let latency_alone = &scores(&session(), &list, 1.0)[0];
    assert!((latency_alone.score - 1.25).abs() < 1e-9);
}

#[test]
fn a_corner_has_only_the_part_that_it_loads() {
    let list = trials(|_, tuned| vec![load("throughput", 5.0, if tuned { 1200.0 } else { 1000.0 })]);
    let s = &scores(&session(), &list, 0.5)[0];
    assert_eq!((s.weight, s.latency_part, s.throughput_part), (0.0, None, Some(1.2)));
    assert!((s.score - 1.2).abs() < 1e-9);
    let list = trials(|_, tuned| vec![load("latency", if tuned { 50.0 } else { 60.0 }, 1.0)]);
    let s = &scores(&session(), &list, 0.5)[0];
    assert_eq!((s.weight, s.latency_part, s.throughput_part, s.score), (1.0, Some(1.2), None, 1.2));
}

#[test]
fn where_there_is_nothing_to_divide_by_there_is_no_score() {
    assert!(scores(&session(), &trials(|_, _| vec![load("", 0.0, 10.0)]), 0.5).is_empty());
    assert!(scores(&session(), &trials(|_, _| Vec::new()), 0.5).is_empty());
    assert!(scores(&Session::default(), &[], 0.5).is_empty());
}

#[test]
fn the_interval_of_a_score_holds_the_truth() {
    let mut rng = crate::rng::Rng::new(3);
    let (mut misses, mut above) = (0, 0);
    for run in 0..300 {
        let noise: Vec<f64> = (0..32).map(|_| 1.0 + 0.05 * rng.normal()).collect();
        let list = trials(|b, tuned| {
            let i = 4 * b as usize + 2 * usize::from(tuned);
            let (us, rate) = if tuned { (80.0, 1100.0) } else { (100.0, 1000.0) };
            vec![load("latency", us * noise[i], 1.0), load("throughput", 1.0, rate * noise[i + 1])]
        });
        let mut session = session();
        session.design.seed = run;
        let s = &scores(&session, &list, 0.4)[0];
        let truth = 0.4 * 1.25 + 0.6 * 1.1;
        misses += u32::from(s.low.unwrap() > truth || s.high.unwrap() < truth);
        above += u32::from(s.score > truth);
    }
    // 15 expected, deviation 3.8.
    assert!((3..=27).contains(&misses), "{misses}");
    assert!((120..=180).contains(&above), "{above} of 300 above the truth");
}
