//! The commands, one file each: a command takes its arguments and returns an exit status.

mod adopt;
mod apply;
mod bench;
mod capture;
mod check;
mod config;
mod confirm;
mod counting;
mod daemon;
mod explain;
mod export;
mod fleet;
mod generate;
mod goals;
mod guard;
mod help;
mod history;
mod hold;
mod learned;
mod manual_changes;
mod measure;
mod named;
mod not_in_file;
mod persist;
mod plan;
mod progress;
mod recover;
mod redaction;
mod report;
mod reviewed;
mod rollback;
mod sample;
mod show;
mod status;
mod support;
mod svg;
mod transaction;
mod trial;
mod verify;
mod wanted;
mod watch;

use crate::args::{Cli, Cmd, SourceArgs};
use crate::exit::{Fail, Result, Status};

pub(crate) use reviewed::{Expiry, expiry};

/// Runs the requested command.
pub(crate) fn run(cli: Cli) -> Result<Status> {
    let Cli { common, status: top, command } = cli;
    let Some(command) = command else {
        return status::run(&top, &common);
    };
    // `ringwise --from FILE show` means `ringwise show --from FILE`.
    let moved = |own: &mut SourceArgs| {
        if own.from.is_none() {
            own.from.clone_from(&top.from.from);
        }
        own.passive |= top.from.passive;
    };
    let reads = matches!(
        command,
        Cmd::Status(_) | Cmd::Show(_) | Cmd::Check(_) | Cmd::Plan(_) | Cmd::Verify(_) | Cmd::Explain(_) | Cmd::Help(_)
    );
    if (top.from.from.is_some() || top.from.passive) && !reads {
        return Err(Fail::usage(
            "--from and --passive work only with commands that read: status, show, check, plan, verify, explain",
        ));
    }
    match command {
        Cmd::Status(mut a) => {
            moved(&mut a.from);
            status::run(&a, &common)
        }
        Cmd::Show(mut a) => {
            moved(&mut a.from);
            fleet::refuse_several("show", a.from.from.as_deref(), &a.devs)?;
            show::run(&a, &common)
        }
        Cmd::Check(mut a) => {
            if a.from.is_empty() {
                a.from.extend(top.from.from.clone());
            }
            a.passive |= top.from.passive;
            check::run(&a, &common)
        }
        Cmd::Plan(mut a) => {
            if a.from.from.is_empty() {
                a.from.from.extend(top.from.from.clone());
            }
            a.from.passive |= top.from.passive;
            plan::run(&a, &common)
        }
        Cmd::Verify(mut a) => {
            moved(&mut a.from);
            verify::run(&a, &common)
        }
        Cmd::Explain(mut a) => {
            moved(&mut a.from);
            fleet::refuse_several("explain", a.from.from.as_deref(), &a.words)?;
            explain::run(&a, &common)
        }
        Cmd::Help(mut a) => {
            moved(&mut a.from);
            help::run(&a, &common)
        }
        Cmd::Watch(a) => watch::run(&a, &common),
        Cmd::Export(a) => export::run(&a, &common),
        Cmd::Report(a) => report::run(&a, &common),
        Cmd::Apply(a) => apply::run(&a, &common),
        Cmd::Confirm(a) => confirm::run(&a, &common),
        Cmd::Guard(a) => guard::run(&a, &common),
        Cmd::Rollback(a) => rollback::run(&a, &common),
        Cmd::Adopt(a) => adopt::run(&a, &common),
        Cmd::Daemon(a) => daemon::run(&a, &common),
        Cmd::History(a) => history::run(&a, &common),
        Cmd::Learned(a) => learned::run(&a, &common),
        Cmd::Recover(a) => recover::run(&a, &common),
        Cmd::Bench(a) => bench::run(&a, &common),
        Cmd::Hold(a) => hold::run(&a, &common),
        Cmd::Capture(a) => capture::run(&a, &common),
        Cmd::Persist(a) => persist::run(&a, &common),
        Cmd::Config(a) => config::run(&a, &common),
        Cmd::Support(a) => support::run(&a, &common),
        Cmd::Man { dir } => generate::man(&dir),
        Cmd::InEffect => persist::is_anything_in_effect(&common),
        Cmd::Units { dir } => generate::units(&dir),
        Cmd::Completions { shell } => generate::completions(shell),
    }
}
