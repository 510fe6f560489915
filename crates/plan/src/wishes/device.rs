//! Configured settings of a device: channels, rings, features, pause frames, moderation, NAPI.

use std::collections::BTreeMap;

use ringwise_knob::{
    Address, Setting, VectorName, coalesce as knob_coalesce, features, napi as knob_napi, rings as knob_rings,
};
use ringwise_model::{Count, Dir, Fact, Knob, NapiValues, Nic, RingKind, RingPart, RingValues, Snapshot, User};

use super::{WishContext, what};
use crate::channels::then;
use crate::words::list;
use crate::{Mistake, Obstacle};

pub(super) fn channels(cx: &mut WishContext) {
    let (Some(d), Knob::Channels { rx, tx, combined }) = (cx.dev, &cx.wish.knob) else { return };
    let dev = cx.name();
    let address = Address::Channels { dev: dev.clone() };
    let Some(c) = cx.have(&d.nic.channels, address.clone(), Obstacle::NoChannelCount).copied() else {
        return;
    };
    let mut good = true;
    for (name, asked, has) in [("rx", rx, c.rx), ("tx", tx, c.tx), ("combined", combined, c.combined)] {
        let Some(n) = *asked else { continue };
        match has {
            Some(h) if h.max > 0 && n <= h.max => {}
            _ if n == 0 => {}
            Some(h) if h.max > 0 => {
                good = false;
                cx.wrong(format!("channels {name} {n}"), Mistake::TooManyChannels { most: h.max });
            }
            _ => {
                good = false;
                cx.cannot(address.clone(), Obstacle::NoChannels { kind: name.to_string() });
            }
        }
    }
    let (r, t) = (then(*combined, c.combined, *rx, c.rx), then(*combined, c.combined, *tx, c.tx));
    if good && (r == Some(0) || t == Some(0)) {
        good = false;
        // A count that the driver does not have stays unchanged.
        cx.wrong("channels", Mistake::NoQueueLeft { receive: r, transmit: t });
    }
    if good {
        cx.configure(Setting::Channels { dev, rx: *rx, tx: *tx, combined: *combined });
    }
}

pub(super) fn plain(cx: &mut WishContext) {
    let Some(d) = cx.dev else { return };
    let dev = cx.name();
    match &cx.wish.knob {
        Knob::Feature { name, on } => feature(cx, name, *on),
        Knob::Pause { autoneg, rx, tx } => {
            let address = Address::Pause { dev: dev.clone() };
            if cx.have(&d.nic.pause, address, Obstacle::NoPauseFrames).is_some() {
                cx.configure(Setting::Pause { dev, autoneg: *autoneg, rx: *rx, tx: *tx });
            }
        }
        Knob::Rings { values } => rings(cx, values),
        Knob::LongestRings { rx, tx } => longest_rings(cx, *rx, *tx),
        _ => {}
    }
}

/// The buffers of a device's rings may take this part of the memory of its node.
const MEMORY_PART: u64 = 64;

/// Rings as long as the device and the memory of its node allow.
fn longest_rings(cx: &mut WishContext, rx: bool, tx: bool) {
    let Some(d) = cx.dev else { return };
    let address = Address::Rings { dev: cx.name() };
    let Some(r) = cx.have(&d.nic.rings, address.clone(), Obstacle::NoRingSizes).copied() else { return };
    let memory_bytes = match memory_of(cx.s, d.nic) {
        Ok(bytes) => bytes,
        Err(why) => return cx.cannot_any(Some(address), format!("{} rings \"max\"", cx.name()), why),
    };
    let mtu = match &d.nic.link.mtu {
        Fact::Known(mtu) => *mtu,
        Fact::Unknown(u) => return cx.cannot(address, Obstacle::not_readable(u)),
        // Frames of any size.
        Fact::Absent => u32::from(u16::MAX),
    };
    let mut values = RingValues::default();
    // The queues after the plan.
    for (key, wanted, queues) in [("rx", rx, Some(d.rx)), ("tx", tx, d.tx)] {
        let Some(part) = RingPart::of(key).filter(|_| wanted) else { continue };
        // Without a maximum nothing is known about longer rings.
        let found = part.found(&r).filter(|found| found.max > 0);
        match (found, queues) {
            (Some(found), Some(queues)) => part.set(&mut values, Some(longest(found, queues, mtu, memory_bytes))),
            _ => cx.cannot(address.clone(), Obstacle::NoRing { kind: key.to_string() }),
        }
    }
    rings(cx, &values);
}

/// Memory of the device's node, or of the smallest node if the device has none.
fn memory_of(s: &Snapshot, nic: &Nic) -> Result<u64, Obstacle> {
    let nodes = match &s.topology.nodes {
        Fact::Known(nodes) => nodes,
        Fact::Absent => return Err(Obstacle::NoNodeMemory { why: None }),
        Fact::Unknown(u) => return Err(Obstacle::NoNodeMemory { why: Some(u.clone()) }),
    };
    let home = match &nic.node {
        Fact::Known(node) => Some(*node),
        Fact::Absent => None,
        Fact::Unknown(u) => return Err(Obstacle::NoNodeMemory { why: Some(u.clone()) }),
    };
    let candidates = nodes.values().filter(|n| home.is_none_or(|h| h == n.id));
    let mut least = None;
    for node in candidates {
        match &node.memory {
            // A node without memory of its own.
            Fact::Known(m) if m.total_bytes == 0 => {}
            Fact::Known(m) => least = Some(least.map_or(m.total_bytes, |l: u64| l.min(m.total_bytes))),
            Fact::Absent => return Err(Obstacle::NoNodeMemory { why: None }),
            Fact::Unknown(u) => return Err(Obstacle::NoNodeMemory { why: Some(u.clone()) }),
        }
    }
    least.ok_or(Obstacle::NoNodeMemory { why: None })
}

/// The largest power of two of descriptors whose buffers fit, or the driver's maximum if that fits. Never less than now.
fn longest(ring: Count, queues: u32, mtu: u32, memory_bytes: u64) -> u32 {
    // Two buffers of up to half a page each; jumbo frames use whole pages. As in rule M09.
    let buffer = if mtu <= 1500 { 2048 } else { u64::from(mtu).next_multiple_of(4096) };
    let room = memory_bytes / MEMORY_PART / (buffer * u64::from(queues.max(1)));
    let room = u32::try_from(room).unwrap_or(u32::MAX);
    let fits = if room >= ring.max { ring.max } else { 1 << room.max(1).ilog2() };
    fits.max(ring.now)
}

fn rings(cx: &mut WishContext, values: &RingValues) {
    let Some(d) = cx.dev else { return };
    let dev = cx.name();
    let address = Address::Rings { dev: dev.clone() };
    let Some(r) = cx.have(&d.nic.rings, address.clone(), Obstacle::NoRingSizes).copied() else { return };
    let mut keep = |part: &RingPart, n: u32| -> Option<u32> {
        let Some(h) = part.found(&r) else {
            if part.kind == RingKind::Mode && n == 0 {
                return Some(n);
            }
            cx.cannot(address.clone(), Obstacle::NoRing { kind: part.key.to_string() });
            return None;
        };
        let least = match part.kind {
            RingKind::Size => 1,
            RingKind::Number(least) => least,
            RingKind::Switch | RingKind::Mode => return Some(n),
        };
        if n < least || (h.max > 0 && n > h.max) {
            let (now, most) = (h.now, (h.max > 0).then_some(h.max));
            let mistake = match part.kind {
                RingKind::Size => Mistake::RingSize { now, most },
                _ => Mistake::RingNumber { now, least, most },
            };
            cx.wrong(format!("rings {} {n}", part.key), mistake);
            return None;
        }
        Some(n)
    };
    let values = RingValues::each(|part| keep(part, part.value(values)?));
    // The driver creates all rings again. i40e and ice refuse it with EBUSY while an AF_XDP socket has a queue.
    let users: Vec<User> = d.nic.queue_users().cloned().collect();
    if !users.is_empty() && !knob_rings::compare(&values, &r.now()).holds() {
        return cx.cannot(address, Obstacle::InUse { by: users });
    }
    if !values.is_empty() {
        cx.configure(Setting::Rings { dev, values });
    }
}

fn feature(cx: &mut WishContext, name: &str, on: bool) {
    let Some(d) = cx.dev else { return };
    let dev = cx.name();
    let address = Address::Feature { dev: dev.clone(), name: name.to_string() };
    let Some(all) = cx.have(&d.nic.features, address, Obstacle::NoFeatures) else { return };
    let named = features::named(name, all.keys());
    let there: Vec<_> = named.into_iter().filter_map(|k| all.get_key_value(k)).collect();
    let word = |on: bool| if on { "on" } else { "off" };
    if there.is_empty() {
        let mut like: Vec<&str> = all.keys().map(String::as_str).filter(|k| alike(k, name)).take(6).collect();
        if like.is_empty() {
            like = all.iter().filter(|(_, f)| !f.fixed).map(|(k, _)| k.as_str()).take(6).collect();
        }
        cx.wrong(name, Mistake::NoSuchFeature { like: owned(&like) });
        return;
    }
    // As in ethtool, a name that stands for several features selects those that can be changed.
    if there.iter().all(|(_, f)| f.fixed && f.on != on) {
        cx.cannot_any(None, format!("{dev} {name} {}", word(on)), Obstacle::FeatureFixed { on: !on });
        return;
    }
    for (k, _) in there.into_iter().filter(|(_, f)| !f.fixed) {
        cx.configure(match k.as_str() {
            features::NTUPLE => Setting::Ntuple { dev: dev.clone(), on },
            _ => Setting::Feature { dev: dev.clone(), name: k.clone(), on },
        });
    }
}

/// Whether two names share a word.
fn alike(a: &str, b: &str) -> bool {
    a.split('-').any(|w| w.len() > 2 && b.split('-').any(|v| v == w))
}

/// The parameters that the driver has; the others are reported. A switch that the driver does not have is off, so a request
/// to turn it off holds.
fn known(
    cx: &mut WishContext,
    params: &BTreeMap<String, u32>,
    has: &BTreeMap<String, u32>,
    queue: Option<u32>,
) -> BTreeMap<String, u32> {
    let of = queue.map_or_else(String::new, |q| format!(" of queue {q}"));
    let mut out = BTreeMap::new();
    for (k, v) in params {
        let switch = k.starts_with("use-");
        if switch && *v > 1 {
            cx.wrong(format!("moderation{of} {k} {v}"), Mistake::Switch);
        } else if has.contains_key(k) {
            out.insert(k.clone(), *v);
        } else if !switch || *v != 0 {
            let what = format!("{} moderation{of} {k}", cx.name());
            let (why, wish) = (Obstacle::NotAmongParameters { has: has.keys().cloned().collect() }, cx.wish);
            cx.cannot_of(None, what, why, wish.by_of(k));
        }
    }
    out
}

pub(super) fn coalesce(cx: &mut WishContext, queues: Option<&Vec<u32>>, params: &BTreeMap<String, u32>) {
    let Some(d) = cx.dev else { return };
    let dev = cx.name();
    let Some(named) = queues else {
        let address = Address::Coalesce { dev: dev.clone() };
        let absent = Obstacle::NoModeration;
        let Some(has) = cx.have(&d.nic.coalesce, address, absent) else { return };
        let params = known(cx, params, &has.0, None);
        if !params.is_empty() {
            cx.configure(Setting::Coalesce { dev, params });
        }
        return;
    };
    let all = match &d.nic.queue_coalesce {
        Fact::Known(all) if !all.is_empty() => all,
        other => {
            let why = match other {
                Fact::Unknown(u) => Obstacle::not_readable(u),
                _ => Obstacle::ModeratesAsWhole,
            };
            cx.cannot_any(None, format!("{dev} moderation of queues {}", list(named)), why);
            return;
        }
    };
    let (whole, params): (BTreeMap<_, _>, BTreeMap<_, _>) =
        params.iter().map(|(k, v)| (k.clone(), *v)).partition(|(k, _)| knob_coalesce::of_device_only(k));
    if !whole.is_empty() {
        let names: Vec<&str> = whole.keys().map(String::as_str).collect();
        let what = format!("moderation of queues {} {}", list(named), names.join(" "));
        cx.wrong(what, Mistake::OfDeviceOnly);
    }
    let dir = if d.tx.is_none_or(|tx| d.rx >= tx) { Dir::Rx } else { Dir::Tx };
    for q in cx.queues(Some(named), dir, "moderation") {
        // A queue that an earlier step creates is like the others.
        let Some(has) = all.get(&q).or_else(|| all.values().next()) else { continue };
        let params = known(cx, &params, &has.0, Some(q));
        if !params.is_empty() {
            cx.configure(Setting::QueueCoalesce { dev: dev.clone(), queue: q, params });
        }
    }
}

/// Members that this kernel does not support here.
fn missing(values: &NapiValues, has: &NapiValues) -> Vec<&'static str> {
    let pairs = [
        ("defer-hard-irqs", values.defer_hard_irqs.is_some(), has.defer_hard_irqs.is_some()),
        ("gro-flush-timeout", values.gro_flush_timeout_ns.is_some(), has.gro_flush_timeout_ns.is_some()),
        ("irq-suspend-timeout", values.irq_suspend_timeout_ns.is_some(), has.irq_suspend_timeout_ns.is_some()),
        ("threaded", values.threaded.is_some(), has.threaded.is_some()),
    ];
    pairs.into_iter().filter(|(_, asked, there)| *asked && !there).map(|(name, ..)| name).collect()
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| n.to_string()).collect()
}

/// The values without the members that are missing in `has`.
fn only(values: &NapiValues, has: &NapiValues) -> NapiValues {
    NapiValues {
        defer_hard_irqs: values.defer_hard_irqs.filter(|_| has.defer_hard_irqs.is_some()),
        gro_flush_timeout_ns: values.gro_flush_timeout_ns.filter(|_| has.gro_flush_timeout_ns.is_some()),
        irq_suspend_timeout_ns: values.irq_suspend_timeout_ns.filter(|_| has.irq_suspend_timeout_ns.is_some()),
        threaded: values.threaded.filter(|_| has.threaded.is_some()),
    }
}

pub(super) fn napi(cx: &mut WishContext, queues: Option<&Vec<u32>>, values: &NapiValues) {
    let Some(d) = cx.dev else { return };
    let dev = cx.name();
    let address = Address::NapiDevice { dev: dev.clone() };
    let Some(n) = cx.have(&d.nic.napi, address.clone(), Obstacle::NoNapi).cloned() else { return };
    if values.threaded.is_some_and(|t| t > 2) {
        let t = values.threaded.unwrap_or_default();
        cx.wrong(format!("NAPI threaded {t}"), Mistake::ThreadSwitch);
        return;
    }
    let Some(named) = queues else {
        let lacks = missing(values, &n.device);
        if !lacks.is_empty() {
            cx.cannot(address, Obstacle::NoNapiOfDevice { missing: owned(&lacks) });
        }
        let values = only(values, &n.device);
        if values != NapiValues::default() {
            cx.configure(Setting::NapiDevice { dev, values });
        }
        return;
    };
    let mut lacks: Vec<&str> = Vec::new();
    let mut alone: Vec<u32> = Vec::new();
    for q in cx.queues(Some(named), Dir::Rx, &what(&cx.wish.knob)) {
        let at = knob_napi::instance(d.nic, VectorName::Rx(q));
        // A queue that an earlier step creates is assumed to be like the others.
        let like = at.or_else(|| n.instances.first().filter(|_| d.channels.is_some()));
        match like.map(|i| &i.values) {
            Some(Fact::Known(has)) => {
                lacks.extend(missing(values, has));
                let values = only(values, has);
                if values == NapiValues::default() {
                    continue;
                }
                let first = at.and_then(|i| i.rx.first()).copied().unwrap_or(q);
                cx.configure(Setting::Napi { dev: dev.clone(), of: VectorName::Rx(first), values });
            }
            _ => alone.push(q),
        }
    }
    if !alone.is_empty() {
        let what = format!("{dev} NAPI of queues {}", list(&alone));
        cx.cannot_any(None, what, Obstacle::NoNapiInstances);
    }
    lacks.sort();
    lacks.dedup();
    if !lacks.is_empty() {
        let what = format!("{dev} NAPI of queues {}", list(named));
        cx.cannot_any(None, what, Obstacle::NoNapiOfInstance { missing: owned(&lacks) });
    }
}
