//! `ringwise recover`

use ringwise_apply::HistoryEntry;

use super::transaction::{can_go_on, confirmed, fail, finish, policy, printer, stderr_style, store};
use crate::args::{Common, RecoverArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source;
use ringwise_render::outcome::Run;
use ringwise_render::verify_history::{to_recover, waiting};

pub(super) fn run(a: &RecoverArgs, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let style = crate::style::detect(common);
    let store = store(common);
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let list = ringwise_apply::history(&store, &host).map_err(|e| fail(&e))?;
    let named = |e: &HistoryEntry| format!("transaction {} ({})", e.id, e.title);
    let (would, question, what) = match (to_recover(&list), waiting(&list)) {
        (Some(e), _) => {
            let what = named(e);
            (
                format!("Would restore: {what}"),
                Some(format!("Restore the host to its state before {what}? [y/N]")),
                what,
            )
        }
        (None, Some(e)) => {
            let what = format!("the settings of {} that waited for an offline CPU", named(e));
            (format!("Would restore: {what}"), Some(format!("Restore {what}? [y/N]")), what)
        }
        (None, None) => ("Nothing to do: no transaction of this boot is unfinished.".into(), None, String::new()),
    };
    if a.write.dry_run {
        out::answer(&format!("{would}\n"))?;
        return Ok(Status::Ok);
    }
    if let Some(question) = question {
        can_go_on(&a.write, "recover")?;
        if !confirmed(&a.write, &question, &|| what.clone())? {
            return Err(Fail::refused("not_confirmed", "not confirmed; nothing was touched"));
        }
    }
    let policy = policy()?;
    let before = Default::default();
    let err = stderr_style(&style);
    let mut print = printer(&source.host, &before, &err, common.quiet, None);
    let outcome = ringwise_apply::recover(&source.host, &store, &policy, &mut print).map_err(|e| fail(&e))?;
    finish(&outcome, Run::Recover, a.format.json(common), &style)
}
