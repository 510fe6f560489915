//! Settings that the service has moved because of the load: indirection tables in which it moved entries, the CPUs of interrupts
//! with the XPS masks that follow them, RPS masks, and settings of groups of queues. The value from before the first move is the *base*: it is restored when the service no longer follows the load.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringwise_discover::{Options, Parts};
use ringwise_knob::{Address, Family, IfRefused, Reason, Setting, Step, compare, offline};
use ringwise_model::{Fact, Snapshot, Title};
use ringwise_sys::Host;

use crate::committed::CommittedTx;
use crate::families::parts;
use crate::host_access::HostAccess;
use crate::journal::Read;
use crate::run::{lock_for, run_under_lock};
use crate::store::Disk;
use crate::{Error, Journals, Outcome, Policy, Request, RunResult, Store, TransactionKind, history};

/// A setting that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalancedSetting {
    /// The interface, under its present name.
    pub dev: String,
    /// Which setting.
    pub address: Address,
    /// The value from before the first move.
    pub base: Setting,
    /// The value as the last move left it.
    pub moved: Setting,
    /// Number of the transaction with the first move.
    pub first: u64,
}

impl BalancedSetting {
    /// Whether the host has the value that the last move left. Otherwise a reset, a user or another program has replaced it.
    pub fn is_in_effect(&self, now: &Snapshot) -> bool {
        compare(&self.moved, now).holds()
    }

    /// Whether the host accepts the base: its CPUs are online.
    fn can_be_restored(&self, now: &Snapshot) -> bool {
        offline::missing(&self.base, now).is_empty()
    }
}

/// Settings whose last requested value is a move of the service.
pub(crate) fn settings(journals: &[Read], now: &Snapshot) -> Vec<BalancedSetting> {
    let mut out = of(&history::in_force(journals, now));
    out.retain(|t| now.nic(&t.dev).is_some());
    out
}

/// The same for these transactions.
pub(crate) fn of(kept: &[CommittedTx]) -> Vec<BalancedSetting> {
    let mut out: Vec<BalancedSetting> = Vec::new();
    for k in kept.iter().filter(|k| !matches!(k.kind, TransactionKind::Rollback { .. })) {
        for (address, moved) in k.wants.iter().filter(|(a, _)| may_be_moved(a)) {
            let Some(dev) = address.dev() else { continue };
            let at = out.iter().position(|t| t.address == *address);
            match (k.balance, at) {
                (false, Some(i)) => _ = out.remove(i),
                (false, None) => {}
                (true, at) => {
                    let earlier = at.map(|i| out.remove(i));
                    let base = k.base_of(address).unwrap_or(moved).clone();
                    let first = earlier.filter(|t| t.base == base).map_or(k.id, |t| t.first);
                    let (address, moved) = (address.clone(), moved.clone());
                    out.push(BalancedSetting { dev: dev.into(), address, base, moved, first });
                }
            }
        }
        out.retain(|t| t.moved != t.base);
    }
    out
}

/// Whether the service may write this setting because of the load: those of single moves, and those of groups of queues.
pub fn may_be_moved(address: &Address) -> bool {
    matches!(
        address,
        Address::RssTable { .. }
            | Address::IrqCpus { .. }
            | Address::RpsCpus { .. }
            | Address::XpsCpus { .. }
            | Address::QueueCoalesce { .. }
            | Address::RssContext { .. }
            | Address::Napi { .. }
    )
}

/// Restores the base of what the service has moved, of this interface or of all. A value that something else has replaced stays as
/// it is, and so does one whose base names CPUs that are offline. Returns the outcome of a transaction that failed, else of the last one.
/// `None`: there was nothing to restore.
///
/// Errors: those of [`crate::run`], and the state directory cannot be read.
pub fn restore_balanced(
    host: &Arc<dyn Host>,
    store: &Store,
    dev: Option<&str>,
    by: &Request,
    policy: &Policy,
) -> Result<Option<Outcome>, Error> {
    // Nothing is locked, and no interface read, where nothing was ever moved.
    let journals = Journals::read(store)?;
    if !journals.have_moves() {
        return Ok(None);
    }
    let policy = &Policy { differs: true, ..policy.clone() };
    let cx = HostAccess::new(host, policy)?;
    let lock = lock_for(store, &by.who)?;
    // Another run may have moved settings of more families before it released the lock.
    let journals = journals.fresh()?;
    // The full reading, which takes several times as long, is the verification after the last write.
    let now = cx.look_at(parts_before(&journals))?;
    let own = |t: &BalancedSetting| dev.is_none_or(|d| d == t.dev) && t.is_in_effect(&now) && t.can_be_restored(&now);
    let mut by_dev: BTreeMap<String, Vec<BalancedSetting>> = BTreeMap::new();
    for t in journals.balanced(&now).into_iter().filter(own) {
        by_dev.entry(t.dev.clone()).or_default().push(t);
    }
    let mut requests = by_dev.into_iter().map(|(dev, list)| Request {
        base: list.iter().map(|t| t.base.clone()).collect(),
        devices: now.nic(&dev).map(|n| n.dev.clone()).into_iter().collect(),
        title: Title::Balance { dev },
        steps: list.into_iter().map(restoring_step).collect(),
        ..by.clone()
    });
    let Some(first) = requests.next() else { return Ok(None) };
    let others: Vec<Request> = requests.collect();
    cx.writable()?;
    let (mut last, mut failed) = (None, None);
    let mut note = |done: Result<Outcome, Error>| match done {
        Ok(o) if matches!(o.verdict, RunResult::Applied | RunResult::NothingToDo) => last = Some(o),
        // The others are restored nevertheless.
        other => failed = Some(other.map(Some)),
    };
    // The first interface is restored with what was just read: every further look at the host takes time.
    note(run_under_lock(cx, &first, now, Disk { store, lock: &lock }, &mut |_| {}));
    drop(lock);
    for request in others {
        note(crate::run(host, &request, store, policy, &mut |_| {}));
    }
    failed.unwrap_or(Ok(last))
}

/// What has to be read before the base can be restored. Moves of other families reset settings beside their own: then everything.
fn parts_before(journals: &Journals) -> Parts {
    let families = journals.families_of_moves();
    let alone = |f: &Family| matches!(f, Family::Rss | Family::Irq | Family::Xps | Family::Rps);
    match families.iter().all(alone) {
        // A base of several CPUs needs the CPU that serves the interrupt, and whether it was raised meanwhile.
        true if families.contains(&Family::Irq) => Parts { counts: true, napi: true, ..parts(&families) },
        true => parts(&families),
        false => Options::all().parts,
    }
}

fn restoring_step(t: BalancedSetting) -> Step {
    balance_step(t.base, t.moved, Reason::BeforeUnevenLoad { transaction: t.first })
}

/// A step that follows the load.
pub fn balance_step(to: Setting, from: Setting, reason: Reason) -> Step {
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
