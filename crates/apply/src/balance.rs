//! Indirection tables in which the service has moved entries because of the load. The table from before the first move is the
//! *base*: it is restored when the service no longer follows the load.

use std::sync::Arc;

use ringwise_knob::{Address, IfRefused, Reason, Setting, Step, compare};
use ringwise_model::{Fact, Snapshot, Title};
use ringwise_sys::Host;

use crate::committed::CommittedTx;
use crate::host_access::HostAccess;
use crate::journal::Read;
use crate::{Error, Kind, Outcome, Policy, Request, Store, Verdict, history};

/// A table with moved entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalancedTable {
    /// The interface, under its present name.
    pub dev: String,
    /// The table from before the first move.
    pub base: Setting,
    /// The table as the last move left it.
    pub moved: Setting,
    /// Number of the transaction with the first move.
    pub first: u64,
}

impl BalancedTable {
    /// Whether the host has the table that the last move left. Otherwise a reset, a user or another program has replaced it.
    pub fn is_in_effect(&self, now: &Snapshot) -> bool {
        compare(&self.moved, now).holds()
    }
}

/// Tables whose last requested value is a move of the service.
pub(crate) fn tables(journals: &[Read], now: &Snapshot) -> Vec<BalancedTable> {
    let mut out = of(&history::in_force(journals, now));
    out.retain(|t| now.nic(&t.dev).is_some());
    out
}

/// The same for these transactions.
pub(crate) fn of(kept: &[CommittedTx]) -> Vec<BalancedTable> {
    let mut out: Vec<BalancedTable> = Vec::new();
    for k in kept.iter().filter(|k| !matches!(k.kind, Kind::Rollback { .. })) {
        for (address, moved) in k.wants.iter().filter(|(a, _)| matches!(a, Address::RssTable { .. })) {
            let Some(dev) = address.dev() else { continue };
            let at = out.iter().position(|t| t.dev == dev);
            match (k.balance, at) {
                (false, Some(i)) => _ = out.remove(i),
                (false, None) => {}
                (true, at) => {
                    let earlier = at.map(|i| out.remove(i));
                    let base = k.base.as_ref().or_else(|| k.start.get(address)).unwrap_or(moved).clone();
                    let first = earlier.filter(|t| t.base == base).map_or(k.id, |t| t.first);
                    out.push(BalancedTable { dev: dev.into(), base, moved: moved.clone(), first });
                }
            }
        }
        out.retain(|t| t.moved != t.base);
    }
    out
}

/// Restores the base of the tables with moved entries, of this interface or of all. A table that something else has replaced stays
/// as it is. Returns the outcome of one that failed, else of the last one. `None`: there was nothing to restore.
///
/// Errors: those of [`crate::run`], and the state directory cannot be read.
pub fn restore_tables(
    host: &Arc<dyn Host>,
    store: &Store,
    dev: Option<&str>,
    by: &Request,
    policy: &Policy,
) -> Result<Option<Outcome>, Error> {
    let now = HostAccess::new(host, policy)?.look()?;
    let own = |t: &BalancedTable| dev.is_none_or(|d| d == t.dev) && t.is_in_effect(&now);
    let list: Vec<BalancedTable> = tables(&Read::all(store)?, &now).into_iter().filter(own).collect();
    let policy = &Policy { differs: true, ..policy.clone() };
    let (mut last, mut failed) = (None, None);
    for t in list {
        let request = Request {
            base: Some(t.base.clone()),
            title: Title::Balance { dev: t.dev.clone() },
            devices: now.nic(&t.dev).map(|n| n.dev.clone()).into_iter().collect(),
            steps: vec![table_step(t.base, t.moved, Reason::BeforeUnevenLoad { transaction: t.first })],
            ..by.clone()
        };
        match crate::run(host, &request, store, policy, &mut |_| {}) {
            Ok(o) if matches!(o.verdict, Verdict::Applied | Verdict::NothingToDo) => last = Some(o),
            // The others are restored nevertheless.
            other => failed = Some(other.map(Some)),
        }
    }
    failed.unwrap_or(Ok(last))
}

/// A step that follows the load.
pub fn table_step(to: Setting, from: Setting, reason: Reason) -> Step {
    Step {
        setting: to,
        from: Fact::Known(from),
        rule: "balance".into(),
        reason,
        source: crate::SERVICE.into(),
        interrupts_traffic: false,
        if_refused: IfRefused::PutBack,
        instead: Vec::new(),
    }
}
