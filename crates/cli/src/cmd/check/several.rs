//! `ringwise check --from` with several captures.

use std::collections::BTreeSet;
use std::path::Path;

use ringwise_check::accept::Baseline;
use ringwise_check::fleet::{HostSummary, worst_first};
use ringwise_check::{Report, UnreadableCapture, formats};
use ringwise_render::fleet::FailedCapture;
use ringwise_render::{fleet as page, fleet_html, fleet_json};

use super::{one, today};
use crate::args::{CheckArgs, CheckOutput, Common};
use crate::cmd::fleet;
use crate::exit::{Fail, Result, Status};
use crate::out;
use ringwise_model::order::Order;

/// What is kept of a capture. The snapshot, and for text and JSON the report too, are dropped where they were made.
struct Checked {
    host: std::result::Result<HostSummary, FailedCapture>,
    /// Only for SARIF and JUnit, which are one document about all hosts.
    report: Option<Box<Report>>,
    /// Only for JSON.
    line: Option<String>,
    notes: Vec<String>,
}

pub(super) fn run(a: &CheckArgs, baseline: &Baseline, common: &Common) -> Result<Status> {
    let format = if common.json && a.output == CheckOutput::Text { CheckOutput::Json } else { a.output };
    let (today, quiet) = (today()?, fleet::quietly(common));
    let read = |file: &Path| checked(a, format, file, baseline, &today, &quiet);
    let (mut hosts, mut failed, mut reports, mut notes) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
    fleet::in_order(&a.from, format == CheckOutput::Json, common, read, |c: Result<Checked>| {
        let c = c?;
        notes.extend(c.notes);
        reports.extend(c.report.map(|r| *r));
        match c.host {
            Ok(h) => hosts.push(h),
            Err(f) => failed.push(f),
        }
        c.line.map_or(Ok(()), |l| out::json_line(&l))
    })?;
    for over in &notes {
        out::note(common.quiet, &format!("ringwise: {over}; it is a finding again"));
    }
    let worst = hosts.iter().filter_map(HostSummary::severity).max();
    worst_first(&mut hosts);
    reports.order_by_key(Report::severity_order);
    let unopened = || -> Vec<UnreadableCapture> {
        failed.iter().map(|f| UnreadableCapture { file: f.file.clone(), why: f.why.clone() }).collect()
    };
    match format {
        CheckOutput::Json => {}
        CheckOutput::Sarif => out::json(&formats::sarif(&reports, &unopened()))?,
        CheckOutput::Junit => out::answer(&formats::junit(&reports, &unopened(), a.fail_on.severity()))?,
        CheckOutput::Html => out::file(&fleet_html::checked(&hosts, &failed))?,
        CheckOutput::Text => {
            let goal = a.goal.map(|g| g.to_string());
            out::answer(&page::checked(&hosts, &failed, a.all, goal.as_deref(), &crate::style::detect(common)))?;
        }
    }
    fleet::report_failed(failed.len(), a.from.len());
    // What could not be read may hide any problem, so it outranks findings elsewhere and is never a success.
    Ok(match a.fail_on.severity() {
        _ if !failed.is_empty() => Status::Error,
        Some(s) if worst >= Some(s) => Status::Findings,
        _ => Status::Ok,
    })
}

/// Checks one capture, and keeps what the format needs.
fn checked(
    a: &CheckArgs,
    format: CheckOutput,
    file: &Path,
    baseline: &Baseline,
    today: &str,
    quiet: &Common,
) -> Result<Checked> {
    let cannot = |e: serde_json::Error| Fail::error(format!("cannot write JSON: {e}"));
    let json = format == CheckOutput::Json;
    let mut r = match fleet::evaluate(file, |source| one(a, source, quiet)) {
        Ok(r) => r,
        Err(f) => {
            let line = json.then(|| fleet_json::failure(&f)).transpose().map_err(cannot)?;
            return Ok(Checked { host: Err(f), report: None, line, notes: Vec::new() });
        }
    };
    let name = file.display().to_string();
    r.file = Some(name.clone());
    let notes = baseline.apply_to(&mut r, today);
    let line = match json {
        true => {
            let document = serde_json::to_string(&r).map_err(cannot)?;
            Some(fleet_json::result(&name, None, "check", &document).map_err(cannot)?)
        }
        false => None,
    };
    let whole = matches!(format, CheckOutput::Sarif | CheckOutput::Junit);
    Ok(Checked { host: Ok(HostSummary::of(&r, &name)), report: whole.then(|| Box::new(r)), line, notes })
}
