//! Paths of the repository, its target directory, and the cache outside of it.

use std::path::PathBuf;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// `lab/`.
pub(crate) fn lab() -> PathBuf {
    root().join("lab")
}

/// Cargo's target directory.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from).unwrap_or_else(|| root().join("target"))
}

/// Kernels, tools and images: fetched once, outside the repository.
pub(crate) fn cache() -> PathBuf {
    if let Some(dir) = std::env::var_os("RINGWISE_LAB_CACHE") {
        return PathBuf::from(dir);
    }
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")))
        .unwrap_or_else(|| PathBuf::from("/var/tmp"));
    base.join("ringwise-lab")
}
