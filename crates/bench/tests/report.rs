//! HTML, SVG and text of generated sessions. RINGWISE_BLESS=1 rewrites the golden files.

mod made;
mod numbers;
mod page;

use std::path::{Path, PathBuf};

use ringwise_bench::file::{Results, read, write};
use ringwise_bench::result::ResultLine;
use ringwise_bench::{figure, html, table, text};
use ringwise_testkit::golden;
use serde_json::Value;

const STARTED: &str = "2026-09-21T15:33:20+02:00";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn lines(r: &Results) -> String {
    let mut all = vec![ResultLine::Session(Box::new(r.session.clone()))];
    all.extend(r.trials.iter().map(|t| ResultLine::Trial(Box::new(t.clone()))));
    all.extend(r.comparisons.iter().map(|c| ResultLine::Comparison(Box::new(c.clone()))));
    all.extend(r.rates.iter().map(|x| ResultLine::Rate(Box::new(x.clone()))));
    all.extend(r.end.iter().map(|e| ResultLine::End(e.clone())));
    all.iter().map(|l| write(l).unwrap()).collect()
}

/// Results as read from a file: numbers with few digits, which are read back exactly.
fn through_a_file(r: &Results) -> Results {
    fn shorten(v: &mut Value) {
        match v {
            Value::Number(n) if n.is_f64() => *v = ((n.as_f64().unwrap() * 1e3).round() / 1e3).into(),
            Value::Array(a) => a.iter_mut().for_each(shorten),
            Value::Object(o) => o.values_mut().for_each(shorten),
            _ => {}
        }
    }
    let mut text = String::new();
    for line in lines(r).lines() {
        let mut v: Value = serde_json::from_str(line).unwrap();
        shorten(&mut v);
        text.push_str(&format!("{v}\n"));
    }
    read("made", &text).unwrap()
}

fn shown(r: &Results, width: Option<usize>, ascii: bool) -> String {
    text::text(r, &text::TextStyle { width, ascii, paint: &|_, t| t.to_string() })
}

#[test]
fn pages() {
    for (name, made) in made::all() {
        // As from a file, because notes about the file are shown too.
        let r = read(name, &lines(&made)).unwrap();
        let page = html::html(&r, STARTED);
        // Two pages are compared completely; `numbers` checks the contents of the others.
        if ["queues", "sweep"].contains(&name) {
            golden::compare(&path(&format!("{name}.html")), &page);
        }
        // For `cargo xtask figures`, which checks them in a browser.
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-pages");
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(out.join(format!("{name}.html")), &page).unwrap();
        golden::compare(&path(&format!("{name}.txt")), &shown(&r, Some(80), false));
    }
}

#[test]
fn every_page_and_figure_is_well_formed() {
    for (name, r) in made::all() {
        page::parse(name, &html::html(&r, STARTED));
        for f in figure::figures(&r) {
            page::parse(&f.name, &f.svg);
            assert!(!f.svg.contains("NaN") && !f.svg.contains("inf"), "{name} {}", f.name);
        }
    }
}

#[test]
fn figures_of_the_articles_are_there() {
    let names = |r: &Results| figure::figures(r).into_iter().map(|f| f.name).collect::<Vec<_>>();
    let forward = names(&made::forward());
    for want in ["changes-1", "packets-by-size-1", "bits-by-size-1", "rate-without-loss-2", "queues-6"] {
        assert!(forward.iter().any(|n| n == want), "{want} in {forward:?}");
    }
    assert!(!forward.iter().any(|n| n.starts_with("percentiles")), "no latency was measured: {forward:?}");
    let mixed = figure::figures(&made::mixed());
    // Two mixes, two states against the first; two levels and two mixes.
    let count = |kind: &str| mixed.iter().filter(|f| f.name.rsplit_once('-').is_some_and(|n| n.0 == kind)).count();
    assert_eq!((count("score"), count("latency"), count("throughput"), count("percentiles")), (4, 4, 4, 8));
    let last = mixed.iter().rfind(|f| f.name.starts_with("percentiles")).unwrap();
    assert!(last.caption.contains("4 more points are not drawn"), "{}", last.caption);
    assert!(names(&made::queues()).contains(&"rate-by-queues-1".to_string()));
    assert_eq!(names(&made::sweep()), ["changes-1", "changes-2", "rate-by-value-1"]);
    // A session without trials has no figures.
    let mut none = made::queues();
    (none.trials, none.comparisons) = (vec![], vec![]);
    assert_eq!(names(&none), [""; 0]);
    page::parse("none", &html::html(&none, STARTED));
}

#[test]
fn what_a_user_names_cannot_break_a_page() {
    let mut r = made::queues();
    let evil = "<script>&\"'\u{1}</svg>";
    r.session.states[1].name = evil.into();
    r.session.title = Some(evil.into());
    r.session.caveat = Some(evil.into());
    r.session.environment.facts.insert(evil.into(), evil.into());
    r.trials.iter_mut().filter(|t| t.state == "7.2").for_each(|t| t.state = evil.into());
    r.trials[0].doubts = vec![evil.into()];
    r.comparisons.iter_mut().for_each(|c| c.with = evil.into());
    let page = html::html(&r, evil);
    page::parse("evil", &page);
    let text = shown(&r, Some(80), false);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(page.contains("&lt;script&gt;&amp;&quot;&apos;\u{fffd}&lt;/svg&gt;"));
}

#[test]
fn the_caveat_comes_first() {
    let r = made::forward();
    let first = shown(&r, None, true).lines().next().unwrap_or_default().to_string();
    assert_eq!(first, "emulated NIC (igb in QEMU), not a NIC: these numbers are valid only for that");
    let page = html::html(&r, STARTED);
    let body = page.split("<body>").nth(1).unwrap();
    assert!(body.find("not a NIC").unwrap() < body.find("<h1>").unwrap());
}

#[test]
fn a_terminal_of_80_columns() {
    for (_, r) in made::all() {
        let folded = shown(&r, Some(80), true);
        assert!(folded.is_ascii(), "{folded}");
        let long: Vec<&str> = folded.lines().filter(|l| l.len() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
        // Without a terminal each record is one line.
        let (plain, table) = (shown(&r, None, false), table::measures(&r, false));
        let whole = |row: &Vec<String>| plain.lines().any(|l| row.iter().all(|cell| l.contains(cell.as_str())));
        assert!(table.rows.len() >= 5 && table.rows.iter().all(whole), "{plain}");
    }
}

#[test]
fn colours_are_the_callers() {
    let mark = |t: text::Tone, s: &str| format!("<{t:?}>{s}");
    let out = text::text(&made::forward(), &text::TextStyle { width: Some(80), ascii: false, paint: &mark });
    assert!(out.contains("<Worse>  CPU, spread: 6 worse"), "{out}");
    assert!(out.starts_with("<Caution>emulated NIC"), "{out}");
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let made = through_a_file(&made::forward());
    assert!(read("x", &lines(&made)).unwrap() == made);
    // Members that are not known yet.
    let text = lines(&made).replacen("\"kind\":\"trial\"", "\"kind\":\"trial\",\"moon\":{\"phase\":3}", 1);
    assert!(read("x", &text).unwrap() == made);
}

#[test]
fn files_that_are_not_whole() {
    let made = through_a_file(&made::queues());
    let text = lines(&made);
    let all: Vec<&str> = text.lines().collect();
    let cut = |n: usize| all[..n].join("\n") + "\n";
    let r = read("x", &cut(12)).unwrap();
    assert_eq!((r.trials.len(), r.end.is_none()), (11, true));
    assert_eq!(r.notes, ["no end: the session was interrupted or is still running (11 trials are here)"]);
    let torn = format!("{}{}", cut(12), &all[12][..40]);
    let r = read("x", &torn).unwrap();
    assert_eq!(r.notes[0], "line 13 is incomplete: the last line was not written to its end");
    // Only the newline is missing: that line is complete.
    assert!(read("x", text.trim_end()).unwrap() == made);
    let strange = format!("{}{}\n{}", cut(3), r#"{"kind":"weather","wind":3}"#, &text[cut(3).len()..]);
    let r = read("x", &strange).unwrap();
    assert_eq!(r.notes, ["1 of kind \"weather\" (from line 4) skipped: unknown to this version of ringwise"]);
    assert!(r.trials == made.trials);
    let late = format!("{text}{}\n", all[1]);
    assert_eq!(read("x", &late).unwrap().notes, [format!("line {} follows the end of the session", all.len() + 1)]);
}

#[test]
fn files_that_are_refused() {
    let text = lines(&through_a_file(&made::queues()));
    let fails = |text: &str| read("x.jsonl", text).unwrap_err().to_string();
    assert_eq!(fails(""), "x.jsonl: empty: no session was written");
    let (first, rest) = text.split_once('\n').unwrap();
    let begins = fails(rest);
    assert_eq!(begins, "x.jsonl:1: begins with \"trial\": expected the session as the first line");
    assert_eq!(
        fails(&text.replacen("\"version\":1", "\"version\":2", 1)),
        "x.jsonl:1: version 2 of ringwise.bench: this ringwise reads version 1"
    );
    assert_eq!(
        fails(&text.replacen("ringwise.bench", "ringwise.plan", 1)),
        "x.jsonl:1: schema ringwise.plan: expected ringwise.bench"
    );
    assert_eq!(fails(&format!("{first}\n{text}")), "x.jsonl:2: a second session begins: expected one session per file");
    let broken = fails(&format!("{first}\n{{\"kind\":\"tri\n{rest}"));
    assert!(broken.starts_with("x.jsonl:2: not a line of results: "), "{broken}");
    let wrong = fails(&text.replacen("\"seconds\":10.0", "\"seconds\":\"ten\"", 1));
    assert_eq!(wrong, "x.jsonl:2: trial: found string \"ten\", expected a number");
    let stranger = fails(&text.replacen("\"state\":\"7.1\"", "\"state\":\"7.3\"", 1));
    assert_eq!(stranger, "x.jsonl:2: state \"7.3\" is not a state of the session");
    let twins = fails(&text.replacen("\"name\":\"7.2\"", "\"name\":\"7.1\"", 1));
    assert_eq!(twins, "x.jsonl:1: two states named \"7.1\"");
}

#[path = "../../cli/tests/common/schema.rs"]
mod schema;

fn repository(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap()
}

#[test]
fn lines_match_their_schema() {
    let s: Value = serde_json::from_str(&repository("schemas/ringwise.bench.v1.json")).unwrap();
    for (_, r) in made::all() {
        for line in lines(&r).lines() {
            let wrong = schema::check(&s, &serde_json::from_str(line).unwrap());
            assert!(wrong.is_empty(), "{line}\n{wrong:#?}");
        }
    }
    let mut trial: Value = serde_json::from_str(lines(&made::queues()).lines().nth(1).unwrap()).unwrap();
    trial["limit"] = Value::from("moon");
    assert!(!schema::check(&s, &trial).is_empty());
}

#[test]
fn every_member_is_described() {
    fn members(v: &Value, out: &mut Vec<String>) {
        if let Some(p) = v["properties"].as_object() {
            out.extend(p.keys().cloned());
        }
        match v {
            Value::Array(a) => a.iter().for_each(|v| members(v, out)),
            Value::Object(o) => o.values().for_each(|v| members(v, out)),
            _ => {}
        }
    }
    let s: Value = serde_json::from_str(&repository("schemas/ringwise.bench.v1.json")).unwrap();
    let page = repository("docs/bench-report.md");
    let mut all = Vec::new();
    members(&s, &mut all);
    assert!(all.len() > 100, "{}", all.len());
    all.retain(|m| m != "kind" && !page.contains(&format!("`{m}`")) && !page.contains(&format!("{{\"{m}\"")));
    assert_eq!(all, [""; 0], "not in docs/bench-report.md");
}
