//! `docs/reproduction.md` from the result files of `cargo xtask lab bench`: their figures beside ours. It states a
//! difference only if a comparison in a file states it.

use anyhow::{Context, Result, anyhow};
use ringwise_bench::compare::primary;
use ringwise_bench::figure::{self, Figure};
use ringwise_bench::file::{self, Results};
use ringwise_bench::forward::{GREENHOST_SIZES, frame_of_payload, line_rate_per_s};
use ringwise_bench::result::{Metric, Verdict};
use ringwise_bench::summary::{points, varying};
use ringwise_bench::table::{self, TextTable};
use ringwise_bench::words;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::paths;

/// The whole page. `dir`: where the sections' result files are.
pub(crate) fn page(dir: &Path) -> Result<String> {
    let file = |name: &str| -> Result<Option<Results>> {
        let path = dir.join(format!("{name}.jsonl"));
        match fs::read_to_string(&path) {
            Ok(text) => file::read(name, &text).map(Some).map_err(|e| anyhow!(e)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).with_context(|| path.display().to_string()),
        }
    };
    let mut out = String::from(HEAD);
    out += GREENHOST;
    wire(&mut out);
    out += "\n**Ours.** All interrupts of six queues a port on CPU 0 (`before`) against the layout of\n\
            `ringwise plan --goal forward` for six cores (`tuned`), and for five, with CPU 0 kept free (`reserved`):\n\n";
    let cpu0 = file("greenhost")?;
    shown(&mut out, "greenhost", cpu0.as_ref());
    for (state, cpus) in [("tuned", "all six CPUs"), ("reserved", "the five CPUs other than CPU 0")] {
        let claim = format!("spreading the load over {cpus} forwards more than CPU 0 alone");
        judged(&mut out, cpu0.as_ref(), state, Metric::Rate, &claim);
    }
    judged(&mut out, cpu0.as_ref(), "tuned", Metric::Loss, "spreading the load loses less");
    out += "\nLoss against the offered rate. By the model one CPU forwards 500 packets a second, six forward 3,000. At 600 packets/s, `before` lost\n\
         none: what CPU 0 could not forward in the three seconds of sending waited in the receive rings, and was forwarded afterwards. So\n\
         neither its loss nor its limit shows that CPU 0 was full, and the losses by place contain the packets that waited:\n\n";
    let onset = file("greenhost-loss")?;
    shown(&mut out, "greenhost-loss", onset.as_ref());
    judged(&mut out, onset.as_ref(), "tuned", Metric::Loss, "spreading the load loses less");
    out += "\nBy frame size, at overload:\n\n";
    let sizes = file("greenhost-sizes")?;
    shown(&mut out, "greenhost-sizes", sizes.as_ref());
    judged(&mut out, sizes.as_ref(), "tuned", Metric::Rate, "spreading the load forwards more than CPU 0 alone");
    out += GREENHOST_WHY;

    out += REDHAT;
    let queues = file("queues")?;
    shown(&mut out, "queues", queues.as_ref());
    for n in ["2", "3", "4", "5", "6"] {
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
    shown(&mut out, "table", table.as_ref());
    for (with, what) in
        [("rps", "RPS on a NIC with one queue does more transactions"), ("rfs", "RFS on top of it does, too")]
    {
        judged(&mut out, table.as_ref(), with, Metric::Rate, what);
    }
    out += "\nXPS, eight queues, a CPU each, against none:\n\n";
    let xps = file("table-xps")?;
    shown(&mut out, "table-xps", xps.as_ref());
    judged(&mut out, xps.as_ref(), "xps", Metric::Rate, "XPS does more transactions");
    out += TABLE_WHY;

    out += PLACES;
    shown(&mut out, "receive", file("receive")?.as_ref());
    out += PLACES_WHY;

    out += MIXED;
    let mixed = file("mixed")?;
    shown(&mut out, "mixed", mixed.as_ref());
    if let Some(t) = mixed.as_ref().and_then(table::scores) {
        markdown(&mut out, &t);
    }
    out += MIXED_WHY;
    matrix(&mut out, &file)?;
    out += NOT_HERE;
    Ok(out)
}

/// The rows of the matrix, with the text of their sections.
const ROWS: [(&str, &str); 10] = [
    ("uniform", include_str!("../../lab/bench/text/matrix-uniform.md")),
    ("udp", include_str!("../../lab/bench/text/matrix-udp.md")),
    ("one-queue", include_str!("../../lab/bench/text/matrix-one-queue.md")),
    ("heavy", include_str!("../../lab/bench/text/matrix-heavy.md")),
    ("heavy-sampled", include_str!("../../lab/bench/text/matrix-heavy-sampled.md")),
    ("heavy-act", include_str!("../../lab/bench/text/matrix-heavy-act.md")),
    ("few-cpus", include_str!("../../lab/bench/text/matrix-few-cpus.md")),
    ("node", include_str!("../../lab/bench/text/matrix-node.md")),
    ("far", include_str!("../../lab/bench/text/matrix-far.md")),
    ("busy", include_str!("../../lab/bench/text/matrix-busy.md")),
];
/// What ringwise is compared with in each row.
const OTHERS: [(&str, &str); 5] = [
    ("cpu0", "all interrupts on CPU 0"),
    ("kernel", "the kernel's own layout"),
    ("loop", "interrupt i on CPU i"),
    ("irqbalance", "the layout that irqbalance left"),
    ("tuned", "tuned's profile network-throughput"),
];
/// The loads, and what is compared under each.
const LOADS: [(&str, &str, Metric); 2] = [
    ("overload", "with more packets than the router can forward", Metric::Rate),
    ("lossless", "at the highest rate without loss", Metric::RateWithoutLoss),
];

/// Ringwise against what people would use instead: all verdicts in one table, then each with the file that it comes from.
fn matrix(out: &mut String, file: &impl Fn(&str) -> Result<Option<Results>>) -> Result<()> {
    *out += MATRIX;
    for (load, name, metric) in LOADS {
        let mut lines = String::new();
        for (row, _) in ROWS {
            let files = OTHERS.map(|(other, _)| file(&format!("matrix-{row}-{other}-{load}")));
            let files = files.into_iter().collect::<Result<Vec<_>>>()?;
            lines += &summary(row, &files, metric);
        }
        if !lines.is_empty() {
            let others = OTHERS.map(|(_, what)| what).join(" | ");
            let _ =
                write!(out, "\nChange of packets/s against the alternative in the head of each column, {name}:\n\n");
            let _ =
                write!(out, "| row | ringwise | {others} |\n| --- | --- {}|\n{lines}", "| --- ".repeat(OTHERS.len()));
        }
    }
    for (row, text) in ROWS {
        let _ = write!(out, "\n### Row {row}\n\n{text}");
        for (load, name, metric) in LOADS {
            let mut missing: Vec<&str> = Vec::new();
            for (other, what) in OTHERS {
                let Some(file) = file(&format!("matrix-{row}-{other}-{load}"))? else {
                    missing.push(what);
                    continue;
                };
                let _ = writeln!(out, "\n#### {row}: {what}, {name}\n");
                shown(out, &format!("matrix-{row}-{other}-{load}"), Some(&file));
                for state in file.session.states.iter().skip(1) {
                    judged(
                        out,
                        Some(&file),
                        &state.name,
                        metric,
                        &format!("`{}` forwards more than {what}", state.name),
                    );
                }
            }
            match missing.len() {
                0 => {}
                n if n == OTHERS.len() => out.push_str(&format!("\nNot measured {name}.\n")),
                _ => out.push_str(&format!("\nNot measured {name}: {}.\n", missing.join("; "))),
            }
        }
    }
    Ok(())
}

/// The lines of a row in the table of all verdicts: one for each state of ringwise. Empty if nothing was measured.
fn summary(row: &str, files: &[Option<Results>], metric: Metric) -> String {
    let mut states: Vec<&str> = Vec::new();
    for state in files.iter().flatten().flat_map(|f| f.session.states.iter().skip(1)) {
        if !states.contains(&state.name.as_str()) {
            states.push(&state.name);
        }
    }
    let cell = |file: &Option<Results>, state: &str| {
        let Some(file) = file else { return "not measured".to_string() };
        match file.comparisons.iter().find(|c| c.with == state && c.metric == metric) {
            Some(c) => format!("{}, {}", words::change(c), words::verdict(c.verdict)),
            None => "not compared".into(),
        }
    };
    let mut out = String::new();
    for state in states {
        let cells: Vec<String> = files.iter().map(|f| cell(f, state)).collect();
        let _ = writeln!(out, "| {row} | `{state}` | {} |", cells.join(" | "));
    }
    out
}

/// Greenhost's table against the line rate of one gigabit, for each meaning that its sizes could have.
fn wire(out: &mut String) {
    // Packets a second: from their Mbit/s, and the last two as they are printed.
    let theirs = [122_200.0, 955.2e6 / 4e3, 913.6e6 / 2e3, 808e6 / 800.0, 1.49e6, 1.49e6];
    *out += "| size | theirs, packets/s | wire: frame of that size | wire: IP packet | wire: UDP payload |\n|---:|---:|---:|---:|---:|\n";
    for (size, pps) in GREENHOST_SIZES.into_iter().zip(theirs) {
        let line = |frame: u32| words::count(line_rate_per_s(1_000, frame));
        let (ip, udp) = (line(size + 14), line(frame_of_payload(size)));
        let _ = writeln!(out, "| {size} | {} | {} | {ip} | {udp} |", words::count(pps), line(size));
    }
}

/// The contents of a file: conditions, rates by state and point, losses by place, and the comparisons of the metrics
/// that the workload is made for.
fn shown(out: &mut String, name: &str, file: Option<&Results>) {
    let Some(r) = file else {
        match fs::read_to_string(paths::lab().join("bench/earlier").join(format!("{name}.md"))) {
            Ok(text) => {
                let _ = write!(out, "*Of an earlier session, whose results are not in the repository.*\n\n{text}");
            }
            Err(_) => {
                let _ = writeln!(out, "*Not measured: `cargo xtask lab bench` left no `{name}.jsonl`.*");
            }
        }
        return;
    };
    let fact = |key: &str| r.session.environment.facts.get(key).map_or("unknown", String::as_str);
    let states: Vec<String> = r.session.states.iter().map(|s| format!("`{}` is {}", s.name, s.what)).collect();
    let _ = writeln!(
        out,
        "`{name}` ({}): ringwise {}, Linux {}; {}; environment {}. {}.",
        words::common(r),
        r.session.ringwise,
        fact("kernel"),
        words::design(r),
        r.session.environment.hash,
        states.join("; ")
    );
    for note in words::notes(r) {
        let _ = writeln!(out, "**Note: {note}.**");
    }
    markdown(out, &table::measures(r, false));
    if let Some(t) = table::lost(r) {
        markdown(out, &t);
    }
    let wanted: Vec<_> =
        r.comparisons.iter().filter(|c| primary(&r.session.workload).contains(&c.metric)).cloned().collect();
    let fewer = Results { comparisons: wanted, ..r.clone() };
    if let Some(t) = table::comparisons(&fewer) {
        markdown(out, &t);
    }
    for f in chosen(r) {
        let _ = writeln!(out, "\n![{}](figures/{})\n\n{}", f.title, file_of(name, &f), f.caption);
    }
}

/// Curves, and the changes of the first value: `ringwise bench report` draws the others, too.
fn chosen(r: &Results) -> Vec<Figure> {
    let is_shown = |f: &Figure| f.name == "changes-1" || !["changes-", "queues-"].iter().any(|x| f.name.starts_with(x));
    figure::figures(r).into_iter().filter(is_shown).collect()
}

fn file_of(results: &str, f: &Figure) -> String {
    format!("{results}-{}.svg", f.name)
}

/// The figures of the page: name of the file below `docs/figures`, and its content.
pub(crate) fn figures(dir: &Path) -> Result<Vec<(String, String)>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".jsonl")) else {
            continue;
        };
        let r = file::read(name, &fs::read_to_string(&path)?).map_err(|e| anyhow!(e))?;
        out.extend(chosen(&r).into_iter().map(|f| (file_of(name, &f), f.svg)));
    }
    out.sort();
    Ok(out)
}

fn markdown(out: &mut String, t: &TextTable) {
    let line = |cells: &[String]| {
        format!("| {} |", cells.iter().map(|c| c.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
    };
    let rule: Vec<&str> = (0..t.head.len()).map(|i| if i < t.words { "---" } else { "---:" }).collect();
    let _ = writeln!(out, "\n{}:\n\n{}\n| {} |", t.title, line(&t.head), rule.join(" | "));
    for row in &t.rows {
        let _ = writeln!(out, "{}", line(row));
    }
}

/// Whether the comparison agrees with the claim of an article, as text.
fn judged(out: &mut String, file: Option<&Results>, with: &str, metric: Metric, claim: &str) {
    let found: Vec<_> =
        file.into_iter().flat_map(|r| &r.comparisons).filter(|c| c.with == with && c.metric == metric).collect();
    let varies = file.map(|r| varying(&points(r))).unwrap_or_default();
    for c in found {
        let change = words::change(c);
        let point = words::point(&c.point, &varies);
        let claim = if point.is_empty() { claim } else { &format!("{claim} with {point}") };
        let verdict = match c.verdict {
            Verdict::Better => format!("**Agrees**: {claim} ({change})."),
            Verdict::Worse => format!("**Does not agree** that {claim}: here it is worse ({change})."),
            Verdict::Equivalent => {
                format!("**Not seen here** that {claim}: equivalent within {} % ({change}).", c.equivalent_percent)
            }
            Verdict::Inconclusive => format!("**Not decided** whether {claim} ({change}; {}).", c.notes.join("; ")),
        };
        let _ = writeln!(out, "\n{verdict}");
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
const MATRIX: &str = include_str!("../../lab/bench/text/matrix.md");
const NOT_HERE: &str = include_str!("../../lab/bench/text/not-here.md");

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_bench::result::{
        Comparison, End, Limit, LoadResult, Point, ResultLine, Session, State, Trial, Unit, VERSION,
    };

    fn results(verdict: Verdict) -> Results {
        let session = Session {
            schema: "ringwise.bench".into(),
            version: VERSION,
            workload: "forward".into(),
            states: ["before", "tuned"].map(|n| State { name: n.into(), ..State::default() }).into(),
            ..Session::default()
        };
        let trial = |state: &str, block: u32, rate: f64, limit: Limit| {
            let load =
                LoadResult { unit: Unit::Packets, done_per_s: rate, lost_percent: Some(59.4), ..LoadResult::default() };
            let point = Point { size_bytes: Some(20), ..Point::default() };
            ResultLine::Trial(Box::new(Trial {
                point,
                state: state.into(),
                block,
                loads: vec![load],
                limit,
                ..Trial::default()
            }))
        };
        let comparison = Comparison {
            point: Point { size_bytes: Some(20), ..Point::default() },
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
            ResultLine::Session(Box::new(session)),
            trial("before", 0, 4_000.0, Limit::Cpu(vec![0])),
            trial("before", 1, 6_000.0, Limit::Unknown),
            trial("tuned", 0, 12_000.0, Limit::Offered),
            ResultLine::Comparison(Box::new(comparison)),
            ResultLine::End(End { restored: false, notes: vec!["eth0 is down".into()], ..End::default() }),
        ];
        let text: String = all.iter().map(|l| file::write(l).unwrap()).collect();
        file::read("greenhost", &text).unwrap()
    }

    #[test]
    fn a_file_becomes_tables_and_a_judgement_of_its_own_words() {
        let mut out = String::new();
        shown(&mut out, "greenhost", Some(&results(Verdict::Better)));
        assert!(out.contains("**Note: eth0 is down.**"), "{out}");
        assert!(out.lines().any(|l| l.starts_with("| before | 5,000 |")), "{out}");
        assert!(out.lines().any(|l| l.starts_with("| tuned | 12,000 |")), "{out}");
        assert!(out.lines().any(|l| l.starts_with("| tuned | ") && l.contains("better")), "{out}");
        let said = |v| {
            let mut out = String::new();
            judged(&mut out, Some(&results(v)), "tuned", Metric::Rate, "more is forwarded");
            out
        };
        assert!(said(Verdict::Better).contains("**Agrees**: more is forwarded (+140"), "{}", said(Verdict::Better));
        assert!(said(Verdict::Worse).contains("**Does not agree**"));
        assert!(said(Verdict::Equivalent).contains("**Not seen here**"));
        assert!(
            said(Verdict::Inconclusive).contains("**Not decided**") && said(Verdict::Inconclusive).contains("too few")
        );
    }

    #[test]
    fn unmeasured_results_are_reported_and_nothing_is_claimed() {
        let text = page(Path::new("/nonexistent")).unwrap();
        assert!(text.contains("left no `greenhost.jsonl`"));
        // What an earlier session found is marked as that.
        let (text, earlier) = text.split_once("*Of an earlier session").unwrap();
        assert!(earlier.contains("`table`"));
        for claim in ["**Agrees**", "**Does not agree**", "**Not seen here**", "**Not decided**"] {
            assert!(!text.contains(claim), "{claim}");
        }
        // Their rates are the wire's.
        assert!(text.contains("| 1000 | 122,200 | 122,070 |"), "{text}");
        assert!(text.contains("| 50 | 1,490,000 | 1,488,095 |"), "{text}");
    }
}
