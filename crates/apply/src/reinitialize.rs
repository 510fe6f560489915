//! Devices that were set up again since a transaction in effect last wrote to them.

use std::collections::BTreeSet;

use ringwise_model::{DevId, Snapshot};

use crate::journal::{JournalOrigin, Read};
use crate::outcome::RunResult;
use crate::{Error, Store};

/// Names of interfaces whose index differs from that in the last transaction of this boot that changed them: the device was
/// unbound or unplugged, or the driver was reloaded. Their present values are the driver's defaults, not a choice of the user.
pub fn reinitialized(store: &Store, now: &Snapshot) -> Result<BTreeSet<String>, Error> {
    Ok(in_journals(&Read::all(store)?, now))
}

pub(crate) fn in_journals(journals: &[Read], now: &Snapshot) -> BTreeSet<String> {
    let ours = journals.iter().filter(|j| j.whose(&now.host) == JournalOrigin::ThisBoot);
    let kept = ours.filter(|j| j.end.as_ref().is_some_and(|(o, _)| o.verdict == RunResult::Applied));
    let devices: Vec<&DevId> = kept.filter_map(|j| j.header.as_ref()).flat_map(|h| &h.devices).collect();
    of(&devices, now)
}

fn of(devices: &[&DevId], now: &Snapshot) -> BTreeSet<String> {
    let anew = |n: &&ringwise_model::Nic| {
        let last = devices.iter().rev().find(|d| d.same_device(&n.dev));
        last.is_some_and(|d| d.ifindex.is_some() && d.ifindex != n.dev.ifindex)
    };
    now.nics.iter().filter(anew).map(|n| n.name().to_string()).collect::<BTreeSet<_>>()
}

#[cfg(test)]
mod tests {
    use ringwise_model::IfIndex;

    use super::*;

    #[test]
    fn another_index_of_the_same_device() {
        let mut now = ringwise_testkit::machines::ten()[0].snapshot();
        let nic = now.nics.iter_mut().find(|n| n.has_own_queues()).expect("an interface");
        nic.dev.ifindex = Some(IfIndex(9));
        nic.dev.permanent_mac = Some("52:54:00:00:00:77".into());
        let (name, dev) = (nic.dev.name.clone(), nic.dev.clone());
        let was = |i: u32| DevId { ifindex: Some(IfIndex(i)), name: "before".into(), ..dev.clone() };
        assert_eq!(of(&[&was(4)], &now), BTreeSet::from([name]), "also under another name");
        // A later transaction wrote to it.
        assert!(of(&[&was(4), &was(9)], &now).is_empty());
        let other = DevId { permanent_mac: Some("52:54:00:00:00:78".into()), ..was(4) };
        assert!(of(&[&other], &now).is_empty(), "another device in its slot");
        assert!(of(&[], &now).is_empty());
    }
}
