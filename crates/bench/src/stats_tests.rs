use super::*;

const ALONE: VerdictRule = VerdictRule { alpha: 0.05, equivalent_percent: 2.0, higher_is_better: true, comparisons: 1 };

/// Pairs around 100 whose differences have this deviation, and blocks that differ by more than that.
fn pairs(rng: &mut Rng, n: usize, effect: f64, noise: f64) -> (Vec<f64>, Vec<f64>) {
    let each = noise / 2f64.sqrt();
    let pair = |_| {
        let level = 100.0 + 5.0 * rng.normal();
        (level + each * rng.normal(), level + effect + each * rng.normal())
    };
    (0..n).map(pair).unzip()
}

/// How many of these sessions with one comparison have each verdict: better, worse, equivalent, inconclusive.
fn verdicts(runs: u64, n: usize, effect: f64, noise: f64, x: f64) -> [u32; 4] {
    let mut rng = Rng::new(n as u64 + runs);
    let mut out = [0; 4];
    for run in 0..runs {
        let (base, with) = pairs(&mut rng, n, effect, noise);
        let p = paired(&base, &with, 0.05, run);
        let rule = VerdictRule { equivalent_percent: x, ..ALONE };
        out[p.verdict(p.p, &rule).0 as usize] += 1;
    }
    out
}

/// The highest number of `runs` that is not surprising (1 of 1000) if the true rate is `rate`.
fn at_most(runs: u32, rate: f64) -> u32 {
    let n = f64::from(runs);
    (n * rate + 3.1 * (n * rate * (1.0 - rate)).sqrt()).ceil() as u32
}

#[test]
fn nothing_is_found_where_nothing_is() {
    let mut runs = 0;
    let mut wrong = 0;
    for n in [6, 10, 20] {
        let [better, worse, ..] = verdicts(400, n, 0.0, 3.0, 0.1);
        (runs, wrong) = (runs + 400, wrong + better + worse);
    }
    assert!(wrong <= at_most(runs, 0.05), "{wrong} of {runs}");
    assert!(wrong > 10, "never wrong is not a test at 5 %: {wrong} of {runs}");
}

#[test]
fn five_per_cent_at_three_per_cent_noise_are_found_with_20_pairs() {
    assert!(verdicts(200, 20, 5.0, 3.0, 2.0)[0] >= 160);
    assert!(verdicts(200, 20, -5.0, 3.0, 2.0)[1] >= 160);
}

#[test]
fn what_is_called_detectable_is_found_80_times_of_100() {
    for n in [6u32, 8, 12, 20] {
        let effect = detectable(3.0, n, 0.05, 1).unwrap();
        let found = verdicts(300, n as usize, effect, 3.0, 0.01)[0];
        assert!((222..=264).contains(&found), "{n} pairs, {effect}: {found} of 300");
    }
    // With the strictest step of Holm's correction over 20.
    let mut rng = Rng::new(9);
    for n in [10u32, 12, 20] {
        let effect = detectable(3.0, n, 0.05, 20).unwrap();
        let found = |i: &u64| {
            let (base, with) = pairs(&mut rng, n as usize, effect, 3.0);
            let d: Vec<f64> = base.iter().zip(&with).map(|(b, w)| w - b).collect();
            sign_flip(&d, *i).unwrap() * 20.0 < 0.05
        };
        let found = (0..300).filter(found).count();
        assert!((222..=264).contains(&found), "{n} pairs, {effect}: {found} of 300");
    }
}

#[test]
fn an_interval_holds_the_truth_95_times_of_100() {
    let mut rng = Rng::new(2);
    for (n, skewed, least) in
        [(5, false, 0.95), (10, false, 0.95), (30, false, 0.95), (6, true, 0.92), (20, true, 0.95)]
    {
        let runs = 700;
        let mut misses = 0;
        for run in 0..runs {
            let draw = |rng: &mut Rng| if skewed { -(1.0 - rng.unit()).ln() - 1.0 } else { rng.normal() };
            let values: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
            let (low, high) = Estimate::of_mean(&values, run).unwrap().interval(0.05).unwrap();
            misses += u32::from(low > 0.0 || high < 0.0);
        }
        assert!(misses <= at_most(runs as u32, 1.0 - least), "{n} {skewed}: {misses}");
        assert!(misses >= 15, "{n}: far too wide, {misses} misses");
    }
}

#[test]
fn the_interval_of_a_ratio_holds_it_though_blocks_drift() {
    let mut rng = Rng::new(8);
    let (mut misses, mut width) = (0, 0.0);
    for run in 0..400 {
        let pair = |_| {
            let level = 100.0 * (1.0 + 0.2 * rng.unit());
            (level * (1.0 + 0.01 * rng.normal()), 2.0 * level * (1.0 + 0.01 * rng.normal()))
        };
        let (base, with): (Vec<f64>, Vec<f64>) = (0..15).map(pair).unzip();
        let p = paired(&base, &with, 0.05, run);
        let (low, high) = (p.low_percent.unwrap(), p.high_percent.unwrap());
        misses += u32::from(low > 100.0 || high < 100.0);
        width += (high - low) / 400.0;
    }
    assert!(misses <= at_most(400, 0.05), "{misses}");
    // The blocks alone differ by 12 %, which would make it four times as wide.
    assert!(width < 4.0, "{width}");
}

#[test]
fn of_20_comparisons_of_nothing_one_or_more_are_found_in_5_of_100() {
    let mut rng = Rng::new(4);
    let mut wrong = 0;
    for family in 0..800 {
        let p: Vec<f64> =
            (0..20).map(|_| sign_flip(&(0..12).map(|_| rng.normal()).collect::<Vec<_>>(), family).unwrap()).collect();
        wrong += u32::from(holm(&p).iter().any(|p| *p < 0.05));
    }
    assert!((12..=at_most(800, 0.05)).contains(&wrong), "{wrong} of 800");
}

#[test]
fn equivalence_is_claimed_wrongly_in_5_of_100_and_found_where_it_is() {
    let wrong = verdicts(500, 12, 2.0, 1.5, 2.0)[2];
    assert!((5..=at_most(500, 0.05)).contains(&wrong), "{wrong} of 500");
    assert!(verdicts(200, 20, 0.0, 1.5, 2.0)[2] >= 180);
}

#[test]
fn signs_are_counted_as_calculated_manually() {
    assert_eq!(sign_flip(&[], 0), None);
    assert_eq!(sign_flip(&[0.0, 0.0], 0), Some(1.0));
    assert_eq!(sign_flip(&[1.0; 5], 0), Some(0.0625));
    assert_eq!(sign_flip(&[-1.0; 6], 0), Some(0.03125));
    assert_eq!(sign_flip(&[0.1; 30], 0), Some(2.0 / 2f64.powi(30)));
    // 3+2+1 = 6 or 3+2-1 = 4: two of eight each side.
    assert_eq!(sign_flip(&[3.0, 2.0, -1.0], 0), Some(0.5));
    let mut rng = Rng::new(5);
    for n in 1..=11 {
        let d: Vec<f64> = (0..n).map(|_| rng.normal() + 0.5).collect();
        let seen = d.iter().sum::<f64>().abs();
        let sum = |signs: u32| (0..n).map(|i| if signs >> i & 1 == 0 { d[i] } else { -d[i] }).sum::<f64>();
        let far = (0..1u32 << n).filter(|s| sum(*s).abs() >= seen - 1e-9).count();
        assert_eq!(sign_flip(&d, 0), Some(far as f64 / f64::from(1u32 << n)));
    }
}

#[test]
fn many_pairs_are_drawn_and_come_out_like_counted_ones() {
    let mut rng = Rng::new(6);
    let d: Vec<f64> = (0..31).map(|_| rng.normal() + 0.3).collect();
    // Counted the slow way that is exact up to 31: one sign fixed, the rest by two halves.
    let (a, b) = (signed_sums(&d[..15]), sorted(signed_sums(&d[15..])));
    let seen = d.iter().sum::<f64>().abs();
    let far: usize = a.iter().map(|x| b.len() - b.partition_point(|y| x + y < seen - 1e-9)).sum();
    let exact = 2.0 * far as f64 / 2f64.powi(31);
    let drawn = sign_flip(&d, 1).unwrap();
    assert!((drawn - exact).abs() < 4.0 * (exact * (1.0 - exact) / 2e4).sqrt() + 1e-4, "{drawn} {exact}");
    assert!(sign_flip(&[1.0; 100], 1).unwrap() < 1e-4);
}

#[test]
fn holm_as_calculated_manually() {
    assert_eq!(holm(&[]), Vec::<f64>::new());
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(close(&holm(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]));
    assert!(close(&holm(&[0.9, 0.6]), &[1.0, 1.0]));
}

#[test]
fn quantiles_are_those_of_the_tables() {
    for (q, v, right) in
        [(0.975, 4.0, 2.776), (0.975, 9.0, 2.262), (0.95, 19.0, 1.729), (0.8, 19.0, 0.861), (0.995, 29.0, 2.756)]
    {
        let got = student_quantile(q, v);
        assert!((got - right).abs() < 0.01, "{q} {v}: {got} for {right}");
    }
    assert!((normal_quantile(0.025) + 1.96).abs() < 0.001);
}

#[test]
fn how_many_pairs_it_takes() {
    assert_eq!((least_pairs(0.05, 1), least_pairs(0.05, 20), least_pairs(0.01, 1)), (6, 10, 8));
    assert_eq!(detectable(3.0, 5, 0.05, 1), None);
    // The t-test needs 10 according to textbooks.
    assert_eq!(pairs_for(3.0, 3.0, 0.05, 1), 12);
    assert!(pairs_for(0.1, 3.0, 0.05, 1).abs_diff(7064) < 10);
    assert!(pairs_for(3.0, 3.0, 0.05, 20) > 12);
}

#[test]
fn too_few_pairs_say_so() {
    let few = paired(&[1.0; 4], &[2.0; 4], 0.05, 0);
    assert_eq!((few.low_percent, few.change_percent), (None, Some(100.0)));
    let (verdict, notes) = few.verdict(few.p, &ALONE);
    assert_eq!(
        (verdict, notes[0].as_str()),
        (Verdict::Inconclusive, "4 pairs are too few: a difference needs at least 6")
    );
    // Five have an interval, and still cannot be significant.
    let base = [100.0, 101.0, 99.0, 100.5, 99.5];
    let five = paired(&base, &[120.0, 119.0, 121.0, 120.5, 118.5], 0.05, 0);
    assert!(five.low_percent.unwrap() > 10.0);
    let (verdict, notes) = five.verdict(five.p, &ALONE);
    assert_eq!(
        (verdict, notes[0].as_str()),
        (Verdict::Inconclusive, "5 pairs cannot show a difference at 0.05: at least 6 are needed")
    );
    let none = paired(&[], &[], 0.05, 0);
    assert_eq!((none.pairs, none.p, none.change_percent, none.noise_percent), (0, None, None, None));
}

#[test]
fn an_irrelevant_difference_is_equivalent_and_reported() {
    let base: Vec<f64> = (0..12).map(|i| 100.0 + f64::from(i % 4)).collect();
    let with: Vec<f64> = base.iter().enumerate().map(|(i, b)| b + 1.0 + 0.1 * (i % 3) as f64).collect();
    let p = paired(&base, &with, 0.05, 0);
    let (verdict, notes) = p.verdict(p.p, &ALONE);
    assert_eq!(
        (verdict, notes),
        (Verdict::Equivalent, vec!["a difference exists, but is smaller than 2 %".to_owned()])
    );
    let strict = VerdictRule { equivalent_percent: 0.5, ..ALONE };
    assert_eq!(p.verdict(p.p, &strict), (Verdict::Better, vec![]));
    assert_eq!(p.verdict(p.p, &VerdictRule { higher_is_better: false, ..strict }).0, Verdict::Worse);
}

#[test]
fn missing_data_is_reported() {
    let mut rng = Rng::new(1);
    let (base, with) = pairs(&mut rng, 8, 0.0, 6.0);
    let p = paired(&base, &with, 0.05, 0);
    let (verdict, notes) = p.verdict(p.p, &ALONE);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(notes[0].starts_with("would need about ") && notes[0].ends_with(" pairs for 2 %"), "{notes:?}");
    let many = VerdictRule { comparisons: 100, ..ALONE };
    let notes = p.verdict(Some(1.0), &many).1;
    assert_eq!(notes[0], "8 pairs cannot show a difference in 100 comparisons at 0.05: at least 12 are needed");
}

#[test]
fn from_zero_there_is_no_per_cent_and_still_a_verdict() {
    let with: Vec<f64> = (1..=8).map(f64::from).collect();
    let p = paired(&[0.0; 8], &with, 0.05, 0);
    assert_eq!((p.change_percent, p.low_percent, p.noise_percent), (None, None, None));
    let loss = VerdictRule { higher_is_better: false, ..ALONE };
    assert_eq!(p.verdict(p.p, &loss), (Verdict::Worse, vec![]));
    let none = paired(&[0.0; 8], &[0.0; 8], 0.05, 0);
    assert_eq!(none.verdict(none.p, &loss), (Verdict::Equivalent, vec!["every pair is exactly equal".to_owned()]));
}

#[test]
fn hardly_any_value_that_differs_has_no_interval() {
    let mut with = [0.0; 6];
    with[3] = 1.0;
    let p = paired(&[0.0; 6], &with, 0.05, 0);
    let (verdict, notes) = p.verdict(p.p, &ALONE);
    assert_eq!((verdict, notes), (Verdict::Inconclusive, vec!["too many pairs are equal for an interval".to_owned()]));
}
