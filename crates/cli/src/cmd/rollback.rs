//! `ringwise rollback`

use super::transaction::{can_go_on, confirmed, fail, policy, printer, request, standing_now, stderr_style, store};
use super::trial;
use crate::args::{ApplyArgs, Common, RollbackArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::render::standing;
use crate::source;
use crate::style::Style;

pub fn run(a: &RollbackArgs, common: &Common) -> Result<Status> {
    can_go_on(&a.write, &format!("rollback {}", a.id))?;
    let on_trial = ApplyArgs {
        confirm: a.confirm,
        health: a.health.clone(),
        write: a.write.clone(),
        format: a.format.clone(),
        ..ApplyArgs::default()
    };
    trial::check(&on_trial)?;
    let source = source::live()?;
    let style = Style::detect(common);
    let store = store(common);
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let list = ringwise_apply::history(&store, &host).map_err(|e| fail(&e))?;
    let entry = list.iter().find(|e| e.id == a.id);
    if a.id != 0 && entry.is_none() {
        return Err(fail(&ringwise_apply::Refusal::UnknownTransaction { transaction: a.id }.into()));
    }
    let what =
        || entry.map_or_else(|| "Every setting as first found since boot.\n".into(), |e| standing::entry(e, &style));
    if a.write.dry_run {
        out::answer(&what())?;
        return Ok(Status::Ok);
    }
    let question = match a.id {
        0 => "Put every setting back to as first found since boot? [y/N/show]".to_string(),
        id => format!("Put the host back to before transaction {id}? [y/N/show]"),
    };
    if !confirmed(&a.write, &question, &what)? {
        return Err(Fail::refused("not confirmed; nothing was touched"));
    }
    let mut policy = policy()?;
    policy.take_over = a.take_over;
    policy.force = a.force;
    policy.trial = trial::wanted(&on_trial);
    let request = request(format!("rollback of {}", a.id), a.reason.as_ref());
    let before = standing_now(&source.host, &store, &policy);
    let err = stderr_style(&style);
    let mut print = printer(&source.host, &before, &err, common.quiet, a.reason.as_deref());
    let outcome = ringwise_apply::rollback(&source.host, &store, a.id, &request, &policy, &mut print).map_err(|e| {
        let f = fail(&e);
        match e.refusal() {
            Some(ringwise_apply::Refusal::Changed { .. }) => {
                f.next(format!("ringwise rollback {} --take-over, to overwrite what somebody else has set", a.id))
            }
            _ => f,
        }
    })?;
    trial::follow(&outcome, "Rolled back", &on_trial, common, &source, &store, &policy, &style)
}
