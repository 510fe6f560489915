//! Interfaces that the command line names.

use ringwise_model::{Nic, Snapshot};

use crate::exit::{Fail, Result};

/// The devices as named; discovery resolves alternative names.
pub(super) fn named<'a>(s: &'a Snapshot, devs: &[String]) -> Result<Vec<&'a Nic>> {
    let mut out: Vec<&Nic> = Vec::new();
    for d in devs {
        match s.nic(d) {
            Some(n) if out.iter().any(|o| o.name() == n.name()) => {}
            Some(n) => out.push(n),
            // The name is an alternative name: discovery has read exactly this interface.
            None if devs.len() == 1 && !s.nics.is_empty() => out.push(&s.nics[0]),
            None => {
                let have: Vec<&str> = s.nics.iter().map(Nic::name).collect();
                return Err(Fail::error(format!(
                    "{d} is an alternative name of one of {}: use the main name",
                    have.join(" ")
                )));
            }
        }
    }
    Ok(out)
}
