//! Converts the keys of one interface to knobs.

use std::collections::BTreeMap;

use std::ops::Range;

use ringwise_kfmt::ethtool_ioctl;
use ringwise_kfmt::rule::parse_rule;
use ringwise_model::{CpuSet, Knob, NapiValues, RingValues, Wish, nearest};

use super::{DecodeContext, TableKeys, list, one_or_more, wish};
use crate::{check, spec, words};

/// Coalescing parameters of a table, with adaptive moderation as 0 and 1.
pub(crate) fn params(k: TableKeys<'_, '_>, cx: &mut DecodeContext<'_>) -> BTreeMap<String, u32> {
    let names: Vec<&str> = k.iter().map(|(n, _, _)| n).filter(|n| *n != "queues").collect();
    let mut out: BTreeMap<String, u32> =
        names.iter().filter_map(|n| Some((n.to_string(), k.number_or_switch(n)?))).collect();
    for name in ["rx-profile", "tx-profile"] {
        profile(k, name, &mut out, cx);
    }
    for (adaptive, usecs, frames) in
        [("use-adaptive-rx", "rx-usecs", "rx-max-frames"), ("use-adaptive-tx", "tx-usecs", "tx-max-frames")]
    {
        let fixed = [usecs, frames].into_iter().find(|n| out.contains_key(*n));
        if let (Some(1), Some(fixed), Some(at)) = (out.get(adaptive), fixed, k.at(adaptive)) {
            let found = format!("{adaptive} is on, so {fixed} cannot be set");
            let with = k.at(fixed).into_iter().collect();
            cx.fault_with(at, with, found, format!("{adaptive} = false, or no {fixed}"));
        }
    }
    out
}

/// Each step becomes parameters of its own, as in the model: `rx-profile.0.usec`.
fn profile(k: TableKeys<'_, '_>, name: &str, out: &mut BTreeMap<String, u32>, cx: &mut DecodeContext<'_>) {
    for (i, v) in list(k.get(name)).enumerate() {
        if i == spec::PROFILE_STEPS {
            cx.fault(v.span(), format!("{name} has more than {i} steps"), format!("at most {i}"));
            return;
        }
        let Some(step) = v.get_ref().as_table().map(|t| TableKeys::new(t, &spec::PROFILE_STEP)) else { continue };
        let fields = spec::PROFILE_STEP.keys.iter().filter_map(|f| Some((f.name, step.u32(f.name)?)));
        out.extend(fields.map(|(field, n)| (format!("{name}.{i}.{field}"), n)));
    }
}

pub(crate) fn napi_values(k: TableKeys<'_, '_>) -> NapiValues {
    NapiValues {
        defer_hard_irqs: k.u32("defer_hard_irqs"),
        gro_flush_timeout_ns: k.u64("gro_flush_timeout_ns"),
        irq_suspend_timeout_ns: k.u64("irq_suspend_timeout_ns"),
        threaded: k.number_or_switch("threaded"),
    }
}

fn queues(k: TableKeys<'_, '_>) -> Option<Vec<u32>> {
    k.get("queues").and_then(|v| check::numbers_of(v.get_ref()).ok())
}

/// Everything except rules and groups.
pub(crate) fn wishes(k: TableKeys<'_, '_>, cx: &mut DecodeContext<'_>) -> Vec<Wish> {
    let mut out = Vec::new();
    for (name, at, v) in k.free("features") {
        if let Some(on) = v.get_ref().as_bool() {
            out.push(wish(Knob::Feature { name: name.to_string(), on }, &at, cx));
        }
    }
    if let (Some(p), Some(at)) = (k.table("pause", &spec::PAUSE), k.at("pause")) {
        let (autoneg, rx, tx) = (p.bool("autoneg"), p.bool("rx"), p.bool("tx"));
        if autoneg.or(rx).or(tx).is_some() {
            out.push(wish(Knob::Pause { autoneg, rx, tx }, &at, cx));
        }
    }
    channels(k, &mut out, cx);
    if let (Some(r), Some(at)) = (k.table("rings", &spec::RINGS), k.at("rings")) {
        let values = RingValues::each(|part| r.number_or_switch(part.key));
        if !values.is_empty() {
            out.push(wish(Knob::Rings { values }, &at, cx));
        }
        let longest = |key: &str| r.get(key).and_then(|v| v.get_ref().as_str()) == Some(spec::LONGEST);
        let (rx, tx) = (longest("rx"), longest("tx"));
        if rx || tx {
            out.push(wish(Knob::LongestRings { rx, tx }, &at, cx));
        }
    }
    coalesce(k, &mut out, cx);
    if let Some(r) = k.table("rss", &spec::RSS) {
        rss(r, &mut out, cx);
    }
    napi(k, &mut out, cx);
    by_queue(k, &mut out, cx);
    out
}

fn channels(k: TableKeys<'_, '_>, out: &mut Vec<Wish>, cx: &mut DecodeContext<'_>) {
    let Some(at) = k.at("channels") else { return };
    let (rx, tx, combined) = match k.table("channels", &spec::CHANNELS) {
        Some(c) => (c.u32("rx"), c.u32("tx"), c.u32("combined")),
        None => (None, None, k.u32("channels")),
    };
    if rx.or(tx).or(combined).is_none() {
        return;
    }
    if k.u32("channels") == Some(0) {
        return; // out of range, which was reported
    }
    if (rx, tx, combined) == (Some(0), Some(0), Some(0)) || (rx.is_none() && tx.is_none() && combined == Some(0)) {
        return cx.fault(at, "channels leaves no queue at all", "at least one receive and one transmit queue");
    }
    out.push(wish(Knob::Channels { rx, tx, combined }, &at, cx));
}

/// Values of the device or of a queue, and where each was set.
#[derive(Default)]
struct SetOnce(BTreeMap<(Option<u32>, String), Range<usize>>);

impl SetOnce {
    /// If a value is set twice for several queues, the first queue is named.
    fn once<'n>(
        &mut self,
        queues: &Option<Vec<u32>>,
        members: impl Iterator<Item = &'n str>,
        at: Range<usize>,
        cx: &mut DecodeContext<'_>,
    ) {
        let of: Vec<Option<u32>> = match queues {
            Some(q) => q.iter().map(|q| Some(*q)).collect(),
            None => vec![None],
        };
        for m in members {
            let mut twice = None;
            for q in &of {
                let first = self.0.insert((*q, m.to_string()), at.clone());
                twice = twice.or(first.map(|first| (*q, first)));
            }
            if let Some((q, first)) = twice {
                let of = q.map_or("the device".to_string(), |q| format!("queue {q}"));
                cx.fault_with(at.clone(), vec![first], format!("{m} of {of} is set twice"), "only one of them");
            }
        }
    }
}

fn coalesce(k: TableKeys<'_, '_>, out: &mut Vec<Wish>, cx: &mut DecodeContext<'_>) {
    let mut seen = SetOnce::default();
    for v in one_or_more(k.get("coalesce")) {
        let Some(t) = v.get_ref().as_table() else { continue };
        let c = TableKeys::new(t, &spec::COALESCE);
        let (queues, params) = (queues(c), params(c, cx));
        if params.is_empty() {
            continue;
        }
        seen.once(&queues, params.keys().map(String::as_str), v.span(), cx);
        out.push(wish(Knob::Coalesce { queues, params }, &v.span(), cx));
    }
}

fn rss(k: TableKeys<'_, '_>, out: &mut Vec<Wish>, cx: &mut DecodeContext<'_>) {
    let table = |v: &super::Value<'_>| check::rss_table_of(v.get_ref()).ok();
    if let (Some(table), Some(at)) = (k.get("table").and_then(table), k.at("table")) {
        out.push(wish(Knob::RssTable { context: None, table }, &at, cx));
    }
    let mut seen: Vec<(u32, Range<usize>)> = Vec::new();
    for (name, at, v) in k.free("context") {
        let (Ok(numbers), Some(table)) = (words::numbers(name), table(v)) else { continue };
        for n in numbers {
            if n == 0 {
                cx.fault(at.clone(), "context 0 is the device's own table", "\"table\" for context 0");
                continue;
            }
            if let Some((_, first)) = seen.iter().find(|(s, _)| *s == n) {
                cx.fault_with(at.clone(), vec![first.clone()], format!("context {n} is set twice"), "only one of them");
                continue;
            }
            seen.push((n, at.clone()));
            out.push(wish(Knob::RssTable { context: Some(n), table: table.clone() }, &at, cx));
        }
    }
    let key = k.text("key").and_then(|t| check::hex(&t).ok());
    let (function, symmetric) = (k.text("function"), k.text("symmetric"));
    if let (Some(f), Some(v)) = (&function, k.get("function"))
        && !spec::HASH_FUNCTIONS.contains(&f.as_str())
    {
        let right = format!("one of {}", spec::HASH_FUNCTIONS.join(", "));
        cx.fault(v.span(), format!("function = \"{f}\" is not known"), right);
    }
    if let Some(at) = k.at("symmetric").or(k.at("function")).or(k.at("key"))
        && (function.is_some() || key.is_some() || symmetric.is_some())
    {
        out.push(wish(Knob::RssHash { function, key, symmetric }, &at, cx));
    }
    for (flow, at, v) in k.free("fields") {
        let Some(fields) = v.get_ref().as_str() else { continue };
        if fields.is_empty() || fields.contains('+') || ethtool_ioctl::fields::mask(fields).is_err() {
            cx.fault(
                v.span(),
                format!("\"{fields}\" is not a list of hash fields"),
                "ethtool's letters, such as \"sd\" or \"sdfn\"",
            );
            continue;
        }
        let known = || ethtool_ioctl::FLOW_TYPES.iter().map(|f| f.0);
        if !known().any(|f| f == flow) {
            let all = || format!("one of {}", known().collect::<Vec<_>>().join(", "));
            let right = nearest(flow, known()).map_or_else(all, |n| format!("\"{n}\""));
            cx.fault(at, format!("\"{flow}\" is not a flow type"), right);
            continue;
        }
        out.push(wish(Knob::RssFields { flow: flow.to_string(), fields: fields.to_string() }, &at, cx));
    }
}

fn napi(k: TableKeys<'_, '_>, out: &mut Vec<Wish>, cx: &mut DecodeContext<'_>) {
    let mut seen = SetOnce::default();
    for v in one_or_more(k.get("napi")) {
        let Some(t) = v.get_ref().as_table() else { continue };
        let n = TableKeys::new(t, &spec::NAPI);
        let (queues, values) = (queues(n), napi_values(n));
        if values != NapiValues::default() {
            seen.once(&queues, n.iter().map(|(name, ..)| name).filter(|name| *name != "queues"), v.span(), cx);
            out.push(wish(Knob::Napi { queues, values }, &v.span(), cx));
        }
    }
}

/// Knobs with one value for all queues, or a table by queue.
fn by_queue(k: TableKeys<'_, '_>, out: &mut Vec<Wish>, cx: &mut DecodeContext<'_>) {
    type Make = fn(Option<Vec<u32>>, CpuSet) -> Knob;
    let cpus: [(&str, Make); 3] = [
        ("irq_cpus", |queues, cpus| Knob::IrqCpus { queues, cpus }),
        ("xps_cpus", |queues, cpus| Knob::XpsCpus { queues, cpus }),
        ("rps_cpus", |queues, cpus| Knob::RpsCpus { queues, cpus }),
    ];
    for (name, make) in cpus {
        each(k, name, out, cx, |queues, v| Some(make(queues, check::cpus_of(v.get_ref()).ok()?)));
    }
    each(k, "xps_rxqs", out, cx, |queues, v| {
        Some(Knob::XpsRxqs { queues, rxqs: check::numbers_of(v.get_ref()).ok()? })
    });
    each(k, "rps_flow_cnt", out, cx, |queues, v| {
        Some(Knob::RpsFlowCnt { queues, entries: check::int(v.get_ref()).and_then(|n| u32::try_from(n).ok())? })
    });
    if let (Some(_), Some(at)) = (k.get("xps_cpus"), k.at("xps_rxqs")) {
        let with = k.at("xps_cpus").into_iter().collect();
        cx.fault_with(at, with, "xps_rxqs takes precedence over xps_cpus; both are set", "only one of them");
    }
}

fn each(
    k: TableKeys<'_, '_>,
    name: &str,
    out: &mut Vec<Wish>,
    cx: &mut DecodeContext<'_>,
    make: impl Fn(Option<Vec<u32>>, &super::Value<'_>) -> Option<Knob>,
) {
    let Some(v) = k.get(name) else { return };
    if !v.get_ref().is_table() {
        if let (Some(knob), Some(at)) = (make(None, v), k.at(name)) {
            out.push(wish(knob, &at, cx));
        }
        return;
    }
    if v.get_ref().as_table().is_some_and(|t| t.is_empty()) {
        cx.fault(
            v.span(),
            format!("an empty table: {name} sets nothing"),
            r#"a value for some queues, as in { "0-1" = "8" }"#,
        );
    }
    let mut seen = SetOnce::default();
    for (queues, at, v) in k.free(name) {
        let Ok(queues) = words::numbers(queues) else { continue };
        seen.once(&Some(queues.clone()), std::iter::once(name), at.clone(), cx);
        if let Some(knob) = make(Some(queues), v) {
            out.push(wish(knob, &at, cx));
        }
    }
}

/// Rules, as strings or tables.
pub(crate) fn rules(k: TableKeys<'_, '_>, out: &mut Vec<Wish>, cx: &mut DecodeContext<'_>) {
    let mut places: Vec<(u32, Range<usize>)> = Vec::new();
    for v in list(k.get("rule")) {
        let table = v.get_ref().as_table().map(|t| TableKeys::new(t, &spec::RULE));
        let (said, mut location) = match table {
            Some(r) => (r.get("flow"), r.u32("location")),
            None => (Some(v), None),
        };
        let Some((said, text)) = said.and_then(|s| Some((s, s.get_ref().as_str()?))) else { continue };
        let at = said.span();
        let (rule, loc) = match parse_rule(text) {
            Ok(found) => found,
            Err(e) => {
                cx.words(said, text, e);
                continue;
            }
        };
        if let (Some(a), Some(b)) = (location, loc)
            && a != b
        {
            cx.fault(at.clone(), format!("the rule has loc {b}, but location is {a}"), "only one of them");
        }
        location = location.or(loc);
        if let Some(l) = location {
            if let Some((_, first)) = places.iter().find(|(p, _)| *p == l) {
                cx.fault_with(
                    at.clone(),
                    vec![first.clone()],
                    format!("two rules for location {l}"),
                    "a different location for each rule",
                );
            }
            places.push((l, at.clone()));
        }
        out.push(wish(Knob::FlowRule { location, rule }, &at, cx));
    }
}
