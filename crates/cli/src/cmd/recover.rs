//! `ringwise recover`

use super::transaction::{can_go_on, confirmed, fail, finish, policy, printer, stderr_style, store};
use crate::args::{Common, RecoverArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::render::standing::to_recover;
use crate::source;
use crate::style::Style;

pub fn run(a: &RecoverArgs, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let style = Style::detect(common);
    let store = store(common);
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let list = ringwise_apply::history(&store, &host).map_err(|e| fail(&e))?;
    let open = to_recover(&list);
    let what = match open {
        Some(e) => format!("transaction {} ({})", e.id, e.title),
        None => "no transaction of this boot is unfinished".into(),
    };
    if a.write.dry_run {
        out::answer(&if open.is_none() {
            format!("Nothing to do: {what}.\n")
        } else {
            format!("Would put back: {what}\n")
        })?;
        return Ok(Status::Ok);
    }
    if open.is_some() {
        can_go_on(&a.write, "recover")?;
        let question = format!("Put the host back to before {what}? [y/N]");
        if !confirmed(&a.write, &question, &|| what.clone())? {
            return Err(Fail::refused("not confirmed; nothing was touched"));
        }
    }
    let policy = policy()?;
    let before = Default::default();
    let err = stderr_style(&style);
    let mut print = printer(&source.host, &before, &err, common.quiet, None);
    let outcome = ringwise_apply::recover(&source.host, &store, &policy, &mut print).map_err(|e| fail(&e))?;
    finish(&outcome, "Recovered", a.format.json(common), &style)
}
