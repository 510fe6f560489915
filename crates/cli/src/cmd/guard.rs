//! `ringwise __guard`: the process that restores everything when the process that applied it dies, or when a trial
//! ends. Only `apply` and `rollback` start it (see `ringwise_apply::guard`).

use std::process::{Command, Stdio};
use std::time::Duration;

use ringwise_apply::guard::{FOR_TABLES, WatchedApplier, guard, guard_tables, guard_tables_again, watch_on};
use ringwise_apply::{GuardLink, Policy, Process, remove_copy};
use ringwise_daemon::ServiceState;
use ringwise_sys::guardian::{self, OwnGroup};

use super::transaction::{fail, store};
use crate::args::{Common, GuardArgs};
use crate::exit::{Fail, Result, Status};
use crate::logbook::Logbook;
use crate::source;

pub(super) fn run(a: &GuardArgs, common: &Common) -> Result<Status> {
    if a.detach {
        return detach(a, common);
    }
    guardian::ignore_signals();
    // These calls may fail without harm: the kernel refuses them without root or in a container.
    let _ = std::env::set_current_dir("/");
    let _ = guardian::spared_by_oom();
    let _ = guardian::stay_in_memory();
    // `ps` and `pgrep` show this name, whatever file the process runs from.
    let _ = std::fs::write("/proc/self/comm", format!("guard-{:04}", a.transaction));
    let group =
        if a.detached { OwnGroup::enter(&format!("ringwise-trial-{}", a.transaction)).ok().flatten() } else { None };
    let source = source::live()?;
    let store = store(common);
    // A guard that was started again has lost the process that started it; the files on disk contain everything.
    let bound = Process::default().bound;
    let (mut link, lock) = match a.socket.as_deref().and_then(|name| GuardLink::connect(name, bound).ok()) {
        None => (None, None),
        Some(Some((link, lock))) => (Some(link), lock),
        Some(None) => {
            leave(group);
            return Ok(Status::Ok);
        }
    };
    if let Some(l) = &mut link {
        l.armed().map_err(|e| Fail::error(format!("the applying process does not listen: {e}")))?;
    }
    if a.transaction == FOR_TABLES {
        let done = match &mut link {
            Some(link) => guard_tables(&source.host, &store, link, &Policy::default()),
            None => {
                let served = ServiceState::running(&store, source.host.as_ref()).is_ok_and(|s| s.is_some());
                guard_tables_again(&source.host, &store, served, &Policy::default())
            }
        };
        store.dirs().iter().for_each(|dir| remove_copy(dir, FOR_TABLES));
        return done.map(|_| Status::Ok).map_err(|e| fail(&e));
    }
    let mut log = Logbook::of(Some(a.transaction));
    let watched = link.as_mut().map(|l| l as &mut dyn WatchedApplier);
    let mut policy = Policy::default();
    policy.silence = a.silence_ms.map_or(policy.silence, Duration::from_millis);
    let done = guard(&source.host, &store, a.transaction, lock, watched, &policy, &mut |e| log.event(e));
    // The applying process waits until the connection is closed.
    drop(link);
    let done = match done {
        Ok(None) => watch_on(&source.host, &store, a.transaction, &policy, &mut |e| log.event(e)),
        other => other,
    };
    for dir in store.dirs() {
        if done.is_ok() {
            remove_copy(dir, a.transaction);
        }
    }
    leave(group);
    if let Some(o) = done.map_err(|e| fail(&e))? {
        log.outcome(&o);
    }
    Ok(Status::Ok)
}

fn leave(group: Option<OwnGroup>) {
    if let Some(g) = group {
        let _ = g.leave(); // leave() may fail: an empty directory is harmless
    }
}

/// Leaves the session and its open files, starts the guard and exits, so that process 1 becomes the guard's parent.
fn detach(a: &GuardArgs, common: &Common) -> Result<Status> {
    let failed = |what: &str, e: std::io::Error| Fail::error(format!("{what}: {e}"));
    guardian::new_session().map_err(|e| failed("setsid", e))?;
    guardian::close_others().map_err(|e| failed("close_range", e))?;
    let mut c = Command::new("/proc/self/exe");
    c.args(["__guard", "--detached", "--transaction"]).arg(a.transaction.to_string());
    if let Some(s) = &a.socket {
        c.arg("--socket").arg(s);
    }
    if let Some(d) = &common.state_dir {
        c.arg("--state-dir").arg(d);
    }
    if let Some(ms) = a.silence_ms {
        c.arg("--silence-ms").arg(ms.to_string());
    }
    c.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    c.spawn().map_err(|e| failed("/proc/self/exe", e))?;
    Ok(Status::Ok)
}
