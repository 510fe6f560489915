//! `ringwise learned`: what devices were found to refuse or ignore.

use ringwise_apply::Error;
use serde_json::json;

use super::transaction::{fail, store};
use crate::args::{Common, LearnedArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use ringwise_render::json::Document;
use ringwise_render::learned;

pub(super) fn run(a: &LearnedArgs, common: &Common) -> Result<Status> {
    let store = store(common);
    let mut list = match store.learned() {
        // A damaged file can be removed as a whole.
        Err(Error::Damaged { .. }) if a.forget && a.devs.is_empty() => Vec::new(),
        other => other.map_err(|e| fail(&e))?,
    };
    list.retain(|l| a.devs.is_empty() || a.devs.contains(&l.device.name));
    if let Some(d) = a.devs.iter().find(|d| !list.iter().any(|l| l.device.name == **d)) {
        return Err(Fail::error(format!("nothing was learned about {d}"))
            .code("nothing_learned")
            .next("ringwise learned"));
    }
    if a.forget {
        list = store.forget(&a.devs).map_err(|e| fail(&e))?;
    }
    if a.format.json(common) {
        let body = json!({ "learned": list, "forgotten": a.forget });
        out::json(&Document { schema: "ringwise.learned", version: 1, body })?;
        return Ok(Status::Ok);
    }
    out::answer(&learned::text(&list, a.forget, ringwise_sys::errno_text, &crate::style::detect(common)))?;
    Ok(Status::Ok)
}
