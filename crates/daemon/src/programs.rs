//! Programs and units whose flows are steered to a group: they start, or listen on another port, after the plan was made.
//! No notification reports it, so their sockets are read with each comparison, only where a group names a program or unit.

use std::collections::BTreeSet;

use ringwise_discover::sockets::listeners;
use ringwise_model::{Flow, FlowsUnknown};

use crate::compared::NamedFlow;
use crate::event::Event;
use crate::requests::Requests;
use crate::service::Service;

impl Service<'_> {
    /// The programs and units that the groups in effect name, with what was last read of each.
    pub(crate) fn named_flows_of(&self, requests: &Requests) -> Vec<NamedFlow> {
        let mut named: Vec<NamedFlow> = Vec::new();
        for p in &requests.parts {
            for g in requests.intent(p).into_iter().flat_map(|i| &i.groups) {
                if requests.of(&g.dev).is_none_or(|(_, decides)| !std::ptr::eq(decides, p)) {
                    continue;
                }
                for flow in g.flows.iter().filter(|f| !matches!(f, Flow::Match { .. })) {
                    let known = self.named_flows.iter().find(|n| n.dev == g.dev && n.flow == *flow).cloned();
                    let new = || NamedFlow { dev: g.dev.clone(), flow: flow.clone(), last: None, unread: None };
                    named.push(known.unwrap_or_else(new));
                }
            }
        }
        named
    }

    /// Reads where they listen now. A program that has started, or listens elsewhere, needs a new plan of its interface; one that has
    /// ended keeps its rules, which match nothing. Returns whether there is one that needs it.
    pub(crate) fn notice_programs(&mut self) -> bool {
        let resting = self.pauses.names();
        let mut notes = Vec::new();
        for n in &mut self.named_flows {
            if self.state.paused || resting.contains(&n.dev) {
                // Whatever happens meanwhile is compared when the pause ends.
                n.last = None;
                continue;
            }
            let unread = match listeners(self.host.as_ref(), &n.flow) {
                Ok(now) => {
                    if n.last.as_ref() != Some(&now) {
                        n.last = Some(now);
                        self.evidence.programs.insert(n.dev.clone());
                    }
                    None
                }
                Err(e) if matches!(e.why, FlowsUnknown::NotReadable { .. } | FlowsUnknown::OpenFilesUnread { .. }) => {
                    Some(format!("{}: {e}; its flow rules stay as they are", n.dev))
                }
                // It does not run, or does not listen.
                Err(_) => None,
            };
            if unread != n.unread {
                notes.extend(unread.clone());
                n.unread = unread;
            }
        }
        for text in notes {
            self.log(&Event::Note(text));
        }
        !self.evidence.programs.is_empty()
    }

    /// Interfaces with a group that names a program or unit.
    pub(crate) fn devices_of_programs(&self) -> BTreeSet<String> {
        self.named_flows.iter().map(|n| n.dev.clone()).collect()
    }
}
