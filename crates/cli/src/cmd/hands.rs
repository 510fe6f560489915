//! What somebody else has set on this host, and what is to become of it.

use std::collections::BTreeSet;

use ringwise_apply::{Store, Verify};
use ringwise_knob::{Hand, Made, Origin};
use ringwise_model::Snapshot;
use ringwise_plan::Hands;

use super::transaction::{store, words};
use crate::args::Common;
use crate::exit::{Fail, Result};
use crate::out;
use crate::source::Source;
use ringwise_render::hands::{self as page, Evidence};
use ringwise_text::Style;

/// What a plan does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// Adopted stays; the rest is part of the plan, and marked.
    Ask,
    /// All of it stays.
    Keep,
    /// Adopted stays, the rest does not; marked as with `Ask`.
    Changed,
    /// Nothing stays.
    Over,
}

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

pub(super) fn hands(list: &[Hand], made: Vec<Made>, take: Take) -> Hands {
    let (adopted, changed): (Vec<Hand>, Vec<Hand>) = list.iter().cloned().partition(|h| h.origin == Origin::Adopted);
    match take {
        Take::Ask | Take::Changed => Hands { keep: adopted, mark: changed, made },
        Take::Keep => Hands { keep: list.to_vec(), mark: Vec::new(), made },
        Take::Over => Hands { keep: Vec::new(), mark: list.to_vec(), made },
    }
}

/// Without what devices have that were set up anew since we wrote to them: their drivers chose it, and nobody else.
pub(super) fn chosen(list: Vec<Hand>, s: &Snapshot, common: &Common) -> Vec<Hand> {
    let anew = ringwise_apply::set_up_anew(&store(common), s).unwrap_or_default();
    let of = |h: &Hand| h.address().and_then(|a| a.dev().map(str::to_string));
    list.into_iter().filter(|h| !of(h).is_some_and(|d| anew.contains(&d))).collect()
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

#[cfg(test)]
mod tests {
    use ringwise_knob::Setting;

    use super::*;

    fn hand(origin: Origin, queue: u32) -> Hand {
        let setting = Setting::XpsCpus { dev: "eth2".into(), queue, cpus: "12".parse().unwrap() };
        let applied = Setting::XpsCpus { dev: "eth2".into(), queue, cpus: "14".parse().unwrap() };
        Hand { origin, setting, applied, transaction: 12, changed: None }
    }

    #[test]
    fn what_stays_and_what_is_marked() {
        let list = [hand(Origin::ByHand, 1), hand(Origin::Adopted, 2)];
        let queues = |h: &[Hand]| h.iter().map(|h| h.address().unwrap().to_string()).collect::<Vec<_>>();
        for (take, keep, mark) in [
            (Take::Ask, &["eth2 tx-2 xps_cpus"][..], &["eth2 tx-1 xps_cpus"][..]),
            (Take::Changed, &["eth2 tx-2 xps_cpus"], &["eth2 tx-1 xps_cpus"]),
            (Take::Keep, &["eth2 tx-1 xps_cpus", "eth2 tx-2 xps_cpus"], &[]),
            (Take::Over, &[], &["eth2 tx-1 xps_cpus", "eth2 tx-2 xps_cpus"]),
        ] {
            let h = hands(&list, Vec::new(), take);
            assert_eq!(
                (queues(&h.keep), queues(&h.mark)),
                (keep.iter().map(ToString::to_string).collect(), mark.iter().map(ToString::to_string).collect()),
                "{take:?}"
            );
        }
    }
}
