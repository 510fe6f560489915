//! Interrupt moderation: of the device (`ethtool -c`, COALESCE_GET; only supported parameters are in the reply), and
//! of each queue (`ethtool --per-queue`, an ioctl; its struct has all parameters, supported or not).

use std::collections::BTreeMap;

use ringwise_kfmt::ethtool_ioctl::perqueue;
use ringwise_kfmt::ethtool_nl::{self, msg};
use ringwise_model::errno::EINVAL;
use ringwise_model::{Coalesce, Fact, Nic};
use ringwise_sys::{Error, Host, IoctlCmd};

use crate::ethtool::{first, get, ioctl};
use crate::read::{Reader, failed, unread};

pub(crate) fn coalesce(r: &mut Reader, dev: &str) -> Fact<Coalesce> {
    get(r, dev, msg::COALESCE_GET, "coalesce-get", ethtool_nl::coalesce)
}

const WHAT: &str = "moderation of queues";

/// Moderation of the queues below `queues` (`ETHTOOL_PERQUEUE`): all in one call, or one by one if a queue refuses. An
/// answer does not prove that a value can be set: virtio_net answers with defaults if the device does not support
/// moderation. `of_device`: parameters that the driver has.
pub(crate) fn of_queues(
    r: &mut Reader,
    dev: &str,
    queues: Option<u32>,
    of_device: &Fact<Coalesce>,
) -> Fact<BTreeMap<u32, Coalesce>> {
    if of_device.is_absent() {
        return Fact::Absent;
    }
    let Some(queues) = queues else {
        return Fact::unknown(format!("{WHAT} {dev}"), "the number of its queues is unknown");
    };
    let all: Vec<u32> = (0..queues.min(perqueue::MAX_QUEUES)).collect();
    let found = match ask(r.host, dev, &all, of_device) {
        Ok(found) => Fact::Known(found),
        // The first queue alone, before all others: most drivers have no moderation of queues at all.
        Err(e) => match one(r.host, dev, 0, of_device) {
            Err(e) if e.is_absent() => Fact::Absent,
            Ok(_) if all.len() > 1 && e.errno.is_some() => single(r.host, dev, &all, of_device),
            Ok(only) => Fact::Known(only),
            Err(e) => Fact::Unknown(unread(&format!("{WHAT} {dev}"), &e)),
        },
    };
    match &found {
        // A recording of an earlier version: the reason is kept at this part only, not in the list of unread values.
        Fact::Unknown(u) if u.errno.is_none() && r.host.is_recorded() => found,
        _ => r.note(found),
    }
}

/// Queues that refuse have no moderation of their own. Any other error makes all of it unknown.
fn single(host: &dyn Host, dev: &str, all: &[u32], of_device: &Fact<Coalesce>) -> Fact<BTreeMap<u32, Coalesce>> {
    let mut out = BTreeMap::new();
    for q in all {
        match one(host, dev, *q, of_device) {
            Ok(found) => out.extend(found),
            Err(e) if e.is_absent() || e.errno == Some(EINVAL) => {}
            Err(e) => return Fact::Unknown(unread(&format!("{WHAT} {dev}"), &e)),
        }
    }
    Fact::Known(out)
}

/// Every value in the driver's struct for this queue, including parameters that the driver does not have.
///
/// Errors: those of the kernel, or the answer does not contain the queue.
pub fn queue_struct(host: &dyn Host, dev: &str, queue: u32) -> Result<Coalesce, Error> {
    let any = Fact::not_requested("coalesce-get");
    let what = || ioctl(dev, IoctlCmd::PerQueue, Vec::new()).to_string();
    one(host, dev, queue, &any)?
        .remove(&queue)
        .ok_or_else(|| Error::other(what(), "the answer does not contain the queue"))
}

fn one(host: &dyn Host, dev: &str, queue: u32, of_device: &Fact<Coalesce>) -> Result<BTreeMap<u32, Coalesce>, Error> {
    ask(host, dev, &[queue], of_device)
}

fn ask(
    host: &dyn Host,
    dev: &str,
    queues: &[u32],
    of_device: &Fact<Coalesce>,
) -> Result<BTreeMap<u32, Coalesce>, Error> {
    let request = ioctl(dev, IoctlCmd::PerQueue, perqueue::get_request(queues));
    let reply = host.kernel(&request)?;
    let decoded = first(&reply).and_then(perqueue::get);
    let mut found = decoded.map_err(|e| Error::other(request.to_string(), e.to_string()))?;
    if let Fact::Known(have) = of_device {
        found.values_mut().for_each(|c| c.0.retain(|name, _| have.0.contains_key(name)));
    }
    Ok(found)
}

/// Existing queues: the driver's counts, otherwise the directories. `None`: neither could be read, or they contain no
/// queue.
pub(crate) fn queue_count(channels: &Fact<ringwise_model::Channels>, rx: usize, tx: usize) -> Option<u32> {
    let reported = channels.known().map(|c| c.rx_queues().max(c.tx_queues()));
    let listed = Some(rx.max(tx) as u32);
    reported.filter(|n| *n > 0).or(listed.filter(|n| *n > 0))
}

/// The moderation of the device and of its queues, read again into `nic`.
pub(crate) fn again(r: &mut Reader, nic: &mut Nic) {
    let queues = queue_count(&nic.channels, nic.rx_queues.len(), nic.tx_queues.len());
    nic.coalesce = coalesce(r, &nic.dev.name);
    nic.queue_coalesce = of_queues(r, &nic.dev.name, queues, &nic.coalesce);
}

/// Moderation of one queue, and of the device, which on some drivers shows that of the first queue.
pub(crate) fn queue_again(r: &mut Reader, nic: &mut Nic, queue: u32) {
    nic.coalesce = coalesce(r, &nic.dev.name);
    let found = one(r.host, &nic.dev.name, queue, &nic.coalesce);
    match (found, &mut nic.queue_coalesce) {
        (Ok(found), Fact::Known(all)) => all.extend(found),
        (Ok(found), other) => *other = Fact::Known(found),
        (Err(e), Fact::Known(all)) if e.is_absent() => _ = all.remove(&queue),
        (Err(e), other) => {
            *other = failed(&format!("{WHAT} {}", nic.dev.name), &e);
        }
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::{Channels, Count};
    use ringwise_testkit::machines::{self, NicSpec};
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    #[test]
    fn queues_that_nothing_counts_are_unknown() {
        let channels = |n: Option<u32>| {
            let combined = n.map(|now| Count { now, max: 8 });
            Fact::Known(Channels { rx: None, tx: None, combined, other: None })
        };
        let unread = || Fact::unknown("channels-get eth0", "not in this recording");
        assert_eq!(queue_count(&channels(Some(4)), 8, 8), Some(4));
        assert_eq!(queue_count(&channels(None), 0, 2), Some(2), "a driver that counts only other channels");
        assert_eq!((queue_count(&unread(), 3, 0), queue_count(&unread(), 0, 0)), (Some(3), None));
        let nic = NicSpec::new("eth0", "ice", Some(0), 2, 2);
        let spec = machines::host("one", CpuSpec::flat(2, 1), vec![nic]);
        let host = ringwise_testkit::sim::Sim::new(&spec.snapshot());
        let mut r = Reader::new(&host);
        let device = Fact::Known(Coalesce([("rx-usecs".to_string(), 5)].into()));
        let found = of_queues(&mut r, "eth0", None, &device);
        assert_eq!(found, Fact::unknown("moderation of queues eth0", "the number of its queues is unknown"));
        assert_eq!(of_queues(&mut r, "eth0", None, &Fact::Absent), Fact::Absent);
    }
}
