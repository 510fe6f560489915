//! Whether packets or bits per second are the limit: the one that stays the same while the size changes.

use ringwise_model::words::thousands;

use crate::file::Results;
use crate::result::{BitRateLayer, Limit, Point, Unit};
use crate::summary::{self, Row};
use crate::words::{bits, count};

/// Rates within this factor of each other are the same.
const SAME: f64 = 1.10;
/// Sizes on the wire that differ by less than this factor show nothing.
const DIFFERENT: f64 = 1.5;
/// Preamble, start delimiter and the gap between frames.
const GAP_BITS: f64 = 20.0 * 8.0;

/// Sizes over which a rate stays the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StableRange {
    /// The smallest and the largest size, in bytes as the session names them.
    pub bytes: (u32, u32),
    /// The lowest and the highest rate of these sizes, per second.
    pub per_s: (f64, f64),
}

/// What limits a state, as far as its sizes show it.
#[derive(Debug, Clone, PartialEq)]
pub struct StateLimit {
    /// Name of the state.
    pub state: String,
    /// The other members of the point.
    pub rest: Point,
    /// Packets per second stay the same: each packet costs the same, whatever its size.
    pub packets: Option<StableRange>,
    /// Bits per second on the wire stay the same.
    pub bits: Option<StableRange>,
}

/// One size of a state.
struct MeasuredSize {
    bytes: u32,
    /// With preamble and gap.
    wire_bits: f64,
    packets_per_s: f64,
}

/// The limit of each state that was loaded with more than it could process at several sizes.
pub fn bounds(r: &Results) -> Vec<StateLimit> {
    let mut out: Vec<(StateLimit, Vec<MeasuredSize>)> = Vec::new();
    if summary::unit(r) != Unit::Packets {
        return Vec::new();
    }
    for row in summary::rows(r) {
        let Some(size) = measured(&row) else { continue };
        let rest = row.point.without_size();
        match out.iter_mut().find(|(b, _)| b.state == row.state && b.rest == rest) {
            Some((_, sizes)) => sizes.push(size),
            None => out.push((StateLimit { state: row.state.into(), rest, packets: None, bits: None }, vec![size])),
        }
    }
    let decided = out.into_iter().map(|(mut b, mut sizes)| {
        sizes.sort_by(|a, b| a.wire_bits.total_cmp(&b.wire_bits));
        let packets = |s: &MeasuredSize| s.packets_per_s;
        let on_wire = |s: &MeasuredSize| s.packets_per_s * s.wire_bits;
        let n = sizes.len();
        b.packets = (2..=n).rev().find_map(|k| range(&sizes[..k], &packets));
        b.bits = (0..n.saturating_sub(1)).find_map(|k| range(&sizes[k..], &on_wire));
        b
    });
    decided.filter(|b| b.packets.is_some() || b.bits.is_some()).collect()
}

/// `None`: it processed all that was offered, or a value or the size on the wire is unknown.
fn measured(row: &Row) -> Option<MeasuredSize> {
    let unlimited = |l: &Limit| matches!(l, Limit::Offered | Limit::Generator(_));
    if 2 * row.trials.iter().filter(|t| unlimited(&t.limit)).count() >= row.trials.len() {
        return None;
    }
    let packets_per_s = row.mean(&|t| summary::throughput(t).map(|l| l.done_per_s)).filter(|p| *p > 0.0)?;
    let bits_per_s = row.mean(&|t| summary::throughput(t).map(|l| l.bits_per_s))?;
    let gap = match row.counted() {
        BitRateLayer::Frame => GAP_BITS,
        BitRateLayer::Wire => 0.0,
        // The frame on the wire is not known.
        BitRateLayer::Payload | BitRateLayer::Ip => return None,
    };
    Some(MeasuredSize { bytes: row.point.bytes()?, wire_bits: bits_per_s / packets_per_s + gap, packets_per_s })
}

fn range(sizes: &[MeasuredSize], rate: &dyn Fn(&MeasuredSize) -> f64) -> Option<StableRange> {
    let (first, last) = (sizes.first()?, sizes.last()?);
    let least = sizes.iter().map(rate).fold(f64::INFINITY, f64::min);
    let most = sizes.iter().map(rate).fold(0.0, f64::max);
    let found = most <= least * SAME && last.wire_bits >= first.wire_bits * DIFFERENT;
    found.then_some(StableRange { bytes: (first.bytes, last.bytes), per_s: (least, most) })
}

impl StateLimit {
    /// `packets per second (20 to 500 bytes: 410,000 to 412,000), bits per second (...)`.
    pub fn text(&self) -> String {
        let packets = self.packets.map(|r| one("packets per second", r, count));
        let bits = self.bits.map(|r| one("bits per second", r, bits));
        packets.into_iter().chain(bits).collect::<Vec<_>>().join(", ")
    }
}

fn one(what: &str, r: StableRange, show: fn(f64) -> String) -> String {
    let (least, most) = (show(r.per_s.0), show(r.per_s.1));
    let rates = if least == most { least } else { format!("{least} to {most}") };
    let bytes = thousands(u64::from(r.bytes.0));
    format!("{what} ({bytes} to {} bytes: {rates})", thousands(u64::from(r.bytes.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{LoadResult, Session, State, Trial};

    /// Trials of one state: frame bytes and packets per second.
    fn results(sizes: &[(u32, f64)], limit: Limit) -> Results {
        let trial = |(bytes, packets): &(u32, f64)| Trial {
            point: Point { frame_bytes: Some(*bytes), ..Point::default() },
            state: "tuned".into(),
            loads: vec![LoadResult {
                unit: Unit::Packets,
                done_per_s: *packets,
                bits_per_s: packets * f64::from(crate::forward::padded(*bytes) + 4) * 8.0,
                counted: BitRateLayer::Frame,
                ..LoadResult::default()
            }],
            limit: limit.clone(),
            ..Trial::default()
        };
        let states = vec![State { name: "tuned".into(), ..State::default() }];
        let session = Session { states, ..Session::default() };
        let trials = sizes.iter().map(trial).collect();
        Results { session, trials, comparisons: Vec::new(), rates: Vec::new(), end: None, notes: Vec::new() }
    }

    const SHORT: [(u32, f64); 3] = [(60, 410e3), (125, 400e3), (250, 405e3)];
    /// What a gigabit carries.
    const LONG: [(u32, f64); 2] = [(750, 161_499.0), (1514, 81_274.0)];

    #[test]
    fn short_frames_are_limited_by_packets_and_long_ones_by_bits() {
        let all: Vec<_> = SHORT.into_iter().chain(LONG).collect();
        let found = bounds(&results(&all, Limit::Cpu(vec![0])));
        let [b] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(b.packets, Some(StableRange { bytes: (60, 250), per_s: (400e3, 410e3) }));
        let r = b.bits.unwrap();
        assert_eq!(r.bytes, (750, 1514));
        assert!((r.per_s.0 / 1e9 - 1.0).abs() < 0.001, "{r:?}");
        let text = "packets per second (60 to 250 bytes: 400,000 to 410,000), bits per second (750 to 1,514 bytes: 1,000 Mbit/s)";
        assert_eq!(b.text(), text);
    }

    #[test]
    fn without_a_limit_or_with_one_size_nothing_is_reported() {
        assert_eq!(bounds(&results(&SHORT, Limit::Offered)), []);
        assert_eq!(bounds(&results(&SHORT[..1], Limit::Cpu(vec![0]))), []);
        // 50 and 20 bytes are the same frame.
        assert_eq!(bounds(&results(&[(20, 400e3), (50, 400e3)], Limit::Cpu(vec![0]))), []);
        let mut payload = results(&SHORT, Limit::Cpu(vec![0]));
        payload.trials.iter_mut().flat_map(|t| &mut t.loads).for_each(|l| l.counted = BitRateLayer::Payload);
        assert_eq!(bounds(&payload), []);
        // Neither stays the same.
        assert_eq!(bounds(&results(&[(60, 400e3), (500, 200e3)], Limit::Cpu(vec![0]))), []);
    }
}
