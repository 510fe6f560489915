//! What would have to be read to compare the host with what was applied: told before anything is read.
use std::collections::BTreeSet;

use ringwise_knob::Family;

use crate::Error;
use crate::journal::Read;
use crate::store::Store;

/// Families of the settings of every transaction in the state directory, also of those that are not in force
/// any more: too much is read then, never too little.
///
/// Errors: the state directory cannot be read.
pub fn families(store: &Store) -> Result<BTreeSet<Family>, Error> {
    Ok(of(&Read::all(store)?))
}

pub(crate) fn of(journals: &[Read]) -> BTreeSet<Family> {
    let headers = journals.iter().filter_map(|j| j.header.as_ref());
    // What took the place of a step is owned too.
    headers
        .flat_map(|h| crate::fallback::settings(&h.steps))
        .filter_map(|s| s.address())
        .map(|a| a.family())
        .collect::<BTreeSet<_>>()
}
