use super::*;
use crate::rng::Rng;
use proptest::prelude::*;

impl Hist {
    fn count(&self) -> u64 {
        self.count
    }

    fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }
}

fn of(list: &[u64]) -> Hist {
    let mut h = Hist::new();
    list.iter().for_each(|ns| h.add(*ns));
    h
}

fn exact(list: &[u64], q: f64) -> u64 {
    let mut list = list.to_vec();
    list.sort_unstable();
    list[((q * list.len() as f64).ceil() as usize).clamp(1, list.len()) - 1]
}

#[test]
fn an_empty_histogram_has_no_values() {
    let h = Hist::new();
    assert_eq!((h.count(), h.mean_ns(), h.deviation_ns(), h.quantile_ns(0.5), h.max_ns()), (0, None, None, None, None));
    assert_eq!(h.latency(true), None);
}

#[test]
fn buckets_follow_each_other_without_gap() {
    let mut last = bucket(0);
    assert_eq!(last, 0);
    for bits in 0..TOP_BITS {
        for step in 0..256 {
            let ns = (1u64 << bits) + (((1u64 << bits) * step) >> 8);
            let b = bucket(ns);
            assert!(b == last || b == last + 1, "{ns}: {b} after {last}");
            last = b;
        }
    }
    assert_eq!(last, BUCKETS - 1);
    assert_eq!(bucket((1 << TOP_BITS) - 1), BUCKETS - 1);
    assert_eq!((bucket(1 << TOP_BITS), bucket(u64::MAX)), (BUCKETS, BUCKETS));
}

#[test]
fn the_deviation_is_that_of_the_samples() {
    let h = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
    assert_eq!(h.mean_ns(), Some(5.0));
    assert!((h.deviation_ns().unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    assert_eq!(of(&[42]).deviation_ns(), Some(0.0));
    // A small spread on a large value, where sums of squares in floating point would be all error.
    let far = 90_000_000_000;
    let d = of(&[far, far + 1, far + 2]).deviation_ns().unwrap();
    assert!((d - 1.0).abs() < 1e-9, "{d}");
}

#[test]
fn beyond_the_last_bucket_the_largest_is_reported() {
    let h = of(&[1, 1 << 40]);
    assert_eq!((h.quantile_ns(0.5), h.quantile_ns(0.99), h.max_ns()), (Some(1), Some(1 << 40), Some(1 << 40)));
    let absurd = of(&[u64::MAX, u64::MAX, 0]);
    assert_eq!(absurd.max_ns(), Some(MOST));
    let right = MOST as f64 / 3f64.sqrt();
    assert!((absurd.deviation_ns().unwrap() / right - 1.0).abs() < 1e-9);
}

#[test]
fn a_latency_in_microseconds() {
    let ns: Vec<u64> = (1..=1000).map(|i| i * 1000).collect();
    let l = of(&ns).latency(true).unwrap();
    assert!(l.open_loop && l.count == 1000 && l.max_us == 1000.0 && l.mean_us == 500.5, "{l:?}");
    for (got, right) in [(l.p50_us, 500.0), (l.p90_us, 900.0), (l.p99_us, 990.0), (l.p999_us.unwrap(), 999.0)] {
        assert!((got / right - 1.0).abs() < 0.004, "{got} for {right}");
    }
    let few = of(&ns[1..]).latency(false).unwrap();
    assert_eq!((few.p999_us, few.open_loop), (None, false));
}

#[test]
fn merging_is_adding() {
    let mut r = Rng::new(3);
    let list: Vec<u64> = (0..5000).map(|_| r.next_u64() >> (28 + r.below(30))).collect();
    let (mut a, b) = (of(&list[..1234]), of(&list[1234..]));
    a.merge(&b);
    assert_eq!(a.latency(false), of(&list).latency(false));
    a.merge(&Hist::new());
    assert_eq!(a.latency(false), of(&list).latency(false));
}

proptest! {
    #[test]
    fn quantiles_are_within_0_4_per_cent(list in prop::collection::vec(0u64..137_000_000_000, 1..200), shift in 0u32..37) {
        let list: Vec<u64> = list.into_iter().map(|ns| ns >> shift).collect();
        let h = of(&list);
        for q in [0.0, 0.01, 0.5, 0.9, 0.99, 1.0] {
            let (got, right) = (h.quantile_ns(q).unwrap() as f64, exact(&list, q) as f64);
            prop_assert!((got - right).abs() <= right * 0.004, "{q}: {got} for {right}");
        }
    }
}
