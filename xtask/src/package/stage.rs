//! The files of the packages in one directory, each with its path, mode and kind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::arch::Arch;
use super::description::{Description, PackagedFile};
use super::licences;
use crate::cmd;

/// A staged file.
#[derive(Debug)]
pub(crate) struct Staged {
    /// Below the stage.
    pub from: PathBuf,
    /// Without the leading slash.
    pub to: String,
    pub mode: String,
    pub config: bool,
}

#[derive(Debug)]
pub(crate) struct Stage {
    /// The root of the tree.
    pub root: PathBuf,
    pub files: Vec<Staged>,
}

impl Stage {
    /// Generates what the build generates, and puts every file at its place below `work/tree`.
    pub(crate) fn make(
        root: &Path,
        work: &Path,
        d: &Description,
        program: &Path,
        arch: Arch,
        version: &str,
        time: u64,
    ) -> Result<Self> {
        let made = work.join("made");
        generate(&made, root, d, program, arch, version, time)?;
        let mut stage = Self { root: work.join("tree"), files: Vec::new() };
        for f in &d.file {
            let from = match f.from.strip_prefix('@') {
                Some(name) => made.join(name),
                None => root.join(&f.from),
            };
            for source in matching(&from)? {
                stage.add(f, &source)?;
            }
        }
        stage.files.sort_by(|a, b| a.to.cmp(&b.to));
        Ok(stage)
    }

    fn add(&mut self, f: &PackagedFile, source: &Path) -> Result<()> {
        let name = source.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        let mut to = if f.to.ends_with('/') { format!("{}{name}", f.to) } else { f.to.clone() };
        let mut text = fs::read(source).with_context(|| source.display().to_string())?;
        if f.compress {
            to.push_str(".gz");
            let mut gzip = Command::new("gzip");
            gzip.args(["--best", "--no-name", "--stdout"]).arg(source);
            text = cmd::bytes(&mut gzip)?;
        }
        let at = self.root.join(&to);
        fs::create_dir_all(at.parent().context("a path below the root")?)?;
        fs::write(&at, text)?;
        let mode = u32::from_str_radix(&f.mode, 8).with_context(|| format!("mode {:?} of {to}", f.mode))?;
        fs::set_permissions(&at, fs::Permissions::from_mode(mode))?;
        self.files.push(Staged { from: at, to, mode: f.mode.clone(), config: f.config });
        Ok(())
    }
}

/// The files that the program and the build write.
fn generate(
    made: &Path,
    root: &Path,
    d: &Description,
    program: &Path,
    arch: Arch,
    version: &str,
    time: u64,
) -> Result<()> {
    fs::create_dir_all(made.join("completions"))?;
    let copy = made.join("program");
    fs::copy(program, &copy).with_context(|| program.display().to_string())?;
    let ringwise = |words: &[&str]| {
        let mut all = arch.runner().iter().map(std::ffi::OsStr::new).chain([copy.as_os_str()]);
        cmd::bytes(Command::new(all.next().unwrap_or_default()).args(all).args(words))
    };
    ringwise(&["__man", &made.join("man").to_string_lossy()])?;
    for (shell, file) in [("bash", "ringwise.bash"), ("zsh", "_ringwise"), ("fish", "ringwise.fish")] {
        fs::write(made.join("completions").join(file), ringwise(&["__completions", shell])?)?;
    }
    // The program writes below usr/lib; the description names the last parts.
    let units = made.join("units-root");
    ringwise(&["__units", &units.to_string_lossy()])?;
    fs::rename(units.join("usr/lib"), made.join("units"))?;
    fs::write(made.join("licences"), licences::text(root)?)?;
    let date = cmd::output(Command::new("date").args(["--utc", "-R", "-d", &format!("@{time}")]).env("LC_ALL", "C"))?;
    let log = format!(
        "{} ({version}-1) unstable; urgency=medium\n\n  * Release {version}; see changelog.gz.\n\n -- {}  {}\n",
        d.name,
        d.maintainer,
        date.trim()
    );
    fs::write(made.join("changelog.Debian"), log)?;
    Ok(())
}

/// The files that a path with `*` in its last part matches, sorted.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let name = pattern.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some((head, tail)) = name.split_once('*') else { return Ok(vec![pattern.to_path_buf()]) };
    let dir = pattern.parent().unwrap_or(Path::new("."));
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name.starts_with(head) && name.ends_with(tail) {
            out.push(entry.path());
        }
    }
    if out.is_empty() {
        bail!("no file matches {}", pattern.display());
    }
    out.sort();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn every_source_of_the_description_exists() {
        let root = paths::root();
        let d = Description::read(&root.join("packaging/package.toml")).unwrap();
        for f in d.file.iter().filter(|f| !f.from.starts_with('@')) {
            assert!(!matching(&root.join(&f.from)).unwrap().is_empty(), "{}", f.from);
            assert!(!f.to.starts_with('/') && u32::from_str_radix(&f.mode, 8).is_ok(), "{}", f.to);
        }
        assert!(matching(&root.join("schemas/nothing-*.json")).is_err());
    }
}
