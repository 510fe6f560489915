//! Configured settings that steer packets: RSS, flow rules, interrupts, XPS, RPS, RFS.

use ringwise_knob::{Address, Setting, VectorName, irq as knob_irq, rss as knob_rss};
use ringwise_model::{Action, CpuId, CpuSet, Dir, Fact, Knob, Rss, Rule, Table};

use super::WishContext;
use crate::dev::Dev;
use crate::words::list;
use crate::{AfterChange, Mistake, Obstacle};

/// The kernel's limit for flow tables.
const MOST_FLOWS: u32 = 1 << 29;

pub(super) fn rss(cx: &mut WishContext) {
    let Some(d) = cx.dev else { return };
    let dev = cx.name();
    let address = match &cx.wish.knob {
        Knob::RssTable { context: None, .. } => Address::RssTable { dev: dev.clone() },
        Knob::RssTable { context: Some(c), .. } => Address::RssContext { dev: dev.clone(), context: *c },
        Knob::RssFields { flow, .. } => Address::RssFields { dev: dev.clone(), flow: flow.clone() },
        _ => Address::RssHash { dev: dev.clone() },
    };
    let Some(r) = cx.have(&d.nic.rss, address.clone(), Obstacle::NoRss) else { return };
    match &cx.wish.knob {
        Knob::RssTable { context, table } => rss_table(cx, d, r, address, *context, table),
        Knob::RssHash { function, key, symmetric } => hash(cx, r, function, key, symmetric),
        Knob::RssFields { flow, fields } => {
            if r.fields.is_empty() {
                cx.cannot(address, Obstacle::HashFieldsUnread);
                return;
            }
            if !r.fields.contains_key(flow) {
                let have = r.fields.keys().cloned().collect();
                cx.wrong(format!("RSS fields {flow}"), Mistake::NoFlowType { have });
                return;
            }
            if let Some(bad) = fields.chars().find(|c| !knob_rss::LETTERS.contains(*c)) {
                cx.wrong(format!("RSS fields {flow} {fields}"), Mistake::NoField { letter: bad });
                return;
            }
            let fields = knob_rss::LETTERS.chars().filter(|c| fields.contains(*c)).collect();
            cx.configure(Setting::RssFields { dev, flow: flow.clone(), fields });
        }
        _ => {}
    }
}

fn rss_table(cx: &mut WishContext, d: &Dev, r: &Rss, address: Address, context: Option<u32>, words: &Table) {
    let dev = cx.name();
    if r.table.is_empty() {
        cx.cannot(address, Obstacle::NoRssTable);
        return;
    }
    let table = match knob_rss::simulate(words, r.table.len(), d.rx) {
        Ok(t) => t,
        Err(error) => {
            let later = cx.laid.later.get(d.name()).map_or(0, |l| l.0);
            if later > d.rx && knob_rss::simulate(words, r.table.len(), later).is_ok() {
                cx.cannot(address, Obstacle::AfterChannelChange { whose: AfterChange::Table });
                return;
            }
            let what = context.map_or_else(|| "RSS table".to_string(), |c| format!("RSS context {c}"));
            cx.wrong(what, Mistake::Table { error, entries: r.table.len(), queues: d.rx });
            return;
        }
    };
    let Some(context) = context else {
        // Weights for all queues, zeros among them, are intended.
        if let Table::Weight { weights, .. } = words
            && (weights.len() as u32) < d.rx
        {
            let none: CpuSet = (0..d.rx).filter(|q| !table.contains(q)).map(CpuId).collect();
            let (n, all) = (weights.len(), d.rx);
            cx.laid.warnings.push(format!(
                "{dev}: {n} of {all} queues have a weight; queue{} {none} get{} no packets from the RSS table",
                if none.len() == 1 { "" } else { "s" },
                if none.len() == 1 { "s" } else { "" },
            ));
        }
        cx.configure(Setting::RssTable { dev, table });
        return;
    };
    // Any number is possible: netlink accepts it, and with ioctl the lower numbers are used temporarily.
    if cx.have(&r.contexts, address, Obstacle::NoContexts).is_some() {
        cx.configure(Setting::RssContext { dev, context, table: Some(table), key: None });
    }
}

fn hash(cx: &mut WishContext, r: &Rss, function: &Option<String>, key: &Option<String>, symmetric: &Option<String>) {
    let dev = cx.name();
    let address = Address::RssHash { dev: dev.clone() };
    let mut part = |asked: &Option<String>, has: &Fact<String>, absent: Obstacle| -> Option<String> {
        let asked = asked.clone()?;
        cx.have(has, address.clone(), absent).map(|_| asked)
    };
    let function = part(function, &r.function, Obstacle::NoHashFunction);
    // A device without a transform applies none.
    let asked = symmetric.clone().filter(|x| !(x == knob_rss::NO_TRANSFORM && r.symmetric.is_absent()));
    let symmetric = part(&asked, &r.symmetric, Obstacle::NoSymmetric);
    let key = part(key, &r.key, Obstacle::NoHashKey).map(|k| k.replace([':', ' '], "").to_ascii_lowercase());
    let size = r.key.known().map_or(0, |k| k.len() / 2);
    let key = key.filter(|k| {
        let hex = k.len() % 2 == 0 && k.bytes().all(|b| b.is_ascii_hexdigit());
        let good = hex && k.len() == 2 * size;
        if !good {
            cx.wrong(
                "RSS key",
                match hex {
                    true => Mistake::KeyLength { has: k.len() / 2, bytes: size },
                    false => Mistake::KeyNotHex { bytes: size },
                },
            );
        }
        good
    });
    let known = ["none", "symmetric-xor", "symmetric-or-xor"];
    let symmetric = symmetric.filter(|x| {
        let good = known.contains(&x.as_str());
        if !good {
            let have = known.map(str::to_string).to_vec();
            cx.wrong(format!("RSS transform {x}"), Mistake::NoTransform { have });
        }
        good
    });
    if function.is_some() || key.is_some() || symmetric.is_some() {
        cx.configure(Setting::RssHash { dev, function, key, symmetric });
    }
}

pub(super) fn rule(cx: &mut WishContext, location: Option<u32>, rule: &Rule) {
    let Some(d) = cx.dev else { return };
    let dev = cx.name();
    let at = |location: u32| Address::FlowRule { dev: dev.clone(), location };
    let text = ringwise_knob::rules::text(rule);
    let rules = match &d.nic.rules {
        Fact::Known(r) => r,
        other => {
            let why = match other {
                Fact::Unknown(u) => Obstacle::not_readable(u),
                _ => Obstacle::NoFlowRules,
            };
            cx.cannot_any(None, format!("{dev} flow rule {text}"), why);
            return;
        }
    };
    if let Some(c) = rule.context {
        let live = d.nic.rss.known().and_then(|r| r.contexts.known()).is_some_and(|all| all.contains_key(&c));
        let laid = cx.laid.by.contains_key(&Address::RssContext { dev: dev.clone(), context: c });
        if !live && !laid {
            cx.wrong(format!("flow rule {text}"), Mistake::NoContext { context: c });
            return;
        }
    }
    if let Action::Queue(q) = rule.action
        && rule.context.is_none()
        && cx.queues(Some(&vec![q]), Dir::Rx, &format!("flow rule {text}")).is_empty()
    {
        return;
    }
    if let Some(n) = location
        && rules.chooses_location
    {
        cx.wrong(format!("flow rule {n}"), Mistake::DriverChoosesPlaces);
        return;
    }
    if let Some(n) = location
        && rules.capacity > 0
        && n >= rules.capacity
    {
        cx.wrong(format!("flow rule {n}"), Mistake::NoSuchPlace { places: rules.capacity });
        return;
    }
    let place = location.or_else(|| place(cx, rules, rule, &at));
    let Some(location) = place else {
        cx.wrong(format!("flow rule {text}"), Mistake::PlacesFull { places: rules.capacity });
        return;
    };
    cx.configure(Setting::FlowRule { dev, location, rule: Some(rule.clone()) });
}

fn place(cx: &WishContext, rules: &ringwise_model::Rules, rule: &Rule, at: &dyn Fn(u32) -> Address) -> Option<u32> {
    ringwise_knob::rules::place(rules, rule, |n| cx.laid.by.contains_key(&at(n)))
}

pub(super) fn irq(cx: &mut WishContext, queues: Option<&Vec<u32>>, cpus: &CpuSet) {
    let Some(d) = cx.dev else { return };
    let dev = cx.name();
    if cpus.is_empty() {
        cx.wrong("interrupt CPU", Mistake::NoCpus);
        return;
    }
    if !cx.online(cpus, "interrupt CPU") {
        return;
    }
    let wide = if d.tx.is_none_or(|tx| d.rx >= tx) { Dir::Rx } else { Dir::Tx };
    let mut lost = Vec::new();
    for q in cx.queues(queues, wide, "interrupt CPU") {
        let mut names = Vec::new();
        for (of, dir, n) in [(VectorName::Rx(q), Dir::Rx, Some(d.rx)), (VectorName::Tx(q), Dir::Tx, d.tx)] {
            // If the number of queues is unknown, an interrupt with the queue's name shows that the queue exists.
            if n.is_some_and(|n| q >= n) || d.vector_index(of).is_some_and(|i| d.stuck[i]) {
                continue;
            }
            match d.vector(dir, q) {
                // The driver chooses which queues share a vector after the change: both directions are set.
                _ if d.channels.is_some() => names.push(of),
                Some(v) => names.extend(knob_irq::canonical(v)),
                None => {}
            }
        }
        names.dedup();
        if names.is_empty() {
            lost.push(q);
        }
        for of in names {
            cx.lay_for(Setting::IrqCpus { dev: dev.clone(), of, cpus: cpus.clone(), on: None }, Some(q));
        }
    }
    if !lost.is_empty() {
        let what = format!("{dev} interrupt CPU of queues {}", list(&lost));
        cx.cannot_any(None, what, Obstacle::InterruptsUnknown);
    }
}

pub(super) fn queues(cx: &mut WishContext) {
    let dev = cx.name();
    match &cx.wish.knob {
        Knob::XpsCpus { queues, cpus } => {
            if one_transmit_queue(cx) || !cx.online(cpus, "XPS CPUs") {
                return;
            }
            for queue in cx.queues(queues.as_ref(), Dir::Tx, "XPS CPUs") {
                cx.configure(Setting::XpsCpus { dev: dev.clone(), queue, cpus: cpus.clone() });
            }
        }
        Knob::XpsRxqs { queues, rxqs } => {
            if one_transmit_queue(cx) {
                return;
            }
            let good = cx.queues(Some(rxqs), Dir::Rx, "XPS rx queues");
            if good.len() < rxqs.len() {
                return;
            }
            for queue in cx.queues(queues.as_ref(), Dir::Tx, "XPS rx queues") {
                cx.configure(Setting::XpsRxqs { dev: dev.clone(), queue, rxqs: good.clone() });
            }
        }
        Knob::RpsCpus { queues, cpus } => {
            if !cx.online(cpus, "RPS CPUs") {
                return;
            }
            for queue in cx.queues(queues.as_ref(), Dir::Rx, "RPS CPUs") {
                cx.configure(Setting::RpsCpus { dev: dev.clone(), queue, cpus: cpus.clone() });
            }
        }
        Knob::RpsFlowCnt { queues, entries } => {
            if too_many(cx, *entries) {
                return;
            }
            for queue in cx.queues(queues.as_ref(), Dir::Rx, "RFS entries") {
                cx.configure(Setting::RpsFlowCnt { dev: dev.clone(), queue, entries: *entries });
            }
        }
        _ => {}
    }
}

fn one_transmit_queue(cx: &mut WishContext) -> bool {
    let one = cx.dev.is_some_and(|d| d.tx.is_some_and(|tx| tx < 2));
    if one {
        let what = format!("{} XPS", cx.name());
        cx.cannot_any(None, what, Obstacle::OneTransmitQueue);
    }
    one
}

pub(super) fn too_many(cx: &mut WishContext, entries: u32) -> bool {
    if entries > MOST_FLOWS {
        cx.wrong(format!("RFS entries {entries}"), Mistake::TooManyEntries { most: MOST_FLOWS });
    }
    entries > MOST_FLOWS
}
