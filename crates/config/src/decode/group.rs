//! `[[interface.group]]`

use std::collections::BTreeSet;
use std::ops::Range;

use ringwise_kfmt::rule::parse_match;
use ringwise_model::{Flow, GroupQueues, GroupWish, nearest};

use super::{DecodeContext, TableKeys, list};
use crate::value::{BUILT_IN_POLICIES, Config};
use crate::{check, spec};

pub(crate) fn groups(k: TableKeys<'_, '_>, config: &Config, cx: &mut DecodeContext<'_>) -> Vec<GroupWish> {
    let mut out: Vec<GroupWish> = Vec::new();
    let mut names: Vec<(String, Range<usize>)> = Vec::new();
    for v in list(k.get("group")) {
        let Some(t) = v.get_ref().as_table() else { continue };
        let g = TableKeys::new(t, &spec::GROUP);
        let Some(wish) = one(g, v.span(), config, cx) else { continue };
        let at = g.at("name").unwrap_or(v.span());
        if let Some((_, first)) = names.iter().find(|(n, _)| *n == wish.name) {
            let found = format!("group \"{}\" is configured twice on this interface", wish.name);
            cx.fault_with(at.clone(), vec![first.clone()], found, "only one group of that name");
        }
        names.push((wish.name.clone(), at));
        out.push(wish);
    }
    let fixed = |g: &&GroupWish| matches!(g.queues, GroupQueues::These(_));
    if let Some(at) = k.at("group") {
        if out.iter().any(|g| fixed(&g)) && out.iter().any(|g| matches!(g.queues, GroupQueues::Count(_))) {
            cx.fault(
                at.clone(),
                "some groups list their queues, others only give a number",
                "the same form in every group",
            );
        }
        let shares: Vec<u32> = out.iter().filter(|g| !g.context).filter_map(|g| g.weight).collect();
        if !out.is_empty() && shares.len() == out.len() && shares.iter().all(|w| *w == 0) {
            cx.fault(
                at,
                "the weights of the groups sum to zero: no queue is in the table",
                "at least one weight above 0",
            );
        }
    }
    out
}

fn one(k: TableKeys<'_, '_>, at: Range<usize>, config: &Config, cx: &mut DecodeContext<'_>) -> Option<GroupWish> {
    let (name, policy) = (k.text("name")?, k.text("policy")?);
    let known = || BUILT_IN_POLICIES.into_iter().chain(config.policies.iter().map(|p| p.name.as_str()));
    if !known().any(|p| p.eq_ignore_ascii_case(&policy)) {
        let near = nearest(&policy, known());
        let all = || known().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
        let right = near.map_or_else(all, |n| format!("\"{n}\""));
        cx.fault(k.at("policy").unwrap_or(at.clone()), format!("there is no policy \"{policy}\""), right);
    }
    let queues = match k.get("queues").map(|v| v.get_ref()) {
        None => GroupQueues::Auto,
        Some(v) if v.is_integer() => GroupQueues::Count(k.u32("queues")?),
        Some(v) if v.as_str() == Some("auto") => GroupQueues::Auto,
        Some(v) => match check::numbers_of(v) {
            Ok(q) => GroupQueues::These(q),
            Err(why) => {
                cx.fault(k.at("queues")?, format!("queues: {why}"), "4, \"0-3\", [0, 1] or \"auto\"");
                GroupQueues::Auto
            }
        },
    };
    let cpus = k.get("cpus").and_then(|v| check::cpus_of(v.get_ref()).ok());
    let (weight, context) = (k.u32("weight"), k.bool("context").unwrap_or(false));
    if let (true, Some(_), Some(at)) = (context, weight, k.at("weight")) {
        let with = k.at("context").into_iter().collect();
        cx.fault_with(at, with, "a group with its own context has no share of the table", "either context or weight");
    }
    let flows: Vec<Flow> = list(k.get("flows")).filter_map(|v| flow(v, cx)).collect();
    if context && flows.is_empty() {
        cx.fault(
            at.clone(),
            format!("group \"{name}\" has a context, but no flows are steered to it"),
            "at least one flow in flows",
        );
    }
    Some(GroupWish { name, dev: String::new(), policy, queues, cpus, weight, context, flows, by: cx.place(&at) })
}

fn flow(v: &super::Value<'_>, cx: &mut DecodeContext<'_>) -> Option<Flow> {
    if let Some(t) = v.get_ref().as_table() {
        let k = TableKeys::new(t, &spec::FLOW);
        return match (k.text("program"), k.text("unit")) {
            (Some(p), None) => Some(Flow::Program(p)),
            (None, Some(u)) => Some(Flow::Unit(u)),
            _ => {
                cx.fault(
                    v.span(),
                    "the flow does not name exactly one program or unit",
                    "{ program = \"x\" } or { unit = \"x.service\" }",
                );
                None
            }
        };
    }
    let text = v.get_ref().as_str()?;
    match parse_match(text) {
        Ok((flow, fields)) => Some(Flow::Match { flow, fields }),
        Err(e) => {
            cx.words(v, text, e);
            None
        }
    }
}
