//! The findings of `check` for callers that evaluate them repeatedly.

use std::path::Path;

use ringwise_check::accept::Baseline;
use ringwise_check::{Report, Severity};
use ringwise_export::Findings;
use ringwise_observe::Rates;

use super::{ACCEPTED, judged, today, traffic};
use crate::args::Common;
use crate::cmd::show;
use crate::exit::{Fail, Result};
use crate::source::Source;

/// The findings of `ringwise check` on this host now, without accepted ones. Rules about rates are skipped if
/// `rates` is missing.
pub(crate) fn findings(source: &Source, devs: &[String], rates: Option<&Rates>, common: &Common) -> Result<Findings> {
    let s = source.snapshot(&traffic::options(devs), common)?;
    let devs = show::names_in(source, &s, devs)?;
    let counted = rates.map(traffic::without_threads);
    let mut r = judged(None, source, &s, &devs, counted.as_ref(), common)?;
    accepted()?.apply_to(&mut r, &today()?);
    Ok(numbers(&r, source.host.unix_time()))
}

fn accepted() -> Result<Baseline> {
    match std::fs::read_to_string(Path::new(ACCEPTED)) {
        Ok(text) => Baseline::parse(&text).map_err(|e| Fail::error(format!("{ACCEPTED}: {e}"))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Baseline::default()),
        Err(e) => Err(Fail::error(format!("{ACCEPTED}: {e}"))),
    }
}

fn numbers(r: &Report, unix_time: u64) -> Findings {
    let mut unread: Vec<&str> = r.unreadable.iter().map(|u| u.rule.as_str()).collect();
    unread.sort();
    unread.dedup();
    Findings {
        unix_time,
        by_severity: Severity::ALL.map(|s| (s.name(), r.count(s) as u64)),
        unread_rules: unread.len() as u64,
        skipped_rules: r.not_evaluated.len() as u64,
    }
}
