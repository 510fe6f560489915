use super::*;
use crate::rng::Rng;
use proptest::prelude::*;

/// Lets a search run against a host that loses what is above `capacity`, and a generator with its own limit.
fn run(search: &mut RateSearch, capacity: f64, generator: f64) -> Vec<f64> {
    let mut asked = Vec::new();
    while let Some(rate) = search.ask() {
        asked.push(rate);
        let sent = rate.min(generator);
        search.record_result(sent, 100.0 * (sent - capacity).max(0.0) / sent);
    }
    asked
}

#[test]
fn it_finds_the_rate_for_both_losses() {
    let mut s = RateSearch::new(1e4, 1.488e6, &[0.0, 0.5], 0.005, 60);
    let asked = run(&mut s, 4e5, 1e9);
    let zero = s.result(0.0);
    assert!(zero.complete && zero.found_per_s.unwrap() <= 4e5 && zero.above_per_s.unwrap() > 4e5, "{zero:?}");
    assert!(zero.above_per_s.unwrap() - zero.found_per_s.unwrap() <= 0.005 * 4.1e5);
    // 0.5 % of what is sent: 402,010/s.
    let half = s.result(0.5);
    assert!(half.complete && (4e5..=402_011.0).contains(&half.found_per_s.unwrap()), "{half:?}");
    assert!(half.above_per_s.unwrap() > 402_010.0 && half.limit == Limit::Unknown);
    assert_eq!(asked.len() as u32, half.trials);
    assert!(asked.len() < 30, "{}", asked.len());
}

#[test]
fn what_the_generator_cannot_send_is_its_limit() {
    let mut s = RateSearch::new(1e3, 1e6, &[0.0, 0.5], 0.01, 40);
    assert_eq!(run(&mut s, 1e9, 7e5), [1e6, 1e6]);
    let found = s.result(0.0);
    assert_eq!((found.found_per_s, found.above_per_s, found.complete), (Some(7e5), None, true));
    assert_eq!(found.limit, Limit::Generator("sent 700000/s of the requested 1000000/s".to_owned()));
    // A host that is slower than the generator is found all the same, and is then the limit.
    let mut s = RateSearch::new(1e3, 1e6, &[0.0], 0.01, 40);
    let asked = run(&mut s, 3e5, 7e5);
    assert_eq!(asked[..2], [1e6, 7e5]);
    let found = s.result(0.0);
    assert!((found.found_per_s.unwrap() / 3e5 - 1.0).abs() < 0.011 && found.limit == Limit::Unknown, "{found:?}");
}

#[test]
fn a_generator_that_fails_once_is_tried_again() {
    let mut s = RateSearch::new(1e3, 1e6, &[0.0], 0.01, 40);
    assert_eq!(s.ask(), Some(1e6));
    s.record_result(2e5, 0.0);
    assert_eq!(s.ask(), Some(1e6));
    s.record_result(1e6, 0.0);
    assert_eq!((s.ask(), s.result(0.0).found_per_s, s.result(0.0).limit), (None, Some(1e6), Limit::Offered));
}

#[test]
fn the_highest_rate_may_pass_at_once_and_the_lowest_may_fail() {
    let mut s = RateSearch::new(1e3, 1e6, &[0.0, 0.5], 0.01, 40);
    assert_eq!(run(&mut s, 2e6, 1e9), [1e6]);
    assert_eq!((s.result(0.0).found_per_s, s.result(0.0).limit), (Some(1e6), Limit::Offered));

    let mut s = RateSearch::new(1e5, 1e6, &[0.0, 0.5], 0.01, 60);
    let asked = run(&mut s, 0.0, 1e9);
    assert_eq!(asked.iter().filter(|r| **r == 1e5).count(), 2, "the lowest is tried, twice");
    let found = s.result(0.5);
    assert_eq!((found.found_per_s, found.above_per_s, found.complete), (None, Some(1e5), true));
}

#[test]
fn a_loss_that_was_there_once_does_not_count() {
    let mut s = RateSearch::new(1e5, 8e5, &[0.0], 0.01, 60);
    let mut hit = Vec::new();
    while let Some(rate) = s.ask() {
        let first = !hit.contains(&rate);
        hit.push(rate);
        let lost = if rate > 5e5 { 3.0 } else { 0.0 };
        s.record_result(rate, if first { lost + 0.01 } else { lost });
    }
    assert!((s.result(0.0).found_per_s.unwrap() / 5e5 - 1.0).abs() < 0.011);
    assert!(hit.chunks(2).all(|c| c.len() == 2 && c[0] == c[1]), "{hit:?}");
}

#[test]
fn trials_are_bounded_and_the_result_so_far_is_reported() {
    let mut s = RateSearch::new(1e3, 1e6, &[0.0], 1e-9, 5);
    assert_eq!(run(&mut s, 6e5, 1e9).len(), 5);
    let found = s.result(0.0);
    assert!(!found.complete && found.found_per_s.unwrap() < 6e5 && found.above_per_s.unwrap() > 6e5, "{found:?}");
    assert!(!RateSearch::new(1e3, 1e6, &[0.0], 0.01, 5).result(0.0).complete);
}

#[test]
fn no_number_is_no_pass_and_no_rate_no_search() {
    let mut s = RateSearch::new(1e3, 1e6, &[0.0], 0.01, 9);
    s.ask();
    s.record_result(1e6, f64::NAN);
    assert_eq!((s.result(0.0).found_per_s, s.ask()), (None, Some(1e6)));
    assert_eq!(RateSearch::new(0.0, 1e6, &[0.0], 0.01, 9).ask(), None);
    assert_eq!(RateSearch::new(1.0, f64::INFINITY, &[0.0], 0.01, 9).ask(), None);
}

proptest! {
    /// Whatever noise there is: it ends, stays in bounds, and less strict is never lower.
    #[test]
    fn more_loss_allowed_is_never_a_lower_rate(seed: u64, capacity in 1e3f64..2e6, generator in 1e4f64..3e6, max in 1u32..60) {
        let mut rng = Rng::new(seed);
        let mut s = RateSearch::new(1e3, 1e6, &[0.0, 0.5], 0.01, max);
        let mut n = 0;
        while let Some(rate) = s.ask() {
            prop_assert!(rate <= 1e6 && rate > 0.0);
            n += 1;
            prop_assert!(n <= max);
            let sent = rate.min(generator * (1.0 - 0.02 * rng.unit()));
            let lost = 100.0 * (sent - capacity * (1.0 + 0.05 * rng.normal())).max(0.0) / sent;
            s.record_result(sent, lost + if rng.unit() < 0.2 { rng.unit() } else { 0.0 });
        }
        let (zero, half) = (s.result(0.0), s.result(0.5));
        prop_assert!(half.found_per_s >= zero.found_per_s, "{zero:?} {half:?}");
        for f in [&zero, &half] {
            prop_assert!(f.found_per_s.is_none() || f.above_per_s.is_none_or(|a| Some(a) > f.found_per_s), "{f:?}");
        }
    }
}
