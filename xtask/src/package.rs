//! `cargo xtask package`: the .deb, the .rpm and the tarballs of a release, from one description (`packaging/package.toml`).
//!
//! ```text
//!   package.toml ─► Description ─► stage: every file with its path and mode ─┬─► cargo-deb
//!   program ─► man pages, completions, units ────────────────────────────────┼─► cargo-generate-rpm
//!                                                                            └─► tar
//! ```

mod arch;
mod archive;
mod cross;
mod description;
mod licences;
mod manifest;
mod oci;
mod sbom;
mod sign;
mod stage;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::cargo_tool::CargoTool;
use crate::{cmd, paths};
pub(crate) use arch::Arch;
pub(crate) use cross::LINKER;
use description::Description;
use stage::Stage;

const DEB: CargoTool = CargoTool { name: "cargo-deb", version: "3.8.0", args: &[] };
const RPM: CargoTool = CargoTool { name: "cargo-generate-rpm", version: "0.21.1", args: &[] };

struct Options {
    arch: Arch,
    out: PathBuf,
    /// Use this program instead of a build.
    program: Option<PathBuf>,
    /// Also make the tarball of the source with the sources of all dependencies.
    with_source: bool,
    /// Sign everything with this secret key of minisign.
    key: Option<PathBuf>,
    /// Also run the tests of the crates without I/O for that machine.
    has_tests: bool,
    /// Build again in another directory, and compare the bytes.
    is_repeated: bool,
    /// Install, upgrade, remove and purge the packages in fresh Debian trees.
    is_tried: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut o = Self {
            arch: Arch::Amd64,
            out: paths::target().join("package"),
            program: None,
            with_source: false,
            key: None,
            has_tests: false,
            is_repeated: false,
            is_tried: false,
        };
        let mut rest = args.iter();
        while let Some(option) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{option} needs a value"));
            match option.as_str() {
                "--arch" => o.arch = Arch::parse(value()?)?,
                "--out" => o.out = std::path::absolute(value()?)?,
                "--source" => o.with_source = true,
                "--key" => o.key = Some(std::path::absolute(value()?)?),
                "--tests" => o.has_tests = true,
                "--twice" => o.is_repeated = true,
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
    if o.has_tests {
        o.arch.tests(&paths::root())?;
    }
    let version = env!("CARGO_PKG_VERSION");
    if o.is_repeated && o.program.is_some() {
        bail!("package: --twice builds the program itself, so --program does not apply");
    }
    let mut files = build(o.arch, &o.out, o.program)?;
    if o.is_repeated {
        again(o.arch, &o.out, &files)?;
    }
    if o.with_source {
        let (name, time) = (format!("ringwise-{version}-source"), source_time(&paths::root())?);
        let to = o.out.join(format!("{name}.tar.gz"));
        archive::source(&paths::root(), &to, &name, &o.out, time)?;
        files.push(to);
    }
    if let Some(key) = &o.key {
        let signatures = sign::all(&files, key, version)?;
        files.extend(signatures);
    }
    for f in &files {
        println!("{}  {} bytes", f.display(), fs::metadata(f)?.len());
    }
    if !o.is_tried {
        return Ok(ExitCode::SUCCESS);
    }
    let [deb, rpm, _, image, ..] = files.as_slice() else { bail!("package: no packages were built") };
    let mut tally = trial::run(deb, rpm, &o.out)?;
    trial::lint(deb, rpm, &mut tally)?;
    trial::image(image, &o.out, &mut tally)?;
    trial::signatures(deb, &o.out, &mut tally)?;
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
        None => arch.program(&root, &paths::target().join("package-build"))?,
    };
    fs::create_dir_all(out)?;
    let work = out.join(format!("work-{}", arch.debian()));
    let _ = fs::remove_dir_all(&work);
    let stage = Stage::make(&root, &work, &description, &program, arch, version, time)?;
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
    let image = out.join(format!("ringwise-{version}-{}.oci.tar", arch.debian()));
    oci::write(&program, &image, &work, arch, version, time)?;
    let list = out.join(format!("ringwise-{version}-{}.cdx.json", arch.rpm()));
    sbom::write(&root, &list, &work, arch, time)?;
    let mut all = vec![deb, rpm, tar, image, list];
    all.push(archive::sums(out, &all, arch)?);
    Ok(all)
}

/// Builds everything again from a clone in another directory. The bytes are the same, or this is an error.
fn again(arch: Arch, out: &Path, files: &[PathBuf]) -> Result<()> {
    let dir = out.join("again");
    let _ = fs::remove_dir_all(&dir);
    let clone = dir.join("elsewhere/ringwise");
    let mut git = Command::new("git");
    cmd::output(
        git.args(["clone", "--quiet", "--depth", "1"]).arg(format!("file://{}", paths::root().display())).arg(&clone),
    )?;
    let program = arch.program(&clone, &dir.join("target"))?;
    let second = build(arch, &dir.join("out"), Some(program))?;
    for (a, b) in files.iter().zip(&second) {
        if fs::read(a)? != fs::read(b)? {
            bail!("package: {} and {} differ", a.display(), b.display());
        }
    }
    println!("package: two builds in two directories: {} files with the same bytes", second.len());
    fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())
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
