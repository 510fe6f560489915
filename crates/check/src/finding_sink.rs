//! Collects the findings of a rule, and the facts that it could not read.

use std::collections::BTreeSet;

use ringwise_knob::Address;
use ringwise_model::{Fact, Unread};

use crate::found::FindingDetails;
use crate::needs::RequiredFact;
use crate::report::{Finding, Unreadable};
use crate::severity::Severity;

pub struct FindingSink {
    /// A finding of the rule without any facts.
    template: Finding,
    /// Facts that the plan needs for the rule.
    pub(crate) needs: &'static [RequiredFact],
    dev: Option<String>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) unread: Vec<Unreadable>,
    /// Entries of `unread`, to add each only once: device, fact and reason.
    noted: BTreeSet<(Option<String>, String, String)>,
    /// Interfaces with a finding; `None` is the host.
    found_at: BTreeSet<Option<String>>,
    pub(crate) no_samples: bool,
}

impl FindingSink {
    pub(crate) fn new(template: Finding, needs: &'static [RequiredFact]) -> Self {
        Self {
            template,
            needs,
            dev: None,
            findings: Vec::new(),
            unread: Vec::new(),
            noted: BTreeSet::new(),
            found_at: BTreeSet::new(),
            no_samples: false,
        }
    }

    pub(crate) fn at(&mut self, dev: &str) {
        self.dev = Some(dev.to_string());
    }

    pub(crate) fn of_host(&mut self) {
        self.dev = None;
    }

    pub(crate) fn needs_samples(&mut self) {
        self.no_samples = true;
    }

    /// The value. `None`: it is absent or unknown; an unknown value is noted as unread.
    pub fn get<'a, T>(&mut self, fact: &'a Fact<T>) -> Option<&'a T> {
        match fact {
            Fact::Known(v) => Some(v),
            Fact::Absent => None,
            Fact::Unknown(u) => {
                self.unread(u);
                None
            }
        }
    }

    /// Like `get`, for a value that the caller owns.
    pub fn take<T>(&mut self, fact: Fact<T>) -> Option<T> {
        self.get(&fact)?;
        match fact {
            Fact::Known(v) => Some(v),
            _ => None,
        }
    }

    pub fn unread(&mut self, u: &Unread) {
        if self.noted.insert((self.dev.clone(), u.what.clone(), u.why.clone())) {
            let rule = self.template.rule.clone();
            let (what, why) = (u.what.clone(), u.why.clone());
            self.unread.push(Unreadable { rule, dev: self.dev.clone(), what, why, cause: u.cause });
        }
    }

    /// Whether this rule has a finding at the present interface.
    pub(crate) fn has_finding(&self) -> bool {
        self.found_at.contains(&self.dev)
    }

    /// Adds a finding at the present interface or, outside of `each`, of the host.
    pub fn found(&mut self, found: impl Into<FindingDetails>) -> FindingDraft<'_> {
        let found = found.into();
        let (text, evidence) = (found.to_string(), found.evidence());
        let draft = self.planned(text);
        (draft.0.found, draft.0.evidence) = (Some(found), evidence);
        draft
    }

    /// Adds a finding about what the plan would change. The caller adds the reasons as data.
    pub(crate) fn planned(&mut self, text: impl Into<String>) -> FindingDraft<'_> {
        self.found_at.insert(self.dev.clone());
        let name = self.dev.as_deref().unwrap_or("DEV");
        let by_hand = self.template.by_hand.iter().map(|c| c.replace("DEV", name)).collect();
        let finding = Finding { dev: self.dev.clone(), text: text.into(), by_hand, ..self.template.clone() };
        self.findings.push(finding);
        // The line above pushed one.
        let f = self.findings.last_mut().unwrap_or_else(|| unreachable!());
        FindingDraft(f)
    }
}

/// Kinds of settings for which the plan can have a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SteeringKind {
    RpsCpus,
    XpsCpus,
}

impl SteeringKind {
    pub(crate) fn of(address: &Address) -> Option<Self> {
        match address {
            Address::RpsCpus { .. } => Some(Self::RpsCpus),
            Address::XpsCpus { .. } => Some(Self::XpsCpus),
            _ => None,
        }
    }
}

/// A finding to which the caller adds details.
pub struct FindingDraft<'a>(pub(crate) &'a mut Finding);

impl FindingDraft<'_> {
    pub fn evidence(self, text: impl Into<String>) -> Self {
        self.0.evidence.push(text.into());
        self
    }

    pub fn severity(self, s: Severity) -> Self {
        self.0.severity = s;
        self
    }

    /// Adds a plain command with the values found.
    pub fn manual_command(self, command: impl Into<String>) -> Self {
        self.0.by_hand.insert(0, command.into());
        self
    }
}
