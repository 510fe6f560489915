//! `ringwise plan`

mod several;

use ringwise_discover::Options;
use ringwise_intent::{ManualChangePolicy, Planning, PlanningHost};
use ringwise_knob::Learned;
use ringwise_model::shell::quote;
use ringwise_model::{GoalChoice, Intent, Snapshot};

use super::fleet;
use super::goals;
use super::manual_changes;
use super::not_in_file;
use super::reviewed::Expiry;
use super::sample;
use super::wanted;
use crate::args::{Common, IntentArgs, PlanArgs, PlanOutput, SourceArgs};
use crate::exit::{Fail, Result, Status};
use crate::source::{self, Source};
use crate::{cmd::transaction, out};
use ringwise_emit::{diff, script};
use ringwise_plan::{Plan, Refusal};
use ringwise_render::plan::{self as page, PlanPageOptions};
use ringwise_text::no_answer;

pub(super) fn run(a: &PlanArgs, common: &Common) -> Result<Status> {
    let (files, devs) = fleet::captures(&a.from.from, &a.devs);
    if files.len() > 1 || (a.output == PlanOutput::Html && !common.json) {
        return several::run(a, &files, &devs, common);
    }
    let a = &PlanArgs { devs, ..a.clone() };
    let from = SourceArgs { from: files.into_iter().next(), passive: a.from.passive };
    if a.intent.print_config {
        return print_config(&a.devs, &a.intent, &from, common);
    }
    let source = source::open(&from)?;
    let a = &PlanArgs { intent: goals::settled(&a.intent, &source, common)?, ..a.clone() };
    let format = if common.json { PlanOutput::Json } else { a.output };
    let made = make(&source, &a.devs, &a.intent, false, common)?;
    let plan = made
        .plan(if a.intent.take_over { ManualChangePolicy::Over } else { ManualChangePolicy::Ask })
        .map_err(|e| not_planned(e, &source))?;
    let better_goal = made.better_goal();
    let s = made.host.snapshot;
    if let Some(file) = &a.out {
        let expiry = a.expires.unwrap_or(Expiry(Some(std::time::Duration::from_secs(86_400))));
        ringwise_intent::write_plan(file, &plan, expiry.0, unix_time()?)?;
        out::note(common.quiet, &format!("ringwise: plan written to {}", file.display()));
    }
    match format {
        PlanOutput::Json => out::json(&plan)?,
        // Only about captures, see above.
        PlanOutput::Html => return Err(fleet::no_captures("plan")),
        PlanOutput::Diff => out::answer(&diff::text(&plan))?,
        PlanOutput::Sh => {
            let text = script::text(&plan, &s).map_err(|why| {
                Fail::error(format!("no script can be written for this plan: {why}")).code("no_script")
            })?;
            out::file(&text)?;
        }
        PlanOutput::Text => {
            let style = crate::style::detect(common).about(&source.recording);
            let file = a.out.as_ref().map(|f| f.display().to_string());
            let how = PlanPageOptions {
                again: a.intent.text(&a.devs),
                file,
                recorded: source.recorded,
                full: a.full,
                config_refused: config_refused(&plan, !source.recorded),
                not_in_file: not_in_file::of(&plan),
                better_goal,
            };
            let considered = s.nics.iter().filter(|n| plan.considered.iter().any(|dev| dev == n.name()));
            let remark = source.remark_on(considered, style.width);
            out::answer(&(page::text(&plan, Some(&s), &how, &style) + &remark))?;
        }
    }
    // A requested setting that is not planned still differs from the request.
    let unplanned =
        plan.left_out.iter().any(|l| l.is_user_configured()) || plan.refused.iter().any(|r| r.is_user_configured());
    Ok(if a.exit_code && (unplanned || !plan.steps.is_empty()) { Status::Findings } else { Status::Ok })
}

/// Why `persist` would refuse the configuration file of the plan where it is. `here`: the plan is for this host.
pub(super) fn config_refused(plan: &Plan, here: bool) -> Option<String> {
    let file = std::path::absolute(plan.intent.config.as_ref()?).ok()?;
    ringwise_persist::config_refused(&file, here)
}

/// `--print-config`: prints the equivalent file. The host is read only if it decides which entry `--set` means.
pub(super) fn print_config(devs: &[String], intent: &IntentArgs, from: &SourceArgs, common: &Common) -> Result<Status> {
    let settled = match intent.goal {
        Some(GoalChoice::Auto) => &goals::settled(intent, &source::open(from)?, common)?,
        _ => intent,
    };
    let wanted = wanted::read(devs, settled, from.from.is_some())?;
    let host = || source::open(from)?.snapshot(&Options::all(), common);
    out::answer(&wanted::file(&wanted, host, common)?)?;
    Ok(Status::Ok)
}

/// Reads the host and the request.
pub(super) fn make(
    source: &Source,
    devs: &[String],
    args: &IntentArgs,
    at_boot: bool,
    common: &Common,
) -> Result<Planning> {
    let wanted = wanted::read(devs, args, source.recorded)?;
    let options = Options { follow: wanted.named(), ..Options::all() };
    let s = source.snapshot(&options, common)?;
    for n in &s.nics {
        let Some(why) = no_answer(n) else { continue };
        let text = format!("{}: {why}; it cannot be planned now", n.name());
        if devs.iter().any(|d| d == n.name()) {
            return Err(Fail::error(text)
                .code("device_silent")
                .next(source.recording.reads(format!("ringwise show {}", n.name()))));
        }
        out::note(common.quiet, &format!("ringwise: {text}"));
    }
    let learned: Vec<Learned> = if source.recorded { Vec::new() } else { transaction::learned(common) };
    // At boot an interface may appear later.
    if let Some(dev) = devs.iter().find(|d| !at_boot && s.nic(d).is_none()) {
        return Err(source.no_such_device(dev, &s));
    }
    let mut requested = wanted::intent(&wanted, source, &s, common)?;
    requested.sample = args.sample.map(|time| sample::take(source, &s, time, common));
    let planning = planning(source, s, options, learned, requested, (args.goal.is_some(), at_boot), common)
        .map_err(|e| not_planned(e, source))?;
    for m in planning.missing.iter().filter(|_| at_boot) {
        let text = format!("ringwise: {m}; its flows are skipped: run ringwise apply when it listens");
        out::note(common.quiet, &text);
    }
    Ok(planning)
}

/// The error, with the next command for this source.
fn not_planned(e: ringwise_intent::Error, source: &Source) -> Fail {
    let next = match &e {
        ringwise_intent::Error::Plan(Refusal::NotTunable { dev, why }) if why.is_unread() => {
            Some(match source.recorded {
                true => source.recording.there("ringwise capture FILE"),
                false => format!("ringwise show {}", quote(dev)),
            })
        }
        ringwise_intent::Error::Plan(Refusal::NotTunable { .. }) => Some(source.recording.reads("ringwise show --all")),
        ringwise_intent::Error::Plan(Refusal::TooManyQueues { dev, .. }) => {
            Some(source.recording.reads(format!("ringwise show {}", quote(dev))))
        }
        _ => None,
    };
    match next {
        Some(next) => Fail::from(e).next(next),
        None => wanted::about(e, source),
    }
}

/// With what was changed outside ringwise. `goal_given`, `at_boot`: see [`Planning::new`].
pub(super) fn planning(
    source: &Source,
    s: Snapshot,
    options: Options,
    learned: Vec<Learned>,
    requested: Intent,
    (goal_given, at_boot): (bool, bool),
    common: &Common,
) -> std::result::Result<Planning, ringwise_intent::Error> {
    let (hands, made, late) = manual_changes::standing(source, &s, common)
        .map(|v| (v.manual_changes(), v.made.clone(), ringwise_intent::interfaces_without_settings(&s, &v)))
        .unwrap_or_default();
    let host = PlanningHost { options, snapshot: s, learned, hands, made, late };
    Planning::new(source.host.as_ref(), host, requested, goal_given, at_boot)
}

/// The current time, even if the plan is for a recording.
fn unix_time() -> Result<u64> {
    Ok(source::live()?.host.unix_time())
}
