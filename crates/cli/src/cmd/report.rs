//! `ringwise report --since ID`: compares the counters before and after a transaction that was applied with
//! `--measure`.

use std::path::Path;

use ringwise_apply::{Ending, HistoryEntry};
use ringwise_observe::{Rates, WindowComparison};
use ringwise_recording::measured::{self, Measured, MeasuredWindow};
use ringwise_sys::store as file;

use super::counting::follow;
use super::transaction::{fail, store};
use crate::args::{Common, ReportArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_render::report::{self as page, Span, TransactionReport};

pub(super) fn run(a: &ReportArgs, common: &Common) -> Result<Status> {
    if a.html.is_some() && common.json {
        return Err(Fail::usage("--html and --json cannot be combined: choose one output format"));
    }
    let source = source::live()?;
    let report = make(&source, common, a.since)?;
    let style = crate::style::detect(common);
    match &a.html {
        Some(path) if path == Path::new("-") => out::answer(&page::html(&report, &style))?,
        Some(path) => {
            let text = page::html(&report, &style);
            file::write_shared(path, text.as_bytes()).map_err(Fail::from)?;
            out::note(common.quiet, &format!("ringwise: transaction {} reported in {}", a.since, path.display()));
        }
        None if a.format.json(common) => out::json(&page::json(&report))?,
        None => out::answer(&page::text(&report, &style))?,
    }
    Ok(Status::Ok)
}

/// Prints the comparison at the end of `apply --measure`.
pub(super) fn print(source: &Source, common: &Common, id: u64) -> Result<()> {
    out::answer(&page::text(&make(source, common, id)?, &crate::style::detect(common)))
}

fn make(source: &Source, common: &Common, id: u64) -> Result<TransactionReport> {
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    let list = ringwise_apply::history(&store(common), &host).map_err(|e| fail(&e))?;
    let at = list.iter().position(|e| e.id == id);
    let at = at.ok_or_else(|| {
        Fail::error(format!("there is no transaction {id}")).code("unknown_transaction").next("ringwise history")
    })?;
    let entry = &list[at];
    let mut m = measured_beside(&entry.path, id)?;
    let mut notes: Vec<String> = std::mem::take(&mut m.notes);
    let in_effect = matches!(entry.ending, Ending::Kept | Ending::OnTrial { .. }) && entry.undone_by.is_none();
    let mut until_now = false;
    if let Some(w) = &mut m.after
        && w.last.is_none()
    {
        // The second window was not measured to its end. The current counters replace it if the host has not rebooted
        // and the transaction is still in effect.
        if in_effect && entry.this_boot {
            w.last = Some(now(source, common, w)?);
            until_now = true;
        } else {
            notes.push("the second window was not measured to its end".into());
        }
    }
    if matches!(entry.ending, Ending::OnTrial { .. }) {
        notes.push("the transaction is on trial and not confirmed yet".into());
    }
    let rates = |w: &MeasuredWindow| Rates::between(&w.layout, &w.first, w.last.as_ref()?);
    let before = rates(&m.before).ok_or_else(|| Fail::error("the first window contains no samples"))?;
    let after = m.after.as_ref().and_then(|w| Some((w, rates(w)?)));
    if after.is_none() {
        notes.push("there is no window after".into());
    }
    if let Some((w, _)) = &after {
        let end = w.last.as_ref().map_or(0, |c| c.unix_time);
        let later: Vec<String> =
            list[at + 1..].iter().filter(|e| e.unix_time <= end).map(|e| e.id.to_string()).collect();
        if !later.is_empty() {
            notes.push(format!("transactions during the window after: {}", later.join(", ")));
        }
    }
    let comparison = WindowComparison::of(&before, after.as_ref().map(|a| &a.1));
    notes.extend(comparison.notes.iter().cloned());
    let span = |w: &MeasuredWindow, r: &Rates| Span { from_unix: w.first.unix_time, seconds: r.seconds };
    Ok(TransactionReport {
        host: m.host.clone(),
        transaction: id,
        title: entry.title.to_string(),
        reason: entry.reason.clone(),
        unix_time: entry.unix_time,
        state: state(entry),
        before: span(&m.before, &before),
        after: after.as_ref().map(|(w, r)| span(w, r)),
        until_now,
        comparison,
        notes,
    })
}

/// The counters that were stored beside this journal.
pub(super) fn measured_beside(journal: &Path, id: u64) -> Result<Measured> {
    let path = measured::file_beside_journal(journal, id);
    if !path.exists() {
        return Err(Fail::error(format!(
            "transaction {id} was not measured, or its measurement was deleted since: {} does not exist",
            path.display()
        ))
        .next("ringwise apply --measure 5m, for the next transaction"));
    }
    Ok(measured::read(&path)?)
}

/// The current counters of the devices in the window.
fn now(source: &Source, common: &Common, w: &MeasuredWindow) -> Result<ringwise_observe::Counters> {
    let there = ringwise_observe::interfaces(source.host.as_ref());
    let devs: Vec<String> = w.layout.links.keys().filter(|d| there.contains(d)).cloned().collect();
    if devs.is_empty() {
        return Err(Fail::error("none of the measured interfaces exists any more"));
    }
    Ok(follow(source, &devs, &Common { quiet: true, ..common.clone() }, false)?.0.read())
}

fn state(e: &HistoryEntry) -> &'static str {
    match (&e.ending, e.undone_by) {
        (_, Some(_)) => "rolled back",
        (Ending::Kept, _) => "kept",
        (Ending::OnTrial { .. }, _) => "on trial",
        (Ending::PutBack | Ending::Closed { .. }, _) => "restored",
        (Ending::PutBackIncomplete, _) => "not fully restored",
        (Ending::Unfinished | Ending::Running { .. }, _) => "unfinished",
    }
}
