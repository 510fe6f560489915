//! `cargo xtask package`: the .deb, the .rpm and the tarballs of a release, from one description (`packaging/package.toml`).
//!
//! ```text
//!   package.toml ─► Description ─► stage: every file with its path and mode ─┬─► cargo-deb
//!   program ─► man pages, completions, units ────────────────────────────────┼─► cargo-generate-rpm
//!                                                                            └─► tar
//! ```

mod arch;
mod archive;
mod description;
mod licences;
mod manifest;
mod stage;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::cargo_tool::CargoTool;
use crate::{cmd, paths};
use arch::Arch;
use description::Description;
use stage::Stage;

const DEB: CargoTool = CargoTool { name: "cargo-deb", version: "3.8.0", args: &[] };
const RPM: CargoTool = CargoTool { name: "cargo-generate-rpm", version: "0.21.1", args: &[] };

struct Options {
    arch: Arch,
    out: PathBuf,
    /// Use this program instead of a build.
    program: Option<PathBuf>,
    /// Install, upgrade, remove and purge the packages in fresh Debian trees.
    is_tried: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut o = Self { arch: Arch::Amd64, out: paths::target().join("package"), program: None, is_tried: false };
        let mut rest = args.iter();
        while let Some(option) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{option} needs a value"));
            match option.as_str() {
                "--arch" => o.arch = Arch::parse(value()?)?,
                "--out" => o.out = std::path::absolute(value()?)?,
                "--try" => o.is_tried = true,
                "--program" => o.program = Some(std::path::absolute(value()?)?),
                other => bail!("package: unknown option {other:?}"),
            }
        }
        Ok(o)
    }
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let o = Options::parse(args)?;
    let files = build(o.arch, &o.out, o.program)?;
    for f in &files {
        println!("{}  {} bytes", f.display(), fs::metadata(f)?.len());
    }
    if !o.is_tried {
        return Ok(ExitCode::SUCCESS);
    }
    let [deb, rpm, ..] = files.as_slice() else { bail!("package: no packages were built") };
    let mut tally = trial::run(deb, rpm, &o.out)?;
    trial::lint(deb, rpm, &mut tally)?;
    println!("packages: {} passed, {} failed, 0 skipped", tally.passed, tally.failed);
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds all packages for a machine into `out`; returns their paths and that of the checksums.
pub(crate) fn build(arch: Arch, out: &Path, program: Option<PathBuf>) -> Result<Vec<PathBuf>> {
    let root = paths::root();
    let description = Description::read(&root.join("packaging/package.toml"))?;
    let version = env!("CARGO_PKG_VERSION");
    let time = source_time(&root)?;
    let program = match program {
        Some(p) => p,
        None => arch.program(&root)?,
    };
    fs::create_dir_all(out)?;
    let work = out.join(format!("work-{}", arch.debian()));
    let _ = fs::remove_dir_all(&work);
    let stage = Stage::make(&root, &work, &description, &program, version, time)?;
    let manifest = manifest::write(&work, &root, &description, &stage, version)?;

    let deb = out.join(format!("ringwise_{version}-1_{}.deb", arch.debian()));
    let rpm = out.join(format!("ringwise-{version}-1.{}.rpm", arch.rpm()));
    let tar = out.join(format!("ringwise-{version}-{}.tar.gz", arch.rpm()));
    let mut c = Command::new(DEB.ensure()?);
    c.args(["--no-build", "--no-strip", "--no-separate-debug-symbols", "--target", arch.rust(), "--manifest-path"]);
    c.arg(&manifest).arg("--output").arg(&deb).env("SOURCE_DATE_EPOCH", time.to_string());
    c.env("CARGO_TARGET_DIR", work.join("target"));
    cmd::output(&mut c)?;
    let mut c = Command::new(RPM.ensure()?);
    c.current_dir(&work).args(["--package", ".", "--auto-req", "disabled", "--payload-compress", "gzip"]);
    c.args(["--arch", arch.rpm(), "--source-date", &time.to_string(), "--output"]).arg(&rpm);
    cmd::output(&mut c)?;
    archive::binary(&stage, &tar, &format!("ringwise-{version}"), &work, time)?;
    let mut all = vec![deb, rpm, tar];
    all.push(archive::sums(out, &all, arch)?);
    Ok(all)
}

/// The time of the last commit, so that two builds of one commit are the same bytes.
fn source_time(root: &Path) -> Result<u64> {
    if let Ok(t) = std::env::var("SOURCE_DATE_EPOCH") {
        return t.parse().context("SOURCE_DATE_EPOCH");
    }
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["log", "-1", "--format=%ct"]);
    cmd::output(&mut git)?.trim().parse().context("the time of the last commit")
}
