//! The program itself: its size, and `show` from a cold start on the machine at hand (read only).

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::table::Table;
use crate::{Result, links, machine, median};

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let program = build()?;
    let size = std::fs::metadata(&program)?.len() as f64 / 1e6;
    table.below("static binary", 12.0, size, "MB");
    let interp = Command::new("readelf").arg("-l").arg(&program).output();
    match interp {
        Ok(out) if out.status.success() => {
            let dynamic = String::from_utf8_lossy(&out.stdout).contains("INTERP");
            table.exactly("  needs a dynamic linker (0: no)", 0, usize::from(dynamic));
        }
        _ => table.note("  needs a dynamic linker", "not looked at: no readelf here".into()),
    }
    let nothing = median(41, || run(&mut Command::new("true")));
    table.note_time("starting a program that does nothing (true)", nothing);
    for (what, args) in [("show", &["show"][..]), ("show -j", &["show", "-j"])] {
        let mut failed = None;
        let time = median(41, || match run(Command::new(&program).args(args)) {
            Ok(()) => {}
            Err(e) => failed = Some(e.to_string()),
        });
        match failed {
            Some(why) => table.missing(&format!("{what}, started anew, this machine"), &why),
            None => table.time(&format!("{what}, started anew, this machine"), 20.0, time),
        }
    }
    links::measure(table, &program)
}

/// Runs a command to its end. An error contains its exit status and its error output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let out = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    if out.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim()).into())
}

/// As it is shipped: static, release profile.
fn build() -> Result<PathBuf> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| machine::root().join("target"), PathBuf::from);
    let status = Command::new(cargo)
        .current_dir(machine::root())
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .args(["build", "--quiet", "--release", "--target", TARGET, "-p", "ringwise"])
        .status()?;
    if !status.success() {
        return Err(format!("building the static program: {status}").into());
    }
    Ok(target.join(TARGET).join("release/ringwise"))
}
