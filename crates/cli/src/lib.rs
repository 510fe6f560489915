//! The `ringwise` program: arguments, commands, and the code that connects the crates.
//!
//! ```text
//!   args ─► cmd/NAME ─► source (live host or recording) ─► discover · plan · apply
//!                └────► ringwise_render ─► out
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod args;
mod cmd;
mod disturbs;
pub mod error_details;
mod error_document;
pub mod exit;
pub mod logbook;
pub mod out;
mod page;
mod source;
mod style;
#[cfg(test)]
mod topics_tests;

use std::process::ExitCode;

/// Installs the panic hook. A panic ends the program, and the guard restores the settings. In a thread that reads the host
/// a panic costs only that reading.
pub fn panic_hook() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // Leaving the full screen first keeps the message visible.
        let full = ringwise_sys::terminal::leave();
        default_hook(panic);
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|v| v != "0") {
            // A released program has no names of functions. ARCHITECTURE.md shows how to look them up.
            let at = ringwise_sys::proc::load_address();
            eprintln!("ringwise {}, loaded at {at:#x}", env!("CARGO_PKG_VERSION"));
        }
        if full && ringwise_sys::reading::reads() {
            ringwise_sys::terminal::reshow();
        }
        ringwise_sys::reading::panicked();
    }));
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    panic_hook();
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(e) => return not_parsed(&e),
    };
    // Before the first thread, and before anything of the host is read. The program that `hold` starts keeps the CPUs of
    // its caller.
    let isolation = match cli.command {
        Some(args::Cmd::Hold(_)) => ringwise_sys::Isolation::Nothing,
        _ => ringwise_sys::leave_isolated(),
    };
    if cli.common.verbose > 0
        && let Some(text) = isolation_text(&isolation)
    {
        out::note(cli.common.quiet, &text);
    }
    let quiet = cli.common.quiet;
    let status = match cmd::run(cli) {
        Ok(status) => status.into(),
        Err(fail) => failed(&fail),
    };
    // irqbalance dies if it answers a process that has ended. By default it sleeps for 10 s at most before it answers.
    let wait = std::time::Duration::from_secs(15);
    ringwise_sys::irqbalance_answered(wait, || {
        out::note(
            quiet,
            "ringwise: waiting for an answer of irqbalance, at most 15 s: it would die if ringwise ended now",
        );
    });
    status
}

/// Prints an error, and its document if JSON is requested.
fn failed(fail: &exit::Fail) -> ExitCode {
    out::fail(fail);
    if error_document::requested(&words()) {
        out::error_document(fail);
    }
    fail.status.into()
}

/// The arguments of the process, without the name of the program.
fn words() -> Vec<String> {
    std::env::args_os().skip(1).map(|w| w.to_string_lossy().into_owned()).collect()
}

/// Prints the help, the version, or the error of the command line.
fn not_parsed(e: &clap::Error) -> ExitCode {
    let is_interface = |name: &str| {
        let path = format!("/sys/class/net/{name}");
        !name.contains('/') && source::live().is_ok_and(|s| s.host.readlink(&path).is_ok())
    };
    if let Some(fail) = args::usage_error::of(e, &words(), is_interface) {
        return failed(&fail);
    }
    // Help and version are answers. A reader that has closed the pipe is not an error.
    let _ = e.print();
    if e.use_stderr() { exit::Status::Usage.into() } else { ExitCode::SUCCESS }
}

/// The line about isolated CPUs that `-v` prints. A failure is printed as well, because reading the host may then disturb
/// those CPUs.
fn isolation_text(i: &ringwise_sys::Isolation) -> Option<String> {
    use ringwise_sys::Isolation;
    Some(match i {
        Isolation::Nothing => return None,
        Isolation::Left { isolated, to } => format!("ringwise: runs on CPUs {to}, off the isolated CPUs {isolated}"),
        Isolation::Asked { allowed } => {
            format!("ringwise: runs on the isolated CPUs {allowed}, because it may use no others (see taskset)")
        }
        Isolation::Failed { why } => format!("ringwise: could not leave the isolated CPUs: {why}"),
    })
}
