//! Lists findings below the finding that causes them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::report::Finding;
use crate::severity::Severity;
use crate::{main_problem, rules};
use ringwise_model::order::Order;

/// The positions of one rule's findings.
#[derive(Default)]
struct FindingIndex<'a> {
    first: Option<usize>,
    of_host: Option<usize>,
    of_dev: BTreeMap<&'a str, usize>,
}

impl<'a> FindingIndex<'a> {
    fn add(&mut self, at: usize, dev: Option<&'a str>) {
        self.first.get_or_insert(at);
        match dev {
            Some(d) => {
                self.of_dev.entry(d).or_insert(at);
            }
            None => {
                self.of_host.get_or_insert(at);
            }
        }
    }

    /// The first finding that can be the cause of a finding at `dev`.
    fn first_for(&self, dev: Option<&str>) -> Option<usize> {
        match dev {
            None => self.first,
            Some(d) => self.of_host.into_iter().chain(self.of_dev.get(d).copied()).min(),
        }
    }
}

/// The order of a report; `docs/check.md` describes it.
fn order(f: &Finding) -> impl Ord + use<> {
    let from_settings = !rules::find(&f.rule).is_some_and(|r| r.rates);
    (Reverse(f.severity), from_settings, main_problem::rank(&f.rule), f.rule.clone(), f.dev.clone())
}

/// Whether `cause` can explain `f`. What needs no action explains no fault: an interrupt that the goal would move is not
/// why XPS is wrong at its present CPU.
fn can_cause(cause: &Finding, f: &Finding) -> bool {
    cause.severity > Severity::Info || f.severity == Severity::Info
}

/// Sorts findings and moves consequences below their cause.
pub(crate) fn fold(mut all: Vec<Finding>) -> Vec<Finding> {
    all.order_by_key(order);
    let mut places: BTreeMap<&str, FindingIndex> = BTreeMap::new();
    for (i, f) in all.iter().enumerate() {
        places.entry(&f.rule).or_default().add(i, f.dev.as_deref());
    }
    let mut cause = vec![None; all.len()];
    for (i, f) in all.iter().enumerate() {
        let under = rules::find(&f.rule).map_or(&[][..], |r| r.under);
        // The cause is a finding of the first rule in `under` that has one at the same interface, or where one of the
        // two is the host's.
        let others = under.iter().filter(|id| **id != f.rule);
        let mut causes = others.filter_map(|id| places.get(id)?.first_for(f.dev.as_deref()));
        cause[i] = causes.find(|c| can_cause(&all[*c], f));
    }
    // Follow the chain to its root. A finding in a cycle stays where it is. No chain is longer than the list of rules.
    let longest = all.len().min(rules::rules().count());
    let root = |mut i: usize| {
        for _ in 0..longest {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &str, severity: Severity) -> Finding {
        let template = rules::find(rule).unwrap().finding();
        Finding { severity, dev: Some("eth0".into()), ..template }
    }

    fn order_of(all: &[(&str, Severity)]) -> Vec<String> {
        let all = all.iter().map(|(rule, severity)| finding(rule, *severity)).collect();
        let one = |f: Finding| f.consequences.iter().fold(f.rule.clone(), |out, c| format!("{out} > {}", c.rule));
        fold(all).into_iter().map(one).collect()
    }

    #[test]
    fn severity_then_measurements_then_settings() {
        use Severity::{Error, Info, Warning};
        let all = [("H26", Info), ("Q14", Warning), ("D10", Warning), ("A08", Error), ("D01", Error)];
        assert_eq!(order_of(&all), ["D01", "A08", "D10", "Q14", "H26"]);
    }

    #[test]
    fn what_needs_no_action_causes_no_fault() {
        use Severity::{Info, Warning};
        assert_eq!(order_of(&[("R0.09", Info), ("Q15", Warning)]), ["Q15", "R0.09"]);
        assert_eq!(order_of(&[("R0.09", Info), ("Q15", Info)]), ["R0.09 > Q15"]);
        assert_eq!(order_of(&[("A01", Warning), ("R0.09", Info), ("Q15", Warning)]), ["A01 > Q15", "R0.09"]);
    }
}
