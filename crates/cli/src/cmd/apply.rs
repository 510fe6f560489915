//! `ringwise apply`

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ringwise_apply::Policy;
use ringwise_emit::summary::{name, summary};
use ringwise_intent::{ManualChangePolicy, Planning};
use ringwise_knob::Setting;
use ringwise_model::{Requested, Snapshot, Title};
use ringwise_persist::BootRun;
use ringwise_plan::Plan;

use super::goals;
use super::manual_changes;
use super::measure::{self, Measure};
use super::reviewed;
use super::transaction::{can_go_on, confirmed, fail, policy, printer, request, stderr_style, store};
use super::trial;
use super::wanted;
use crate::args::{ApplyArgs, ApplyOutput, Common, SourceArgs};
use crate::cmd::persist;
use crate::cmd::plan::{self, make};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_render::outcome::{Run, ValuesBefore};
use ringwise_render::plan::{self as page, PlanPageOptions};
use ringwise_render::{bands, control, manual_changes as hands_page};
use ringwise_text::Style;

pub(super) fn run(a: &ApplyArgs, common: &Common) -> Result<Status> {
    if a.output == ApplyOutput::Diff && !a.write.dry_run {
        return Err(
            Fail::usage("-o diff shows the changes of a plan, so it needs -n").next("ringwise apply -n -o diff")
        );
    }
    if let Some(path) = reviewed::file(a, &source::live()?)? {
        // A missing file is reported before the demand for --yes.
        if let Err(e @ ringwise_intent::Error::PlanUnreadable { .. }) = ringwise_intent::load_plan(&path) {
            return Err(wanted::fail(e, common.utc));
        }
    }
    can_go_on(&a.write, "apply")?;
    trial::check(a)?;
    if a.intent.print_config {
        return plan::print_config(&a.devs, &a.intent, &SourceArgs::default(), common);
    }
    if !a.boot {
        return applied(a, None, common);
    }
    let Some(mut boot) = persist::may_begin(a, common)? else { return Ok(Status::Ok) };
    let ended = applied(a, Some(&mut boot), common);
    let nothing_stays = match &ended {
        Ok(s) => *s == Status::PutBack,
        Err(f) => matches!(f.status, Status::PutBack | Status::Refused),
    };
    if nothing_stays {
        boot.mark_nothing_in_effect()?;
    }
    ended
}

fn applied(a: &ApplyArgs, boot: Option<&mut BootRun>, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let style = crate::style::detect(common);
    let file = reviewed::file(a, &source)?;
    let a = &ApplyArgs { intent: goals::settled(&a.intent, &source, common)?, ..a.clone() };
    let (made, plan) = match &file {
        // A reviewed plan is applied with exactly its steps.
        Some(file) => (None, load(file, &source, common)?),
        None => match decided(a, &source, common, &style)? {
            Some((made, take, plan)) => (Some((made, take)), plan),
            None => {
                out::note(
                    common.quiet,
                    "ringwise: no interface to tune exists yet, or none has a link; nothing was done",
                );
                return Ok(Status::Ok);
            }
        },
    };
    let s = made.as_ref().map(|(m, _)| &m.host.snapshot);
    let as_json = a.json(common);
    let again = a.intent.text(&a.devs);
    let how = PlanPageOptions {
        again,
        file: file.as_ref().map(|f| f.display().to_string()),
        config_refused: super::plan::config_refused(&plan, true),
        not_in_file: super::not_in_file::of(&plan),
        better_goal: made.as_ref().and_then(|(m, _)| m.better_goal()),
        ..PlanPageOptions::default()
    };
    let text = || page::text(&plan, s, &how, &style);
    if a.write.dry_run {
        match a.output {
            _ if as_json => out::json(&plan)?,
            ApplyOutput::Diff => out::answer(&ringwise_emit::diff::text(&plan))?,
            _ => out::answer(&text())?,
        }
        return Ok(Status::Ok);
    }
    let title = match &file {
        Some(f) => Title::Plan { file: Some(f.display().to_string()) },
        None => Title::Goal { goal: plan.intent.goal },
    };
    let requested = match &made {
        Some((made, _)) => Requested { flags: Some(a.intent.flags(&a.devs)), intent: made.requested.clone() },
        None => Requested { flags: None, intent: plan.intent.clone() },
    };
    let mut request = ringwise_intent::request(&plan, requested, a.boot).by(&request(title, a.reason.as_ref()));
    // At boot, programs may start later, and links come up later.
    let impossible = || plan.refused.iter().filter(|r| r.is_user_configured() && !(a.boot && r.is_expected_at_boot()));
    if file.is_some() {
        // The review also covered settings that were correct already.
        request.relies_on = plan.target.iter().filter(|t| !steps_on(&plan, t)).cloned().collect();
    }
    let mut differs = !plan.steps.is_empty();
    if differs {
        if file.is_some() {
            // This check runs before the question, because a signal handler would keep Ctrl-C from ending the program.
            differs = ringwise_apply::still_fits(&source.host, &request, &Policy::default()).map_err(|e| fail(&e))?;
        }
        ask(a, &plan, common, &style, &text)?;
    } else if !as_json && file.is_none() && !another_goal(&source, common, request.requested.as_ref())? {
        // Nothing to write: no lock, no journal, and the host is not read again.
        trial::none_waits(&source, &store(common), &style)?;
        out::answer(&text())?;
        return Ok(if impossible().next().is_some() { Status::Findings } else { Status::Ok });
    }
    let mut policy = policy()?;
    if let Some((made, take)) = &made {
        policy.planner = Some(Arc::new(made.planner(*take, a.boot)));
    }
    policy.force = a.force;
    policy.trial = trial::wanted(a);
    policy.watch = a.watch;
    policy.differs = differs;
    if let Some(boot) = boot
        && !plan.steps.is_empty()
    {
        boot.applying(source.host.unix_time())?;
    }
    let devs: Vec<String> = plan.devices.iter().map(|d| d.name.clone()).collect();
    let mut measure = a.measure.map(|time| Measure::new(&source, common, devs, time));
    if let Some(m) = &mut measure {
        m.before(&policy.stop)?;
    }
    let store = store(common);
    let before = before(&plan, s);
    let err = stderr_style(&style);
    let mut print = printer(&source.host, &before, &err, common.quiet, a.reason.as_deref());
    let outcome = ringwise_apply::run(&source.host, &request, &store, &policy, &mut print).map_err(|e| fail(&e))?;
    let measured = measure.as_ref().and_then(|m| Some((m, m.applied(&outcome)?)));
    let run = if a.boot { Run::ApplyAtBoot } else { Run::Apply };
    let ended = trial::follow(&outcome, run, a, common, &source, &store, &policy, &style);
    // A requested setting without an address is not in the outcome.
    let ended = ended.map(|status| match status {
        Status::Ok if impossible().next().is_some() => Status::Findings,
        status => status,
    });
    match measured {
        Some((m, path)) => measure::finish(m, &outcome, &path, ended, as_json, &policy.stop),
        None => ended,
    }
}

/// The last apply in effect was for other goals. The new goal is recorded, although it changes nothing.
fn another_goal(source: &Source, common: &Common, requested: Option<&Requested>) -> Result<bool> {
    let Some(requested) = requested else { return Ok(false) };
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    ringwise_apply::replaces_another(&store(common), &host, requested).map_err(|e| fail(&e))
}

/// Prints what would happen, and asks. If the user answers no, the command is refused.
fn ask(a: &ApplyArgs, plan: &Plan, common: &Common, style: &Style, text: &dyn Fn() -> String) -> Result<()> {
    let head = format!("Plan for {}: {}", name(plan), summary(plan));
    out::note(common.quiet, ringwise_text::hang("", &head, style.width).trim_end());
    let hands =
        format!("{}{}", hands_page::kept(plan, &a.intent.text(&a.devs), style), hands_page::undone(plan, style));
    if !hands.is_empty() {
        out::note(common.quiet, hands.trim_end());
    }
    let impossible = page::impossible_requests(plan, style);
    if !impossible.is_empty() {
        out::note(common.quiet, impossible.trim_end());
    }
    let way_in = control::before_asking(plan, style);
    if !way_in.is_empty() {
        out::note(common.quiet, way_in.trim_end());
    }
    if confirmed(&a.write, "Apply? [y/N/show]", text)? {
        return Ok(());
    }
    Err(Fail::refused("not_confirmed", "not confirmed; nothing was touched"))
}

/// The values before, as the plan shows them.
fn before(plan: &Plan, s: Option<&Snapshot>) -> ValuesBefore {
    plan.steps.iter().filter_map(|st| Some((st.setting.address()?, bands::now_text(st, s)))).collect::<BTreeMap<_, _>>()
}

/// The plan for the host as it is. On a terminal the user decides about manual changes that it would undo; without a
/// terminal they stay. `None`: at boot, when there is nothing to plan for yet.
fn decided(
    a: &ApplyArgs,
    source: &Source,
    common: &Common,
    style: &Style,
) -> Result<Option<(Planning, ManualChangePolicy, Plan)>> {
    let made = make(source, &a.devs, &a.intent, a.boot, common)?;
    let mut made = if a.boot { made.at_boot(&store(common)) } else { made };
    if a.boot && made.nothing_yet() {
        return Ok(None);
    }
    let mut take = match (a.intent.take_over, a.write.yes) {
        (true, _) => ManualChangePolicy::Over,
        (false, true) => ManualChangePolicy::Keep,
        (false, false) => ManualChangePolicy::Ask,
    };
    let mut plan = made.plan(take)?;
    if a.boot && !plan.cuts.is_empty() {
        // Without a trial the whole plan would be refused.
        out::note(common.quiet, &control::skipped_at_boot(&plan));
        made.without_disruption();
        plan = made.plan(take)?;
    }
    if take == ManualChangePolicy::Ask && !a.write.dry_run && !plan.by_hand.is_empty() {
        take = manual_changes::ask(&plan.by_hand, style)?;
        plan = made.plan(take)?;
    }
    Ok(Some((made, take, plan)))
}

fn steps_on(plan: &Plan, target: &Setting) -> bool {
    plan.steps.iter().any(|st| st.setting == *target)
}

/// Loads a file of `plan --out`, which must be valid for this host now.
pub(super) fn load(file: &Path, source: &Source, common: &Common) -> Result<Plan> {
    let r = ringwise_intent::load_plan(file)?;
    let (here, _) = ringwise_discover::host(source.host.as_ref());
    r.check(&here, source.host.unix_time()).map_err(|e| wanted::fail(e, common.utc))?;
    if !r.is_dated() {
        out::note(common.quiet, &format!("ringwise: {} has no date, so it does not expire", file.display()));
    }
    Ok(r.plan)
}
