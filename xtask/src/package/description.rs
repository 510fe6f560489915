//! `packaging/package.toml`: what the packages hold.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    pub name: String,
    pub summary: String,
    pub description: String,
    /// Section of Debian's archive.
    pub section: String,
    /// Group of RPM.
    pub group: String,
    pub maintainer: String,
    pub file: Vec<PackagedFile>,
}

/// One file, or all files that a pattern matches.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackagedFile {
    /// Relative to the repository, or `@` and the name of something that the build makes. `*` in the last part.
    pub from: String,
    /// Without the leading slash. A directory ends with one.
    pub to: String,
    /// Octal.
    #[serde(default = "readable")]
    pub mode: String,
    /// The administrator may change it; an upgrade keeps the change.
    #[serde(default)]
    pub config: bool,
    /// Compressed with gzip, as Debian's policy requires for documents.
    #[serde(default)]
    pub compress: bool,
}

fn readable() -> String {
    "644".into()
}

impl Description {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }
}
