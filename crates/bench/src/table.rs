//! The tables of a session, as text: complete for HTML, with the columns that fit for a terminal.

use ringwise_model::words::plural;
use std::collections::BTreeMap;

use crate::compare::{rate_unit, value};
use crate::file::Results;
use crate::result::{Metric, Trial, Unit, Verdict};
use crate::summary::{self, Row};
use crate::words::{self, bits, count, digits};

/// Text in rows and columns; each row is as long as the head.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextTable {
    /// One line, without a full stop.
    pub title: String,
    /// The meaning of the numbers.
    pub note: String,
    /// Headings of the columns with their units.
    pub head: Vec<String>,
    /// Number of columns at the left that contain text.
    pub words: usize,
    /// Whether the last column contains text, too.
    pub last_words: bool,
    /// Cells as text.
    pub rows: Vec<Vec<String>>,
    /// The verdict of each row, if the rows have one.
    pub verdicts: Vec<Verdict>,
}

/// A cell; `None`: unknown.
type Cell<'a> = Box<dyn Fn(&Row) -> Option<String> + 'a>;

/// A column: its heading with the unit, whether a terminal shows it, and its value as text.
struct Column<'a> {
    head: String,
    narrow: bool,
    get: Cell<'a>,
}

fn mean<'a>(head: &str, narrow: bool, value: fn(&Trial) -> Option<f64>, show: fn(f64) -> String) -> Column<'a> {
    Column { head: head.into(), narrow, get: Box::new(move |r| r.mean(&value).map(show)) }
}

const UNKNOWN: &str = "unknown";

/// Columns without any known value are left out and named in the note.
fn table(title: &str, note: &str, r: &Results, rows: &[Row], columns: Vec<Column>, narrow: bool) -> TextTable {
    let varies = summary::varying(&summary::points(r));
    let mut t = TextTable { title: title.into(), words: 2, ..TextTable::default() };
    t.head = vec!["point".into(), "state".into()];
    t.rows = rows.iter().map(|r| vec![words::point(r.point, &varies), r.state.to_string()]).collect();
    let mut never = Vec::new();
    for c in columns.into_iter().filter(|c| c.narrow || !narrow) {
        let cells: Vec<Option<String>> = rows.iter().map(|r| (c.get)(r)).collect();
        if cells.iter().all(Option::is_none) {
            never.push(c.head);
            continue;
        }
        t.head.push(c.head);
        for (row, cell) in t.rows.iter_mut().zip(cells) {
            row.push(cell.unwrap_or_else(|| UNKNOWN.into()));
        }
    }
    if t.rows.iter().all(|r| r[0].is_empty()) {
        t.head.remove(0);
        t.rows.iter_mut().for_each(|r| drop(r.remove(0)));
        t.words = 1;
    }
    t.note = note.into();
    if !never.is_empty() {
        t.note.push_str(&format!(" Unknown in all trials: {}.", never.join(", ")));
    }
    t
}

/// Rates, loss, CPU and latency, which readers look for first. `narrow`: the columns for a terminal.
pub fn measures(r: &Results, narrow: bool) -> TextTable {
    let rows = summary::rows(r);
    let unit = summary::unit(r);
    let of = |m: Metric| -> fn(&Trial) -> Option<f64> {
        match m {
            Metric::Loss => |t| value(t, Metric::Loss),
            Metric::Cpu => |t| value(t, Metric::Cpu),
            Metric::LatencyMean => |t| value(t, Metric::LatencyMean),
            Metric::LatencyP50 => |t| value(t, Metric::LatencyP50),
            Metric::LatencyP90 => |t| value(t, Metric::LatencyP90),
            Metric::LatencyP99 => |t| value(t, Metric::LatencyP99),
            Metric::LatencyP999 => |t| value(t, Metric::LatencyP999),
            _ => |t| value(t, Metric::Rate),
        }
    };
    let bytes = rows.first().map_or("", |r| words::counted(r.counted()));
    let mut columns = Vec::new();
    if unit != Unit::Bytes {
        columns.push(mean(rate_unit(unit), true, of(Metric::Rate), count));
    }
    columns.extend([
        mean("throughput", unit == Unit::Bytes, |t| summary::throughput(t).map(|l| l.bits_per_s), bits),
        mean("% of line rate", false, |t| t.host.line_rate_percent, digits),
        mean("loss %", true, of(Metric::Loss), digits),
        mean("CPU %", true, of(Metric::Cpu), |v| format!("{v:.0}")),
        mean("mean us", false, of(Metric::LatencyMean), digits),
        mean("p50 us", true, of(Metric::LatencyP50), digits),
        mean("p90 us", true, of(Metric::LatencyP90), digits),
        mean("p99 us", true, of(Metric::LatencyP99), digits),
        mean("p99.9 us", false, of(Metric::LatencyP999), digits),
        mean("max us", false, |t| summary::latency(t).map(|l| l.max_us), digits),
        mean("deviation us", true, |t| summary::latency(t).map(|l| l.deviation_us), digits),
        Column { head: "blocks".into(), narrow: false, get: Box::new(|r| Some(r.trials.len().to_string())) },
        Column { head: "limited by".into(), narrow: false, get: Box::new(|r| Some(r.limits())) },
    ]);
    let note = format!(
        "Means over the blocks, percentiles too. Throughput counts {bytes}, line rate the frame with preamble and gap. \
         CPU: busy time of all CPUs together, per cent of one."
    );
    TextTable { last_words: !narrow, ..table("Measured values", &note, r, &rows, columns, narrow) }
}

/// The cycles of one CPU between two packets at line rate, at the clock that the busy CPUs had: counted cycles by busy time.
fn budget_cycles(t: &Trial) -> Option<f64> {
    let h = &t.host;
    // Both are divided by the same number of packets.
    Some(h.budget_ns_per_packet? * h.cycles_per_packet? / h.cpu_ns_per_packet.filter(|ns| *ns > 0.0)?)
}

/// The cost of a packet for the host, and how the work is spread.
pub fn costs(r: &Results) -> TextTable {
    let columns = vec![
        mean("received/s", false, |t| t.host.received_per_s, count),
        mean("forwarded/s", false, |t| t.host.transmitted_per_s, count),
        mean("CPU ns/packet", false, |t| t.host.cpu_ns_per_packet, digits),
        mean("cycles/packet", false, |t| t.host.cycles_per_packet, digits),
        mean("ns/packet at line rate", false, |t| t.host.budget_ns_per_packet, digits),
        mean("cycles/packet at line rate", false, budget_cycles, digits),
        mean("interrupts/s", false, |t| t.host.interrupts_per_s, count),
        mean("interrupts/packet", false, |t| t.host.interrupts_per_packet, digits),
        mean("delay p99 us", false, |t| value(t, Metric::Delay), digits),
        mean("delay max us", false, |t| t.host.cpus.iter().filter_map(|c| c.delay_max_us).reduce(f64::max), digits),
        mean("busiest queue/mean", false, |t| t.host.queue_max_over_mean, digits),
        mean(
            "load's busiest thread %",
            false,
            |t| t.loads.iter().filter_map(|l| l.busiest_thread_percent).reduce(f64::max),
            digits,
        ),
    ];
    let note = "Means over the blocks. At line rate: what one CPU has between two packets. Delay: how late an ordinary thread ran that \
                wakes up every ten milliseconds, on the worst CPU.";
    table("CPU cost and queue load", note, r, &summary::rows(r), columns, false)
}

/// Packets by the place where they were lost, in all blocks together.
pub fn lost(r: &Results) -> Option<TextTable> {
    let rows = summary::rows(r);
    let mut places: Vec<String> = rows.iter().flat_map(|r| r.lost().into_keys()).map(String::from).collect();
    places.sort();
    places.dedup();
    let column = |place: &String| {
        let key = place.clone();
        Column {
            head: place.clone(),
            narrow: true,
            get: Box::new(move |r: &Row| r.lost().get(key.as_str()).map(|n| count(*n as f64))),
        }
    };
    let columns: Vec<Column> = places.iter().map(column).collect();
    (!columns.is_empty())
        .then(|| table("Losses by place", "Packets, in all blocks together.", r, &rows, columns, false))
}

/// Searches for the highest rate. `narrow`: the columns for a terminal.
pub fn rates(r: &Results, narrow: bool) -> Option<TextTable> {
    let varies = summary::varying(&summary::points(r));
    let mut t = TextTable {
        title: "Highest rate".into(),
        note:
            "The highest offered rate with at most this loss in each block; mean, smallest and largest. A block without \
               such a rate is not counted."
                .into(),
        head: ["point", "state", "loss", "found in", "mean/s", "least/s", "most/s", "limited by"]
            .map(String::from)
            .to_vec(),
        words: 3,
        last_words: !narrow,
        ..TextTable::default()
    };
    for s in summary::searches(r) {
        let found = s.found();
        let show = |v: Option<f64>| v.map_or_else(|| "none".into(), count);
        let mut limits: Vec<String> = s.blocks.iter().map(|b| crate::summary::limit(&b.limit)).collect();
        limits.sort();
        limits.dedup();
        t.rows.push(vec![
            match words::point(s.point, &varies) {
                p if p.is_empty() => "all".into(),
                p => p,
            },
            s.state.into(),
            if s.loss_percent == 0.0 { "none".into() } else { format!("to {} %", s.loss_percent) },
            format!("{} of {}", found.len(), s.blocks.len()),
            show(summary::mean(&found)),
            show(found.iter().copied().reduce(f64::min)),
            show(found.iter().copied().reduce(f64::max)),
            limits.join(", "),
        ]);
    }
    if narrow {
        t.head.pop();
        t.rows.iter_mut().for_each(|r| drop(r.pop()));
    }
    (!t.rows.is_empty()).then_some(t)
}

/// Scores with their parts.
pub fn scores(r: &Results) -> Option<TextTable> {
    let varies = summary::varying(&summary::points(r));
    let mut rows = Vec::new();
    for s in summary::scores(r) {
        let part = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| format!("{v:.3}"));
        let interval = match (s.low, s.high) {
            (Some(l), Some(h)) => format!("[{l:.3} … {h:.3}]"),
            _ => UNKNOWN.into(),
        };
        let p = words::point(&s.point, &varies);
        let weight = s.weight.to_string();
        rows.push(vec![
            p,
            s.state.clone(),
            part(s.latency_part),
            part(s.throughput_part),
            weight,
            part(Some(s.score)),
            interval,
            s.pairs.to_string(),
        ]);
    }
    let head = ["point", "state", "latency part", "throughput part", "W", "score", "interval", "pairs"];
    (!rows.is_empty()).then(|| TextTable {
        title: "Score and its parts".into(),
        note: format!(
            "{} Latency part: mean of the first state by that of the state; throughput part the other way round. \
             `-`: no such load at this point.",
            summary::SCORE
        ),
        head: head.map(String::from).to_vec(),
        words: 2,
        rows,
        ..TextTable::default()
    })
}

/// All comparisons, with the values that determine the verdict.
pub fn comparisons(r: &Results) -> Option<TextTable> {
    let varies = summary::varying(&summary::points(r));
    let unit = summary::unit(r);
    let mut all: Vec<_> = r.comparisons.iter().collect();
    all.sort_by(|a, b| summary::order(&a.point, &b.point).then(a.metric.cmp(&b.metric)));
    let mut rows = Vec::new();
    let verdicts = all.iter().map(|c| c.verdict).collect();
    for c in all {
        let percent = |v: Option<f64>| v.map_or_else(|| UNKNOWN.into(), |v| format!("{} %", digits(v)));
        let chance = |v: Option<f64>| v.map_or_else(|| UNKNOWN.into(), |v| format!("{v:.4}"));
        rows.push(vec![
            words::point(&c.point, &varies),
            c.with.clone(),
            words::metric(c.metric, unit).into(),
            words::verdict(c.verdict).into(),
            words::change(c),
            words::amount(c.metric, unit, c.base_mean),
            words::amount(c.metric, unit, c.with_mean),
            c.pairs.to_string(),
            chance(c.p),
            chance(c.p_corrected),
            percent(c.detectable_percent),
            percent(c.noise_percent),
            percent(c.calibration_noise_percent),
            if c.notes.is_empty() { "-".into() } else { c.notes.join("; ") },
        ]);
    }
    let head = [
        "point",
        "state",
        "of",
        "verdict",
        "change",
        "first state",
        "state",
        "pairs",
        "p",
        "p corrected",
        "detectable",
        "noise",
        "noise of calibration",
        "notes",
    ];
    let mut t = TextTable {
        title: "All comparisons".into(),
        note: "p corrected: by Holm's method, over the primary metrics of the workload, or over all metrics for the others. Detectable: the smallest true change that this number of pairs with this \
               noise would find in 80 of 100 sessions. Noise: deviation of the paired differences."
            .into(),
        head: head.map(String::from).to_vec(),
        words: 4,
        last_words: true,
        verdicts,
        rows,
    };
    if t.rows.iter().all(|r| r[0].is_empty()) {
        t.head.remove(0);
        t.rows.iter_mut().for_each(|r| drop(r.remove(0)));
        t.words -= 1;
    }
    (!t.rows.is_empty()).then_some(t)
}

/// Doubts about trials and unknown values, each once with its count; texts that differ only in their numbers are
/// counted together.
pub fn doubts(r: &Results) -> Vec<String> {
    let mut said: BTreeMap<String, (String, bool, Vec<&Trial>)> = BTreeMap::new();
    for t in &r.trials {
        let troubles = t.loads.iter().filter_map(|l| l.trouble.as_ref()).map(|w| format!("load: {w}"));
        let unknown = t.host.unknown.iter().map(|(what, why)| format!("{what} unknown: {why}"));
        for d in t.doubts.iter().cloned().chain(troubles).chain(unknown) {
            let (first, same, trials) =
                said.entry(d.replace(|c: char| c.is_ascii_digit(), "")).or_insert((d.clone(), true, vec![]));
            *same &= *first == d;
            trials.push(t);
        }
    }
    let all = r.trials.len();
    said.into_values()
        .map(|(what, same, t)| {
            let numbers = if same { "" } else { ", the numbers differ" };
            match t.as_slice() {
                [one] => format!("{what} ({}, block {})", one.state, one.block),
                many if many.len() == all => format!("{what} (all {}{numbers})", plural(all, "trial")),
                many => format!("{what} ({} of {}{numbers})", many.len(), plural(all, "trial")),
            }
        })
        .collect()
}
