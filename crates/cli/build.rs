//! Makes the static, position-independent program smaller: packs relative relocations (130 KB), and folds equal functions
//! (390 KB) where the linker can: lld, which is the default of rustc on x86-64 since 1.90.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const FOLD: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if !features.split(',').any(|f| f == "crt-static") {
        return;
    }
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    if env::var("PROFILE").is_ok_and(|p| p == "release") && links_with(FOLD).unwrap_or(false) {
        println!("cargo:rustc-link-arg-bins={FOLD}");
    }
}

/// Whether the linker accepts the argument, tried with an empty program. `None`: it could not be tried.
fn links_with(arg: &str) -> Option<bool> {
    let dir = PathBuf::from(env::var_os("OUT_DIR")?);
    let source = dir.join("empty.rs");
    fs::write(&source, "fn main() {}\n").ok()?;
    let mut c = Command::new(env::var_os("RUSTC")?);
    c.arg("--target").arg(env::var_os("TARGET")?).arg(&source).arg("-o").arg(dir.join("empty"));
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    c.args(flags.split('\x1f').filter(|f| !f.is_empty())).arg("-C").arg(format!("link-arg={arg}"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        c.arg("-C").arg(format!("linker={}", PathBuf::from(linker).display()));
    }
    Some(c.output().ok()?.status.success())
}
