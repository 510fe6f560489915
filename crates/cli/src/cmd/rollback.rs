//! `ringwise rollback`

use super::transaction::{can_go_on, confirmed, fail, policy, printer, request, standing_now, stderr_style, store};
use super::trial;
use crate::args::{ApplyArgs, Common, RollbackArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_apply::Store;
use ringwise_discover::Options;
use ringwise_model::Title;
use ringwise_render::outcome::Run;
use ringwise_render::verify_history;
use ringwise_text::Style;

pub(super) fn run(a: &RollbackArgs, common: &Common) -> Result<Status> {
    let Some(id) = a.id else { return Err(which(common)?) };
    // Before the question and the demand for --yes, which would be useless. For other users, the need for root comes first.
    if ringwise_sys::proc::euid() == 0 {
        exists(id, common)?;
    }
    can_go_on(&a.write, &format!("rollback {id}"))?;
    let on_trial = ApplyArgs {
        confirm: a.confirm,
        health: a.health.clone(),
        write: a.write.clone(),
        output: a.format.output.into(),
        ..ApplyArgs::default()
    };
    trial::check(&on_trial)?;
    let source = source::live()?;
    let style = crate::style::detect(common);
    let store = store(common);
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let list = ringwise_apply::history(&store, &host).map_err(|e| fail(&e))?;
    let entry = list.iter().find(|e| e.id == id);
    if id != 0 && entry.is_none() {
        return Err(fail(&ringwise_apply::Refusal::UnknownTransaction { transaction: id }.into()));
    }
    let what = || {
        entry.map_or_else(
            || "Restores every setting as first found since boot.\n".into(),
            |e| verify_history::entry(e, &style),
        )
    };
    if a.write.dry_run {
        return preview(id, a, &source, &store, common, &style);
    }
    let question = match id {
        0 => "Restore every setting as first found since boot? [y/N/show]".to_string(),
        id => format!("Restore the host to its state before transaction {id}? [y/N/show]"),
    };
    if !confirmed(&a.write, &question, &what)? {
        return Err(Fail::refused("not_confirmed", "not confirmed; nothing was touched"));
    }
    let mut policy = policy()?;
    policy.take_over = a.take_over;
    policy.force = a.force;
    policy.trial = trial::wanted(&on_trial);
    let request = request(Title::Rollback { of: id }, a.reason.as_ref());
    let before = standing_now(&source.host, &store, &policy);
    let err = stderr_style(&style);
    let mut print = printer(&source.host, &before, &err, common.quiet, a.reason.as_deref());
    let outcome = ringwise_apply::rollback(&source.host, &store, id, &request, &policy, &mut print).map_err(|e| {
        let f = fail(&e);
        match e.refusal() {
            Some(ringwise_apply::Refusal::Changed { .. }) => {
                f.next(format!("ringwise rollback {id} --take-over      (overwrites these changes)"))
            }
            _ => f,
        }
    })?;
    trial::follow(&outcome, Run::RollBack, &on_trial, common, &source, &store, &policy, &style)
}

/// Refuses the number of a transaction that does not exist. A history that cannot be read is reported later.
fn exists(id: u64, common: &Common) -> Result<()> {
    let source = source::live()?;
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    match ringwise_apply::history(&store(common), &host) {
        Ok(list) if id != 0 && !list.iter().any(|e| e.id == id) => {
            Err(fail(&ringwise_apply::Refusal::UnknownTransaction { transaction: id }.into()))
        }
        _ => Ok(()),
    }
}

/// Shows what would be restored, and what prevents it.
fn preview(
    id: u64,
    a: &RollbackArgs,
    source: &Source,
    store: &Store,
    common: &Common,
    style: &Style,
) -> Result<Status> {
    // The search for competing programs reads a file of every process, and a rollback needs none of it.
    let options = Options { skip_rivals: true, ..Options::all() };
    let now = ringwise_discover::snapshot(&source.host, &options).map_err(Fail::from)?;
    let mut would = ringwise_apply::would_undo(&now, store, id).map_err(|e| fail(&e))?;
    if a.take_over {
        would.moved.clear();
    }
    if a.format.json(common) {
        let moved: Vec<_> = would.moved.iter().map(|m| m.address.to_string()).collect();
        out::json(&serde_json::json!({
            "schema": "ringwise.rollback", "version": 2, "steps": would.steps, "changed_since": moved, "notes": would.notes,
        }))?;
    } else {
        out::answer(&verify_history::would_undo(id, &would, style))?;
    }
    // The exit status is that of the rollback itself.
    Ok(if would.moved.is_empty() { Status::Ok } else { Status::Refused })
}

/// Without a number: the last transactions, and the command for the one that a person most likely wants to undo. The service may
/// have made many since.
fn which(common: &Common) -> Result<Fail> {
    const SHOWN: usize = 5;
    let source = source::live()?;
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let mut list = ringwise_apply::history(&store(common), &host).map_err(|e| fail(&e))?;
    let newest = verify_history::to_undo(&list).map(|e| e.id);
    if list.iter().any(|e| !e.is_of_service()) {
        list.retain(|e| !e.is_of_service());
    }
    list.drain(..list.len().saturating_sub(SHOWN));
    let last = verify_history::history(&list, false, &crate::style::detect(common));
    let f = Fail::usage(format!("rollback needs the number of a transaction\n\n{last}"));
    Ok(match newest {
        Some(id) => f.next(format!("ringwise rollback {id}")),
        None => f,
    })
}
