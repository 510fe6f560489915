//! The `ringwise` program: arguments, commands, and renderers that turn values into text.
//!
//! ```text
//!   args ─► cmd/NAME ─► source (live host or recording) ─► discover · plan · apply
//!                └────► render/NAME (pure) ─► out
//! ```
#![forbid(unsafe_code)]

pub mod args;
mod cmd;
pub mod exit;
pub mod out;
pub mod render;
mod source;
pub mod style;
pub mod when;

use std::process::ExitCode;

use clap::FromArgMatches;

/// The whole program.
pub fn main() -> ExitCode {
    let parsed = args::command().try_get_matches().and_then(|m| args::Cli::from_arg_matches(&m));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are answers; a reader that went away is no error.
            let _ = e.print();
            return if e.use_stderr() { exit::Status::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    match cmd::run(cli) {
        Ok(status) => status.into(),
        Err(fail) => {
            out::error(&fail.to_string());
            fail.status.into()
        }
    }
}
