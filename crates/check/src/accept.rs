//! The baseline: a JSON file of findings that the user has accepted, each with a reason and a last day.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::report::{Accepted, Report};
use crate::rules;
use ringwise_model::JsonFault;
use ringwise_model::order::Order;

/// Name of the document in a baseline.
pub const SCHEMA: &str = "ringwise.accepted";

/// Findings that the user has accepted: the file of `check --baseline`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// [`SCHEMA`]; any other name is refused.
    pub schema: String,
    /// 1; any other version is refused.
    pub version: u32,
    /// Sorted by rule and interface when ringwise writes the file.
    pub accepted: Vec<AcceptedFinding>,
}

/// A rule whose findings are accepted until a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedFinding {
    /// Id of the rule, such as `Q03`.
    pub rule: String,
    /// The interface; `None`: every interface and the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    /// Why it is accepted, for the reader of a report.
    pub reason: String,
    /// The last day of the acceptance, such as `2027-03-01`.
    pub until: String,
}

impl Default for Baseline {
    fn default() -> Self {
        Self { schema: SCHEMA.into(), version: 1, accepted: Vec::new() }
    }
}

/// Whether the text is a date that exists, written `2027-03-01`.
pub fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [y, m, d] = parts.as_slice() else { return false };
    let n = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u32>().ok()).flatten();
    let (Some(m), Some(d)) = (n(m).filter(|_| m.len() == 2), n(d).filter(|_| d.len() == 2)) else { return false };
    let Some(y) = n(y).filter(|_| y.len() == 4) else { return false };
    let leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    let days = match m {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&d)
}

impl Baseline {
    /// Parses a baseline. The error explains why the text is not a valid baseline.
    pub fn parse(text: &str) -> Result<Self, String> {
        let b: Self = serde_json::from_slice(text.as_bytes())
            .map_err(|e| format!("not a baseline of accepted findings: {}", JsonFault::from(e)))?;
        if b.schema != SCHEMA || b.version != 1 {
            return Err(format!("schema \"{}\" version {}: expected \"{SCHEMA}\" version 1", b.schema, b.version));
        }
        for e in &b.accepted {
            e.validate()?;
        }
        Ok(b)
    }

    /// Adds an entry, or replaces the one with the same rule and interface.
    pub fn add(&mut self, e: AcceptedFinding) -> Result<(), String> {
        e.validate()?;
        self.accepted.retain(|o| (&o.rule, &o.dev) != (&e.rule, &e.dev));
        self.accepted.push(e);
        self.accepted.order_by(|a, b| (&a.rule, &a.dev).cmp(&(&b.rule, &b.dev)));
        Ok(())
    }

    /// Moves accepted findings from `findings` to `accepted`. `today` is a date such as `2026-11-21`. Returns the
    /// expired entries as text.
    pub fn apply_to(&self, r: &mut Report, today: &str) -> Vec<String> {
        let (valid, over): (Vec<&AcceptedFinding>, Vec<&AcceptedFinding>) =
            self.accepted.iter().partition(|e| e.until.as_str() >= today);
        let mut places: BTreeMap<(&str, Option<&str>), usize> = BTreeMap::new();
        for (i, e) in valid.iter().enumerate() {
            places.entry((&e.rule, e.dev.as_deref())).or_insert(i);
        }
        // The first entry that names this interface or no interface.
        let entry = |rule: &str, dev: &Option<String>| {
            let of_dev = dev.as_deref().and_then(|d| places.get(&(rule, Some(d))));
            of_dev.into_iter().chain(places.get(&(rule, None))).min().map(|i| valid[*i])
        };
        let mut left = Vec::new();
        for mut f in std::mem::take(&mut r.findings) {
            if let Some(e) = entry(&f.rule, &f.dev) {
                // A consequence that is not accepted itself becomes a finding of its own.
                let (gone, stays): (Vec<_>, Vec<_>) =
                    std::mem::take(&mut f.consequences).into_iter().partition(|c| entry(&c.rule, &c.dev).is_some());
                f.also.retain(|a| gone.iter().any(|g| g.rule == *a));
                f.consequences = gone;
                left.extend(stays);
                r.accepted.push(Accepted { finding: f, reason: e.reason.clone(), until: e.until.clone() });
            } else {
                left.push(f);
            }
        }
        r.findings = crate::causes::fold(left);
        if !r.accepted.is_empty() {
            r.name_main_problem();
        }
        let text = |e: &&AcceptedFinding| format!("{} was accepted until {} ({})", e.rule, e.until, e.reason);
        over.iter().map(text).collect()
    }
}

impl AcceptedFinding {
    fn validate(&self) -> Result<(), String> {
        if rules::find(&self.rule).is_none_or(|r| r.id != self.rule) {
            return Err(format!(
                "there is no rule \"{}\"; expected an id as ringwise check shows it, e.g. A02",
                self.rule
            ));
        }
        if self.reason.trim().is_empty() {
            return Err(format!(
                "{}: the reason is empty; expected a sentence on why the finding is accepted",
                self.rule
            ));
        }
        if !is_date(&self.until) {
            return Err(format!(
                "{}: \"{}\" is not a date; expected the last day of the acceptance, e.g. 2027-03-01",
                self.rule, self.until
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_entries() {
        assert!(
            is_date("2027-03-01")
                && !is_date("2027-3-1")
                && !is_date("2027-13-01")
                && !is_date("soon")
                && !is_date("2027-02-29")
                && is_date("2028-02-29")
        );
        let e = |rule: &str, reason: &str, until: &str| AcceptedFinding {
            rule: rule.into(),
            dev: None,
            reason: reason.into(),
            until: until.into(),
        };
        let mut b = Baseline::default();
        assert!(b.add(e("Z99", "x", "2027-01-01")).is_err());
        assert!(b.add(e("Q18", " ", "2027-01-01")).is_err());
        assert!(b.add(e("Q18", "x", "tomorrow")).is_err());
        b.add(e("Q18", "x", "2027-01-01")).unwrap();
        b.add(e("Q18", "y", "2028-01-01")).unwrap();
        assert_eq!(b.accepted.len(), 1);
        let text = serde_json::to_string(&b).unwrap();
        assert_eq!(Baseline::parse(&text).unwrap(), b);
        assert!(Baseline::parse(&text.replace("ringwise.accepted", "x")).is_err());
    }
}
