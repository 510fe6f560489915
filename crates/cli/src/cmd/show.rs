//! `ringwise show`

use ringwise_discover::{Options, Parts};
use ringwise_model::Snapshot;

use super::named::named;
use super::svg;
use crate::args::{Common, ShowArgs};
use crate::exit::{Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_render::{json, show, table};
use ringwise_text as text;
use ringwise_text::Style;

pub(super) fn run(a: &ShowArgs, common: &Common) -> Result<Status> {
    if let Some(file) = &a.svg {
        return svg::run(file, a, common);
    }
    let source = source::open(&a.from)?;
    let options = Options { parts: Parts::ALL, ..Options::only(&a.devs) };
    let s = source.snapshot(&options, common)?;
    let nics = named(&s, &a.devs)?;
    if a.format.json(common) {
        out::json(&json::snapshot(&s, &a.devs))?;
        return Ok(Status::Ok);
    }
    let style = Style { raw: a.raw, ..crate::style::detect(common) }.about(&source.recording);
    if !a.devs.is_empty() {
        out::answer(&show::devices(&s, &nics, &style))?;
        return Ok(Status::Ok);
    }
    let mut page = text::host_line(&s, style.width);
    page.push('\n');
    page.push_str(&table::interfaces(&s, &Default::default(), a.all, &style));
    let first = s.nics.iter().find(|n| text::is_listed(n) && n.has_own_queues());
    if let Some(n) = first {
        page.push_str(&format!("\nNext: {}\n", style.recording.reads(format!("ringwise show {}", n.name()))));
    }
    out::answer(&page)?;
    Ok(Status::Ok)
}

/// Finds interfaces by name or alternative name in a snapshot of the whole host.
pub(super) fn names_in(source: &Source, s: &Snapshot, devs: &[String]) -> Result<Vec<String>> {
    let labelled = |d: &String| s.nics.iter().find(|n| n.labels.contains(d));
    let name = |d: &String| match s.nic(d).or_else(|| labelled(d)) {
        Some(n) => Ok(n.name().to_string()),
        None => Err(source.no_such_device(d, s)),
    };
    devs.iter().map(name).collect()
}
