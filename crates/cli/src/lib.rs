//! The `ringwise` program: arguments and commands, and what binds the crates together.
//!
//! ```text
//!   args ─► cmd/NAME ─► source (live host or recording) ─► discover · plan · apply
//!                └────► ringwise_render ─► out
//! ```
#![forbid(unsafe_code)]

pub mod args;
mod cmd;
mod disturbs;
pub mod exit;
pub mod logbook;
pub mod out;
mod source;
mod style;

use std::process::ExitCode;

use clap::FromArgMatches;

/// A panic ends the program, and the guard restores the settings; one in a thread that reads costs that answer.
pub fn panic_hook() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The message belongs on the screen that stays.
        let full = ringwise_sys::terminal::leave();
        told(panic);
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|v| v != "0") {
            // A shipped program has no names of functions: ARCHITECTURE.md says how to look them up.
            let at = ringwise_sys::proc::load_address();
            eprintln!("ringwise {}, loaded at {at:#x}", env!("CARGO_PKG_VERSION"));
        }
        if full && ringwise_sys::reading::reads() {
            ringwise_sys::terminal::reshow();
        }
        ringwise_sys::reading::panicked();
    }));
}

/// The whole program.
pub fn main() -> ExitCode {
    panic_hook();
    let parsed = args::command().try_get_matches().and_then(|m| args::Cli::from_arg_matches(&m));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are answers; a reader that went away is no error.
            let _ = e.print();
            return if e.use_stderr() { exit::Status::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    // Before the first thread, and before anything of the host is read. What `hold` starts runs where its
    // caller wants it.
    let isolation = match cli.command {
        Some(args::Cmd::Hold(_)) => ringwise_sys::Isolation::Nothing,
        _ => ringwise_sys::leave_isolated(),
    };
    if cli.common.verbose > 0
        && let Some(text) = isolation_text(&isolation)
    {
        out::note(cli.common.quiet, &text);
    }
    match cmd::run(cli) {
        Ok(status) => status.into(),
        Err(fail) => {
            out::error(&fail.to_string());
            fail.status.into()
        }
    }
}

/// What `-v` says about it. A failure is worth a line as well: the reading may be felt on those CPUs then.
fn isolation_text(i: &ringwise_sys::Isolation) -> Option<String> {
    use ringwise_sys::Isolation;
    Some(match i {
        Isolation::Nothing => return None,
        Isolation::Left { isolated, to } => format!("ringwise: keeps off the isolated CPUs {isolated}: runs on {to}"),
        Isolation::Asked { allowed } => {
            format!("ringwise: runs on the isolated CPUs {allowed}: no other is allowed to it")
        }
        Isolation::Failed { why } => format!("ringwise: could not leave the isolated CPUs: {why}"),
    })
}
