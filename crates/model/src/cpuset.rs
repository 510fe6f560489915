//! A set of CPUs of any size, and the kernel's list notation (`0-3,8`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::CpuId;

/// Largest CPU number that is accepted in text; far above any kernel's `NR_CPUS` (8192 on x86).
pub const MAX_CPU: u32 = 65_535;

/// A set of CPU numbers. Compared as a set; printed and serialised as the kernel's list.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet {
    // No trailing zero words, so that the derived comparisons are those of sets.
    words: Vec<u64>,
}

/// An invalid list: what was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadCpuList {
    /// The text of the list.
    pub text: String,
    /// The byte at which the text stops being a list, from 0.
    pub at: usize,
    /// What is wrong there.
    pub why: &'static str,
}

impl fmt::Display for BadCpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is not a CPU list: {} at character {} (expected e.g. 0-3,8)",
            self.text,
            self.why,
            self.at + 1
        )
    }
}

impl std::error::Error for BadCpuList {}

impl CpuSet {
    /// The set without CPUs.
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// The one CPU.
    pub fn one(cpu: CpuId) -> Self {
        Self::from_iter([cpu])
    }

    /// CPUs `first..=last`.
    pub fn range(first: u32, last: u32) -> Self {
        let mut set = Self::new();
        if first <= last {
            set.insert_range(first, last);
        }
        set
    }

    /// CPUs `first..=last`, a word at a time: journals and captures of large hosts hold thousands of `0-511`.
    fn insert_range(&mut self, first: u32, last: u32) {
        let (low, high) = (first as usize / 64, last as usize / 64);
        if self.words.len() <= high {
            self.words.resize(high + 1, 0);
        }
        for (i, word) in self.words.iter_mut().enumerate().take(high + 1).skip(low) {
            let from = if i == low { first % 64 } else { 0 };
            let to = if i == high { last % 64 } else { 63 };
            *word |= (u64::MAX << from) & (u64::MAX >> (63 - to));
        }
    }

    /// Adds a CPU; the set grows up to its number.
    pub fn insert(&mut self, cpu: CpuId) {
        let (w, b) = (cpu.0 as usize / 64, cpu.0 % 64);
        if self.words.len() <= w {
            self.words.resize(w + 1, 0);
        }
        self.words[w] |= 1 << b;
    }

    /// Removes a CPU. A CPU that is not in the set changes nothing.
    pub fn remove(&mut self, cpu: CpuId) {
        if let Some(w) = self.words.get_mut(cpu.0 as usize / 64) {
            *w &= !(1 << (cpu.0 % 64));
        }
        self.trim();
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words.get(cpu.0 as usize / 64).is_some_and(|w| w & (1 << (cpu.0 % 64)) != 0)
    }

    /// Whether the set has no CPU.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Number of CPUs in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut w = word;
            std::iter::from_fn(move || {
                if w == 0 {
                    return None;
                }
                let b = w.trailing_zeros();
                w &= w - 1;
                Some(CpuId(i as u32 * 64 + b))
            })
        })
    }

    /// The CPU with the lowest number. `None`: the set is empty.
    pub fn first(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// The CPU with the highest number. `None`: the set is empty.
    pub fn last(&self) -> Option<CpuId> {
        let w = self.words.last()?;
        Some(CpuId((self.words.len() as u32 - 1) * 64 + 63 - w.leading_zeros()))
    }

    /// CPUs that are in either set.
    pub fn union(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    /// CPUs that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    /// CPUs of this set that are not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    /// Whether every CPU of this set is in `other`; true for the empty set.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    /// Whether a CPU is in both sets.
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    fn zip(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let n = self.words.len().max(other.words.len());
        let at = |v: &Vec<u64>, i: usize| v.get(i).copied().unwrap_or(0);
        let mut out = Self { words: (0..n).map(|i| f(at(&self.words, i), at(&other.words, i))).collect() };
        out.trim();
        out
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(iter: I) -> Self {
        let mut s = Self::new();
        for c in iter {
            s.insert(c);
        }
        s
    }
}

impl fmt::Display for CpuSet {
    /// The kernel's list: `0-3,8`; the empty set prints nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        let mut it = self.iter().map(|c| c.0).peekable();
        while let Some(first) = it.next() {
            let mut last = first;
            while it.peek() == Some(&(last + 1)) {
                last += 1;
                it.next();
            }
            if !out.is_empty() {
                out.push(',');
            }
            out.push_str(&first.to_string());
            if last > first {
                out.push('-');
                out.push_str(&last.to_string());
            }
        }
        f.pad(&out)
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl FromStr for CpuSet {
    type Err = BadCpuList;

    /// The kernel's list with its `first-last:used/group` form (lib/bitmap-str.c, bitmap_parselist).
    /// Surrounding white space is ignored; the empty text is the empty set.
    fn from_str(text: &str) -> Result<Self, BadCpuList> {
        let bad = |at: usize, why| BadCpuList { text: text.to_string(), at, why };
        let mut set = Self::new();
        let lead = text.len() - text.trim_start().len();
        let body = text.trim();
        if body.is_empty() {
            return Ok(set);
        }
        let mut at = lead;
        for part in body.split(',') {
            let number = |s: &str, off: usize| -> Result<u32, BadCpuList> {
                if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(bad(at + off, "a number was expected"));
                }
                match s.parse::<u32>() {
                    Ok(n) if n <= MAX_CPU => Ok(n),
                    _ => Err(bad(at + off, "the number is too large for a CPU")),
                }
            };
            let (range, stride) = match part.split_once(':') {
                Some((r, s)) => (r, Some((s, r.len() + 1))),
                None => (part, None),
            };
            let (first, last) = match range.split_once('-') {
                Some((a, b)) => (number(a, 0)?, number(b, a.len() + 1)?),
                None => {
                    let n = number(range, 0)?;
                    (n, n)
                }
            };
            if first > last {
                return Err(bad(at, "the range runs backwards"));
            }
            let (used, group) = match stride {
                None => (1, 1),
                Some((s, off)) => {
                    let (u, g) = s.split_once('/').ok_or_else(|| bad(at + off, "used/group was expected"))?;
                    (number(u, off)?, number(g, off + u.len() + 1)?)
                }
            };
            if used == 0 || group == 0 || used > group {
                return Err(bad(at, "used/group needs 1 <= used <= group"));
            }
            if used == group {
                set.insert_range(first, last);
            } else {
                let member = |c: &u32| (c - first) % group < used;
                (first..=last).filter(member).for_each(|c| set.insert(CpuId(c)));
            }
            at += part.len() + 1;
        }
        Ok(set)
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(s: &str) -> CpuSet {
        s.parse().unwrap()
    }

    #[test]
    fn ranges_are_their_cpus_one_by_one() {
        for (first, last) in [(0, 0), (0, 63), (0, 64), (63, 64), (5, 5), (5, 70), (64, 127), (100, 511), (511, 511)] {
            let each: CpuSet = (first..=last).map(CpuId).collect();
            assert_eq!(CpuSet::range(first, last), each, "{first}-{last}");
            assert_eq!(set(&format!("{first}-{last}")), each);
            let beside: CpuSet = [CpuId(2), CpuId(300)].into_iter().chain(each.iter()).collect();
            assert_eq!(set(&format!("2,300,{first}-{last}")), beside, "with others in the same words");
        }
        assert!(CpuSet::range(4, 3).is_empty());
    }

    #[test]
    fn prints_the_kernels_list() {
        assert_eq!(set("0-3,8").to_string(), "0-3,8");
        assert_eq!(set("8,0,1,2,3\n").to_string(), "0-3,8");
        assert_eq!(set("").to_string(), "");
        assert_eq!(set("0-15:2/4").to_string(), "0-1,4-5,8-9,12-13");
        assert_eq!(set("511").last(), Some(CpuId(511)));
    }

    #[test]
    fn an_invalid_list_is_refused_with_its_position() {
        for (text, at) in [("1,,2", 2), ("3-1", 0), ("a", 0), ("0-", 2), ("99999999", 0), ("1-4:5/2", 0), ("0x3", 0)] {
            assert_eq!(text.parse::<CpuSet>().unwrap_err().at, at, "{text}");
        }
    }

    #[test]
    fn sets_compare_as_sets() {
        let mut a = set("0,130");
        a.remove(CpuId(130));
        assert_eq!(a, set("0"));
        assert_eq!(set("0-7").difference(&set("2-3")), set("0-1,4-7"));
        assert!(set("64").is_subset(&set("0-127")));
        assert!(!set("64").intersects(&set("0-63")));
        assert_eq!(set("1,64,200").len(), 3);
    }
}
