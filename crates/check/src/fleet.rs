//! Many hosts: what the page about a fleet needs of each report, so that the reports themselves can be dropped.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::report::Report;
use crate::severity::Severity;
use ringwise_model::order::Order;

/// The report about one of many hosts, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSummary {
    /// The capture, as the user named it.
    pub file: String,
    /// `None`: the name is unknown, or the host has none.
    pub host: Option<String>,
    /// Number of errors.
    pub errors: usize,
    /// Number of warnings.
    pub warnings: usize,
    /// Number of findings that are neither.
    pub infos: usize,
    /// Whether a plan could be made.
    pub planned: bool,
    /// Rules whose findings are errors or warnings, worst first, each once.
    pub worst: Vec<String>,
    /// All rules with findings, those of consequences included.
    pub rules: Vec<String>,
}

impl HostSummary {
    /// The summary of a report about the capture `file`.
    pub fn of(r: &Report, file: &str) -> Self {
        let mut worst: Vec<String> = Vec::new();
        for f in r.findings.iter().filter(|f| f.severity > Severity::Info) {
            if !worst.contains(&f.rule) {
                worst.push(f.rule.clone());
            }
        }
        Self {
            file: file.to_string(),
            host: r.own_name().map(str::to_string),
            errors: r.count(Severity::Error),
            warnings: r.count(Severity::Warning),
            infos: r.count(Severity::Info),
            planned: r.no_plan.is_none(),
            worst,
            rules: r.ids().into_iter().map(str::to_string).collect(),
        }
    }

    /// The worst severity. `None`: no findings.
    pub fn severity(&self) -> Option<Severity> {
        let counts = [(self.errors, Severity::Error), (self.warnings, Severity::Warning), (self.infos, Severity::Info)];
        counts.into_iter().find(|(n, _)| *n > 0).map(|(_, s)| s)
    }
}

/// Sorts hosts by errors, then warnings, then other findings; hosts with equal numbers keep their order.
pub fn worst_first(hosts: &mut [HostSummary]) {
    hosts.order_by_key(|h| Reverse((h.errors, h.warnings, h.infos)));
}

/// A rule that finds something on several hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFinding {
    /// Id of the rule.
    pub rule: String,
    /// Number of hosts.
    pub hosts: usize,
    /// The highest severity of the rule's own findings on one of them is error or warning.
    pub worse_than_info: bool,
}

/// The rules with findings on more than one host: the most frequent first, then by id.
pub fn shared(hosts: &[HostSummary]) -> Vec<SharedFinding> {
    let mut by_rule: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for h in hosts {
        for rule in &h.rules {
            let (n, worse) = by_rule.entry(rule).or_default();
            *n += 1;
            *worse |= h.worst.contains(rule);
        }
    }
    let of_several = by_rule.into_iter().filter(|(_, (n, _))| *n > 1);
    let mut all: Vec<SharedFinding> = of_several
        .map(|(rule, (hosts, worse_than_info))| SharedFinding { rule: rule.to_string(), hosts, worse_than_info })
        .collect();
    all.order_by_key(|s| Reverse(s.hosts));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(file: &str, errors: usize, warnings: usize, worst: &[&str], infos: &[&str]) -> HostSummary {
        let own = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut rules = own(&[worst, infos].concat());
        rules.sort();
        HostSummary {
            file: file.into(),
            host: None,
            errors,
            warnings,
            infos: infos.len(),
            planned: true,
            worst: own(worst),
            rules,
        }
    }

    #[test]
    fn errors_outrank_warnings_and_equal_hosts_keep_their_order() {
        let mut all = [
            host("a", 0, 9, &["Q14"], &[]),
            host("b", 1, 0, &["A03"], &[]),
            host("c", 0, 9, &["Q14"], &["H26"]),
            host("d", 0, 9, &["Q14"], &[]),
        ];
        worst_first(&mut all);
        assert_eq!(all.map(|h| h.file), ["b", "c", "a", "d"]);
    }

    #[test]
    fn a_rule_of_one_host_is_not_shared() {
        let all = [
            host("a", 1, 1, &["A03", "Q14"], &[]),
            host("b", 0, 0, &[], &["A02", "Q14"]),
            host("c", 0, 0, &[], &["A02", "Q14"]),
        ];
        let found: Vec<_> = shared(&all).into_iter().map(|s| (s.rule, s.hosts, s.worse_than_info)).collect();
        assert_eq!(found, [("Q14".to_string(), 3, true), ("A02".to_string(), 2, false)]);
    }
}
