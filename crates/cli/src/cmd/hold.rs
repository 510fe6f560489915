//! `ringwise hold`: limits the wake-up latency of CPUs for as long as a program runs.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use ringwise_sys::{hold, proc};

use crate::args::{Common, HoldArgs};
use crate::exit::{Result, Status};
use crate::out;

/// As with `env`, `nice` and `timeout`, failures of `hold` have statuses of their own.
const FAILED: i32 = 125;
const CANNOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Returns only errors; otherwise the process exits with the status of the program.
pub(super) fn run(a: &HoldArgs, common: &Common) -> Result<Status> {
    std::process::exit(held(a, common))
}

fn held(a: &HoldArgs, common: &Common) -> i32 {
    let [program, words @ ..] = a.command.as_slice() else {
        return fail(FAILED, "no command is given: expected hold --cpu-latency US -- CMD");
    };
    let mut wish = match hold::cpu_latency(a.cpu_latency) {
        Ok(w) => w,
        Err(e) => return fail(FAILED, &why(&e)),
    };
    match wish.lowest_latency() {
        Ok(now) if i64::from(now) < i64::from(a.cpu_latency) => {
            out::note(common.quiet, &format!("ringwise: another program limits the latency to {now} us already"));
        }
        Ok(_) => {}
        Err(e) => out::note(common.quiet, &format!("ringwise: cannot read the latency limit in effect: {e}")),
    }
    let status = hold::run(Command::new(program).args(words));
    drop(wish);
    match status {
        Ok(s) => code(s),
        Err(e) => {
            let named = format!("{}: {}", program.to_string_lossy(), crate::exit::io_reason(&e));
            fail(if e.kind() == ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN }, &named)
        }
    }
}

fn why(e: &ringwise_sys::Error) -> String {
    let hint = match e.errno {
        Some(1 | 13) if proc::euid() != 0 => ": hold --cpu-latency needs root",
        Some(2 | 6 | 19) => ": this kernel does not have the device, or a container hides it",
        _ => "",
    };
    format!("{e}{hint}; the command was not started")
}

/// The exit code; 128 and the signal's number if a signal ended the program.
fn code(s: ExitStatus) -> i32 {
    s.code().or_else(|| s.signal().map(|n| 128 + n)).unwrap_or(FAILED)
}

fn fail(code: i32, text: &str) -> i32 {
    out::error(&format!("error: {text}"));
    code
}
