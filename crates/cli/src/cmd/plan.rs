//! `ringwise plan`

use std::path::Path;

use ringwise_discover::Options;
use ringwise_knob::Learned;
use ringwise_model::Snapshot;
use ringwise_plan::Plan;

use crate::args::{Common, IntentArgs, PlanArgs, PlanOutput};
use crate::exit::{Fail, Result, Status};
use crate::render::text::no_answer;
use crate::render::{diff, plan as page, script};
use crate::source::{self, Source};
use crate::style::Style;
use crate::{cmd::transaction, out};

pub fn run(a: &PlanArgs, common: &Common) -> Result<Status> {
    let source = source::open(&a.from)?;
    let format = if common.json { PlanOutput::Json } else { a.output };
    let (s, plan) = make(&source, &a.devs, &a.intent, common)?;
    if let Some(file) = &a.out {
        write(file, &plan)?;
        out::note(common.quiet, &format!("ringwise: the plan is in {}", file.display()));
    }
    match format {
        PlanOutput::Json => out::json(&plan)?,
        PlanOutput::Diff => out::answer(&diff::text(&plan))?,
        PlanOutput::Sh => {
            let text = script::text(&plan, &s)
                .map_err(|why| Fail::error(format!("no script can be written for this plan: {why}")))?;
            out::answer(&text)?;
        }
        PlanOutput::Text => {
            let style = Style::detect(common);
            let again = flags(&a.devs, &a.intent);
            out::answer(&page::text(&plan, Some(&s), &again, source.recorded, a.full, &style))?;
        }
    }
    Ok(if a.exit_code && !plan.steps.is_empty() { Status::Findings } else { Status::Ok })
}

/// Reads the host and plans it.
pub fn make(source: &Source, devs: &[String], intent: &IntentArgs, common: &Common) -> Result<(Snapshot, Plan)> {
    let options = Options { follow: devs.to_vec(), ..Options::all() };
    let s = source.snapshot(&options, common)?;
    for n in &s.nics {
        let Some(why) = no_answer(n) else { continue };
        let text = format!("{}: {why}; it cannot be planned now", n.name());
        if devs.iter().any(|d| d == n.name()) {
            return Err(Fail::error(text).next(format!("ringwise show {}", n.name())));
        }
        out::note(common.quiet, &format!("ringwise: {text}"));
    }
    let learned: Vec<Learned> = if source.recorded { Vec::new() } else { transaction::learned(common) };
    let plan = ringwise_plan::plan(&s, &intent.intent(devs), &learned).map_err(|r| Fail::error(r.to_string()))?;
    Ok((s, plan))
}

fn write(file: &Path, plan: &Plan) -> Result<()> {
    let mut text = serde_json::to_string_pretty(plan).map_err(|e| Fail::error(format!("cannot write JSON: {e}")))?;
    text.push('\n');
    ringwise_sys::store::write_atomic(file, text.as_bytes()).map_err(|e| Fail::error(e.to_string()))
}

/// The same wish as words of a command line.
pub fn flags(devs: &[String], i: &IntentArgs) -> String {
    use clap::ValueEnum;
    let mut out: Vec<String> = devs.to_vec();
    if i.goal != Default::default() {
        out.push(format!("--goal {}", i.goal));
    }
    for (flag, set) in [("--cpus", &i.cpus), ("--reserve", &i.reserve), ("--exclude-cpus", &i.exclude_cpus)] {
        if let Some(s) = set {
            out.push(format!("{flag} {s}"));
        }
    }
    if let Some(n) = i.queues {
        out.push(format!("--queues {n}"));
    }
    let smt = i.smt.and_then(|v| v.to_possible_value());
    let far = i.far_node.and_then(|v| v.to_possible_value());
    for (flag, value) in [("--smt", smt), ("--far-node", far)] {
        if let Some(v) = value {
            out.push(format!("{flag} {}", v.get_name()));
        }
    }
    if i.allow_disruption {
        out.push("--allow-disruption".into());
    }
    if i.pair_as_article {
        out.push("--pair-as-article".into());
    }
    out.join(" ")
}
