//! Manual changes on this host, and the question about them.

use std::collections::BTreeSet;

use ringwise_apply::{Store, Verify};
use ringwise_intent::ManualChangePolicy;
use ringwise_knob::ManualChange;
use ringwise_model::Snapshot;

use super::transaction::{store, words};
use crate::args::Common;
use crate::exit::{Fail, Result};
use crate::out;
use crate::source::Source;
use ringwise_render::manual_changes::{self as page, DriftEvidence};
use ringwise_text::Style;

/// Compares the settings in effect with the host, and remembers this comparison. `None`: a recording, or the record
/// cannot be read.
pub(super) fn standing(source: &Source, s: &Snapshot, common: &Common) -> Option<Verify> {
    if source.recorded {
        return None;
    }
    let store = store(common);
    match ringwise_apply::verify_in(s, &store) {
        Ok(mut v) => {
            ringwise_apply::note_seen(&store, s, &mut v, source.host.unix_time());
            Some(v)
        }
        Err(e) => {
            let text = format!("ringwise: manual changes could not be looked for: {}", words(&e));
            out::note(common.quiet, &text);
            None
        }
    }
}

/// Facts beside the differing settings, to guess which program changed them.
pub(super) fn evidence(source: &Source, s: &Snapshot, v: &Verify, store: &Store) -> DriftEvidence {
    let devs: BTreeSet<String> = v.drifted().filter_map(|d| d.want.address()?.dev().map(str::to_string)).collect();
    if devs.is_empty() || source.recorded {
        return DriftEvidence::default();
    }
    let happened = |d: String| ringwise_apply::drift_cause(store, s, &d).map(|h| (d, h));
    let rivals = ringwise_discover::competing_programs(source.host.as_ref()).known().cloned();
    DriftEvidence { devices: devs.into_iter().filter_map(happened).collect(), rivals }
}

/// Asks whether the plan may undo manual changes.
pub(super) fn ask(list: &[ManualChange], style: &Style) -> Result<ManualChangePolicy> {
    let text = page::question(list, style);
    match super::transaction::answer(&text, &["k", "keep", "t", "take", "take over", ""])?.as_deref() {
        Some("k" | "keep" | "") => Ok(ManualChangePolicy::Keep),
        Some("t" | "take" | "take over") => Ok(ManualChangePolicy::Changed),
        _ => Err(Fail::refused("not_confirmed", "not confirmed; nothing was touched")),
    }
}
