//! Interrupt moderation of devices and of queues.

use std::collections::BTreeMap;

use ringwise_kfmt::ethtool_ioctl::perqueue;
use ringwise_model::errno::{EINVAL, ENODEV, EOPNOTSUPP, ERANGE};
use ringwise_model::{Coalesce, Fact, Nic};
use ringwise_sys::{Error, Result};

use super::State;
use super::driver_kind::{Quirk, SimulatedDriver};

fn no(errno: i32) -> Error {
    Error::errno("", errno)
}

fn words(errno: i32, words: &str) -> Error {
    Error { words: Some(words.to_string()), ..no(errno) }
}

/// Those that the struct for single queues has.
fn own(c: &Coalesce) -> Coalesce {
    Coalesce(c.0.iter().filter(|(k, _)| perqueue::is_parameter(k)).map(|(k, v)| (k.clone(), *v)).collect())
}

/// Parameters that every queue of the device begins with.
pub(super) fn of_queues(
    driver: SimulatedDriver,
    coalesce: &Fact<Coalesce>,
    queues: u32,
) -> Fact<BTreeMap<u32, Coalesce>> {
    match (driver, coalesce) {
        // lab: "virtio: each queue answers" (drivers/net/virtio_net.c, virtnet_get_per_queue_coalesce)
        (SimulatedDriver::Mqnic | SimulatedDriver::Virtio, Fact::Known(c)) => {
            Fact::Known((0..queues).map(|q| (q, own(c))).collect())
        }
        _ => Fact::Absent,
    }
}

/// igb with one interrupt for both directions reports no transmit time, otherwise the receive time until it is set.
/// lab: "igb: pairs tell no tx-usecs", "igb: tx-usecs begin with rx-usecs"
pub(super) fn of_pairs(nic: &mut Nic) {
    let pairs = nic.vectors.iter().any(|v| v.role.is_pair());
    if let Fact::Known(c) = &mut nic.coalesce {
        let rx = c.0.get("rx-usecs").copied().unwrap_or(0);
        match c.0.get("tx-usecs") {
            _ if pairs => _ = c.0.insert("tx-usecs".into(), 0),
            Some(0) | None => _ = c.0.insert("tx-usecs".into(), rx),
            // One interrupt each before as well. lab: "igb: other channels without pairs keep it"
            Some(_) => {}
        }
    }
}

/// New queues get the driver's defaults, and removed queues lose their settings.
pub(super) fn resize(nic: &mut Nic, queues: u32) {
    let Fact::Known(device) = &nic.coalesce else { return };
    if let Fact::Known(all) = &mut nic.queue_coalesce {
        all.retain(|q, _| *q < queues);
        (0..queues).for_each(|q| _ = all.entry(q).or_insert_with(|| own(device)));
    }
}

/// On the test NIC the device shows its first queue. lab: "the device shows its first queue"
fn show_first(s: &mut State, i: usize) {
    let first = s.nics[i].queue_coalesce.known().and_then(|all| all.get(&0)).cloned();
    if let (SimulatedDriver::Mqnic, Some(first), Fact::Known(device)) =
        (s.extra[i].driver, first, &mut s.nics[i].coalesce)
    {
        device.0.extend(first.0);
    }
}

/// net/ethtool/ioctl.c, `ethtool_get_per_queue_coalesce`: the first queue that refuses ends it.
pub(super) fn get_queues(s: &State, i: usize, payload: &[u8]) -> Result<Vec<u8>> {
    let old = s.extra[i].driver == SimulatedDriver::Virtio && s.version() < (6, 6);
    let odd = s.extra[i].quirks.contains(&Quirk::OddQueues);
    let Some(all) = s.nics[i].queue_coalesce.known().filter(|_| !old) else { return Err(no(EOPNOTSUPP)) };
    perqueue::get_reply(payload, |q| match all.get(&q) {
        // lab: "quirk 16: odd queues refuse"
        Some(_) if odd && q % 2 == 1 => Err(no(EOPNOTSUPP)),
        Some(c) => Ok(c.clone()),
        // lab: "a queue beyond the count"
        None => Err(no(EINVAL)),
    })
}

/// `ethtool_set_per_queue_coalesce`: after a refusal the kernel restores the queues before it.
pub(super) fn set_queues(s: &mut State, dev: &str, payload: &[u8]) -> Result<()> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let orders = perqueue::get(payload).map_err(|e| Error::other("", format!("simulated host: {e}")))?;
    let before = s.nics[i].queue_coalesce.clone();
    for (queue, values) in orders {
        if let Err(e) = set_queue(s, i, queue, &values.0) {
            s.nics[i].queue_coalesce = before;
            return Err(e);
        }
    }
    show_first(s, i);
    Ok(())
}

fn set_queue(s: &mut State, i: usize, queue: u32, values: &BTreeMap<String, u32>) -> Result<()> {
    let quirk = |q| s.extra[i].quirks.contains(&q);
    let (rounds, ignores, odd) = (quirk(Quirk::Rounds), quirk(Quirk::IgnoresModeration), quirk(Quirk::OddQueues));
    let driver = s.extra[i].driver;
    let Fact::Known(all) = &mut s.nics[i].queue_coalesce else { return Err(no(EOPNOTSUPP)) };
    let now = all.get_mut(&queue).ok_or_else(|| no(EINVAL))?;
    // net/ethtool/common.c: a parameter that the driver does not have must be 0.
    if values.iter().any(|(k, v)| *v != 0 && !now.0.contains_key(k)) {
        return Err(no(EOPNOTSUPP));
    }
    // lab: "virtio: a queue takes nothing"
    if driver == SimulatedDriver::Virtio || (odd && queue % 2 == 1) {
        return Err(no(EOPNOTSUPP));
    }
    if values.iter().any(|(k, v)| k.ends_with("usecs") && *v > 8191) {
        return Err(no(EINVAL));
    }
    // lab: "quirk 1: accepted and not done"
    if ignores {
        return Ok(());
    }
    for (name, v) in &mut now.0 {
        let new = values.get(name).copied().unwrap_or(0);
        *v = if rounds && name.ends_with("usecs") { new & !7 } else { new };
    }
    Ok(())
}

/// net/ethtool/coalesce.c: the driver accepts only parameters that it reports.
pub(super) fn set_device(s: &mut State, dev: &str, params: &BTreeMap<String, u32>) -> Result<()> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let driver = s.extra[i].driver;
    let pairs = s.nics[i].vectors.iter().any(|v| v.role.is_pair());
    let Fact::Known(c) = &s.nics[i].coalesce else { return Err(no(EOPNOTSUPP)) };
    let mut wanted = c.0.clone();
    for (name, value) in params {
        let profile = name.split('.').next().filter(|p| p.ends_with("-profile"));
        let Some(now) = wanted.get_mut(name) else {
            // A step has the fields that the driver reports. net/ethtool/coalesce.c, ethnl_update_irq_moder
            if profile.is_some_and(|p| c.0.keys().any(|k| k.starts_with(p))) {
                return Err(words(EOPNOTSUPP, "the specified irq_moder param not supported"));
            }
            // lab: "moderation: an unsupported parameter"
            return Err(words(EINVAL, "cannot modify an unsupported parameter"));
        };
        if profile.is_some() {
            // The kernel itself keeps them, in 16 bits.
            *now = *value & 0xffff;
            continue;
        }
        // lab: "igb: moderation above 10000 us", "igb: tx-usecs of pairs", "igb: 5 us are refused", "igb: of tx-usecs too"
        let igb = driver == SimulatedDriver::Igb;
        let refused = (*value > 10_000 && name.ends_with("usecs"))
            || (igb && pairs && name == "tx-usecs" && *value != *now)
            || (igb && name.ends_with("usecs") && matches!(*value, 2 | 4..=9));
        if driver == SimulatedDriver::Mqnic && name.ends_with("usecs") && *value > 8191 {
            return Err(words(ERANGE, "usecs above 8191"));
        }
        if refused {
            return Err(no(EINVAL));
        }
        // lab: "virtio: moderation in microseconds"
        if driver == SimulatedDriver::Virtio && *value != 0 && name.ends_with("usecs") {
            return Err(no(EOPNOTSUPP));
        }
        *now = *value;
    }
    if driver == SimulatedDriver::Mqnic && s.nics[i].queue_coalesce.is_known() {
        // lab: "what is set for the device is set for each queue"
        let queues: Vec<u32> = s.nics[i].queue_coalesce.known().into_iter().flat_map(|a| a.keys().copied()).collect();
        for q in queues {
            let done = set_queue(s, i, q, &own(&Coalesce(wanted.clone())).0);
            show_first(s, i);
            // The driver stops there. lab: "quirk 16: the device is refused too"
            done?;
        }
        let ignores = s.extra[i].quirks.contains(&Quirk::IgnoresModeration);
        if let Fact::Known(c) = &mut s.nics[i].coalesce {
            let of_device = wanted.into_iter().filter(|(k, _)| !perqueue::is_parameter(k));
            // The kernel stores the profiles, independent of the driver.
            c.0.extend(of_device.filter(|(k, _)| !ignores || k.contains('.')));
        }
        return Ok(());
    }
    let rounds = s.extra[i].quirks.contains(&Quirk::Rounds);
    if let Fact::Known(c) = &mut s.nics[i].coalesce {
        for (name, v) in wanted {
            c.0.insert(name.clone(), if rounds && name.ends_with("usecs") { v & !7 } else { v });
        }
    }
    Ok(())
}
