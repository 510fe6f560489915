//! The results of a session as text, as a page and as figures.

use std::path::Path;

use ringwise_bench::file::{self, Results};
use ringwise_bench::result::{Comparison, End, Rate, Session, Trial};
use ringwise_bench::text::{TextStyle, Tone};
use ringwise_bench::{compare, figure, html, text};
use serde::Serialize;

use crate::args::{BenchReportArgs, Common};
use crate::exit::{Fail, Result, Status};
use crate::out;
use ringwise_text::Tint;
use ringwise_text::when;

/// Help with a file that is missing or not one of results.
const MAKE_RESULTS: &str = "ringwise bench --help      (how to measure and write a file of results)";

pub(super) fn run(a: &BenchReportArgs, common: &Common) -> Result<Status> {
    let mut all: Vec<(String, Results)> = Vec::new();
    for path in &a.files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| Fail::io(&name, &e).next(MAKE_RESULTS))?;
        let mut r = file::read(&name, &text).map_err(|e| Fail::error(e.to_string()).next(MAKE_RESULTS))?;
        if r.comparisons.is_empty() && r.end.is_none() {
            // The session was interrupted before it made comparisons.
            r.comparisons = compare::compare(&r.session, &r.trials);
        }
        r.session.design.weight = a.weight.or(r.session.design.weight);
        all.push((name, r));
    }
    let as_json = a.format.json(common);
    if all.len() > 1 && (a.html.is_some() || as_json) {
        return Err(Fail::usage("--html and -o json work with one file of results"));
    }
    for (i, (name, r)) in all.iter().enumerate() {
        if all.len() > 1 {
            out::answer(&format!("{}{name}\n", if i > 0 { "\n" } else { "" }))?;
        }
        let svg = a.svg.as_deref().filter(|_| all.len() == 1);
        show(r, a.html.as_deref(), svg, as_json, common)?;
    }
    if let Some(dir) = a.svg.as_deref().filter(|_| all.len() > 1) {
        systems(&all, dir, common)?;
    }
    let mut status = Status::Ok;
    if let [(first, a), others @ ..] = all.as_slice() {
        for (name, b) in others {
            let differ = compare::comparable(&a.session.environment, &b.session.environment);
            if differ.is_empty() {
                out::answer(&format!("\n{first} and {name} were measured under the same conditions.\n"))?;
                continue;
            }
            status = Status::Findings;
            let list: String = differ.iter().map(|d| format!("  {d}\n")).collect();
            out::answer(&format!("\n{first} and {name} cannot be compared: their environments differ in\n{list}"))?;
        }
    }
    Ok(status)
}

/// Figures with a line for each file.
///
/// Errors: the sessions have no axis in common.
fn systems(all: &[(String, Results)], dir: &Path, common: &Common) -> Result<()> {
    let name = |(file, r): &(String, Results)| {
        let stem = Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned());
        r.session.title.clone().or(stem).unwrap_or_else(|| file.clone())
    };
    let names: Vec<String> = all.iter().map(name).collect();
    let twice = |name: &String| names.iter().filter(|n| *n == name).count() > 1;
    // Files of the same name in different directories.
    let labels =
        names.iter().zip(all).map(|(name, (file, r))| (if twice(name) { file.clone() } else { name.clone() }, r));
    let figures = figure::of_several_results(&labels.collect::<Vec<_>>());
    if figures.is_empty() {
        return Err(Fail::error(
            "no figure shows all of these files: they need rates in the same unit over a common axis (queues, threads, sizes, ...), \
             each with two values or more",
        ));
    }
    save(&figures, dir)?;
    for f in figures {
        out::note(
            common.quiet,
            &format!("ringwise: figure written to {}", dir.join(format!("{}.svg", f.name)).display()),
        );
    }
    Ok(())
}

fn save(figures: &[figure::Figure], dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|e| Fail::io(dir.display(), &e))?;
    figures.iter().try_for_each(|f| write(&dir.join(format!("{}.svg", f.name)), &f.svg))
}

/// `-o json`: the same content as the lines, as one document.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    version: u32,
    session: &'a Session,
    trials: &'a [Trial],
    comparisons: &'a [Comparison],
    rates: &'a [Rate],
    /// None: the session was interrupted.
    end: &'a Option<End>,
    notes: &'a [String],
}

impl<'a> Document<'a> {
    fn of(r: &'a Results) -> Self {
        Self {
            schema: "ringwise.bench-report",
            version: 1,
            session: &r.session,
            trials: &r.trials,
            comparisons: &r.comparisons,
            rates: &r.rates,
            end: &r.end,
            notes: &r.notes,
        }
    }
}

/// Prints the answer on stdout, and writes the requested files.
pub(super) fn show(r: &Results, page: Option<&Path>, svg: Option<&Path>, as_json: bool, common: &Common) -> Result<()> {
    let style = crate::style::detect(common);
    if as_json {
        out::json(&Document::of(r))?;
    } else {
        let paint = |tone: Tone, t: &str| match tone {
            Tone::Better => style.paint(Tint::Green, t),
            Tone::Worse => style.paint(Tint::Red, t),
            Tone::Caution => style.paint(Tint::Yellow, t),
            Tone::Bold => style.paint(Tint::Bold, t),
            Tone::Dim => style.paint(Tint::Dim, t),
        };
        let look = TextStyle { width: style.width, ascii: style.ascii, paint: &paint };
        out::answer(&text::text(r, &look))?;
    }
    if let Some(path) = page {
        self::page(r, path, common)?;
    }
    if let Some(dir) = svg {
        save(&figure::figures(r), dir)?;
    }
    Ok(())
}

pub(super) fn page(r: &Results, path: &Path, common: &Common) -> Result<()> {
    write(path, &html::html(r, &when::full(r.session.started_unix, common.utc)))?;
    out::note(common.quiet, &format!("ringwise: page written to {}", path.display()));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    ringwise_sys::store::write_atomic(path, text.as_bytes()).map_err(Fail::from)
}
