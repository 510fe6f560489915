//! The software bill of materials in the format of CycloneDX: what is linked into the program, for scanners.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::arch::Arch;
use crate::cargo_tool::CargoTool;
use crate::cmd;

const CYCLONEDX: CargoTool = CargoTool { name: "cargo-cyclonedx", version: "0.5.9", args: &[] };

/// Writes the list of the last commit. The tool writes beside each manifest, so it works on a copy of the sources.
pub(crate) fn write(root: &Path, to: &Path, work: &Path, arch: Arch, time: u64) -> Result<()> {
    let dir = work.join("sbom-source");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    let committed = work.join("sbom.tar");
    let mut git = Command::new("git");
    cmd::output(git.arg("-C").arg(root).args(["archive", "--format=tar", "--output"]).arg(&committed).arg("HEAD"))?;
    cmd::output(Command::new("tar").arg("-xf").arg(&committed).arg("-C").arg(&dir))?;
    let mut c = Command::new(CYCLONEDX.ensure()?);
    c.current_dir(&dir).env("SOURCE_DATE_EPOCH", time.to_string());
    c.args(["cyclonedx", "--quiet", "--format", "json", "--target", arch.rust(), "--override-filename", "sbom"]);
    c.args(["--manifest-path", "crates/cli/Cargo.toml"]);
    cmd::output(&mut c)?;
    let made = dir.join("crates/cli/sbom.json");
    let mut list: Value = serde_json::from_slice(&fs::read(&made).with_context(|| made.display().to_string())?)?;
    // A random number, and paths of the copy, would make each build differ.
    if let Some(map) = list.as_object_mut() {
        map.remove("serialNumber");
    }
    let text = serde_json::to_string_pretty(&list)?.replace(&dir.display().to_string(), "/ringwise") + "\n";
    ensure!(list["components"].as_array().is_some_and(|c| !c.is_empty()), "the list of components is empty");
    fs::write(to, text)?;
    fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())
}
