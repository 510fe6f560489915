//! `ringwise history`

use super::transaction::{fail, state_dir_missing, store};
use crate::args::{Common, HistoryArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source;
use ringwise_render::json::Document;
use ringwise_render::verify_history;

pub(super) fn run(a: &HistoryArgs, common: &Common) -> Result<Status> {
    if let Some(missing) = state_dir_missing(common) {
        return Err(missing);
    }
    let source = source::live()?;
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let mut list = ringwise_apply::history(&store(common), &host).map_err(|e| fail(&e))?;
    if let Some(id) = a.id {
        list.retain(|e| e.id == id);
        if list.is_empty() {
            return Err(Fail::error(format!("there is no transaction {id}"))
                .code("unknown_transaction")
                .next("ringwise history"));
        }
    }
    if a.format.json(common) {
        let body = serde_json::json!({ "transactions": list });
        out::json(&Document { schema: "ringwise.history", version: 1, body })?;
        return Ok(Status::Ok);
    }
    let style = crate::style::detect(common);
    let text = match (a.id, list.first()) {
        (Some(_), Some(e)) => verify_history::entry(e, &style),
        _ => verify_history::history(&list, a.all, &style),
    };
    out::answer(&text)?;
    Ok(Status::Ok)
}
