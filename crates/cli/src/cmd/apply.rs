//! `ringwise apply`

use std::path::Path;

use ringwise_apply::Request;
use ringwise_model::Snapshot;
use ringwise_plan::Plan;

use super::transaction::{can_go_on, confirmed, fail, finish, policy, printer, request, stderr_style, store};
use crate::args::{ApplyArgs, Common};
use crate::cmd::plan::{flags, make};
use crate::exit::{Fail, Result, Status};
use crate::render::outcome::Before;
use crate::render::{bands, plan as page};
use crate::source;
use crate::style::Style;
use crate::{out, render};

pub fn run(a: &ApplyArgs, common: &Common) -> Result<Status> {
    can_go_on(&a.write, "apply")?;
    let source = source::live()?;
    let style = Style::detect(common);
    let (s, plan) = match &a.plan {
        Some(file) => (None, load(file)?),
        None => {
            let (s, plan) = make(&source, &a.devs, &a.intent, common)?;
            (Some(s), plan)
        }
    };
    let as_json = a.format.json(common);
    let again = flags(&a.devs, &a.intent);
    let text = || page::text(&plan, s.as_ref(), &again, false, false, &style);
    if a.write.dry_run {
        if as_json {
            out::json(&plan)?;
        } else {
            out::answer(&text())?;
        }
        return Ok(Status::Ok);
    }
    if let Some(file) = &a.plan {
        same_machine(file, &plan, &source)?;
    }
    if !plan.steps.is_empty() {
        ask(a, &plan, common, &style, &text)?;
    } else if !as_json {
        // No lock, no journal, no second look.
        out::answer(&text())?;
        return Ok(Status::Ok);
    }
    let title = match &a.plan {
        Some(f) => format!("plan {}", f.display()),
        None => format!("goal {}", plan.intent.goal),
    };
    let request =
        Request { devices: plan.devices.clone(), steps: plan.steps.clone(), ..request(title, a.reason.as_ref()) };
    let policy = policy()?;
    let before = before(&plan, s.as_ref());
    let err = stderr_style(&style);
    let mut print = printer(&source.host, &before, &err, common.quiet);
    let outcome =
        ringwise_apply::run(&source.host, &request, &store(common), &policy, &mut print).map_err(|e| fail(&e))?;
    finish(&outcome, "Applied", as_json, &style)
}

/// Says what would happen and asks; no is a refusal.
fn ask(a: &ApplyArgs, plan: &Plan, common: &Common, style: &Style, text: &dyn Fn() -> String) -> Result<()> {
    let head = format!("Plan for {}: {}", page::name(plan), page::summary(plan));
    out::note(common.quiet, render::text::hang("", &head, style.width).trim_end());
    if confirmed(&a.write, "Apply? [y/N/show]", text)? {
        return Ok(());
    }
    Err(Fail::refused("not confirmed; nothing was touched"))
}

/// What was there, as the plan shows it.
fn before(plan: &Plan, s: Option<&Snapshot>) -> Before {
    plan.steps.iter().filter_map(|st| Some((st.setting.address()?, bands::now_text(st, s)))).collect()
}

/// A file of `plan --out`.
fn load(file: &Path) -> Result<Plan> {
    let name = file.display();
    let again = "ringwise plan --out FILE";
    let text = std::fs::read_to_string(file).map_err(|e| Fail::error(format!("{name}: {e}")))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| Fail::error(format!("{name} is no plan: {e}")).next(again))?;
    let schema = value["schema"].as_str().unwrap_or("none");
    if schema != ringwise_plan::SCHEMA {
        let text = format!("{name} is no plan: its schema is {schema}, right would be {}", ringwise_plan::SCHEMA);
        return Err(Fail::error(text).next(again));
    }
    let version = value["version"].as_u64().unwrap_or(0);
    if version != u64::from(ringwise_plan::VERSION) {
        let text = format!("{name} has plan version {version}; this ringwise knows {}", ringwise_plan::VERSION);
        return Err(Fail::error(text).next(again));
    }
    serde_json::from_value(value).map_err(|e| Fail::error(format!("{name} is no whole plan: {e}")).next(again))
}

/// A plan of another machine is refused before anything is looked at closer.
fn same_machine(file: &Path, plan: &Plan, source: &source::Source) -> Result<()> {
    let here = ringwise_discover::host(source.host.as_ref()).0.machine_id;
    match (plan.host.machine_id.known(), here.known()) {
        (Some(a), Some(b)) if a != b => {
            Err(Fail::refused(format!("{} was made for another machine ({})", file.display(), page::name(plan)))
                .next("ringwise plan"))
        }
        _ => Ok(()),
    }
}
