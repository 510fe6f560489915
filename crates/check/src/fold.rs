//! Findings that follow from another one stand under it.

use std::cmp::Reverse;

use crate::report::Finding;
use crate::rules;
use ringwise_model::Order;

/// Sorted, consequences below their cause.
pub(crate) fn fold(mut all: Vec<Finding>) -> Vec<Finding> {
    let order = |f: &Finding| (Reverse(f.severity), f.rule.clone(), f.dev.clone());
    all.order_by_key(order);
    let mut cause = vec![None; all.len()];
    for (i, f) in all.iter().enumerate() {
        let under = rules::find(&f.rule).map_or(&[][..], |r| r.under);
        // The first in the rule's own list that is there; of the same interface, or one of both is the host's.
        cause[i] = under.iter().find_map(|id| {
            all.iter().position(|c| {
                c.rule == *id && (c.dev == f.dev || c.dev.is_none() || f.dev.is_none()) && c.rule != f.rule
            })
        });
    }
    // To the last cause; what would lead round in a circle stays where it is.
    let root = |mut i: usize| {
        for _ in 0..all.len() {
            match cause[i] {
                Some(c) => i = c,
                None => return i,
            }
        }
        i
    };
    let roots: Vec<usize> = (0..all.len()).map(root).collect();
    let mut out: Vec<Option<Finding>> = all.into_iter().map(Some).collect();
    for i in 0..out.len() {
        let to = roots[i];
        if to == i || roots[to] != to {
            continue;
        }
        let Some(f) = out[i].take() else { continue };
        if let Some(cause) = &mut out[to] {
            if !cause.also.contains(&f.rule) {
                cause.also.push(f.rule.clone());
            }
            cause.severity = cause.severity.max(f.severity);
            cause.consequences.push(f);
        }
    }
    let mut out: Vec<Finding> = out.into_iter().flatten().collect();
    out.order_by_key(order);
    out
}
