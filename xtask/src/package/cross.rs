//! A compiler for arm64: rustc and the standard libraries of both machines from one newer Debian suite, unpacked into the
//! cache. Nothing is installed; the compiler runs with the libraries of its own release.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::apt::Apt;
use crate::{cmd, paths};

/// The suite whose rustc is new enough for the workspace.
const SUITE: &str = "testing";
/// Linked into the compiler.
const LIBRARIES: [&str; 12] = [
    "libllvm22",
    "libc6",
    "libgcc-s1",
    "libstdc++6",
    "libffi8",
    "libedit2",
    "zlib1g",
    "libzstd1",
    "libxml2-16",
    "libtinfo6",
    "libbsd0",
    "libmd0",
];
/// From the machine's own release: it links the program, with the C library of that release.
pub(crate) const LINKER: &str = "aarch64-linux-gnu-gcc";

/// A script that runs the compiler.
pub(crate) fn rustc() -> Result<PathBuf> {
    let dir = paths::cache().join("rust-arm64");
    let script = dir.join("rustc");
    if script.is_file() {
        return Ok(script);
    }
    println!(
        "setup: fetching rustc and its library for arm64 from {SUITE} (130 MB, into the cache: nothing is installed)"
    );
    let tmp = dir.with_extension(format!("tmp-{}", std::process::id()));
    let _ = fs::remove_dir_all(&tmp);
    let apt = Apt::for_machines("rust-arm64", &[SUITE], &["amd64", "arm64"])?;
    apt.update()?;
    // The library of the compiler carries its version in its name.
    let own =
        apt.names("libstd-rust-1")?.into_iter().next().with_context(|| format!("{SUITE} has no libstd-rust-1.*"))?;
    let mut packages: Vec<String> = ["rustc", "libstd-rust-dev", &own].map(|p| format!("{p}:amd64")).to_vec();
    packages.extend(LIBRARIES.iter().map(|p| format!("{p}:amd64")));
    packages.push("libstd-rust-dev:arm64".into());
    apt.unpack(&packages, &tmp.join("root"))?;
    let _ = fs::remove_dir_all(&dir);
    fs::rename(&tmp, &dir).context("the compiler into the cache")?;
    let text = text(&dir.join("root/usr"));
    fs::write(&script, text)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    if let Err(e) = cmd::output(std::process::Command::new(&script).arg("--version")) {
        let _ = fs::remove_file(&script);
        return Err(e.context("the compiler does not start"));
    }
    Ok(script)
}

fn text(root: &Path) -> String {
    let root = root.display();
    format!(
        "#!/bin/sh\nr='{root}'\nlib=$r/lib/x86_64-linux-gnu\nexec \"$lib/ld-linux-x86-64.so.2\" --library-path \"$lib\" \
         --argv0 \"$r/bin/rustc\" \"$r/bin/rustc\" --sysroot \"$r\" \"$@\"\n"
    )
}
