//! What was requested for each interface, as a look finds it: it decides what may follow the load, and which programs are watched.

use std::collections::BTreeMap;

use ringwise_intent::AppliedPart;
use ringwise_model::{Goal, Intent, Nic};

use crate::compared::Compared;
use crate::replan::{configured, part, standing};
use crate::service::Service;

pub(crate) struct Requests<'a> {
    seen: &'a Compared,
    pub(crate) parts: Vec<AppliedPart>,
    /// What the configuration requests of the host as it is now. `None`: there is no configuration, or it does not fit this host.
    configured: Option<Intent>,
    /// The configuration has a file.
    has_file: bool,
}

impl Requests<'_> {
    /// The interface, and the part that decides it. `None`: nothing is requested for it, or a person has rolled it back.
    pub(crate) fn of(&self, dev: &str) -> Option<(&Nic, &AppliedPart)> {
        let nic = self.seen.now.nic(dev).filter(|_| !self.seen.undone.contains(dev))?;
        Some((nic, part(&self.parts, dev, self.configured.as_ref())?))
    }

    /// The intent of a part, of the configuration as it is now. `None`: it does not fit this host.
    pub(crate) fn intent<'p>(&'p self, p: &'p AppliedPart) -> Option<&'p Intent> {
        if p.whole && p.from_config && self.has_file { self.configured.as_ref() } else { Some(&p.intent) }
    }

    /// The interfaces of goal `mixed` among these, with what is requested for each.
    fn mixed<'n>(&self, names: impl Iterator<Item = &'n str>) -> BTreeMap<String, Intent> {
        let of = |dev: &'n str| {
            let (_, part) = self.of(dev)?;
            let intent = self.intent(part)?;
            (intent.goal_of(dev) == Goal::Mixed).then(|| (dev.to_string(), intent.clone()))
        };
        names.filter_map(of).collect()
    }
}

impl Service<'_> {
    /// Reads it, and takes from it what this service needs until the next look.
    pub(crate) fn note_requests(&mut self, seen: &Compared) {
        let basis = self.basis(seen, &[]);
        let requests = Requests {
            seen,
            parts: standing(&seen.now, &basis).parts(&seen.now).list,
            configured: configured(&seen.now, &basis),
            has_file: basis.wanted.is_some_and(|w| w.file().is_some()),
        };
        let named_flows = self.named_flows_of(&requests);
        let may_follow = self.follow.is_some().then(|| self.may_follow(&requests, seen));
        let mixed = match self.follow {
            Some(_) => requests.mixed(seen.now.tunable().map(Nic::name)),
            None => BTreeMap::new(),
        };
        if let Some((permitted, machine)) = may_follow {
            (self.permitted, self.machine) = (permitted, machine);
        }
        self.groups.request(mixed);
        self.named_flows = named_flows;
    }
}
