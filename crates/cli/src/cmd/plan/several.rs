//! `ringwise plan --from` with several captures.

use std::path::{Path, PathBuf};

use ringwise_intent::ManualChangePolicy;
use ringwise_model::GoalChoice;
use ringwise_plan::fleet::{PlanGroups, PlannedHost, SamePlan};
use ringwise_render::fleet::{self as page, FailedCapture};
use ringwise_render::{fleet_html, fleet_json};

use super::make;
use crate::args::{Common, IntentArgs, PlanArgs, PlanOutput};
use crate::cmd::{fleet, goals, wanted};
use crate::exit::{Fail, Result, Status};
use crate::out;

/// What is kept of a capture. Snapshot and plan are dropped where they were made.
struct Planned {
    key: SamePlan,
    host: PlannedHost,
    /// Only for JSON: the plan.
    document: Option<String>,
}

pub(super) fn run(a: &PlanArgs, files: &[PathBuf], devs: &[String], common: &Common) -> Result<Status> {
    if files.is_empty() {
        return Err(fleet::no_captures("plan"));
    }
    refuse_options_of_one_host(a)?;
    let json = common.json || a.output == PlanOutput::Json;
    // A mistake in the request is one error, not one for each capture.
    if a.intent.goal != Some(GoalChoice::Auto) {
        wanted::read(devs, &a.intent, true)?;
    }
    let quiet = fleet::quietly(common);
    let read = |file: &Path| fleet::evaluate(file, |source| planned(&a.intent, file, source, devs, json, &quiet));
    let cannot = |e: serde_json::Error| Fail::error(format!("cannot write JSON: {e}"));
    let (mut groups, mut failed, mut attention) = (PlanGroups::default(), Vec::new(), false);
    fleet::in_order(files, json, common, read, |p: std::result::Result<Planned, FailedCapture>| match p {
        Ok(p) => {
            attention |= p.host.steps > 0 || p.host.not_planned > 0;
            let file = p.host.file.clone();
            let same = groups.add(p.key, p.host);
            let Some(document) = p.document else { return Ok(()) };
            out::json_line(&fleet_json::result(&file, same, "plan", &document).map_err(cannot)?)
        }
        Err(f) => {
            if json {
                out::json_line(&fleet_json::failure(&f).map_err(cannot)?)?;
            }
            failed.push(f);
            Ok(())
        }
    })?;
    if !json {
        let again = ["ringwise plan", &a.intent.text(devs)].join(" ");
        let (groups, again) = (groups.finish(), again.trim_end());
        match a.output {
            PlanOutput::Html => out::file(&fleet_html::planned(&groups, &failed, again))?,
            _ => out::answer(&page::planned(&groups, &failed, again, a.all, &crate::style::detect(common)))?,
        }
    }
    fleet::report_failed(failed.len(), files.len());
    Ok(match () {
        () if !failed.is_empty() => Status::Error,
        () if a.exit_code && attention => Status::Findings,
        () => Status::Ok,
    })
}

/// Options whose result is a file for one host.
fn refuse_options_of_one_host(a: &PlanArgs) -> Result<()> {
    let given = [
        (a.out.is_some(), "--out"),
        (a.output == PlanOutput::Sh, "-o sh"),
        (a.output == PlanOutput::Diff, "-o diff"),
        (a.full, "--full"),
        (a.intent.print_config, "--print-config"),
    ];
    match given.iter().find(|(is, _)| *is) {
        Some((_, option)) => Err(Fail::usage(format!(
            "{option} is about one host; found several captures. Expected one capture, or the output formats text, json and html"
        ))
        .next("ringwise plan --help")),
        None => Ok(()),
    }
}

fn planned(
    intent: &IntentArgs,
    file: &Path,
    source: &crate::source::Source,
    devs: &[String],
    json: bool,
    quiet: &Common,
) -> Result<Planned> {
    let intent = goals::settled(intent, source, quiet)?;
    let made = make(source, devs, &intent, false, quiet)?;
    let plan = made.plan(if intent.take_over { ManualChangePolicy::Over } else { ManualChangePolicy::Ask })?;
    let s = &made.host.snapshot;
    let driver = |dev: &str| s.nic(dev).and_then(|n| n.driver.known()).map_or("", String::as_str);
    let document = match json {
        true => Some(serde_json::to_string(&plan).map_err(|e| Fail::error(format!("cannot write JSON: {e}")))?),
        false => None,
    };
    let file = file.display().to_string();
    Ok(Planned { key: SamePlan::of(&plan, driver), host: PlannedHost::of(&plan, &file, driver), document })
}
