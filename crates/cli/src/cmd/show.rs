//! `ringwise show`

use std::path::Path;

use ringwise_discover::{Options, Parts};
use ringwise_model::Snapshot;

use super::named::named;
use super::{status, svg};
use crate::args::{Common, ShowArgs, SourceArgs};
use crate::exit::{Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_render::{compare, json, show, table};
use ringwise_text as text;
use ringwise_text::Style;

pub(super) fn run(a: &ShowArgs, common: &Common) -> Result<Status> {
    if let Some(file) = &a.svg {
        return svg::run(file, a, common);
    }
    let source = source::open(&a.from)?;
    if let Some(old) = &a.compare {
        return compared(a, old, &source, common);
    }
    let options = Options { parts: Parts::ALL, ..Options::only(&a.devs) };
    let s = source.snapshot(&options, common)?;
    let nics = named(&s, &a.devs)?;
    if a.format.json(common) {
        out::json(&json::snapshot(&s, &a.devs))?;
        return Ok(Status::Ok);
    }
    let style = Style { raw: a.raw, ..crate::style::detect(common) }.about(&source.recording);
    if !a.devs.is_empty() {
        let remark = source.remark_on(nics.iter().copied(), style.width);
        let better_goal = status::better_goal(&source, common);
        out::answer(&(show::devices(&s, &nics, better_goal, &style) + &remark))?;
        return Ok(Status::Ok);
    }
    let mut page = text::host_line(&s, style.width);
    page.push('\n');
    page.push_str(&table::interfaces(&s, &Default::default(), a.all, &style));
    let first = s.nics.iter().find(|n| text::is_listed(n) && n.has_own_queues());
    if let Some(n) = first {
        page.push_str(&format!("\nNext: {}\n", style.recording.reads(format!("ringwise show {}", n.name()))));
    }
    page.push_str(&source.remark_on(s.nics.iter().filter(|n| text::is_listed(n)), style.width));
    out::answer(&page)?;
    Ok(Status::Ok)
}

/// Shows what differs from an earlier capture.
fn compared(a: &ShowArgs, old: &Path, source: &Source, common: &Common) -> Result<Status> {
    let before = source::open(&SourceArgs { from: Some(old.to_path_buf()), ..SourceArgs::default() })?;
    let options = Options { parts: Parts::ALL, ..Options::all() };
    let (then, now) = (before.snapshot(&options, common)?, source.snapshot(&options, common)?);
    let own =
        |s: &Snapshot| s.nics.iter().filter(|n| n.has_own_queues()).map(|n| n.name().to_string()).collect::<Vec<_>>();
    let devs = match a.devs.is_empty() {
        true => {
            let mut all = [own(&now), own(&then)].concat();
            all.sort_by(|a, b| ringwise_model::natural::compare(a, b));
            all.dedup();
            all
        }
        // An interface that is gone can still be named.
        false => a.devs.iter().map(|d| known(d, source, &now, &then)).collect::<Result<_>>()?,
    };
    let name = |from: &SourceArgs| from.from.as_ref().map_or("this host".to_string(), |f| f.display().to_string());
    let (old, new) = (old.display().to_string(), name(&a.from));
    let both =
        [compare::ComparedSide { source: &old, host: &then }, compare::ComparedSide { source: &new, host: &now }];
    if a.format.json(common) {
        out::json(&compare::sides_json(&both, &devs))?;
    } else {
        let style = Style { raw: a.raw, ..crate::style::detect(common) };
        out::answer(&compare::sides(&both, &devs, !a.devs.is_empty(), &style))?;
    }
    Ok(Status::Ok)
}

fn known(dev: &str, source: &Source, now: &Snapshot, then: &Snapshot) -> Result<String> {
    match then.nic(dev) {
        Some(n) => Ok(n.name().to_string()),
        None => Ok(names_in(source, now, &[dev.to_string()])?.remove(0)),
    }
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
