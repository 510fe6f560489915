//! Shared by apply, rollback and recover: the store, the time limits, the question, and the lines about events.
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringwise_apply::{Event, Outcome, Policy, Process, Request, Store};
use ringwise_knob::Learned;
use ringwise_model::Title;
pub(super) use ringwise_model::words::with_causes as words;
use ringwise_sys::{Host, proc};

use crate::args::{Common, Write};
use crate::exit::{Fail, Result, Status};
use crate::logbook::Logbook;
use crate::out;
use ringwise_render::outcome::{self, Run, ValuesBefore};
use ringwise_text::Style;
use ringwise_text::{visible, when};

pub(super) fn store(common: &Common) -> Store {
    let quiet = common.quiet;
    Store::open(common.state_dir.as_deref()).with_waiting(Arc::new(move |holder, most| {
        let transaction = holder.transaction.map_or("a transaction".into(), |id| format!("transaction {id}"));
        let most = most.as_secs();
        out::note(quiet, &format!("ringwise: waiting until {transaction} of the service ends, at most {most} s"));
    }))
}

/// The error if the user named a state directory that does not exist.
pub(super) fn state_dir_missing(common: &Common) -> Option<Fail> {
    let dir = common.state_dir.as_ref()?;
    let is_missing = dir.try_exists().is_ok_and(|exists| !exists);
    let message = || format!("the state directory {} does not exist", visible(&dir.to_string_lossy()));
    is_missing.then(|| Fail::error(message()).code("record_missing").file(dir))
}

/// What devices were found to refuse or ignore. If it cannot be read, that is reported, and the list is empty.
pub(super) fn learned(common: &Common) -> Vec<Learned> {
    match store(common).learned() {
        Ok(l) => l,
        Err(e) => {
            out::note(
                common.quiet,
                &format!("ringwise: cannot use what was learned about devices before: {}", words(&e)),
            );
            Vec::new()
        }
    }
}

/// Converts an error of apply: adds the exit status and the next command.
pub(super) fn fail(e: &ringwise_apply::Error) -> Fail {
    let status = if e.exit_status() == 6 { Status::Refused } else { Status::Error };
    let fail = about(e, Fail::new(status, words(e)));
    match e.refusal() {
        Some(ringwise_apply::Refusal::Changed { .. }) => fail.next("ringwise plan"),
        Some(ringwise_apply::Refusal::Unfinished { .. }) => fail.next("ringwise recover"),
        Some(ringwise_apply::Refusal::Newer { .. }) => fail,
        Some(ringwise_apply::Refusal::Locked { holder, .. }) => match holder.trial_until_unix {
            Some(t) => fail.next(format!("ringwise confirm, before {}", when::clock(t, false))),
            None => fail,
        },
        Some(ringwise_apply::Refusal::Elsewhere { .. }) => {
            fail.next("ss -xlp | grep ringwise-lock      (shows the process)")
        }
        Some(ringwise_apply::Refusal::NoTransaction { .. } | ringwise_apply::Refusal::UnknownTransaction { .. }) => {
            fail.next("ringwise history")
        }
        _ => fail,
    }
}

/// Adds what a program decides by.
fn about(e: &ringwise_apply::Error, fail: Fail) -> Fail {
    match e {
        ringwise_apply::Error::Refused(r) => {
            let mut fail = fail.tagged("refused", r).settings(r.addresses().into_iter().cloned().collect());
            if let Some(transaction) = r.on_trial() {
                // One code for every trial, whether its guard holds the lock or is gone.
                fail = fail.code("on_trial");
                fail.details.facts.insert("transaction".into(), transaction.into());
            }
            match &**r {
                ringwise_apply::Refusal::State { path, .. } | ringwise_apply::Refusal::Newer { path, .. } => {
                    fail.file(path)
                }
                _ => fail,
            }
        }
        ringwise_apply::Error::State { path, source } => fail.code("io").errno(source.raw_os_error()).file(path),
        ringwise_apply::Error::Damaged { path, .. } => fail.code("state_damaged").file(path),
        ringwise_apply::Error::Discover(e) => fail.code(crate::source::code(e)),
        _ => fail,
    }
}

/// `root`, `root (sudo: anna)`.
pub(super) fn who() -> String {
    let name = proc::user_name();
    let before_sudo = std::env::var_os("SUDO_USER").is_some_and(|u| !u.is_empty());
    match (proc::euid(), before_sudo) {
        (0, true) if name != "root" => format!("root (sudo: {name})"),
        (0, _) => "root".into(),
        _ => name,
    }
}

/// A request without steps: the user, the title and the reason.
pub(super) fn request(title: Title, reason: Option<&String>) -> Request {
    let argv = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    Request { title, reason: reason.cloned(), who: who(), argv, ..Request::default() }
}

/// The default time limits. A signal stops the run before the next step, and everything is put back.
pub(super) fn policy() -> Result<Policy> {
    let policy = Policy { guard: Some(Arc::new(Process::default())), ..Policy::default() };
    let flag = proc::install_signal_flag().map_err(Fail::from)?;
    let stop: Arc<AtomicBool> = policy.stop.clone();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            while flag.raised().is_none() {
                std::thread::sleep(Duration::from_millis(20));
            }
            stop.store(true, Ordering::SeqCst);
        })
        .map_err(|e| Fail::io("cannot start the thread that waits for signals", &e))?;
    Ok(policy)
}

/// Refuses to continue without a terminal, because the user cannot be asked, and without root, because the kernel would
/// refuse every write.
pub(super) fn can_go_on(write: &Write, command: &str) -> Result<()> {
    if !write.dry_run && proc::euid() != 0 && proc::may_override() == Some(false) {
        return Err(Fail::error(format!("{command} needs root; nothing was touched"))
            .code("needs_root")
            .next(format!("sudo ringwise {command}, or ringwise {command} -n to only show what it would do")));
    }
    if write.yes || write.dry_run || (proc::is_tty(&std::io::stdin()) && proc::is_tty(&std::io::stderr())) {
        return Ok(());
    }
    Err(Fail::refused(
        "no_terminal",
        format!("{command} asks before it changes anything, but this is not a terminal; nothing was touched"),
    )
    .next(format!("ringwise {command} --yes, or with -n to only show what it would do")))
}

/// Asks on the terminal. `more` makes the text that the answer `show` prints.
pub(super) fn confirmed(write: &Write, question: &str, more: &dyn Fn() -> String) -> Result<bool> {
    if write.yes {
        return Ok(true);
    }
    loop {
        out::prompt(question);
        let mut line = String::new();
        let n = std::io::stdin()
            .lock()
            .read_line(&mut line)
            .map_err(|e| Fail::refused("not_confirmed", format!("cannot read the answer: {e}; nothing was touched")))?;
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "s" | "show" => out::error(&more()),
            _ if n == 0 => return Ok(false),
            "" | "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

/// Asks for one of these words. `None`: any other answer, or the end of the input.
pub(super) fn answer(question: &str, words: &[&str]) -> Result<Option<String>> {
    out::prompt(question);
    let mut line = String::new();
    let n = std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|e| Fail::refused("not_confirmed", format!("cannot read the answer: {e}; nothing was touched")))?;
    let word = line.trim().to_ascii_lowercase();
    Ok((n > 0 && words.contains(&word.as_str())).then_some(word))
}

/// The current values of the settings in effect: the left side of `0 -> 0-15` when they are restored.
pub(super) fn standing_now(host: &Arc<dyn Host>, store: &Store, policy: &Policy) -> ValuesBefore {
    let Ok(v) = ringwise_apply::verify(host, store, policy) else {
        // The run itself reports the error.
        return ValuesBefore::default();
    };
    v.settings.iter().filter_map(|s| Some((s.want.address()?, s.now.known()?.value_text()))).collect::<BTreeMap<_, _>>()
}

/// Prints events as they come, and writes them to the system log.
pub(super) fn printer<'a>(
    host: &'a Arc<dyn Host>,
    before: &'a ValuesBefore,
    style: &'a Style,
    quiet: bool,
    reason: Option<&str>,
) -> impl FnMut(&Event) + 'a {
    let mut log = Logbook::open(&who(), reason);
    move |e: &Event| {
        log.event(e);
        let clock = when::clock(host.unix_time(), style.utc);
        if let Some(line) = outcome::event(e, before, &clock, style) {
            out::later(quiet, line);
        }
    }
}

/// The style of events, which go to stderr: colours only if stderr is a terminal.
pub(super) fn stderr_style(style: &Style) -> Style {
    Style { color: style.color && proc::is_tty(&std::io::stderr()), ..style.clone() }
}

/// Prints the outcome, and returns the exit status.
pub(super) fn finish(o: &Outcome, run: Run, as_json: bool, style: &Style) -> Result<Status> {
    Logbook::of(o.transaction).outcome(o);
    if as_json {
        out::json(o)?;
    } else {
        out::answer(&outcome::summary(o, run, style))?;
    }
    Ok(Status::of_transaction(o.exit_status()))
}
