//! `ringwise daemon`: the service in the foreground, and requests to the one that runs.

use std::io::ErrorKind;
use std::sync::Arc;

use ringwise_apply::Process;
use ringwise_daemon::{ControlRequest, Event, ServiceSetup};
use ringwise_sys::proc;

use super::transaction::store;
use crate::args::{Common, DaemonArgs, DaemonCmd, FollowArg};
use crate::exit::{Fail, Result, Status, io_reason};
use crate::{out, source};

pub(super) fn run(a: &DaemonArgs, common: &Common) -> Result<Status> {
    match &a.command {
        None => serve(a, common),
        Some(DaemonCmd::Pause { dev }) => ask(&ControlRequest::Pause { interface: known(dev)? }, common),
        Some(DaemonCmd::Resume { dev }) => ask(&ControlRequest::Resume { interface: dev.clone() }, common),
        Some(DaemonCmd::Stop { restore }) => ask(&ControlRequest::Stop { restore: *restore }, common),
    }
}

/// Runs until it is stopped. Lines go to stderr, which systemd passes on to its journal.
fn serve(a: &DaemonArgs, common: &Common) -> Result<Status> {
    if proc::euid() != 0 && proc::may_override() == Some(false) {
        return Err(Fail::error("daemon needs root; nothing was touched")
            .code("needs_root")
            .next("sudo ringwise daemon"));
    }
    if a.follow == FollowArg::Off && !a.act.is_empty() {
        return Err(
            Fail::usage("--act needs the load, which --follow off does not read").next("leave out --follow off")
        );
    }
    let source = source::live()?;
    let setup = ServiceSetup {
        store: store(common),
        config: a.config.clone(),
        guard: Some(Arc::new(Process::default())),
        follow: a.follow == FollowArg::Observe,
        act_on_load: a.act.clone(),
    };
    let (quiet, verbose) = (common.quiet, common.verbose > 0);
    let mut log = |e: &Event| {
        let text = e.to_string();
        // Each step is in the journal of its transaction.
        if !text.is_empty() && (verbose || !matches!(e, Event::Step(_))) {
            out::note(quiet, &format!("ringwise: {text}"));
        }
    };
    match ringwise_daemon::run(&source.host, &setup, &mut log) {
        Ok(()) => Ok(Status::Ok),
        Err(e) if e.kind() == ErrorKind::AddrInUse => {
            Err(Fail::refused("service_runs", "the service runs already; nothing was touched").next("ringwise status"))
        }
        Err(e) => Err(Fail::io("cannot start the service", &e)),
    }
}

fn known(dev: &Option<String>) -> Result<Option<String>> {
    let Some(name) = dev else { return Ok(None) };
    let here = !name.contains('/') && source::live()?.host.readlink(&format!("/sys/class/net/{name}")).is_ok();
    match here {
        true => Ok(Some(name.clone())),
        false => Err(Fail::usage(format!("this host has no interface \"{name}\"")).next("ringwise show --all")),
    }
}

fn ask(request: &ControlRequest, common: &Common) -> Result<Status> {
    let answer = match ringwise_daemon::send_request(&store(common), request) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            let next = match request {
                ControlRequest::Stop { restore: true } => "ringwise rollback 0",
                ControlRequest::Stop { .. } => "systemctl status ringwise-daemon",
                _ => "systemctl start ringwise-daemon",
            };
            return Err(Fail::error("the service does not run").code("service_not_running").next(next));
        }
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            return Err(Fail::error("only root may talk to the service")
                .code("needs_root")
                .next("the same command with sudo"));
        }
        other => other.map_err(|e| Fail::error(format!("the service does not answer: {}", io_reason(&e))))?,
    };
    let status = Status::of_transaction(answer.exit_status());
    if let Some(why) = answer.error {
        let fail = Fail::new(status, format!("the service answers: {why}"));
        return Err(match status {
            Status::NotPutBack => fail.code("not_restored").next("ringwise recover"),
            Status::PutBack => fail.code("restored"),
            _ => fail.code("service_refused"),
        });
    }
    let done = match (request, answer.transaction) {
        (ControlRequest::Pause { interface: None }, _) => {
            "The service leaves the whole host alone. Undo: ringwise daemon resume"
        }
        (ControlRequest::Pause { interface: Some(_) }, _) => {
            "The service leaves it alone. Undo: ringwise daemon resume DEV"
        }
        (ControlRequest::Resume { .. }, _) => "The service keeps the layout again.",
        (ControlRequest::Stop { restore: false }, _) => "The service ends. Settings stay in effect.",
        (ControlRequest::Stop { restore: true }, _) if status == Status::Findings => {
            "The service ends. Settings are as first found since boot, except those that were refused or that wait for an \
             offline CPU: ringwise history"
        }
        (ControlRequest::Stop { restore: true }, Some(_)) => {
            "The service ends. Every setting is as first found since boot."
        }
        (ControlRequest::Stop { restore: true }, None) => "The service ends. There was nothing to restore.",
    };
    out::note(common.quiet, done);
    Ok(status)
}
