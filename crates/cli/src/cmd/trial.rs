//! What `apply --confirm` does after the transaction: asks, runs the health command, or leaves it to the guard.

use std::io::{BufRead, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use ringwise_apply::{OnTrial, Outcome, Pending, Policy, Refusal, Store, undo_now};
use ringwise_sys::{guardian, proc};

use super::confirm::{decide, end};
use super::transaction::{fail, finish, who};
use crate::args::{ApplyArgs, Common};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::Source;
use ringwise_render::outcome::{AFTER_APPLY, Run, summary};
use ringwise_render::status::overdue;
use ringwise_text::Style;
use ringwise_text::when;

const EACH: Duration = Duration::from_millis(100);
/// Number of lines of the health command's output that are printed.
const LINES: usize = 5;

/// How long the trial lasts. `None`: no trial is requested.
pub(super) fn wanted(a: &ApplyArgs) -> Option<Duration> {
    a.confirm.or(a.health.as_ref().map(|_| Duration::from_secs(60)))
}

/// Finishes `apply` or `rollback`: prints the outcome, or handles the trial.
#[allow(clippy::too_many_arguments, reason = "both callers have these values; a struct would only be unpacked again")]
pub(super) fn follow(
    o: &Outcome,
    run: Run,
    a: &ApplyArgs,
    common: &Common,
    source: &Source,
    store: &Store,
    policy: &Policy,
    style: &Style,
) -> Result<Status> {
    let as_json = a.json(common);
    let (Some(trial), Some(id)) = (&o.trial, o.transaction) else { return finish(o, run, as_json, style) };
    let and_then = |status: Status| {
        if status == Status::Ok && run == Run::Apply && !as_json {
            out::answer(AFTER_APPLY)?;
        }
        Ok(status)
    };
    if let Some(command) = &a.health {
        out::note(common.quiet, &format!("ringwise: on trial; running the health command: {command}"));
        return match health(command, trial, source, policy) {
            Ok(()) => and_then(kept(source, store, as_json, style)?),
            Err(why) => undo(source, store, id, "health command", &why, as_json, style),
        };
    }
    let asked = !a.write.yes && !as_json && proc::is_tty(&std::io::stdin()) && proc::is_tty(&std::io::stderr());
    if !asked {
        return finish(o, run, as_json, style);
    }
    out::answer(&summary(o, run, style))?;
    match ask(source, store, policy) {
        TrialDecision::Keep | TrialDecision::Decided => and_then(kept(source, store, as_json, style)?),
        TrialDecision::Undo => undo(source, store, id, &who(), "undone on the terminal", as_json, style),
        TrialDecision::Left => {
            out::error("\nringwise: still on trial; to keep the changes: ringwise confirm");
            Ok(Status::Ok)
        }
    }
}

/// Like `ringwise confirm`, but a refusal has the status of findings, because this command has changed the host.
fn kept(source: &Source, store: &Store, as_json: bool, style: &Style) -> Result<Status> {
    decide(source, store, as_json, style).map_err(|f| match f.status {
        Status::Refused => Fail { status: Status::Findings, ..f },
        _ => f,
    })
}

fn undo(source: &Source, store: &Store, id: u64, by: &str, why: &str, as_json: bool, style: &Style) -> Result<Status> {
    match undo_now(store, id, by, why, source.host.unix_time()) {
        // Another process has decided already; its outcome is reported.
        Ok(false) => return kept(source, store, as_json, style),
        Err(e) if e.refusal().is_none() => return Err(fail(&e)),
        _ => {}
    }
    end(source, store, id, as_json, style)
}

enum TrialDecision {
    Keep,
    Undo,
    /// Another process or the timer has decided.
    Decided,
    /// A signal came, or the terminal is gone. The guard stays.
    Left,
}

fn ask(source: &Source, store: &Store, policy: &Policy) -> TrialDecision {
    let (send, lines) = channel();
    // The thread may wait for a line forever; it ends with the process.
    let reader = std::thread::Builder::new().name("terminal".into()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if send.send(line).is_err() {
                return;
            }
        }
    });
    if reader.is_err() {
        return TrialDecision::Left;
    }
    let question = "Confirm now? [y = keep, u = undo now]";
    out::prompt(question);
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    loop {
        match lines.recv_timeout(EACH) {
            Ok(l) => match l.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return TrialDecision::Keep,
                "u" | "undo" => return TrialDecision::Undo,
                _ => out::prompt(question),
            },
            Err(RecvTimeoutError::Disconnected) => return TrialDecision::Left,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if policy.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return TrialDecision::Left;
        }
        if ringwise_apply::pending(store, &host).is_ok_and(|p| p.is_none()) {
            out::error("");
            return TrialDecision::Decided;
        }
    }
}

/// Runs the command in a process group of its own until the trial ends. Any exit status but 0 is a reason to undo.
fn health(command: &str, trial: &OnTrial, source: &Source, policy: &Policy) -> std::result::Result<(), String> {
    let broken = |e: std::io::Error| format!("the health command cannot be started: {e}");
    let (reader, writer) = std::io::pipe().map_err(broken)?;
    let mut c = Command::new("/bin/sh");
    c.arg("-c").arg(command).stdin(Stdio::null()).process_group(0);
    c.stdout(writer.try_clone().map_err(broken)?).stderr(writer);
    let mut child = c.spawn().map_err(broken)?;
    // The command object holds copies of the pipe, which would keep the reader waiting.
    drop(c);
    let output = listen(reader);
    let until = Duration::from_millis(trial.until_boot_ms);
    let how = loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break Ok(()),
            Ok(Some(status)) => break Err(how_it_ended(status)),
            Ok(None) => {}
            Err(e) => break Err(format!("cannot be waited for: {e}")),
        }
        if source.host.since_boot() >= until {
            break Err(format!("did not end within {} s", trial.seconds));
        }
        if policy.stop.load(std::sync::atomic::Ordering::Relaxed) {
            break Err("was stopped by a signal to ringwise".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if how.is_err() {
        guardian::kill_group(child.id());
        let _ = child.wait(); // the process was killed, or was waited for already
    }
    how.map_err(|how| {
        let output = output.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        let words = if output.is_empty() { String::new() } else { format!(": {}", output.join(" / ")) };
        format!("the health command {how}{words}")
    })
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(c), _) => format!("exited with status {c}"),
        (None, Some(s)) => format!("was killed by signal {s}"),
        (None, None) => "ended".into(),
    }
}

/// Reads the output to its end, so that the command never blocks, and keeps the last lines.
fn listen(mut reader: impl Read + Send + 'static) -> Receiver<Vec<String>> {
    let (send, receive) = channel();
    let kept = move || {
        let mut tail: Vec<u8> = Vec::new();
        let mut block = [0; 4096];
        while let Ok(n) = reader.read(&mut block) {
            if n == 0 {
                break;
            }
            tail.extend_from_slice(&block[..n]);
            let over = tail.len().saturating_sub(4096);
            tail.drain(..over);
        }
        let text = String::from_utf8_lossy(&tail).into_owned();
        let lines: Vec<String> = text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_string).collect();
        let last = lines.len().saturating_sub(LINES);
        let _ = send.send(lines[last..].to_vec()); // the output of a successful command is not read
    };
    // If the thread cannot be started, the sender is dropped, and the output counts as empty.
    drop(std::thread::Builder::new().name("health".into()).spawn(kept));
    receive
}

/// A refusal because of a transaction on trial.
pub(super) fn refusal(transaction: u64, text: String) -> Fail {
    let mut fail = Fail::refused("on_trial", text);
    fail.details.facts.insert("transaction".into(), transaction.into());
    fail
}

/// Refuses to report "nothing to do" while a transaction is on trial, because its settings may be put back.
pub(super) fn none_waits(source: &Source, store: &Store, style: &Style) -> Result<()> {
    let (host, _) = ringwise_discover::host(source.host.as_ref());
    match ringwise_apply::pending(store, &host).map_err(|e| fail(&e))? {
        Some(Pending { guard: None, transaction, .. }) => Err(fail(&Refusal::OnTrial { transaction }.into())),
        Some(p) => {
            let until = when::clock(p.trial.until(source.host.as_ref()), style.utc);
            if let Some(late) = p.trial.overdue(source.host.since_boot()) {
                return Err(refusal(p.transaction, overdue(&p, late, &until)).next("ringwise"));
            }
            let pid =
                p.guard.as_ref().and_then(|g| g.pid).map(|n| format!(" (guard: process {n})")).unwrap_or_default();
            let text = format!(
                "transaction {} of {} is on trial until {until}{pid}: without confirmation it is restored then",
                p.transaction, p.who
            );
            Err(refusal(p.transaction, text).next("ringwise confirm"))
        }
        None => Ok(()),
    }
}

/// Refuses an empty health command.
pub(super) fn check(a: &ApplyArgs) -> Result<()> {
    match (&a.health, a.write.dry_run) {
        (Some(h), false) if h.trim().is_empty() => {
            Err(Fail::usage("--health needs a command: expected e.g. --health 'ping -c 3 192.0.2.1'"))
        }
        _ => Ok(()),
    }
}
