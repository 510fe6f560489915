//! A small generator of pseudo-random numbers, the same everywhere for the same seed: xoshiro256** (Blackman and
//! Vigna), seeded by splitmix64. Not for secrets.

/// A generator with its state of 256 bits, never all zero.
#[derive(Debug, Clone)]
pub struct Rng([u64; 4]);

impl Rng {
    /// The same seed gives the same numbers on every machine.
    pub fn new(seed: u64) -> Rng {
        let mut x = seed;
        Rng([(); 4].map(|()| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// A number from 0 to below `n`; 0 if `n` is 0. The bias is below `n` / 2^64.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// A number from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Shuffles; every order is equally likely (Fisher and Yates).
    pub fn shuffle(&mut self, list: &mut [usize]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i + 1));
        }
    }

    /// A normally distributed number with mean 0 and deviation 1.
    #[cfg(test)]
    pub fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.unit(), self.unit());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the authors' own programs: splitmix64 from 0, and xoshiro256** from 1, 2, 3, 4.
    #[test]
    fn it_gives_what_its_authors_programs_give() {
        assert_eq!(Rng::new(0).0, [0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec]);
        let mut r = Rng([1, 2, 3, 4]);
        assert_eq!([(); 4].map(|()| r.next_u64()), [11520, 0, 1509978240, 1215971899390074240]);
    }

    #[test]
    fn draws_are_spread_evenly() {
        let mut r = Rng::new(7);
        let mut seen = [0u32; 5];
        for _ in 0..50_000 {
            seen[r.below(5)] += 1;
        }
        // 10,000 expected each, deviation 89.
        assert!(seen.iter().all(|n| n.abs_diff(10_000) < 450), "{seen:?}");
        assert_eq!(r.below(0), 0);
        let mean = (0..50_000).map(|_| r.unit()).sum::<f64>() / 5e4;
        assert!((mean - 0.5).abs() < 0.007, "{mean}");
        let normal: Vec<f64> = (0..50_000).map(|_| r.normal()).collect();
        let square = normal.iter().map(|x| x * x).sum::<f64>() / 5e4;
        assert!((square - 1.0).abs() < 0.04, "{square}");
    }
}
