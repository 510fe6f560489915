//! What a look needs, read and planned while the host settles: then only the writing is left when it is time to write. The guard is
//! started meanwhile, too.

use crate::compared::{Ahead, Planned, Prepared};
use crate::replan::plan_again;
use crate::service::Service;

impl Service<'_> {
    /// Reads and plans for the next look. Nothing is written or reported: the look decides what follows, and reads the host itself
    /// if nothing could be prepared.
    pub(crate) fn prepare(&mut self) {
        self.prepared = self.read_ahead();
        let store = &self.setup.store;
        if let Some(guardian) = &self.setup.guard
            && self.prepared.as_ref().is_some_and(|p| p.ahead.writes)
            && let Some(dir) = store.dirs().first()
            && let Ok(transaction) = store.next_transaction()
        {
            guardian.prepare(dir, transaction);
        }
        self.schedule.prepared();
    }

    fn read_ahead(&mut self) -> Option<Prepared> {
        // What these write comes before the comparison.
        if self.state.paused || !self.configured || self.unrecorded {
            return None;
        }
        // While tables have moved entries, only a look may read the journals: it distinguishes a user's transaction from a change
        // outside ringwise (`follow_load`).
        if !self.moved().is_empty() {
            return None;
        }
        let seen = self.compare().ok()??;
        let v = &seen.in_effect;
        let waits = v.running.is_some() || v.trial.is_some() || v.unfinished.is_some() || !v.newer.is_empty();
        if waits || !seen.balanced.is_empty() {
            return None;
        }
        let newly_isolated = self.notice(&seen.now);
        self.note_requests(&seen);
        let resting = self.pauses.names();
        let t = self.keep_decision(&seen, &resting, &newly_isolated);
        let basis = self.basis(&seen, &t.manual);
        let mut interfaces = t.plan.clone();
        let appeared = self.appeared(&seen, &basis);
        interfaces.extend(appeared.iter().cloned());
        interfaces.retain(|d| !resting.contains(d));
        let planned = (!interfaces.is_empty()).then(|| {
            let result = plan_again(&interfaces, &basis);
            Planned { interfaces, result }
        });
        let writes = planned.is_some() || !t.steps.is_empty();
        Some(Prepared { seen, ahead: Ahead { appeared, planned, writes } })
    }
}
