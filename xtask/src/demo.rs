//! `cargo xtask demo`: lab/demo.sh on router16, live on the terminal; and an interactive guest.

use crate::boot::{Guest, Mode};
use crate::{host, kernel, program, setup};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub fn run(args: &[String]) -> Result<ExitCode> {
    let program = match args {
        [] => None,
        [flag, path] if flag == "--program" => Some(PathBuf::from(path)),
        [other, ..] => bail!("demo takes only --program FILE, not {other:?}"),
    };
    guest("router16", "6.12", Mode::Demo, program)
}

/// Boots one guest on this terminal; its status is ours.
pub fn guest(host_name: &str, kernel_name: &str, mode: Mode, program: Option<PathBuf>) -> Result<ExitCode> {
    setup::tools()?;
    let ringwise = program.map_or_else(program::build, Ok)?;
    let hosts = host::all()?;
    let host = hosts.iter().find(|h| h.name == host_name).with_context(|| format!("no host {host_name}"))?;
    let kernels = kernel::table()?;
    let kernel = kernels.iter().find(|k| k.name == kernel_name).with_context(|| format!("no kernel {kernel_name}"))?;
    let guest = Guest::prepare(host, kernel)?;
    let limit = match mode {
        Mode::Shell => Duration::from_secs(8 * 3600),
        _ => Duration::from_secs(600),
    };
    println!(
        "booting {} ({}) on Linux {} in QEMU, without KVM; about ten seconds",
        host.name, host.about, guest.ready.release
    );
    let mut ended;
    let mut tries = 0;
    loop {
        guest.fill(&ringwise, mode, &[])?;
        ended = guest.run(mode, limit)?;
        tries += 1;
        let Some(lost) = ended.lost.clone().filter(|_| tries < 3) else {
            break;
        };
        println!("{lost}, booting it again");
    }
    match ended.guest_status() {
        Some(n) => Ok(ExitCode::from(n)),
        None => bail!("the guest ended without a status after {:.0?}", ended.took),
    }
}
