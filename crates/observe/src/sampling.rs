//! How many of the received frames are looked at. Pure.

/// Frame headers that are looked at per second. This costs a fraction of a per cent of a CPU.
const HEADERS_PER_S: f64 = 5000.0;
const COARSEST: u32 = 1 << 20;

/// The sampling divisor: one frame in so many is looked at. A power of two.
pub fn sampling_divisor(packets_per_s: f64) -> u32 {
    let mut n = 1;
    while n < COARSEST && packets_per_s / f64::from(n) > HEADERS_PER_S {
        n *= 2;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_packets_are_all_looked_at() {
        assert_eq!([0.0, 5000.0, 5001.0].map(sampling_divisor), [1, 1, 2]);
        assert_eq!([14_880_952.0, f64::INFINITY].map(sampling_divisor), [4096, COARSEST]);
    }
}
