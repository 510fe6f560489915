//! Earlier intervals, for the small curves. Memory is bounded: a fixed number of points for each existing object.

use std::collections::{BTreeMap, VecDeque};

use ringwise_model::{CpuId, Dir};
use ringwise_observe::Rates;

/// Points of each curve.
pub(super) const LENGTH: usize = 240;

/// One interval of one curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Point {
    /// Packets per second; on the curve of a CPU, the busy share in per cent.
    Known(f32),
    /// The value was not reported, or the device did not exist.
    Unknown,
    /// A counter went backwards. It is drawn as a gap, never as a spike.
    Reset,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Curve {
    Rx(String),
    Tx(String),
    Drops(String),
    Queue(String, Dir, u32),
    Cpu(CpuId),
}

/// The last intervals of every curve, for the small curves of the screen. At most 240 intervals are kept.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The newest point is last; all curves have the same length.
    curves: BTreeMap<Curve, VecDeque<Point>>,
    length: usize,
}

impl History {
    /// Adds one interval. A curve without any known point is dropped.
    pub fn push(&mut self, r: &Rates) {
        let mut now = BTreeMap::new();
        for (name, l) in &r.links {
            let word = if l.reset.is_empty() { Point::Unknown } else { Point::Reset };
            let point = |n: Option<f64>| n.map_or(word, |n| Point::Known(n as f32));
            now.insert(Curve::Rx(name.clone()), point(l.rx.pps));
            now.insert(Curve::Tx(name.clone()), point(l.tx.pps));
            now.insert(Curve::Drops(name.clone()), point(l.drops.total().map(|n| n as f64 / r.seconds)));
            for q in &l.queues {
                let word =
                    if q.mark == Some(ringwise_observe::QueueMark::Reset) { Point::Reset } else { Point::Unknown };
                let n = q.packets.map_or(word, |n| Point::Known((n as f64 / r.seconds) as f32));
                now.insert(Curve::Queue(name.clone(), q.dir, q.queue), n);
            }
        }
        for (id, c) in &r.cpus {
            now.insert(Curve::Cpu(*id), c.busy_percent().map_or(Point::Unknown, |n| Point::Known(n as f32)));
        }
        let before = self.length;
        for (curve, point) in now {
            let points = self.curves.entry(curve).or_default();
            points.resize(before.max(points.len()), Point::Unknown);
            points.push_back(point);
        }
        self.length += 1;
        for points in self.curves.values_mut() {
            points.resize(self.length, Point::Unknown);
            if self.length > LENGTH {
                points.pop_front();
            }
        }
        self.length = self.length.min(LENGTH);
        self.curves.retain(|_, points| points.iter().any(|p| *p != Point::Unknown));
    }

    /// The last `n` points, the newest last; fewer at the beginning.
    pub fn last(&self, curve: &Curve, n: usize) -> Vec<Point> {
        let Some(points) = self.curves.get(curve) else { return Vec::new() };
        points.iter().skip(points.len().saturating_sub(n)).copied().collect()
    }

    /// Forgets all curves.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The largest known value; 0 where none is known.
pub(super) fn top(points: &[Point]) -> f32 {
    points.iter().fold(0.0, |m, p| if let Point::Known(n) = p { m.max(*n) } else { m })
}

/// Eighths of a cell; in ASCII the same number of characters with increasing weight.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 9] = [' ', '_', '.', ',', '-', '~', '=', '*', '#'];

/// A curve as `rows` lines of text, the top one first. It is scaled so that `full` fills them; the newest point is at
/// the right end of `width`.
pub(super) fn curve(points: &[Point], full: f32, width: usize, rows: usize, ascii: bool) -> Vec<String> {
    let shown = &points[points.len().saturating_sub(width)..];
    let shapes = if ascii { &ASCII } else { &BLOCKS };
    let mut out = Vec::new();
    for row in (0..rows).rev() {
        let mut line = " ".repeat(width - shown.len());
        for p in shown {
            line.push(match p {
                Point::Known(n) if full > 0.0 && *n > 0.0 => {
                    // Values above 0 are always visible.
                    let eighths = ((n / full * rows as f32 * 8.0).round() as usize).clamp(1, rows * 8);
                    shapes[eighths.saturating_sub(row * 8).min(8)]
                }
                Point::Known(_) => ' ',
                Point::Unknown if row == 0 => '?',
                Point::Reset if row == 0 => 'r',
                Point::Unknown | Point::Reset => ' ',
            });
        }
        out.push(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_observe::LinkRates;

    #[test]
    fn curves() {
        let points = [Point::Known(0.0), Point::Known(0.01), Point::Reset, Point::Known(4.0), Point::Known(8.0)];
        assert_eq!(curve(&points, 8.0, 6, 1, false), ["  ▁r▄█"]);
        assert_eq!(curve(&points, 8.0, 6, 2, false), ["     █", "  ▁r██"]);
        assert_eq!(curve(&points, 8.0, 4, 1, true), ["_r-#"]);
        assert_eq!(curve(&[Point::Unknown], 0.0, 2, 1, true), [" ?"]);
        assert_eq!(top(&points), 8.0);
    }

    #[test]
    fn bounded_and_aligned() {
        let mut h = History::default();
        let with = |names: &[&str], pps: f64| {
            let mut r = Rates { seconds: 1.0, ..Rates::default() };
            for n in names {
                let mut l = LinkRates::default();
                l.rx.pps = Some(pps);
                r.links.insert(n.to_string(), l);
            }
            r
        };
        h.push(&with(&["a", "b"], 1.0));
        h.push(&with(&["a"], 2.0));
        let b = Curve::Rx("b".into());
        assert_eq!(h.last(&b, 9), [Point::Known(1.0), Point::Unknown]);
        for _ in 0..LENGTH * 2 {
            h.push(&with(&["a", "c"], 3.0));
        }
        assert!(h.last(&b, 9).is_empty(), "what is long gone costs nothing");
        assert_eq!(h.last(&Curve::Rx("a".into()), usize::MAX).len(), LENGTH);
        assert_eq!(h.last(&Curve::Rx("c".into()), usize::MAX).len(), LENGTH);
    }
}
