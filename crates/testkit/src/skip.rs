//! Tests that cannot run on this machine print the reason and are counted.

use std::io::Write as _;
use std::path::PathBuf;

/// `path` in the directory into which `cargo xtask setup` unpacks tools, if it exists (xtask/src/paths.rs has the same rule).
pub fn fetched(path: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = set("RINGWISE_LAB_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("ringwise-lab")))
        .or_else(|| Some(set("HOME")?.join(".cache/ringwise-lab")))
        .unwrap_or_else(|| PathBuf::from("/var/tmp/ringwise-lab"));
    Some(cache.join(path)).filter(|p| p.exists())
}

/// Prints that `test` did not run and why, and adds a line to the file that `RINGWISE_SKIPPED` names (`cargo xtask ci` counts
/// them). With `RINGWISE_REQUIRE_ALL=1`, which the full lane sets, it fails instead.
///
/// # Panics
/// With `RINGWISE_REQUIRE_ALL=1`; and when the file cannot be written.
pub fn skipped(test: &str, why: &str) {
    assert!(std::env::var_os("RINGWISE_REQUIRE_ALL").is_none_or(|v| v != "1"), "{test} must run here: {why}");
    println!("{test}: skipped: {why}");
    let Some(file) = std::env::var_os("RINGWISE_SKIPPED") else { return };
    let line = format!("{test}: {}\n", why.replace('\n', " "));
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut f| f.write_all(line.as_bytes()));
    file.unwrap_or_else(|e| panic!("RINGWISE_SKIPPED: {e}"));
}
