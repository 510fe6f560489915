//! What irqbalance costs on the same machine of files: its own program, in a mount namespace where these files are in the place of
//! those of the kernel, so that it can neither read nor write the running machine's.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Result;

/// Rounds that are measured; with `--interval=1` one takes a second, while its default is 10 s.
const ROUNDS: u64 = 20;

/// The program, and the directories of its libraries if it was only unpacked.
struct IrqbalanceBinary {
    path: PathBuf,
    libraries: String,
}

/// That of this machine, else what `cargo xtask setup` has unpacked for the lab.
fn program() -> Option<IrqbalanceBinary> {
    let installed = ["/usr/sbin/irqbalance", "/usr/bin/irqbalance"].map(PathBuf::from);
    if let Some(path) = installed.into_iter().find(|p| p.is_file()) {
        return Some(IrqbalanceBinary { path, libraries: String::new() });
    }
    let root = PathBuf::from(std::env::var_os("HOME")?).join(".cache/ringwise-lab/irqbalance");
    let path = root.join("usr/sbin/irqbalance");
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    let dirs = [root.join("lib").join(&machine), root.join("usr/lib").join(&machine)];
    let libraries = dirs.map(|d| d.display().to_string()).join(":");
    path.is_file().then_some(IrqbalanceBinary { path, libraries })
}

/// CPU time of one round of its default interval. Errors: it is not here, or it cannot run in a mount namespace.
pub(crate) fn round(tree: &Path) -> Result<Duration> {
    let program = program().ok_or("not found: cargo xtask setup unpacks it")?;
    // If a bind fails, irqbalance is not started.
    let script = "set -e
        for f in proc/interrupts proc/stat proc/irq sys; do mount --bind \"$1/$f\" \"/$f\"; done
        mount -t tmpfs none /run
        mkdir /run/irqbalance
        exec \"$2\" --foreground --interval=1";
    let mut child = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
        .arg(tree)
        .arg(&program.path)
        .env("LD_LIBRARY_PATH", &program.libraries)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let measured = measure(&child);
    let _ = child.kill();
    child.wait()?;
    measured
}

fn measure(child: &Child) -> Result<Duration> {
    // It reads the machine once before its first round.
    std::thread::sleep(Duration::from_secs(5));
    let before = cpu_time(child.id())?;
    std::thread::sleep(Duration::from_secs(ROUNDS));
    Ok(cpu_time(child.id())?.saturating_sub(before) / ROUNDS as u32)
}

/// Time on a CPU (`/proc/PID/schedstat`, in nanoseconds): ticks of 10 ms are too coarse for a small machine.
fn cpu_time(pid: u32) -> Result<Duration> {
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"))?;
    if comm.trim() != "irqbalance" {
        return Err("it does not run; root is needed".into());
    }
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let ns = text.split_whitespace().next().and_then(|n| n.parse().ok()).ok_or("no time in schedstat")?;
    if ns == 0 {
        return Err("this kernel does not count the time of a process in nanoseconds".into());
    }
    Ok(Duration::from_nanos(ns))
}
