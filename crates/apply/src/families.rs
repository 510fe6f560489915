//! Which families of settings have to be read to compare the host with what was applied. This is known before anything is read.
use std::collections::BTreeSet;

use ringwise_discover::Parts;
use ringwise_knob::{Family, Setting};

use crate::Error;
use crate::journal::Read;
use crate::store::Store;

/// Families of the settings of every transaction in the state directory, including those that are not in effect any more: this
/// may read too much, but never too little.
///
/// Errors: the state directory cannot be read.
pub fn families(store: &Store) -> Result<BTreeSet<Family>, Error> {
    Ok(of(Read::all(store)?.iter()))
}

pub(crate) fn of<'a>(journals: impl Iterator<Item = &'a Read>) -> BTreeSet<Family> {
    let headers = journals.filter_map(|j| j.header.as_ref());
    // Replacements of a step are managed by ringwise too.
    headers
        .flat_map(|h| crate::fallback::settings(&h.steps).chain(&h.already))
        .filter_map(Setting::address)
        .map(|a| a.family())
        .collect::<BTreeSet<_>>()
}

/// The parts of a host that must be read to compare settings of these families.
pub fn parts(families: &BTreeSet<Family>) -> Parts {
    let mut parts = Parts::LEAST;
    for family in families {
        match family {
            Family::Rivals | Family::Channels => {}
            Family::Features => parts.features = true,
            Family::Pause => parts.pause = true,
            Family::Rules => (parts.rules, parts.features) = (true, true),
            Family::Napi => parts.napi = true,
            Family::Host => parts.host = true,
            Family::Rings => parts.rings = true,
            Family::Coalesce => (parts.coalesce, parts.queue_coalesce) = (true, true),
            Family::Rss => parts.rss = true,
            Family::Irq => parts.asked = true,
            Family::Xps | Family::Rps | Family::Rfs => parts.steering = true,
        }
    }
    parts
}
