//! Programs and units whose flows are steered to a group: they start, or listen on another port, after the plan was made.
//! No notification reports it, so their sockets are read with each comparison, only where a group names a program or unit.

use std::collections::BTreeSet;

use ringwise_discover::sockets::listeners;
use ringwise_model::Flow;

use crate::compared::{Compared, NamedFlow};
use crate::replan::{configured, intent, part, standing};
use crate::service::Service;

impl Service<'_> {
    /// Finds the programs and units that the groups in effect name.
    pub(crate) fn note_programs(&mut self, seen: &Compared) {
        let basis = self.basis(seen, &[]);
        let standing = standing(&seen.now, &basis);
        let parts = standing.parts(&seen.now);
        let wanted = configured(&seen.now, &basis);
        let mut named: Vec<NamedFlow> = Vec::new();
        for p in &parts.list {
            let Ok(intent) = intent(p, &seen.now, &basis) else { continue };
            for g in &intent.groups {
                let decides = || part(&parts.list, &g.dev, wanted.as_ref()).is_some_and(|x| std::ptr::eq(x, p));
                if seen.now.nic(&g.dev).is_none() || seen.undone.contains(&g.dev) || !decides() {
                    continue;
                }
                for flow in g.flows.iter().filter(|f| !matches!(f, Flow::Match { .. })) {
                    let last = self.named_flows.iter().find(|n| n.dev == g.dev && n.flow == *flow);
                    let last = last.and_then(|n| n.last.clone());
                    named.push(NamedFlow { dev: g.dev.clone(), flow: flow.clone(), last });
                }
            }
        }
        self.named_flows = named;
    }

    /// Reads where they listen now. A program that has started, or listens elsewhere, needs a new plan of its interface; one that has
    /// ended keeps its rules, which match nothing. Returns whether there is one that needs it.
    pub(crate) fn notice_programs(&mut self) -> bool {
        let host = self.host.as_ref();
        for n in &mut self.named_flows {
            // What cannot be read may be as before.
            let Ok(now) = listeners(host, &n.flow) else { continue };
            if n.last.as_ref() != Some(&now) {
                n.last = Some(now);
                self.evidence.programs.insert(n.dev.clone());
            }
        }
        !self.evidence.programs.is_empty()
    }

    /// Interfaces with a group that names a program or unit.
    pub(crate) fn devices_of_programs(&self) -> BTreeSet<String> {
        self.named_flows.iter().map(|n| n.dev.clone()).collect()
    }
}
