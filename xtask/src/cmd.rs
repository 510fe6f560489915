//! Running other programs: output captured, shown only when they fail.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

fn name(cmd: &Command) -> String {
    let mut words = vec![cmd.get_program().to_string_lossy().into_owned()];
    words.extend(cmd.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}

/// Runs the program and returns its stdout. The error contains both outputs.
pub(crate) fn output(cmd: &mut Command) -> Result<String> {
    let bytes = bytes(cmd)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The same, for programs that print bytes.
pub(crate) fn bytes(cmd: &mut Command) -> Result<Vec<u8>> {
    let done = cmd.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", name(cmd)))?;
    if !done.status.success() {
        bail!(
            "{} exited with {}\n{}{}",
            name(cmd),
            done.status,
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
    }
    Ok(done.stdout)
}

/// Runs with the terminal's own output.
pub(crate) fn visible(cmd: &mut Command) -> Result<()> {
    let status = cmd.stdin(Stdio::null()).status().with_context(|| format!("cannot start {}", name(cmd)))?;
    if !status.success() {
        bail!("{} exited with {status}", name(cmd));
    }
    Ok(())
}

/// Tries up to three times with increasing pauses, because networks fail.
pub(crate) fn retried<T>(what: &str, mut f: impl FnMut() -> Result<T>) -> Result<T> {
    for attempt in 1..3 {
        match f() {
            Ok(v) => return Ok(v),
            Err(e) => eprintln!("{what}: attempt {attempt} failed, trying again\n{e:#}"),
        }
        std::thread::sleep(std::time::Duration::from_secs(5 * attempt));
    }
    f().with_context(|| format!("{what}: failed three times"))
}

/// The path of a program. It is found even if the user's PATH lacks the system directories.
pub(crate) fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"])
        .map(|dir| Path::new(dir).join(program))
        .find(|p| p.is_file())
}

/// The path of a program, or an error with the command that installs it.
pub(crate) fn need(program: &str) -> Result<std::path::PathBuf> {
    find(program).with_context(|| format!("{program} is missing: run `cargo xtask setup`"))
}

/// A hash that is the same on every run, for names of cached files.
pub(crate) fn hash(parts: &[&[u8]]) -> String {
    // FNV-1a, 64 bits: it needs no dependency, and our own cache has no attackers.
    let mut h: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for b in part.iter().chain(&[0xff]) {
            h = (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{h:016x}")
}
