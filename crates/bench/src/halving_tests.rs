use super::*;
use crate::rng::Rng;
use proptest::prelude::*;

/// Lets a search run on candidates with these true changes in per cent, at this noise of a single score.
fn run(effects: &[f64], noise: f64, budget: u32, seed: u64) -> HalvingOutcome {
    let mut rng = Rng::new(seed ^ 0xabcd);
    let mut h = Halving::new(effects.len(), budget, 0.05, 1.0, seed).unwrap();
    loop {
        let level = 1000.0 * (1.0 + 0.05 * rng.normal());
        let mut score = |who: &SearchState| {
            let effect = if let SearchState::Candidate(c) = who { effects[*c] } else { 0.0 };
            Some(level * (1.0 + effect / 100.0 + noise / 100.0 * rng.normal()))
        };
        let scores: Vec<Option<f64>> = h.ask().iter().map(&mut score).collect();
        if scores.is_empty() {
            return h.outcome().unwrap();
        }
        h.record_result(&scores);
    }
}

#[test]
fn the_one_better_of_16_is_found() {
    let mut effects = [0.0; 16];
    effects[11] = 10.0;
    let found = (0..100).filter(|seed| run(&effects, 3.0, 160, *seed).winner == Some(11)).count();
    assert!(found >= 80, "{found} of 100");
}

#[test]
fn where_all_are_alike_none_is_better() {
    let none = (0..200).filter(|seed| run(&[0.0; 16], 3.0, 160, *seed).winner.is_none()).count();
    assert!(none >= 180, "{none} of 200");
    let out = run(&[0.0; 16], 3.0, 160, 1);
    assert_eq!(out.notes[0], "no candidate is better than the present settings");
    assert_eq!((out.dropped.len(), out.dropped[15].why), (16, DropReason::NotProved));
}

#[test]
fn the_choice_does_not_flatter_the_winner() {
    // The best of 16 equal candidates looks better by chance; its proof must not.
    let changes: Vec<f64> =
        (0..150).filter_map(|seed| run(&[0.0; 16], 3.0, 100, seed).proof.and_then(|p| p.change_percent)).collect();
    // Deviation of one: 3 · sqrt(2 / 10) or less than 1.8; of their mean: 0.15.
    assert!(changes.len() > 120 && mean(&changes).abs() < 0.5, "{}", mean(&changes));
}

#[test]
fn what_is_clearly_worse_goes_early_and_saves_its_trials() {
    let mut effects = [-40.0; 8];
    effects[2] = 20.0;
    let out = run(&effects, 1.0, 400, 5);
    assert_eq!(out.winner, Some(2));
    assert!(
        out.dropped.iter().all(|d| d.round == 0 && d.why == DropReason::BelowStart && d.blocks == 4),
        "{:?}",
        out.dropped
    );
    assert!(out.dropped.iter().all(|d| (d.change_percent.unwrap() + 40.0).abs() < 3.0));
    assert_eq!(out.trials, 4 * 9 + 2 * 20);
    // All candidates are worse: the search ends without a proof.
    let out = run(&[-40.0; 8], 1.0, 400, 5);
    assert!(out.winner.is_none() && out.proof.is_none() && out.trials == 4 * 9);
    assert_eq!(out.notes, ["no candidate is better than the present settings"]);
}

#[test]
fn what_lies_below_the_best_goes_though_it_is_above_the_start() {
    let out = run(&[5.0, 30.0, 5.0, 5.0], 0.5, 400, 2);
    assert_eq!(out.winner, Some(1));
    assert!(out.dropped.iter().all(|d| d.why == DropReason::BelowBest && d.round == 0), "{:?}", out.dropped);
}

#[test]
fn one_that_cannot_be_measured_is_dropped_and_reported() {
    let mut h = Halving::new(3, 100, 0.05, 1.0, 1).unwrap();
    while !h.ask().is_empty() {
        let score = |who: &SearchState| {
            (*who != SearchState::Candidate(1)).then_some(if *who == SearchState::Start { 100.0 } else { 120.0 })
        };
        let scores: Vec<Option<f64>> = h.ask().iter().map(score).collect();
        h.record_result(&scores);
    }
    let out = h.outcome().unwrap();
    assert_eq!((out.dropped[0].candidate, out.dropped[0].why, out.dropped[0].blocks), (1, DropReason::Failed, 0));
    assert!(out.winner.is_some_and(|w| w != 1));
    // Nothing can be measured: the search ends at once, without a winner.
    let mut h = Halving::new(2, 100, 0.05, 1.0, 1).unwrap();
    assert_eq!(h.ask().len(), 3);
    h.record_result(&[None, None, None]);
    assert!(h.ask().is_empty() && h.outcome().unwrap().winner.is_none());
}

#[test]
fn a_budget_that_does_not_reach_is_refused() {
    // 17 + 9 + 5 + 3 trials and 12 for the proof.
    assert_eq!(Halving::new(16, 45, 0.05, 1.0, 1).unwrap_err(), TooShort { trials: 45, needed: 46 });
    assert!(run(&[0.0; 16], 3.0, 46, 1).trials <= 46);
    assert!(Halving::new(0, 12, 0.05, 1.0, 1).unwrap().outcome().unwrap().winner.is_none());
    assert_eq!(run(&[20.0], 1.0, 40, 1).winner, Some(0));
    assert!(Halving::new(4, 50, 0.05, 1.0, 1).unwrap().outcome().is_none(), "not begun is not over");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn it_stays_within_its_budget_and_reports_every_candidate(effects in prop::collection::vec(-20.0f64..20.0, 1..20), more in 0u32..300, seed: u64) {
        let needed = match Halving::new(effects.len(), 0, 0.05, 1.0, seed) {
            Err(e) => e.needed,
            Ok(_) => unreachable!(),
        };
        let out = run(&effects, 3.0, needed + more, seed);
        prop_assert!(out.trials <= needed + more);
        let mut all: Vec<usize> = out.dropped.iter().map(|d| d.candidate).chain(out.winner).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..effects.len()).collect::<Vec<_>>());
        // At least six deviations of the proof's mean, which does not happen by chance.
        prop_assert!(out.winner.is_none_or(|w| effects[w] > -8.0));
    }
}
