//! Texts that all presentations of a session share.

use ringwise_model::words::{plural, thousands};

use crate::compare::rate_unit;
use crate::file::Results;
use crate::result::{BitRateLayer, Comparison, Metric, Phase, Point, Unit, Verdict};
use crate::summary::{order, points, unit, varying};

/// Which bytes a rate in bit/s counts.
pub fn counted(c: BitRateLayer) -> &'static str {
    match c {
        BitRateLayer::Payload => "payload",
        BitRateLayer::Ip => "IP packets",
        BitRateLayer::Frame => "frames with FCS",
        BitRateLayer::Wire => "frames with preamble and gap",
    }
}

/// The metric as a heading or after a number: `packets/s`, `latency p99`.
pub fn metric(m: Metric, unit: Unit) -> &'static str {
    if m == Metric::Rate { rate_unit(unit) } else { m.name() }
}

/// A value with its unit.
pub fn amount(m: Metric, unit: Unit, v: f64) -> String {
    match m {
        Metric::Rate if unit == Unit::Bytes => bits(v),
        Metric::Rate | Metric::RateWithoutLoss | Metric::RateHalfPercent => count(v),
        Metric::Loss => format!("{} %", digits(v)),
        Metric::Cpu => format!("{v:.0} %"),
        Metric::CpuNsPerPacket => format!("{v:.0} ns"),
        Metric::InterruptsPerPacket => digits(v),
        Metric::LatencyMean
        | Metric::LatencyP50
        | Metric::LatencyP90
        | Metric::LatencyP99
        | Metric::LatencyP999
        | Metric::Delay => format!("{} us", digits(v)),
    }
}

/// Three significant digits below 100, no decimal places above.
pub fn digits(v: f64) -> String {
    match v.abs() {
        a if a >= 99.95 => count(v),
        a if a >= 9.995 => format!("{v:.1}"),
        a if a >= 0.9995 || a == 0.0 => format!("{v:.2}"),
        _ => format!("{v:.4}"),
    }
}

/// A whole number with thousands commas.
pub fn count(v: f64) -> String {
    let sign = if v <= -0.5 { "-" } else { "" };
    format!("{sign}{}", thousands(v.abs().round() as u64))
}

/// `941 Mbit/s`.
pub fn bits(v: f64) -> String {
    match v {
        v if v >= 1e10 => format!("{:.1} Gbit/s", v / 1e9),
        v if v >= 1e6 => format!("{} Mbit/s", digits(v / 1e6)),
        v => format!("{} kbit/s", digits(v / 1e3)),
    }
}

/// One lower-case word.
pub fn verdict(v: Verdict) -> &'static str {
    match v {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn signed(v: f64) -> String {
    let text = format!("{v:+.1}");
    if text == "-0.0" { "+0.0".into() } else { text }
}

/// `+12.3 % [8.1 … 16.4]`.
pub fn change(c: &Comparison) -> String {
    match (c.change_percent, c.low_percent, c.high_percent) {
        (Some(v), Some(l), Some(h)) => format!("{} % [{} … {}]", signed(v), signed(l), signed(h)),
        (Some(v), ..) => format!("{} % (interval unknown)", signed(v)),
        (None, ..) if c.base_mean == 0.0 => "no % of 0".into(),
        (None, ..) => "unknown".into(),
    }
}

/// How this point differs from the others: `64 bytes, 8 threads, heavy`. Empty: there is no difference.
pub fn point(p: &Point, varies: &Point) -> String {
    let mut parts = Vec::new();
    if let (Some(n), Some(_)) = (p.frame_bytes, varies.frame_bytes) {
        parts.push(format!("frames of {}", plural(n as usize, "byte")));
    }
    let mut counted = |here: Option<u32>, shown: Option<u32>, one: &str| {
        if let (Some(n), Some(_)) = (here, shown) {
            parts.push(plural(n as usize, one));
        }
    };
    counted(p.size_bytes, varies.size_bytes, "byte");
    counted(p.threads, varies.threads, "thread");
    counted(p.queues, varies.queues, "queue");
    counted(p.interfaces, varies.interfaces, "interface");
    counted(p.routes, varies.routes, "route");
    counted(p.flows, varies.flows, "flow");
    for (here, shown) in [(&p.level, &varies.level), (&p.place, &varies.place)] {
        parts.extend(here.as_ref().filter(|_| shown.is_some()).cloned());
    }
    parts.extend(p.mix.as_ref().filter(|_| varies.mix.is_some()).map(|m| format!("mix {m}")));
    parts.extend(p.skew.filter(|_| varies.skew.is_some()).map(|s| format!("skew {s}")));
    parts.extend(p.offered_per_s.filter(|_| varies.offered_per_s.is_some()).map(|o| format!("{}/s offered", count(o))));
    parts.join(", ")
}

/// The values that all points have in common: `8 threads, heavy`.
pub fn common(r: &Results) -> String {
    let all = points(r);
    let Some(first) = all.first() else { return String::new() };
    let v = varying(&all);
    let fixed = Point {
        size_bytes: first.size_bytes.filter(|_| v.size_bytes.is_none()),
        frame_bytes: first.frame_bytes.filter(|_| v.frame_bytes.is_none()),
        threads: first.threads.filter(|_| v.threads.is_none()),
        level: first.level.clone().filter(|_| v.level.is_none()),
        mix: first.mix.clone().filter(|_| v.mix.is_none()),
        queues: first.queues.filter(|_| v.queues.is_none()),
        interfaces: first.interfaces.filter(|_| v.interfaces.is_none()),
        routes: first.routes.filter(|_| v.routes.is_none()),
        flows: first.flows.filter(|_| v.flows.is_none()),
        skew: first.skew.filter(|_| v.skew.is_none()),
        place: first.place.clone().filter(|_| v.place.is_none()),
        offered_per_s: first.offered_per_s.filter(|_| v.offered_per_s.is_none()),
    };
    point(&fixed, &fixed)
}

/// `12 better, 1 worse, 20 equivalent within ±2 %, 9 inconclusive`.
pub fn tally(r: &Results) -> String {
    let n = |v: Verdict| r.comparisons.iter().filter(|c| c.verdict == v).count();
    let mut within: Vec<f64> = r.comparisons.iter().map(|c| c.equivalent_percent).collect();
    within.dedup();
    let band = match within.as_slice() {
        [one] => format!(" within ±{one} %"),
        _ => String::new(),
    };
    format!(
        "{} better, {} worse, {} equivalent{band}, {} inconclusive",
        n(Verdict::Better),
        n(Verdict::Worse),
        n(Verdict::Equivalent),
        n(Verdict::Inconclusive)
    )
}

/// The verdicts as text: each one if there are few, otherwise the counts for each metric.
pub fn verdicts(r: &Results) -> Vec<VerdictLine> {
    let (u, varies) = (unit(r), varying(&points(r)));
    let mut all: Vec<&Comparison> = r.comparisons.iter().collect();
    all.sort_by(|a, b| order(&a.point, &b.point).then(a.metric.cmp(&b.metric)));
    if all.len() <= FEW {
        let line = |c: &&Comparison| {
            let mut text = format!("{} {}", change(c), metric(c.metric, u));
            text.push_str(&format!(" ({} {}", amount(c.metric, u, c.base_mean), arrow(c, u)));
            let at = point(&c.point, &varies);
            let at = if at.is_empty() { String::new() } else { format!(", {at}") };
            text.push_str(&format!("), {} against {}{at}", c.with, c.base));
            if !c.notes.is_empty() {
                text.push_str(&format!("; {}", c.notes.join("; ")));
            }
            VerdictLine { one: true, head: verdict(c.verdict).to_string(), parts: vec![(c.verdict, text)] }
        };
        return all.iter().map(line).collect();
    }
    let mut kinds: Vec<(Metric, &str)> = all.iter().map(|c| (c.metric, c.with.as_str())).collect();
    let place = |s: &str| r.session.states.iter().position(|x| x.name == s);
    kinds.sort_by_key(|k| (k.0, place(k.1)));
    kinds.dedup();
    let mut out = Vec::new();
    for (m, with) in kinds {
        let here: Vec<&&Comparison> = all.iter().filter(|c| c.metric == m && c.with == with).collect();
        let mut parts = Vec::new();
        for v in [Verdict::Better, Verdict::Worse, Verdict::Equivalent, Verdict::Inconclusive] {
            let those: Vec<f64> = here.iter().filter(|c| c.verdict == v).filter_map(|c| c.change_percent).collect();
            let n = here.iter().filter(|c| c.verdict == v).count();
            let (low, high) = (those.iter().copied().reduce(f64::min), those.iter().copied().reduce(f64::max));
            let range = match (low, high) {
                (Some(l), Some(h)) if l == h => format!(" ({} %)", signed(l)),
                (Some(l), Some(h)) => format!(" ({} … {} %)", signed(l), signed(h)),
                _ => String::new(),
            };
            if n > 0 {
                parts.push((v, format!("{n} {}{range}", verdict(v))));
            }
        }
        let head = format!("{}, {with}", metric(m, u));
        out.push(VerdictLine { one: false, head, parts });
    }
    out
}

/// A line about one verdict or several: `HEAD: TEXT`.
pub struct VerdictLine {
    /// About one comparison.
    pub one: bool,
    /// The verdict of one comparison; metric and state where several are counted.
    pub head: String,
    /// Change, both values and notes of one comparison; or how many have each verdict.
    pub parts: Vec<(Verdict, String)>,
}

impl VerdictLine {
    /// The parts in one text.
    pub fn text(&self) -> String {
        self.parts.iter().map(|p| p.1.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Better or worse, if the line has one of them and not the other.
    pub fn verdict(&self) -> Option<Verdict> {
        let has = |v| self.parts.iter().any(|p| p.0 == v);
        match (has(Verdict::Better), has(Verdict::Worse)) {
            (true, false) => Some(Verdict::Better),
            (false, true) => Some(Verdict::Worse),
            _ => None,
        }
    }
}

/// Up to this number, verdicts are listed one by one.
const FEW: usize = 12;

fn arrow(c: &Comparison, u: Unit) -> String {
    format!("→ {}", amount(c.metric, u, c.with_mean))
}

/// The smallest changes that could have been found, by metric: `packets/s 1.2 to 4.5 %`.
pub fn detectable(r: &Results) -> Option<String> {
    let mut parts: Vec<(Metric, f64, f64)> = Vec::new();
    for c in &r.comparisons {
        let Some(d) = c.detectable_percent else { continue };
        match parts.iter_mut().find(|p| p.0 == c.metric) {
            Some(p) => (p.1, p.2) = (p.1.min(d), p.2.max(d)),
            None => parts.push((c.metric, d, d)),
        }
    }
    parts.sort_by_key(|p| p.0);
    let u = unit(r);
    let say = |(m, l, h): &(Metric, f64, f64)| {
        let (l, h) = (format!("{l:.1}"), format!("{h:.1}"));
        let range = if l == h { l } else { format!("{l} to {h}") };
        format!("{} {range} %", metric(*m, u))
    };
    (!parts.is_empty()).then(|| parts.iter().map(say).collect::<Vec<_>>().join(", "))
}

/// `eth1 (igb, 1000 Mbit/s), eth2 (igb, speed unknown)`.
pub fn ports(r: &Results) -> String {
    let one = |p: &crate::result::Port| {
        let speed = p.speed_mbit_per_s.map_or("speed unknown".into(), |s| format!("{} Mbit/s", thousands(s)));
        format!("{} ({}, {speed})", p.name, p.driver)
    };
    r.session.ports.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `bulk against before`; or the name of the only state.
pub fn compared(r: &Results) -> String {
    let names: Vec<&str> = r.session.states.iter().map(|s| s.name.as_str()).collect();
    match names.as_slice() {
        [] => "no state".into(),
        [one] => (*one).into(),
        [base, others @ ..] => format!("{} against {base}", others.join(", ")),
    }
}

/// Seed and order of the trials as text.
pub fn design(r: &Results) -> String {
    let d = &r.session.design;
    let calibration = match d.calibration_blocks {
        0 => "no calibration".into(),
        n => format!("{} of calibration", plural(n as usize, "block")),
    };
    format!(
        "seed {}, {} in random order after {calibration}, {} s each after {} s of warm-up, {} % intervals, equivalent within ±{} %",
        d.seed,
        plural(d.blocks as usize, "block"),
        d.trial_s,
        d.warmup_s,
        ((1.0 - d.alpha) * 1000.0).round() / 10.0,
        d.equivalent_percent
    )
}

/// Notes about the file and its end.
pub fn notes(r: &Results) -> Vec<String> {
    let mut out = r.notes.clone();
    if let Some(end) = &r.end {
        out.extend(end.notes.iter().cloned());
        if !end.restored {
            out.push("the host was NOT restored to its state at the start".into());
        }
    }
    if r.comparisons.is_empty() {
        out.push("nothing was compared".into());
    }
    if r.end.is_some() && !r.trials.iter().any(|t| t.phase == Phase::Measure) {
        out.push("no trial was measured".into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_their_units() {
        let say = |m, v| amount(m, Unit::Packets, v);
        assert_eq!(say(Metric::Rate, 1_487_999.6), "1,488,000");
        assert_eq!(say(Metric::RateWithoutLoss, 380e3), "380,000");
        assert_eq!(say(Metric::LatencyP99, 0.5), "0.5000 us");
        assert_eq!(say(Metric::Delay, 12_345.6), "12,346 us");
        assert_eq!(say(Metric::Loss, 0.0), "0.00 %");
        assert_eq!(amount(Metric::Rate, Unit::Bytes, 9.41e8), "941 Mbit/s");
        assert_eq!(bits(2.5e10), "25.0 Gbit/s");
        assert_eq!(digits(9.996), "10.0");
    }
}
