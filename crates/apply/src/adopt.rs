//! `adopt`: settings that were changed outside ringwise become the requested ones. The host is not changed; only the journal
//! records it. The rollback of a transaction that left nothing to restore works the same way.

use std::collections::BTreeSet;
use std::sync::Arc;

use ringwise_knob::{Address, IfRefused, Match, Reason, Setting, Step, live};
use ringwise_model::{Fact, Snapshot};
use ringwise_sys::Host;

use crate::host_access::HostAccess;
use crate::journal::Journal;
use crate::record::{Header, Record};
use crate::store::{Disk, Store};
use crate::unfinished::{close_others, refuse_unfinished};
use crate::{
    Error, Event, Outcome, Policy, Refusal, Request, RunResult, SettingInEffect, TransactionKind, Verify, verify_in,
};

/// What `adopt` would record: every setting of these devices (empty: of all devices and of the host) that is not as applied and
/// can be read, in writing order. Queues that are gone are covered by the channel count that removed them.
pub fn adoptable(v: &Verify, now: &Snapshot, devs: &[String]) -> Vec<Step> {
    let asked = |a: &Address| devs.is_empty() || a.dev().is_some_and(|d| devs.iter().any(|x| x == d));
    let mut addresses: BTreeSet<Address> = BTreeSet::new();
    for s in v.drifted() {
        let Some(address) = s.want.address().filter(asked) else { continue };
        match s.how {
            Match::Differs => _ = addresses.insert(address),
            Match::Gone => {
                if let Some(dev) = address.dev().filter(|d| now.nic(d).is_some()) {
                    addresses.insert(Address::Channels { dev: dev.to_string() });
                }
            }
            _ => {}
        }
    }
    let step = |a: Address| {
        let setting = live(now, &a).known()?.clone();
        Some(Step {
            from: Fact::Known(setting.clone()),
            setting,
            rule: "adopt".into(),
            reason: Reason::Adopted,
            source: "ringwise adopt".into(),
            interrupts_traffic: false,
            if_refused: IfRefused::Skip,
            instead: Vec::new(),
        })
    };
    addresses.into_iter().filter_map(step).collect()
}

/// Makes settings that were changed outside ringwise the requested ones, as a transaction without a write to the host: `verify`
/// reports no drift afterwards, plans do not change these settings, and the transaction can be rolled back. `request` has no
/// steps.
///
/// Errors: refused or failed; nothing was recorded then.
pub fn adopt(
    host: &Arc<dyn Host>,
    store: &Store,
    devs: &[String],
    request: &Request,
    policy: &Policy,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let cx = HostAccess::new(host, policy)?;
    let now = cx.look()?;
    let find = |now: &Snapshot| verify_in(now, store).map(|v| adoptable(&v, now, devs));
    if find(&now)?.is_empty() {
        refuse_unfinished(store, &now)?;
        return Ok(Outcome::nothing());
    }
    let lock = store.lock()?;
    // Another run may have changed the host meanwhile.
    let now = cx.look()?;
    let mut notes = close_others(store, &lock, &now, host.unix_time())?;
    let mut request = request.clone();
    request.steps = find(&now)?;
    let left = |s: &&SettingInEffect| matches!(s.how, Match::Unknown(_));
    for s in verify_in(&now, store)?.drifted().filter(left) {
        if let Some(a) = s.want.address() {
            notes.push(format!("{a} cannot be read and is not adopted"));
        }
    }
    write_down(cx, request, TransactionKind::Adopt, &now, notes, Disk { store, lock: &lock }, events)
}

/// A transaction that leaves the host as it is: only the journal records what is requested from now on.
pub(crate) fn write_down(
    cx: HostAccess,
    request: Request,
    kind: TransactionKind,
    now: &Snapshot,
    notes: Vec<String>,
    disk: Disk,
    events: &mut dyn FnMut(&Event),
) -> Result<Outcome, Error> {
    let Disk { store, lock } = disk;
    let id = store.next_transaction()?;
    let steps = request.steps.iter().map(|s| &s.setting);
    let settings: Vec<Setting> = steps.chain(&request.already).cloned().collect();
    let named =
        |n: &&ringwise_model::Nic| settings.iter().filter_map(Setting::address).any(|a| a.dev() == Some(n.name()));
    let header = Header {
        devices: now.nics.iter().filter(named).map(|n| n.dev.clone()).collect(),
        already: request.already.clone(),
        start: settings.clone(),
        ..Header::of(id, kind, &request, now, cx.host.unix_time())
    };
    let mut out = Outcome::nothing();
    out.verdict = RunResult::Applied;
    out.transaction = Some(id);
    (out.verified, out.verified_of) = (settings.len(), settings.len());
    out.already_so = settings.clone();
    out.notes = notes;
    out.waiting.clone_from(&request.waiting);
    out.notes.extend(lock.notes.iter().cloned());
    let mut journal = Journal::begin(store, lock, header)?;
    events(&Event::Begun { transaction: id, steps: request.steps.len() });
    out.notes.iter().for_each(|text| events(&Event::Note { text: text.clone() }));
    let end = Record::End { outcome: Box::new(out.clone()), after: settings };
    if let Err(e) = journal.add_durably(&end) {
        // A partial journal would look like an interrupted run.
        let _ = std::fs::remove_file(journal.path());
        return Err(Refusal::State { path: journal.path().to_path_buf(), why: e.to_string() }.into());
    }
    store.publish(None);
    Ok(out)
}
