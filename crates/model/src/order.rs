//! One sort for lists of every type. That of the standard library is made anew, of 4 to 10 kB, for each type and each
//! comparison, and a map or set that is collected brings one along: together 720 kB of the static program
//! (BENCHMARKS.md). The lists here are of queues, CPUs and interfaces: short. Long ones (flows, samples) keep `sort`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Lists that put themselves in order, stable: what compares equal stays as it stood.
pub trait Order<T> {
    /// By the order of the items, as `sort` does.
    fn order(&mut self)
    where
        T: Ord;
    /// By a comparison, as `sort_by` does. One that is no total order gives some order, never a panic.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);
    /// By a key, made anew for each comparison, as `sort_by_key` does.
    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> Order<T> for [T] {
    fn order(&mut self)
    where
        T: Ord,
    {
        self.order_by(T::cmp);
    }

    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let places = places(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        put(places, &mut |a, b| self.swap(a, b));
    }

    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }
}

/// Maps and sets that are filled item by item.
pub trait Gather: IntoIterator + Sized {
    /// The map of these pairs; of equal keys the last value holds, as with `collect`.
    fn into_map<K: Ord, V>(self) -> BTreeMap<K, V>
    where
        Self: IntoIterator<Item = (K, V)>,
    {
        let mut out = BTreeMap::new();
        for (k, v) in self {
            out.insert(k, v);
        }
        out
    }

    /// The set of these items.
    fn into_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut out = BTreeSet::new();
        for item in self {
            out.insert(item);
        }
        out
    }
}

impl<I: IntoIterator> Gather for I {}

/// For each place the index of the item that belongs there: a merge sort from the bottom, which compares what is in
/// order already once.
fn places(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut from: Vec<usize> = (0..len).collect();
    let mut to = Vec::with_capacity(len);
    let mut width = 1;
    while width < len {
        to.clear();
        for pair in from.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            let ordered = match (left.last(), right.first()) {
                (Some(a), Some(b)) => compare(*a, *b) != Ordering::Greater,
                _ => true,
            };
            if !ordered {
                while let ([a, rest_left @ ..], [b, rest_right @ ..]) = (left, right) {
                    // The left one first when equal: that keeps it stable.
                    if compare(*a, *b) == Ordering::Greater {
                        to.push(*b);
                        right = rest_right;
                    } else {
                        to.push(*a);
                        left = rest_left;
                    }
                }
            }
            to.extend_from_slice(left);
            to.extend_from_slice(right);
        }
        std::mem::swap(&mut from, &mut to);
        width *= 2;
    }
    from
}

/// Brings each item to its place, along the cycles of the permutation.
fn put(mut places: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..places.len() {
        let mut at = start;
        loop {
            let next = std::mem::replace(&mut places[at], at);
            if next == start {
                break;
            }
            swap(at, next);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without an order (a linear congruence), small enough for many to be equal.
    fn mixed(len: usize, seed: u32) -> Vec<u32> {
        let mut x = seed;
        (0..len)
            .map(|_| {
                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (x >> 16) % 50
            })
            .collect()
    }

    #[test]
    fn is_the_stable_sort_of_the_standard_library() {
        for len in (0..70).chain([127, 128, 129, 1000]) {
            for seed in 0..5 {
                let given: Vec<(u32, usize)> = mixed(len, seed).into_iter().zip(0..).collect();
                let mut want = given.clone();
                want.sort_by_key(|p| p.0);
                let mut got = given.clone();
                got.order_by_key(|p| p.0);
                assert_eq!(got, want, "{len} items");
                got.order_by_key(|p| p.0);
                assert_eq!(got, want, "in order already");
                want.sort_by_key(|p| std::cmp::Reverse(p.0));
                got.order_by(|a, b| b.0.cmp(&a.0));
                assert_eq!(got, want, "backwards");
                want.sort();
                got.order();
                assert_eq!(got, want);
            }
        }
    }

    #[test]
    fn what_is_in_order_is_compared_once_for_each_width() {
        let mut list: Vec<u32> = (0..1024).collect();
        let mut asked = 0;
        list.order_by(|a, b| {
            asked += 1;
            a.cmp(b)
        });
        assert_eq!(asked, 1023);
    }

    #[test]
    fn a_comparison_that_is_no_order_loses_nothing() {
        let mut list = mixed(200, 7);
        let mut want = list.clone();
        let mut flip = false;
        list.order_by(|_, _| {
            flip = !flip;
            if flip { Ordering::Greater } else { Ordering::Less }
        });
        list.order();
        want.sort();
        assert_eq!(list, want);
    }

    #[test]
    fn moves_what_cannot_be_copied() {
        let mut names: Vec<String> = ["c", "a", "d", "b"].map(String::from).into();
        names.order();
        assert_eq!(names, ["a", "b", "c", "d"]);
    }

    #[test]
    fn of_equal_keys_the_last_value_holds() {
        let pairs = [(2, 'a'), (1, 'b'), (2, 'c')];
        assert_eq!(pairs.into_map(), pairs.into_iter().collect::<BTreeMap<_, _>>());
        assert_eq!(pairs.into_map()[&2], 'c');
        assert_eq!([3, 1, 3].into_set(), BTreeSet::from([1, 3]));
    }
}
