//! `ringwise show DEV --svg FILE`

use std::path::Path;

use ringwise_discover::Options;
use ringwise_model::Nic;
use ringwise_sys::store;

use super::named::named;
use crate::args::{Common, ShowArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source;
use ringwise_render::svg;

pub(super) fn run(file: &Path, a: &ShowArgs, common: &Common) -> Result<Status> {
    if common.json {
        return Err(Fail::usage("--svg and --json cannot be combined: choose one output format"));
    }
    if a.devs.is_empty() {
        return Err(Fail::usage("--svg needs the name of an interface (ringwise show lists them)")
            .next(format!("ringwise show DEV --svg {}", file.display())));
    }
    let source = source::open(&a.from)?;
    let s = source.snapshot(&Options::only(&a.devs), common)?;
    let nics = named(&s, &a.devs)?;
    if let Some(n) = nics.iter().find(|n| n.rx_queues.is_empty() && n.tx_queues.is_empty()) {
        return Err(Fail::error(format!("{} has no known queues, so there is nothing to draw", n.name())));
    }
    let text = svg::render(&s, &nics);
    if file == Path::new("-") {
        out::file(&text)?;
        return Ok(Status::Ok);
    }
    store::write_shared(file, text.as_bytes()).map_err(Fail::from)?;
    let names: Vec<&str> = nics.iter().map(|n| Nic::name(n)).collect();
    out::note(common.quiet, &format!("ringwise: {} drawn into {}", names.join(" "), file.display()));
    Ok(Status::Ok)
}
