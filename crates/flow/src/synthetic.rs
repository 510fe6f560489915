//! Synthetic populations of flows. The same text always gives the same flows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::population::CountedFlow;
use crate::tuple::{BadFlow, Tuple, UDP, has_ports, protocol_number};

/// `count=2000,zipf=1.0,packets=1000000,src=10.0.0.0/8,dst=192.0.2.1/32,sport=1024-65535,dport=443,proto=udp,seed=1`
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic {
    /// Number of flows, 1 to [`MOST`].
    pub count: u32,
    /// Exponent of the Zipf distribution: the share of flow k is proportional to 1 / k^zipf. 0: all flows are equal.
    pub zipf: f64,
    /// Packets of all flows together.
    pub packets: u64,
    /// Network of the source addresses: address and prefix length.
    pub src: (IpAddr, u8),
    /// Network of the destination addresses: address and prefix length.
    pub dst: (IpAddr, u8),
    /// Smallest and largest source port.
    pub sport: (u16, u16),
    /// Smallest and largest destination port.
    pub dport: (u16, u16),
    /// Protocol number of IANA.
    pub protocol: u8,
    /// Seed of the generator; the same seed gives the same flows.
    pub seed: u64,
}

impl Default for Synthetic {
    fn default() -> Self {
        Self {
            count: 10_000,
            zipf: 0.0,
            packets: 10_000_000,
            src: (Ipv4Addr::new(10, 0, 0, 0).into(), 8),
            dst: (Ipv4Addr::new(192, 0, 2, 1).into(), 32),
            sport: (1024, u16::MAX),
            dport: (443, 443),
            protocol: UDP,
            seed: 1,
        }
    }
}

/// The largest number of flows in one population.
pub const MOST: u32 = 10_000_000;

impl Synthetic {
    /// Parses the text. Missing keys have their defaults. An error names the wrong part.
    pub fn parse(text: &str) -> Result<Self, BadFlow> {
        let mut s = Self::default();
        for part in text.split(',').filter(|p| !p.is_empty()) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| BadFlow::new(part, "KEY=VALUE, e.g. count=10000 or count=10000,zipf=1.0"))?;
            let bad = |what: &str| BadFlow::new(part, what);
            match key {
                "count" => {
                    let n = value.parse().ok().filter(|n| (1..=MOST).contains(n));
                    s.count = n.ok_or_else(|| bad("a count from 1 to 10000000"))?;
                }
                "zipf" => {
                    let z = value.parse().ok().filter(|z: &f64| (0.0..=10.0).contains(z));
                    s.zipf = z.ok_or_else(|| bad("an exponent from 0 to 10"))?;
                }
                "packets" => {
                    s.packets = value
                        .parse()
                        .ok()
                        .filter(|n| *n > 0 && *n <= 1 << 50)
                        .ok_or_else(|| bad("a number of packets, at least 1"))?
                }
                "src" => s.src = prefix(value).ok_or_else(|| bad("an address or prefix"))?,
                "dst" => s.dst = prefix(value).ok_or_else(|| bad("an address or prefix"))?,
                "sport" => s.sport = range(value).ok_or_else(|| bad("a port or FIRST-LAST"))?,
                "dport" => s.dport = range(value).ok_or_else(|| bad("a port or FIRST-LAST"))?,
                "proto" => {
                    s.protocol = protocol_number(value)
                        .ok_or_else(|| bad("a protocol: tcp, udp, sctp, icmp, esp, ... or its number"))?
                }
                "seed" => s.seed = value.parse().map_err(|_| bad("a seed: a number from 0 to 18446744073709551615"))?,
                _ => return Err(bad("one of count, zipf, packets, src, dst, sport, dport, proto, seed")),
            }
        }
        if s.src.0.is_ipv6() != s.dst.0.is_ipv6() {
            return Err(BadFlow::new(text, "src and dst of one family (both IPv4 or both IPv6)"));
        }
        Ok(s)
    }

    /// Generates the flows. A flow that was drawn before is drawn again a few times, then skipped.
    pub fn flows(&self) -> Vec<CountedFlow> {
        let mut rng = Rng(self.seed);
        let weights: Vec<f64> = (1..=self.count).map(|k| falling(k, self.zipf)).collect();
        let sum: f64 = weights.iter().sum();
        let mut seen = std::collections::HashSet::with_capacity(self.count as usize);
        let mut out = Vec::with_capacity(self.count as usize);
        for w in weights {
            let tuple = (0..20).map(|_| self.draw(&mut rng)).find(|t| seen.insert(*t));
            let packets = ((w / sum * self.packets as f64).round() as u64).max(1);
            out.extend(tuple.map(|tuple| CountedFlow { tuple, packets, bytes: 0 }));
        }
        out
    }

    fn draw(&self, rng: &mut Rng) -> Tuple {
        let (src, dst) = (within(self.src, rng), within(self.dst, rng));
        let port = |(a, b): (u16, u16), rng: &mut Rng| a + (rng.draw() % (u64::from(b - a) + 1)) as u16;
        let ports = has_ports(self.protocol).then(|| (port(self.sport, rng), port(self.dport, rng)));
        Tuple { src, dst, protocol: self.protocol, ports, fragment: false, vlan: None }
    }
}

/// `k` to the power of `-s`. The C library's `pow` differs between architectures (and has 12 kB), but the same text
/// must give the same flows everywhere.
fn falling(k: u32, s: f64) -> f64 {
    use std::f64::consts::{LN_2, SQRT_2};
    let mut e = k.ilog2();
    let mut m = f64::from(k) / (1u64 << e) as f64;
    if m > SQRT_2 {
        (e, m) = (e + 1, m / 2.0);
    }
    // ln m is twice the inverse hyperbolic tangent of t, whose series converges fast.
    let t = (m - 1.0) / (m + 1.0);
    let series = (0..12).rev().fold(0.0, |sum, i| sum * t * t + 1.0 / f64::from(2 * i + 1));
    let x = -s * (f64::from(e) * LN_2 + 2.0 * t * series);
    let n = (x / LN_2).round().max(-1000.0);
    let r = x - n * LN_2;
    let exp = (1..18).rev().fold(1.0, |sum, i| 1.0 + sum * r / f64::from(i));
    exp * f64::from_bits(((n as i64 + 1023) as u64) << 52)
}

fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (a, l) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
    let a: IpAddr = a.parse().ok()?;
    let most = if a.is_ipv6() { 128 } else { 32 };
    let l = l.map_or(Some(most), |l| l.parse().ok().filter(|l| *l <= most))?;
    Some((a, l))
}

fn range(text: &str) -> Option<(u16, u16)> {
    let (a, b) = text.split_once('-').unwrap_or((text, text));
    let (a, b) = (a.parse().ok()?, b.parse().ok()?);
    (a <= b).then_some((a, b))
}

fn within((a, len): (IpAddr, u8), rng: &mut Rng) -> IpAddr {
    let host = |bits: u8| if len >= bits { 0u128 } else { u128::MAX >> (128 - u32::from(bits - len)) };
    let random = u128::from(rng.draw()) << 64 | u128::from(rng.draw());
    match a {
        IpAddr::V4(a) => {
            let m = host(32) as u32;
            Ipv4Addr::from((a.to_bits() & !m) | (random as u32 & m)).into()
        }
        IpAddr::V6(a) => {
            let m = host(128);
            Ipv6Addr::from((a.to_bits() & !m) | (random & m)).into()
        }
    }
}

/// The generator SplitMix64: small, and good enough to draw addresses.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    /// The next number, any of 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::falling;

    #[test]
    fn powers() {
        for s in [0.0, 0.5, 0.8, 1.0, 1.2, 2.0, 7.5, 10.0] {
            for k in [1, 2, 3, 5, 7, 11, 100, 1023, 1024, 1025, 46_341, 1_000_003, 16_777_215, u32::MAX] {
                let (is, want) = (falling(k, s), f64::from(k).powf(-s));
                assert!((is - want).abs() <= want * 1e-12, "{k} to the power of -{s}: {is}, expected {want}");
            }
        }
    }
}
