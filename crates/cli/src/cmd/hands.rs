//! What was changed on this host outside ringwise, and the question about it.

use std::collections::BTreeSet;

use ringwise_apply::{Store, Verify};
use ringwise_intent::Take;
use ringwise_knob::Hand;
use ringwise_model::Snapshot;

use super::transaction::{store, words};
use crate::args::Common;
use crate::exit::{Fail, Result};
use crate::out;
use crate::source::Source;
use ringwise_render::hands::{self as page, Evidence};
use ringwise_text::Style;

/// How the settings in force stand, with this look remembered. `None`: a recording, or the record cannot be read.
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
            let text = format!("ringwise: what was changed by hand is not known: {}", words(&e));
            out::note(common.quiet, &text);
            None
        }
    }
}

/// What is seen beside the settings that differ, for a guess at who it was.
pub(super) fn evidence(source: &Source, s: &Snapshot, v: &Verify, store: &Store) -> Evidence {
    let devs: BTreeSet<String> = v.drifted().filter_map(|d| d.want.address()?.dev().map(str::to_string)).collect();
    if devs.is_empty() || source.recorded {
        return Evidence::default();
    }
    let happened = |d: String| ringwise_apply::happened(store, s, &d).map(|h| (d, h));
    let rivals = ringwise_discover::rivals(source.host.as_ref()).known().cloned();
    Evidence { devices: devs.into_iter().filter_map(happened).collect(), rivals }
}

/// Asks what is to become of changes that the plan would undo.
pub(super) fn ask(list: &[Hand], style: &Style) -> Result<Take> {
    let text = page::question(list, style);
    match super::transaction::answer(&text, &["k", "keep", "t", "take", "take over", ""])?.as_deref() {
        Some("k" | "keep" | "") => Ok(Take::Keep),
        Some("t" | "take" | "take over") => Ok(Take::Changed),
        _ => Err(Fail::refused("not confirmed; nothing was touched")),
    }
}
