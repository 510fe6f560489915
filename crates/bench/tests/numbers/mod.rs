//! The numbers of the pages, compared with the results from which they are made: tables by their cells, figures by
//! where their lines, bars and signs lie.

use ringwise_bench::file::Results;
use ringwise_bench::result::{Comparison, LoadResult, Metric, Trial, Verdict};
use ringwise_bench::{figure, html};

use crate::page::{self, Chart, Drawn, Element, TextTable};
use crate::{STARTED, made};

fn mean(all: impl IntoIterator<Item = f64>) -> f64 {
    let all: Vec<f64> = all.into_iter().collect();
    assert!(!all.is_empty());
    all.iter().sum::<f64>() / all.len() as f64
}

/// The trials of one row of a table.
fn at<'a>(r: &'a Results, state: &str, label: &str) -> Vec<&'a Trial> {
    r.trials.iter().filter(|t| t.state == state && name(&t.point) == label).collect()
}

/// The label of a point if these members vary.
fn name(p: &ringwise_bench::result::Point) -> String {
    let size = thousands(p.size_bytes.unwrap());
    match (&p.level, &p.mix) {
        (Some(level), Some(mix)) => format!("{size} bytes, {} threads, {level}, mix {mix}", p.threads.unwrap()),
        _ => format!("{size} bytes"),
    }
}

fn thousands(n: u32) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", n / 1000, n % 1000) }
}

fn labels(r: &Results) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for t in &r.trials {
        if !all.contains(&name(&t.point)) {
            all.push(name(&t.point));
        }
    }
    all
}

fn load<'a>(t: &'a Trial, group: &str) -> &'a LoadResult {
    t.loads.iter().find(|l| l.group == group).unwrap_or(&t.loads[0])
}

fn cpu(t: &Trial) -> f64 {
    t.host.cpus.iter().map(|c| c.busy_percent).sum()
}

/// The value with three significant digits, or whole, or with the digits that a table gives a small one.
fn same(shown: f64, value: f64, what: &str) {
    let slack = (value.abs() * 0.005).max(0.5f64.min(value.abs() * 0.01)).max(5e-5);
    assert!((shown - value).abs() <= slack, "{what}: {shown} is shown, {value} was measured");
}

type Value = fn(&Trial) -> Option<f64>;

fn column(r: &Results, t: &TextTable, column: &str, value: Value) {
    for label in labels(r) {
        for state in &r.session.states {
            let trials = at(r, &state.name, &label);
            let known: Vec<f64> = trials.iter().filter_map(|t| value(t)).collect();
            let cell = t.cell(t.row(&[&label, &state.name]), column);
            if known.is_empty() {
                assert_eq!(cell, "unknown", "{label}, {}, {column}", state.name);
            } else {
                same(page::number(cell), mean(known), &format!("{label}, {}, {column}", state.name));
            }
        }
    }
}

fn drawn(got: &[Drawn], want: &[(String, f64)], what: &str) {
    let places: Vec<&str> = got.iter().map(|d| d.at.as_str()).collect();
    assert_eq!(places, want.iter().map(|w| w.0.as_str()).collect::<Vec<_>>(), "{what}");
    for (d, (at, value)) in got.iter().zip(want) {
        assert!((d.value - value).abs() <= d.slack, "{what} at {at}: {} is drawn, {value} was measured", d.value);
    }
}

fn svg<'a>(page: &'a Element, id: &str) -> &'a Element {
    let figures = page.all("figure");
    let found = figures.iter().find(|f| f.get("id") == id).unwrap_or_else(|| panic!("no figure {id}"));
    found.all("svg")[0]
}

fn headings(page: &Element) -> Vec<String> {
    page.all("h2").iter().map(|h| h.text()).collect()
}

/// Checks what every page has: the title, each figure once with its caption, the states, and the count of the verdicts.
fn structure(r: &Results, page: &Element, text: &str) {
    let title = r.session.title.clone().unwrap_or_else(|| page.all("title")[0].text());
    assert_eq!(page.all("h1")[0].text(), title);
    let figures = figure::figures(r);
    let here = page.all("figure");
    assert_eq!(
        here.iter().map(|f| (f.get("id").to_string(), f.all("figcaption")[0].text())).collect::<Vec<_>>(),
        figures.iter().map(|f| (f.name.clone(), f.caption.clone())).collect::<Vec<_>>()
    );
    assert!(figures.iter().all(|f| text.contains(&f.svg)), "a figure of the page is not the figure alone");
    let list = page.all("dl")[0];
    let states: Vec<(String, String)> =
        list.all("dt").iter().zip(list.all("dd")).map(|(a, b)| (a.text(), b.text())).collect();
    assert_eq!(states, r.session.states.iter().map(|s| (s.name.clone(), s.what.clone())).collect::<Vec<_>>());
    let tally = page.all("p").into_iter().map(Element::text).find(|t| t.contains(" comparisons: ")).unwrap();
    let n = |v: Verdict| r.comparisons.iter().filter(|c| c.verdict == v).count();
    let want = [
        (r.comparisons.len(), "comparisons"),
        (n(Verdict::Better), "better"),
        (n(Verdict::Worse), "worse"),
        (n(Verdict::Equivalent), "equivalent"),
        (n(Verdict::Inconclusive), "inconclusive"),
    ];
    for (n, word) in want {
        assert!(tally.split([':', ',']).any(|p| p.trim().starts_with(&format!("{n} {word}"))), "{n} {word}: {tally}");
    }
}

/// Each comparison is one row, with its change, means, pairs and verdict.
fn comparisons(r: &Results, page: &Element, metrics: &[(Metric, &str)]) {
    let t = TextTable::below(page, "All comparisons");
    assert_eq!(t.rows.len(), r.comparisons.len());
    for c in &r.comparisons {
        let Some((_, word)) = metrics.iter().find(|m| m.0 == c.metric) else { continue };
        let row = t.row(&[&name(&c.point), &c.with, word]);
        let verdict = format!("{:?}", c.verdict).to_lowercase();
        assert_eq!((t.cell(row, "verdict"), t.cell(row, "pairs")), (verdict.as_str(), c.pairs.to_string().as_str()));
        let change = c.change_percent.unwrap();
        assert!((page::number(t.cell(row, "change")) - change).abs() <= 0.051, "{row:?}: {change}");
        // The last of the three columns that are called so is the other state's mean.
        same(page::number(t.cell(row, "first state")), c.base_mean, word);
        let with = row[t.head.iter().rposition(|h| h == "state").unwrap()].as_str();
        same(page::number(with), c.with_mean, word);
        if let Some(p) = c.p {
            assert!((page::number(t.cell(row, "p")) - p).abs() <= 5.1e-5, "{row:?}: p {p}");
        }
    }
}

/// The figures of changes draw each comparison of their kind of number once, where its per cent is.
fn changes(r: &Results, page: &Element) {
    let of = |m: Metric| r.comparisons.iter().filter(|c| c.metric == m).collect::<Vec<&Comparison>>();
    let mut metrics: Vec<Metric> = r.comparisons.iter().map(|c| c.metric).collect();
    metrics.sort();
    metrics.dedup();
    for (i, m) in metrics.iter().enumerate() {
        let mut want: Vec<(String, f64)> = of(*m)
            .iter()
            .filter_map(|c| {
                let several = r.session.states.len() > 2;
                let label = if several { format!("{}, {}", name(&c.point), c.with) } else { name(&c.point) };
                Some((label, c.change_percent?))
            })
            .collect();
        let mut got: Vec<(String, String, Drawn)> = page::changes(svg(page, &format!("changes-{}", i + 1)));
        want.sort_by(|a, b| a.0.cmp(&b.0));
        got.sort_by(|a, b| a.0.cmp(&b.0));
        drawn(&got.iter().map(|g| g.2.clone()).collect::<Vec<_>>(), &want, &format!("changes of {m:?}"));
        for ((label, words, _), (_, change)) in got.iter().zip(&want) {
            assert!((page::number(words) - change).abs() <= 0.051, "{label}: {words}, {change}");
        }
    }
}

fn sizes(r: &Results, f: impl Fn(u32) -> Option<f64>) -> Vec<(String, f64)> {
    let mut all: Vec<u32> = r.trials.iter().filter_map(|t| t.point.size_bytes).collect();
    all.sort();
    all.dedup();
    all.into_iter().filter_map(|s| Some((s.to_string(), f(s)?))).collect()
}

#[test]
fn routing_by_size() {
    let r = made::forward();
    let text = html::html(&r, STARTED);
    let page = page::parse("forward", &text);
    structure(&r, &page, &text);
    assert_eq!(
        headings(&page),
        [
            "Verdicts",
            "States",
            "Figures",
            "Measured values",
            "CPU cost and queue load",
            "Highest rate",
            "Losses by place",
            "All comparisons",
            "Doubts and unknown values",
            "Design",
            "Environment",
            "The peer"
        ]
    );
    let t = TextTable::below(&page, "Measured values");
    assert_eq!(t.rows.len(), 12);
    column(&r, &t, "packets/s", |t| Some(t.loads[0].done_per_s));
    column(&r, &t, "throughput", |t| Some(t.loads[0].bits_per_s));
    column(&r, &t, "loss %", |t| t.loads[0].lost_percent);
    column(&r, &t, "CPU %", |t| Some(cpu(t)));
    column(&r, &t, "% of line rate", |t| t.host.line_rate_percent);
    let t = TextTable::below(&page, "CPU cost and queue load");
    column(&r, &t, "received/s", |t| t.host.received_per_s);
    column(&r, &t, "forwarded/s", |t| t.host.transmitted_per_s);
    column(&r, &t, "CPU ns/packet", |t| t.host.cpu_ns_per_packet);
    column(&r, &t, "ns/packet at line rate", |t| t.host.budget_ns_per_packet);
    column(&r, &t, "interrupts/s", |t| t.host.interrupts_per_s);
    column(&r, &t, "interrupts/packet", |t| t.host.interrupts_per_packet);
    column(&r, &t, "delay max us", |t| t.host.cpus.iter().filter_map(|c| c.delay_max_us).reduce(f64::max));
    let t = TextTable::below(&page, "Losses by place");
    for state in ["cpu0", "spread"] {
        for label in labels(&r) {
            let lost: u64 = at(&r, state, &label).iter().map(|t| t.host.lost["eth1 ring"]).sum();
            assert_eq!(page::number(t.cell(t.row(&[&label, state]), "eth1 ring")), lost as f64);
        }
    }
    let all = [
        (Metric::Rate, "packets/s"),
        (Metric::Loss, "loss"),
        (Metric::Cpu, "CPU"),
        (Metric::CpuNsPerPacket, "CPU per packet"),
    ];
    comparisons(&r, &page, &all);
    changes(&r, &page);
}

#[test]
fn figures_by_size() {
    let r = made::forward();
    let page = page::parse("forward", &html::html(&r, STARTED));
    let of = |state: &str, value: Value| {
        // Largest first, as the axis is; a size of which nothing is known has no point.
        let mut all = sizes(&r, |s| {
            let known: Vec<f64> =
                at(&r, state, &format!("{} bytes", thousands(s))).iter().filter_map(|t| value(t)).collect();
            (!known.is_empty()).then(|| mean(known))
        });
        all.reverse();
        all
    };
    let (packets, bits) = (Chart::of(svg(&page, "packets-by-size-1")), Chart::of(svg(&page, "bits-by-size-1")));
    for state in ["cpu0", "spread"] {
        drawn(&packets.series(state), &of(state, |t| Some(t.loads[0].done_per_s)), "packets/s");
        drawn(&bits.series(state), &of(state, |t| Some(t.loads[0].bits_per_s)), "bit/s");
        let lost = of(state, |t| t.loads[0].lost_percent);
        // A line goes through at least two neighbours: a point alone is a marker.
        let lost: Vec<(String, f64)> = lost.into_iter().filter(|(s, _)| state == "cpu0" || s != "250").collect();
        drawn(&packets.series(&format!("loss, {state}")), &lost, "loss");
    }
    drawn(&packets.series("line rate"), &of("cpu0", |t| t.host.budget_ns_per_packet.map(|b| 1e9 / b)), "line rate");
    // The highest rates: zero loss first. Where one block found none there is a gap.
    for (figure, loss) in [("rate-without-loss-1", 0.0), ("rate-without-loss-2", 0.5)] {
        let chart = Chart::of(svg(&page, figure));
        for state in ["cpu0", "spread"] {
            let mut want = sizes(&r, |s| {
                let here = r.rates.iter().filter(|x| x.state == state && x.loss_percent == loss);
                let found: Vec<Option<f64>> =
                    here.filter(|x| x.point.size_bytes == Some(s)).map(|x| x.found_per_s).collect();
                let known: Option<Vec<f64>> = found.into_iter().collect();
                known.filter(|k| !k.is_empty()).map(mean)
            });
            want.reverse();
            assert_eq!(want.len(), if state == "cpu0" && loss == 0.0 { 2 } else { 3 });
            drawn(&chart.series(state), &want, figure);
        }
    }
    let t = TextTable::below(&page, "Highest rate");
    assert_eq!(t.cell(t.row(&["20 bytes", "cpu0", "none"]), "found in"), "2 of 3");
    // Packets by queue, in per cent of all.
    for (i, label) in ["20 bytes", "50 bytes", "100 bytes", "250 bytes", "500 bytes", "1,000 bytes"].iter().enumerate()
    {
        let chart = Chart::of(svg(&page, &format!("queues-{}", i + 1)));
        for state in ["cpu0", "spread"] {
            let trials = at(&r, state, label);
            let sum = |q: Option<u32>| -> u64 {
                let used = trials.iter().flat_map(|t| &t.host.queues);
                used.filter(|u| q.is_none_or(|q| q == u.queue)).map(|u| u.packets).sum()
            };
            let want: Vec<(String, f64)> =
                (0..8).map(|q| (q.to_string(), sum(Some(q)) as f64 * 100.0 / sum(None) as f64)).collect();
            drawn(&chart.series(state), &want, label);
        }
    }
}

#[test]
fn latency_and_throughput_at_once() {
    let r = made::mixed();
    let text = html::html(&r, STARTED);
    let page = page::parse("mixed", &text);
    structure(&r, &page, &text);
    assert_eq!(
        headings(&page),
        [
            "Verdicts",
            "States",
            "Figures",
            "Measured values",
            "CPU cost and queue load",
            "Score and its parts",
            "All comparisons",
            "Design",
            "Environment",
            "The peer"
        ]
    );
    let t = TextTable::below(&page, "Measured values");
    assert_eq!(t.rows.len(), 36);
    column(&r, &t, "transactions/s", |t| Some(load(t, "throughput").done_per_s));
    column(&r, &t, "throughput", |t| Some(load(t, "throughput").bits_per_s));
    column(&r, &t, "CPU %", |t| Some(cpu(t)));
    column(&r, &t, "mean us", |t| Some(load(t, "latency").latency.as_ref()?.mean_us));
    column(&r, &t, "p50 us", |t| Some(load(t, "latency").latency.as_ref()?.p50_us));
    column(&r, &t, "p90 us", |t| Some(load(t, "latency").latency.as_ref()?.p90_us));
    column(&r, &t, "p99 us", |t| Some(load(t, "latency").latency.as_ref()?.p99_us));
    column(&r, &t, "p99.9 us", |t| load(t, "latency").latency.as_ref()?.p999_us);
    column(&r, &t, "max us", |t| Some(load(t, "latency").latency.as_ref()?.max_us));
    column(&r, &t, "deviation us", |t| Some(load(t, "latency").latency.as_ref()?.deviation_us));
    let all = [
        (Metric::Rate, "transactions/s"),
        (Metric::LatencyMean, "latency mean"),
        (Metric::LatencyP50, "latency p50"),
        (Metric::LatencyP99, "latency p99"),
        (Metric::Cpu, "CPU"),
    ];
    comparisons(&r, &page, &all);
    changes(&r, &page);
    let t = TextTable::below(&page, "Score and its parts");
    for label in labels(&r) {
        for state in ["adaptive", "groups"] {
            let [latency, rate, score] = parts(&r, &label, state);
            let row = t.row(&[&label, state]);
            for (column, value) in [("latency part", latency), ("throughput part", rate), ("score", score)] {
                let shown = page::number(t.cell(row, column));
                assert!((shown - value).abs() <= 0.00051, "{label}, {state}, {column}: {shown}, {value}");
            }
        }
    }
}

/// Latency part, throughput part and score of a state: the formula that the page prints, half of each.
fn parts(r: &Results, label: &str, state: &str) -> [f64; 3] {
    let latency = |s: &str| mean(at(r, s, label).iter().map(|t| load(t, "latency").latency.as_ref().unwrap().mean_us));
    let rate = |s: &str| mean(at(r, s, label).iter().map(|t| load(t, "throughput").done_per_s));
    let (l, t) = (latency("before") / latency(state), rate(state) / rate("before"));
    [l, t, 0.5 * l + 0.5 * t]
}

#[test]
fn figures_of_a_mix() {
    let r = made::mixed();
    let page = page::parse("mixed", &html::html(&r, STARTED));
    let words = |size: u32| match size {
        64 => "64",
        1024 => "1K",
        _ => "64K",
    };
    let by_size = |value: &dyn Fn(String) -> f64, rest: &str| {
        [64u32, 1024, 65_536].map(|s| (words(s).to_string(), value(format!("{} bytes, {rest}", thousands(s))))).to_vec()
    };
    let rests = [
        "2 threads, light, mix 1/2:1/2",
        "2 threads, light, mix 2/3:1/3",
        "16 threads, heavy, mix 1/2:1/2",
        "16 threads, heavy, mix 2/3:1/3",
    ];
    for (i, rest) in rests.iter().enumerate() {
        let latency = Chart::of(svg(&page, &format!("latency-{}", i + 1)));
        let rate = Chart::of(svg(&page, &format!("throughput-{}", i + 1)));
        for state in ["before", "adaptive", "groups"] {
            let changed = |m: Metric, label: &str| {
                let c = r.comparisons.iter().find(|c| c.metric == m && c.with == state && name(&c.point) == label);
                c.map_or(1.0, |c| 1.0 + c.change_percent.unwrap() / 100.0)
            };
            let want = by_size(&|label| 1.0 / changed(Metric::LatencyMean, &label), rest);
            drawn(&latency.series(state), &want, &format!("latency, {state}, {rest}"));
            let want = by_size(&|label| changed(Metric::Rate, &label), rest);
            drawn(&rate.series(state), &want, &format!("rate, {state}, {rest}"));
            let used = by_size(&|label| mean(at(&r, state, &label).into_iter().map(cpu)), rest);
            for chart in [&rate, &latency] {
                drawn(&chart.series(&format!("CPU, {state}")), &used, &format!("CPU, {state}, {rest}"));
            }
        }
    }
    for (i, (mix, state)) in
        [("1/2:1/2", "adaptive"), ("1/2:1/2", "groups"), ("2/3:1/3", "adaptive"), ("2/3:1/3", "groups")]
            .iter()
            .enumerate()
    {
        let chart = Chart::of(svg(&page, &format!("score-{}", i + 1)));
        for level in ["2 threads, light", "16 threads, heavy"] {
            let want = by_size(&|label| parts(&r, &label, state)[2], &format!("{level}, mix {mix}"));
            drawn(&chart.series(level), &want, &format!("score of {state}, {level}, mix {mix}"));
        }
    }
    let chart = Chart::of(svg(&page, "percentiles-1"));
    for state in ["before", "adaptive", "groups"] {
        let all = at(&r, state, "64 bytes, 2 threads, light, mix 1/2:1/2");
        let all: Vec<_> = all.iter().map(|t| load(t, "latency").latency.as_ref().unwrap()).collect();
        let want = [
            ("50 %", mean(all.iter().map(|l| l.p50_us))),
            ("90 %", mean(all.iter().map(|l| l.p90_us))),
            ("99 %", mean(all.iter().map(|l| l.p99_us))),
            ("99.9 %", mean(all.iter().map(|l| l.p999_us.unwrap()))),
            ("max", mean(all.iter().map(|l| l.max_us))),
        ];
        drawn(&chart.series(state), &want.map(|(n, v)| (n.to_string(), v)), &format!("percentiles, {state}"));
    }
}

#[test]
fn latency_and_cpu_by_interval() {
    let r = made::intervals();
    let page = page::parse("intervals", &html::html(&r, STARTED));
    let chart = Chart::of(svg(&page, "latency-by-value-1"));
    let of = |value: Value| -> Vec<(String, f64)> {
        let of = |usecs: &str| {
            let state = format!("rx-usecs={usecs}");
            mean(r.trials.iter().filter(|t| t.state == state).filter_map(value))
        };
        ["0", "5", "62", "125"].map(|n| (n.to_string(), of(n))).to_vec()
    };
    drawn(&chart.series("mean latency"), &of(|t| Some(t.loads[0].latency.as_ref()?.mean_us)), "latency");
    drawn(&chart.series("CPU"), &of(|t| Some(cpu(t))), "CPU");
    assert_eq!(page.all("figure").iter().filter(|f| f.get("id").starts_with("latency-by-value")).count(), 1);
}

#[test]
fn loss_by_offered_rate_and_its_onset() {
    let r = made::offered();
    let text = html::html(&r, STARTED);
    let page = page::parse("offered", &text);
    let chart = Chart::of(svg(&page, "rate-by-offered-rate-1"));
    for state in ["cpu0", "spread"] {
        let of = |value: Value| -> Vec<(String, f64)> {
            let here = |offered: f64| {
                let at = |t: &&Trial| {
                    t.point.frame_bytes == Some(60) && t.point.offered_per_s == Some(offered) && t.state == state
                };
                r.trials.iter().filter(at).filter_map(value).collect::<Vec<_>>()
            };
            [1000.0, 2000.0, 4000.0, 8000.0].map(|n| (n.to_string(), mean(here(n)))).to_vec()
        };
        drawn(&chart.series(state), &of(|t| Some(t.loads[0].done_per_s)), "rate");
        drawn(&chart.series(&format!("loss, {state}")), &of(|t| t.loads[0].lost_percent), "loss");
    }
    let figures = page.all("figure");
    let caption = |id: &str| figures.iter().find(|f| f.get("id") == id).unwrap().all("figcaption")[0].text();
    let onset = "Loss begins: cpu0 between 2,000 and 4,000/s offered.";
    assert!(caption("rate-by-offered-rate-1").contains(onset), "{}", caption("rate-by-offered-rate-1"));
    // The CPU is the limit for frames of both sizes, at the same number of packets.
    let limited = "Limited by: cpu0: packets per second (60 to 1,000 bytes:";
    assert!(caption("packets-by-size-3").contains(limited), "{}", caption("packets-by-size-3"));
    let t = TextTable::below(&page, "CPU cost and queue load");
    let row = t.row(&["frames of 60 bytes, 1,000/s offered", "cpu0"]);
    // 672 ns at 2.6 cycles per ns.
    assert_eq!(t.cell(row, "cycles/packet at line rate"), "1,747");
}

#[test]
fn a_score_of_one_is_marked() {
    let r = made::mixed();
    let page = page::parse("mixed", &html::html(&r, STARTED));
    for i in 1..=4 {
        let figure = svg(&page, &format!("score-{i}"));
        assert!(figure.all("text").iter().any(|t| t.text() == "1.0: as before"), "score-{i}");
        let chart = Chart::of(figure);
        let at = chart.mark().unwrap_or_else(|| panic!("score-{i}: no line"));
        assert!((at.value - 1.0).abs() <= at.slack, "score-{i}: the line is at {}", at.value);
    }
}

#[test]
fn several_systems_in_one_figure() {
    let (old, mut new) = (made::sweep(), made::sweep());
    new.trials.iter_mut().flat_map(|t| &mut t.loads).for_each(|l| l.done_per_s *= 1.5);
    let found = figure::of_several_results(&[("7.1".into(), &old), ("7.2".into(), &new)]);
    let [f] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((f.name.as_str(), f.title.as_str()), ("systems-by-channels", "Rate of 2 systems by channels"));
    let page = page::parse("systems", &f.svg);
    let chart = Chart::of(page.all("svg")[0]);
    for (name, r) in [("7.1", &old), ("7.2", &new)] {
        let of = |n: &str| {
            let state = format!("queues={n}");
            mean(r.trials.iter().filter(|t| t.state == state).map(|t| t.loads[0].done_per_s))
        };
        let want = ["1", "2", "4", "8"].map(|n| (n.to_string(), of(n))).to_vec();
        drawn(&chart.series(name), &want, name);
    }
    // States that are measured at counts have a line each.
    let queues = made::queues();
    let found = figure::of_several_results(&[("a".into(), &queues), ("b".into(), &queues)]);
    let [f] = found.as_slice() else { panic!("{found:?}") };
    assert!(f.svg.contains(">a: 7.1<") && f.svg.contains(">b: 7.2<"));
    // Without a common axis, or alone, nothing is drawn.
    assert_eq!(figure::of_several_results(&[("a".into(), &queues), ("b".into(), &old)]), []);
    assert_eq!(figure::of_several_results(&[("a".into(), &queues)]), []);
}
