//! Which families of settings have to be read to compare the host with what was applied. This is known before anything is read.
use std::collections::BTreeSet;

use ringwise_knob::Family;

use crate::Error;
use crate::journal::Read;
use crate::store::Store;

/// Families of the settings of every transaction in the state directory, including those that are not in effect any more: this
/// may read too much, but never too little.
///
/// Errors: the state directory cannot be read.
pub fn families(store: &Store) -> Result<BTreeSet<Family>, Error> {
    Ok(of(&Read::all(store)?))
}

pub(crate) fn of(journals: &[Read]) -> BTreeSet<Family> {
    let headers = journals.iter().filter_map(|j| j.header.as_ref());
    // Replacements of a step are managed by ringwise too.
    headers
        .flat_map(|h| crate::fallback::settings(&h.steps))
        .filter_map(|s| s.address())
        .map(|a| a.family())
        .collect::<BTreeSet<_>>()
}
