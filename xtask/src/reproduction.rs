//! `docs/reproduction.md` from the result files of `cargo xtask lab bench`: their figures beside ours. No word about a
//! difference stands here that a comparison in a file did not say.

use anyhow::{Context, Result};
use ringwise_bench::compare::{self, value};
use ringwise_bench::forward::{GREENHOST_SIZES, frame_of_payload, line_rate_per_s};
use ringwise_bench::result::{Comparison, End, Limit, Line, Metric, Phase, Point, Session, Trial, Verdict};
use ringwise_bench::score::scores;
use ringwise_bench::stats::{deviation, mean};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// One result file.
#[derive(Debug)]
struct Measured {
    session: Session,
    trials: Vec<Trial>,
    comparisons: Vec<Comparison>,
    end: Option<End>,
}

fn read(name: &str, text: &str) -> Result<Measured> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty())
        .map(|(i, l)| serde_json::from_str::<Line>(l).with_context(|| format!("{name}:{}", i + 1)));
    let Some(Line::Session(session)) = lines.next().transpose()? else {
        anyhow::bail!("{name}: does not begin with a session");
    };
    let mut m = Measured { session: *session, trials: vec![], comparisons: vec![], end: None };
    for line in lines {
        match line? {
            Line::Trial(t) if t.phase == Phase::Measure => m.trials.push(*t),
            Line::Comparison(c) => m.comparisons.push(*c),
            Line::End(e) => m.end = Some(e),
            _ => {}
        }
    }
    Ok(m)
}

/// The whole page. `dir`: where the sections' result files are.
pub fn page(dir: &Path) -> Result<String> {
    let file = |name: &str| -> Result<Option<Measured>> {
        let path = dir.join(format!("{name}.jsonl"));
        match fs::read_to_string(&path) {
            Ok(text) => read(name, &text).map(Some),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).with_context(|| path.display().to_string()),
        }
    };
    let mut out = String::from(HEAD);
    out += GREENHOST;
    wire(&mut out);
    out += "\n**Ours.** All interrupts of six queues a port on CPU 0 (`before`) against the layout of\n\
            `ringwise plan --goal forward` (`tuned`):\n\n";
    let cpu0 = file("greenhost")?;
    shown(&mut out, "greenhost", cpu0.as_ref(), &[Metric::Rate, Metric::Loss, Metric::CpuNsPerPacket]);
    judged(
        &mut out,
        cpu0.as_ref(),
        "tuned",
        Metric::Rate,
        "spreading the load over all CPUs forwards more than CPU 0 alone",
    );
    judged(&mut out, cpu0.as_ref(), "tuned", Metric::Loss, "spreading the load loses less");
    out += "\nBy size of the frame (too few pairs for a verdict):\n\n";
    shown(&mut out, "greenhost-sizes", file("greenhost-sizes")?.as_ref(), &[]);
    out += "\nAgainst what the kernel of today does by itself (`before`), as their Fedora 18 already did; whatever came out:\n\n";
    let kernel = file("greenhost-kernel")?;
    shown(&mut out, "greenhost-kernel", kernel.as_ref(), &[Metric::Rate, Metric::Loss]);
    judged(
        &mut out,
        kernel.as_ref(),
        "tuned",
        Metric::Rate,
        "the planned layout forwards more than the kernel's default",
    );
    out += "\nAgainst irqbalance at an interval of a second (`before`); whatever came out:\n\n";
    let balanced = file("greenhost-irqbalance")?;
    shown(&mut out, "greenhost-irqbalance", balanced.as_ref(), &[Metric::Rate, Metric::Loss]);
    judged(&mut out, balanced.as_ref(), "tuned", Metric::Rate, "the planned layout forwards more than irqbalance's");
    out += GREENHOST_WHY;

    out += REDHAT;
    let queues = file("queues")?;
    shown(&mut out, "queues", queues.as_ref(), &[Metric::Rate]);
    for n in ["2", "6"] {
        judged(
            &mut out,
            queues.as_ref(),
            n,
            Metric::Rate,
            &format!("{n} queues on as many CPUs forward more than one"),
        );
    }
    out += REDHAT_WHY;

    out += TABLE;
    let table = file("table")?;
    shown(&mut out, "table", table.as_ref(), &[Metric::Rate, Metric::LatencyMean, Metric::LatencyP99, Metric::Cpu]);
    for (with, what) in
        [("rps", "RPS on a NIC with one queue does more transactions"), ("rfs", "RFS on top of it does, too")]
    {
        judged(&mut out, table.as_ref(), with, Metric::Rate, what);
    }
    out += "\nXPS, eight queues, a CPU each, against none:\n\n";
    let xps = file("table-xps")?;
    shown(&mut out, "table-xps", xps.as_ref(), &[Metric::Rate]);
    judged(&mut out, xps.as_ref(), "xps", Metric::Rate, "XPS does more transactions");
    out += TABLE_WHY;

    out += PLACES;
    shown(&mut out, "receive", file("receive")?.as_ref(), &[]);
    out += PLACES_WHY;

    out += MIXED;
    let mixed = file("mixed")?;
    shown(&mut out, "mixed", mixed.as_ref(), &[]);
    scored(&mut out, mixed.as_ref());
    out += MIXED_WHY;
    out += NOT_HERE;
    Ok(out)
}

/// Greenhost's table against what one gigabit carries, for each thing that its sizes could mean.
fn wire(out: &mut String) {
    // Packets a second: from their Mbit/s, and the last two as they are printed.
    let theirs = [122_200.0, 955.2e6 / 4e3, 913.6e6 / 2e3, 808e6 / 800.0, 1.49e6, 1.49e6];
    *out += "| size | theirs, packets/s | wire: frame of that size | wire: IP packet | wire: UDP payload |\n|---:|---:|---:|---:|---:|\n";
    for (size, pps) in GREENHOST_SIZES.into_iter().zip(theirs) {
        let line = |frame: u32| thousands(line_rate_per_s(1_000, frame));
        let (ip, udp) = (line(size + 14), line(frame_of_payload(size)));
        let _ = writeln!(out, "| {size} | {} | {} | {ip} | {udp} |", thousands(pps), line(size));
    }
}

fn thousands(n: f64) -> String {
    let digits = format!("{n:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 && c.is_ascii_digit() {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// What a file says: conditions, a row for each state at each point, and the comparisons of these metrics.
fn shown(out: &mut String, name: &str, file: Option<&Measured>, metrics: &[Metric]) {
    let Some(m) = file else {
        let _ = writeln!(out, "*Not measured: `cargo xtask lab bench` left no `{name}.jsonl`.*");
        return;
    };
    let d = &m.session.design;
    let fact = |key: &str| m.session.environment.facts.get(key).map_or("not known", String::as_str);
    let _ = writeln!(
        out,
        "`{name}`: ringwise {}, Linux {}, {} pairs of {} s behind {} s of warm-up, seed {}, environment {}.",
        m.session.ringwise,
        fact("kernel"),
        d.blocks,
        d.trial_s,
        d.warmup_s,
        d.seed,
        m.session.environment.hash,
    );
    match &m.end {
        None => *out += "The session was cut short: it has no end.\n",
        Some(e) if !e.restored => {
            let _ = writeln!(out, "The host was NOT found again as it was: {}.", e.notes.join("; "));
        }
        Some(_) => {}
    }
    rows(out, m);
    compared(out, m, metrics);
}

fn rows(out: &mut String, m: &Measured) {
    let unit =
        m.trials.first().and_then(|t| compare::load(t, "throughput")).map_or("/s", |l| compare::rate_unit(l.unit));
    let has = |metric| m.trials.iter().any(|t| value(t, metric).is_some());
    let (latency, loss) = (has(Metric::LatencyMean), has(Metric::Loss));
    let mut head = format!("| point | state | trials | {unit} |");
    if loss {
        head += " loss % |";
    }
    if latency {
        head += " mean us | 50/90/99 % us | deviation |";
    }
    head += " CPU % | limit |";
    let columns = head.matches('|').count() - 1;
    let _ = writeln!(out, "\n{head}\n|---|---|{}", "---:|".repeat(columns - 2));
    for point in compare::points(&m.trials) {
        for state in &m.session.states {
            let of: Vec<&Trial> = m.trials.iter().filter(|t| t.point == *point && t.state == state.name).collect();
            if of.is_empty() {
                continue;
            }
            let cell = |metric, digits: usize| {
                let list: Vec<f64> = of.iter().filter_map(|t| value(t, metric)).collect();
                if list.is_empty() { "not known".into() } else { format!("{:.digits$}", mean(&list)) }
            };
            let rate: Vec<f64> = of.iter().filter_map(|t| value(t, Metric::Rate)).collect();
            let rate = match rate.as_slice() {
                [] => "not known".to_string(),
                list if list.len() > 1 => format!("{} ± {}", thousands(mean(list)), thousands(deviation(list))),
                list => thousands(mean(list)),
            };
            let _ = write!(out, "| {} | {} | {} | {rate} |", label(point), state.name, of.len());
            if loss {
                let _ = write!(out, " {} |", cell(Metric::Loss, 1));
            }
            if latency {
                let three = [Metric::LatencyP50, Metric::LatencyP90, Metric::LatencyP99].map(|m| cell(m, 0));
                let deviations =
                    of.iter().filter_map(|t| Some(compare::load(t, "latency")?.latency.as_ref()?.deviation_us));
                let deviations: Vec<f64> = deviations.collect();
                let sd = if deviations.is_empty() { "not known".into() } else { format!("{:.0}", mean(&deviations)) };
                let _ = write!(out, " {} | {} | {sd} |", cell(Metric::LatencyMean, 0), three.join("/"));
            }
            let _ = writeln!(out, " {} | {} |", cell(Metric::Cpu, 0), limits(&of));
        }
    }
}

/// What limited most of these trials.
fn limits(of: &[&Trial]) -> String {
    let mut found: Vec<(String, usize)> = Vec::new();
    for t in of {
        let word = match &t.limit {
            Limit::Link(port) => format!("link {port}"),
            Limit::Cpu(cpus) => format!("CPU {}", cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
            Limit::Generator(_) => "generator".into(),
            Limit::Offered => "none: all that was offered".into(),
            Limit::Unknown => "not known".into(),
        };
        match found.iter_mut().find(|(w, _)| *w == word) {
            Some((_, n)) => *n += 1,
            None => found.push((word, 1)),
        }
    }
    found.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let all = of.len();
    found.first().map_or(String::new(), |(w, n)| if *n == all { w.clone() } else { format!("{w} ({n} of {all})") })
}

fn label(p: &Point) -> String {
    let mut words = Vec::new();
    let mut add = |word: Option<String>| words.extend(word);
    add(p.size_bytes.map(|n| format!("{n} B")));
    add(p.threads.map(|n| format!("{n} threads")));
    add(p.level.clone());
    add(p.mix.clone());
    add(p.queues.map(|n| format!("{n} queues")));
    add(p.place.clone());
    add(p.flows.map(|n| format!("{n} flows")));
    add(p.offered_per_s.map(|n| format!("{} offered/s", thousands(n))));
    if words.is_empty() { "-".into() } else { words.join(", ") }
}

fn percent(n: Option<f64>) -> String {
    n.map_or("not known".into(), |n| format!("{n:+.1}"))
}

fn word(v: Verdict) -> &'static str {
    match v {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn compared(out: &mut String, m: &Measured, metrics: &[Metric]) {
    let wanted: Vec<&Comparison> = m.comparisons.iter().filter(|c| metrics.contains(&c.metric)).collect();
    if wanted.is_empty() {
        return;
    }
    *out += "\n| point | metric | change % | 95 % interval | p, corrected | found with 80 of 100 | verdict |\n|---|---|---:|---:|---:|---:|---|\n";
    for c in wanted {
        let p = c.p_corrected.map_or("not known".into(), |p| format!("{p:.3}"));
        let least = c.detectable_percent.map_or("not known".into(), |d| format!("{d:.1} %"));
        let _ = writeln!(
            out,
            "| {} | {}: {} against {} | {} | {} to {} | {p} | {least} | {} |",
            label(&c.point),
            c.metric.name(),
            c.with,
            c.base,
            percent(c.change_percent),
            percent(c.low_percent),
            percent(c.high_percent),
            word(c.verdict),
        );
    }
}

/// Whether what an article says came out, in the words of the comparison.
fn judged(out: &mut String, file: Option<&Measured>, with: &str, metric: Metric, claim: &str) {
    let found = file.into_iter().flat_map(|m| &m.comparisons).filter(|c| c.with == with && c.metric == metric);
    for c in found {
        let interval = format!(
            "{} %, interval {} to {} %",
            percent(c.change_percent),
            percent(c.low_percent),
            percent(c.high_percent)
        );
        let verdict = match c.verdict {
            Verdict::Better => format!("**Agrees**: {claim} ({interval})."),
            Verdict::Worse => format!("**Does not agree**: that {claim}; here it is worse ({interval})."),
            Verdict::Equivalent => {
                format!("**Not seen here**: that {claim}; equivalent within {} % ({interval}).", c.equivalent_percent)
            }
            Verdict::Inconclusive => format!("**Not decided**: that {claim} ({interval}; {}).", c.notes.join("; ")),
        };
        let _ = writeln!(out, "\n{verdict}");
    }
}

fn scored(out: &mut String, file: Option<&Measured>) {
    let Some(m) = file else { return };
    *out += "\nScore at W = 0.5, with its parts (above 1 favours the state against the first one):\n\n\
             | point | state | score | interval | latency part | throughput part |\n|---|---|---:|---:|---:|---:|\n";
    for s in scores(&m.session, &m.trials, 0.5) {
        let part = |p: Option<f64>| p.map_or("none".into(), |p| format!("{p:.2}"));
        let _ = writeln!(
            out,
            "| {} | {} | {:.2} | {} to {} | {} | {} |",
            label(&s.point),
            s.state,
            s.score,
            part(s.low),
            part(s.high),
            part(s.latency_part),
            part(s.throughput_part)
        );
    }
}

const HEAD: &str = include_str!("../../lab/bench/text/head.md");
const GREENHOST: &str = include_str!("../../lab/bench/text/greenhost.md");
const GREENHOST_WHY: &str = include_str!("../../lab/bench/text/greenhost-why.md");
const REDHAT: &str = include_str!("../../lab/bench/text/redhat.md");
const REDHAT_WHY: &str = include_str!("../../lab/bench/text/redhat-why.md");
const TABLE: &str = include_str!("../../lab/bench/text/table.md");
const TABLE_WHY: &str = include_str!("../../lab/bench/text/table-why.md");
const PLACES: &str = include_str!("../../lab/bench/text/receive.md");
const PLACES_WHY: &str = include_str!("../../lab/bench/text/receive-why.md");
const MIXED: &str = include_str!("../../lab/bench/text/mixed.md");
const MIXED_WHY: &str = include_str!("../../lab/bench/text/mixed-why.md");
const NOT_HERE: &str = include_str!("../../lab/bench/text/not-here.md");

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_bench::result::{LoadResult, Session, State, Unit};

    fn lines(verdict: Verdict) -> String {
        let session = Session {
            ringwise: "0.9".into(),
            workload: "forward".into(),
            states: ["before", "tuned"].map(|n| State { name: n.into(), ..State::default() }).into(),
            ..Session::default()
        };
        let trial = |state: &str, block: u32, rate: f64, limit: Limit| {
            let load =
                LoadResult { unit: Unit::Packets, done_per_s: rate, lost_percent: Some(59.4), ..LoadResult::default() };
            let point = Point { size_bytes: Some(20), ..Point::default() };
            Line::Trial(Box::new(Trial {
                point,
                state: state.into(),
                block,
                loads: vec![load],
                limit,
                ..Trial::default()
            }))
        };
        let comparison = Comparison {
            point: Point::default(),
            metric: Metric::Rate,
            base: "before".into(),
            with: "tuned".into(),
            pairs: 2,
            base_mean: 5_000.0,
            with_mean: 12_000.0,
            change_percent: Some(140.0),
            low_percent: Some(120.0),
            high_percent: Some(160.0),
            p: Some(0.001),
            p_corrected: Some(0.002),
            detectable_percent: Some(9.0),
            noise_percent: None,
            calibration_noise_percent: None,
            equivalent_percent: 5.0,
            verdict,
            notes: vec!["too few".into()],
        };
        let all = [
            Line::Session(Box::new(session)),
            trial("before", 0, 4_000.0, Limit::Cpu(vec![0])),
            trial("before", 1, 6_000.0, Limit::Unknown),
            trial("tuned", 0, 12_000.0, Limit::Offered),
            Line::Comparison(Box::new(comparison)),
            Line::End(End { restored: true, ..End::default() }),
        ];
        all.iter().map(|l| serde_json::to_string(l).unwrap() + "\n").collect()
    }

    #[test]
    fn a_file_becomes_rows_and_a_judgement_of_its_own_words() {
        let m = read("greenhost", &lines(Verdict::Better)).unwrap();
        let mut out = String::new();
        shown(&mut out, "greenhost", Some(&m), &[Metric::Rate]);
        assert!(out.contains("| 20 B | before | 2 | 5,000 ± 1,414 | 59.4 | not known | CPU 0 (1 of 2) |"), "{out}");
        assert!(out.contains("| 20 B | tuned | 1 | 12,000 | 59.4 | not known | none: all that was offered |"), "{out}");
        assert!(out.contains("| +140.0 | +120.0 to +160.0 | 0.002 | 9.0 % | better |"), "{out}");
        let said = |v| {
            let mut out = String::new();
            judged(&mut out, Some(&read("x", &lines(v)).unwrap()), "tuned", Metric::Rate, "more is forwarded");
            out
        };
        assert!(
            said(Verdict::Better).contains("**Agrees**: more is forwarded (+140.0 %, interval +120.0 to +160.0 %)")
        );
        assert!(said(Verdict::Worse).contains("**Does not agree**"));
        assert!(said(Verdict::Equivalent).contains("**Not seen here**"));
        assert!(
            said(Verdict::Inconclusive).contains("**Not decided**") && said(Verdict::Inconclusive).contains("too few")
        );
    }

    #[test]
    fn what_was_not_measured_is_said_and_nothing_is_claimed() {
        let text = page(Path::new("/nonexistent")).unwrap();
        assert!(text.contains("left no `greenhost.jsonl`"));
        for claim in ["**Agrees**", "**Does not agree**", "**Not seen here**", "**Not decided**"] {
            assert!(!text.contains(claim), "{claim}");
        }
        // Their rates are the wire's.
        assert!(text.contains("| 1000 | 122,200 | 122,070 |"), "{text}");
        assert!(text.contains("| 50 | 1,490,000 | 1,488,095 |"), "{text}");
        let cut = lines(Verdict::Better).replace("{\"kind\":\"end\"", "{\"kind\":\"what\"");
        assert!(read("x", &cut).unwrap_err().to_string().contains("x:6"));
    }
}
