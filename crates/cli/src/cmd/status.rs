//! `ringwise status`, and `ringwise` without a command.

use std::path::Path;
use std::time::Duration;

use ringwise_apply::{Ending, HistoryEntry, Journals, Store};
use ringwise_daemon::ServiceState;
use ringwise_discover::{Options, Parts};
use ringwise_knob::{compare, offline};
use ringwise_model::{CpuSet, DEFAULT_CONFIG, Goal, Snapshot};
use serde_json::json;

use super::transaction::{store, words};
use crate::args::{Common, StatusArgs};
use crate::exit::{Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_render::json::Document;
use ringwise_render::status::{self as page, HostStatus, StatusOptions, UnrestoredSettings};
use ringwise_render::verify_history;

/// The search through all processes may use this fraction of the time that a device has: 20 ms unless the user requests
/// more. Processes that were skipped are reported.
const RIVALS_SHARE: u32 = 100;

/// Reading the role of the host for another page may use this fraction of that time for each device.
const ROLE_SHARE: u32 = 4;

pub(super) fn run(a: &StatusArgs, common: &Common) -> Result<Status> {
    let source = source::open(&a.from)?;
    let store = store(common);
    let journals = (!source.recorded).then(|| Journals::read(&store));
    let parts = match &journals {
        Some(Ok(j)) => ringwise_apply::parts(&j.families()),
        // The comparison itself reports what cannot be read.
        _ => Parts::LEAST,
    };
    // Where an interrupt has not moved yet, its requested CPU decides whether it is misplaced.
    let parts = Parts { asked: true, ..parts };
    let all = Options::all();
    let options = Options { parts, rivals_within: Some(all.deadline / RIVALS_SHARE), ..all };
    let s = source.snapshot(&options, common)?;
    let mut st = match journals {
        Some(j) => standing_of(&s, &store, j.and_then(Journals::fresh), source.host.since_boot()),
        None => HostStatus::default(),
    };
    if !source.recorded {
        match ServiceState::running(&store, source.host.as_ref()) {
            Ok(service) => st.service = service,
            Err(why) => st.service_unreadable = Some(why),
        }
    }
    let status = if page::needs_attention(&st) { Status::Findings } else { Status::Ok };
    if a.format.json(common) {
        out::json(&document(&s, &st))?;
        return Ok(status);
    }
    if let Some(p) = st.verify.as_mut().and_then(|v| v.trial.as_mut()) {
        // Users compare it with their clock, which may have been set since.
        p.trial.until_unix = p.trial.until(source.host.as_ref());
    }
    let style = crate::style::detect(common).about(&source.recording);
    let open = st.last.is_none() && st.unreadable.is_none() && no_goal_in_file(&source);
    let better_goal = open.then(|| ringwise_intent::role(source.host.as_ref(), &s)).and_then(|r| r.goal());
    let how = StatusOptions { recorded: source.recorded, all: a.all, passive: source.passive, better_goal };
    let remark = source.remark_on(s.nics.iter().filter(|n| ringwise_text::is_listed(n)), style.width);
    out::answer(&(page::page(&s, &st, how, &style) + &remark))?;
    Ok(status)
}

fn no_goal_in_file(source: &Source) -> bool {
    source.recorded || !Path::new(DEFAULT_CONFIG).exists()
}

/// The goal that fits the role of the host, where nothing was applied and no file names a goal. `None` also if that cannot be
/// read. For commands whose snapshot has only some interfaces: the role depends on all of them.
pub(super) fn better_goal(source: &Source, common: &Common) -> Option<Goal> {
    if !no_goal_in_file(source) {
        return None;
    }
    let all = Options::all();
    // A device that does not answer must not delay a page about another one.
    let deadline = all.deadline / ROLE_SHARE;
    let options = Options { parts: Parts::LEAST, skip_rivals: true, skip_control: true, deadline, ..all };
    // The command has reported what it cannot read in its own snapshot.
    let s = ringwise_discover::snapshot(&source.host, &options).ok()?;
    if !source.recorded {
        let journals = Journals::read(&store(common)).ok()?;
        if verify_history::last_in_effect(&journals.history(&s.host)).is_some() {
            return None;
        }
    }
    ringwise_intent::role(source.host.as_ref(), &s).goal()
}

/// The parts that must be read to compare the host with what was applied.
pub(super) fn needed(store: &Store) -> Parts {
    // The comparison itself reports what cannot be read.
    ringwise_apply::parts(&ringwise_apply::families(store).unwrap_or_default())
}

/// The last transaction, and whether its settings are still in effect.
pub(super) fn standings(s: &Snapshot, store: &Store, since_boot: Duration) -> HostStatus {
    standing_of(s, store, Journals::read(store), since_boot)
}

fn standing_of(
    s: &Snapshot,
    store: &Store,
    journals: std::result::Result<Journals, ringwise_apply::Error>,
    since_boot: Duration,
) -> HostStatus {
    let dir = store.dirs().first().cloned().unwrap_or_default();
    let mut st = HostStatus {
        boot: Some(ringwise_persist::next_boot(Path::new("/"), &dir)),
        since_boot,
        ..HostStatus::default()
    };
    match journals {
        Ok(j) => {
            let (v, list) = (j.verify(s), j.history(&s.host));
            st.last = verify_history::last_in_effect(&list).cloned();
            st.rolled_back = verify_history::last_rollback(&list).cloned();
            st.half_way =
                verify_history::to_recover(&list).filter(|e| e.ending == Ending::PutBackIncomplete).map(|e| e.id);
            st.waiting = verify_history::waiting(&list).and_then(|e| waiting(e, s));
            st.stuck = list.iter().rfind(|e| e.this_boot).filter(|e| !e.stuck.is_empty()).cloned();
            st.verify = Some(v);
        }
        Err(e) => st.unreadable = Some(words(&e)),
    }
    st
}

/// The settings of a transaction that wait for offline CPUs. `None`: no setting waits any more.
fn waiting(e: &HistoryEntry, s: &Snapshot) -> Option<UnrestoredSettings> {
    let all = e.outcome.iter().flat_map(|o| &o.waiting).map(|w| &w.was);
    let missing: Vec<CpuSet> = all
        .map(|was| (was, offline::missing(was, s)))
        .filter(|(was, missing)| !missing.is_empty() || !compare(was, s).holds())
        .map(|(_, missing)| missing)
        .collect();
    let offline = missing.iter().fold(CpuSet::new(), |all, m| all.union(m));
    let ready = missing.iter().any(CpuSet::is_empty);
    (!missing.is_empty()).then_some(UnrestoredSettings { transaction: e.id, settings: missing.len(), offline, ready })
}

fn document(s: &Snapshot, st: &HostStatus) -> Document<'static, serde_json::Value> {
    let interfaces: Vec<_> = s
        .nics
        .iter()
        .filter(|n| n.has_own_queues())
        .map(|n| {
            json!({
                "name": n.name(), "driver": n.driver, "node": n.node, "link": n.link, "channels": n.channels,
                "rx_queues": n.rx_queues.len(), "tx_queues": n.tx_queues.len(),
            })
        })
        .collect();
    let not_requested: Vec<_> = ringwise_discover::left_out(s).map(|u| u.what.as_str()).collect();
    let body = json!({
        "needs_somebody": page::needs_attention(st),
        "host": s.host,
        "cpus_online": s.topology.online,
        "applied": st.last,
        "verify": st.verify.as_ref().map(|v| verify_history::document(v, &verify_history::Observed::default())),
        "overdue_s": st.overdue().map(|(_, late)| late.as_secs()),
        "not_put_back": st.half_way,
        "waiting": st.waiting,
        "stuck": st.stuck,
        "service": st.service,
        "service_unreadable": st.service_unreadable,
        "boot": st.boot,
        "state_unreadable": st.unreadable,
        "control": s.control,
        "interfaces": interfaces,
        "not_shown": s.bystanders.count,
        "not_asked": not_requested,
    });
    Document { schema: "ringwise.status", version: 1, body }
}
