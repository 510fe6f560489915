//! The licences of everything that is linked into the program.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::cmd;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: String,
    source: Option<String>,
}

/// One section for each crate with its licence; equal texts come once.
pub(crate) fn text(root: &Path) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut c = Command::new(&cargo);
    c.current_dir(root).args(["tree", "--locked", "-p", "ringwise", "-e", "normal", "--prefix", "none", "-f", "{p}"]);
    let linked: Vec<String> = cmd::output(&mut c)?.lines().filter_map(name_and_version).collect();
    let mut c = Command::new(&cargo);
    c.current_dir(root).args(["metadata", "--locked", "--format-version", "1"]);
    let all: Metadata = serde_json::from_slice(&cmd::bytes(&mut c)?).context("cargo metadata")?;
    let mut out = String::from("The program contains these crates.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for p in all.packages.iter().filter(|p| p.source.is_some()) {
        let id = format!("{} {}", p.name, p.version);
        if !linked.contains(&id) {
            continue;
        }
        let Some(licence) = &p.license else { bail!("{id} names no licence") };
        out += &format!("{id}: {licence}\n");
        let dir = Path::new(&p.manifest_path).parent().context("a manifest is in a directory")?;
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().to_ascii_uppercase();
            let is_licence =
                ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"].iter().any(|w| name.starts_with(w));
            if is_licence && entry.file_type()?.is_file() {
                texts.entry(fs::read_to_string(entry.path())?).or_default().push(id.clone());
            }
        }
    }
    let mut sections: Vec<(Vec<String>, String)> = texts.into_iter().map(|(text, ids)| (ids, text)).collect();
    sections.sort();
    for (mut ids, text) in sections {
        ids.dedup();
        out += &format!("\n{}\n{}\n\n{}\n", "=".repeat(72), ids.join(", "), text.trim_end());
    }
    Ok(out)
}

/// `serde v1.0.1 (proc-macro)` as `serde 1.0.1`.
fn name_and_version(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cargo_tree() {
        assert_eq!(name_and_version("serde_derive v1.0.2 (proc-macro)").as_deref(), Some("serde_derive 1.0.2"));
        assert_eq!(name_and_version(""), None);
    }
}
