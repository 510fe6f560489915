//! `cargo xtask demo`: lab/demo.sh on router16, live on the terminal; and an interactive guest.

use crate::boot::{Guest, Mode};
use crate::program::Profile;
use crate::setup::Lane;
use crate::{host, kernel, program, progress, setup};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub(crate) const HOST: &str = "router16";
pub(crate) const KERNEL: &str = "6.12";

/// The demo takes two minutes on an idle machine.
const DEMO_LIMIT: Duration = Duration::from_secs(600);
const SHELL_LIMIT: Duration = Duration::from_secs(8 * 3600);
/// How often a guest is booted if QEMU loses it.
const BOOTS: usize = 3;

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let program = match args {
        [] => None,
        [flag, path] if flag == "--program" => Some(PathBuf::from(path)),
        [other, ..] => bail!("demo: expected only --program FILE, found {other:?}"),
    };
    guest(HOST, KERNEL, Mode::Demo, program)
}

/// Boots one guest on this terminal, and exits with its status.
pub(crate) fn guest(host_name: &str, kernel_name: &str, mode: Mode, program: Option<PathBuf>) -> Result<ExitCode> {
    let start = Instant::now();
    progress::catch_signals()?;
    let demo = mode == Mode::Demo;
    setup::tools(if demo { Lane::Demo } else { Lane::All })?;
    let hosts = host::all()?;
    let host = hosts.into_iter().find(|h| h.name == host_name).with_context(|| format!("no host {host_name}"))?;
    let host = if demo { host.without_test_nics() } else { host };
    let kernels = kernel::table()?;
    let kernel = kernels.iter().find(|k| k.name == kernel_name).with_context(|| format!("no kernel {kernel_name}"))?;
    // Fetching and building run at the same time: one waits for the network, the other for the CPUs.
    let (ringwise, guest) = progress::shown(|| {
        std::thread::scope(|threads| {
            let built = threads.spawn(|| program.map_or_else(|| program::for_guests(host.arch, Profile::Lab), Ok));
            let guest = Guest::prepare(&host, kernel, false);
            let built = built.join().map_err(|_| anyhow::anyhow!("the build thread panicked"))?;
            anyhow::Ok((built?, guest?))
        })
    })?;
    let (_share, prepared) = (demo.then(|| progress::temporary(&guest.dir)), start.elapsed());
    println!(
        "prepared in {:.0} s; booting {} ({}) on Linux {} in QEMU {}",
        prepared.as_secs_f64(),
        host.name,
        host.about,
        guest.ready.release,
        guest.accel
    );
    for n in 1..=BOOTS {
        guest.fill(&ringwise, mode, &[])?;
        let ended = guest.run(mode, if demo { DEMO_LIMIT } else { SHELL_LIMIT })?;
        if let Some(status) = ended.guest_status() {
            if demo {
                let (all, story) = (start.elapsed().as_secs_f64(), ended.took.as_secs_f64());
                println!(
                    "{all:.0} s in total: {:.0} s to fetch and build, {story:.0} s in the guest{}",
                    prepared.as_secs_f64(),
                    if n > 1 {
                        format!(", {:.0} s in guests that were lost", all - story - prepared.as_secs_f64())
                    } else {
                        String::new()
                    },
                );
            }
            return Ok(ExitCode::from(status));
        }
        match &ended.lost {
            Some(lost) if n < BOOTS => println!("\n{lost}: booting it again"),
            Some(lost) => bail!("{lost}, {BOOTS} times"),
            None => bail!("the guest ended without a status after {:.0} s", ended.took.as_secs_f64()),
        }
    }
    bail!("no guest was booted")
}
