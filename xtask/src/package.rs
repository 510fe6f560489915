//! `cargo xtask package`: the .deb, the .rpm and the tarballs of a release, from one description (`packaging/package.toml`).
//!
//! ```text
//!   package.toml ─► Description ─► stage: every file with its path and mode ─┬─► cargo-deb
//!   program ─► man pages, completions, units ────────────────────────────────┼─► cargo-generate-rpm
//!                                                                            └─► tar
//! ```

pub(crate) mod arch;
pub(crate) mod archive;
mod cross;
mod description;
mod licences;
mod manifest;
mod oci;
mod sbom;
pub(crate) mod sign;
mod stage;
pub(crate) mod trial;

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

/// That of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

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

/// The packages for one machine.
pub(crate) struct Packages {
    pub(crate) arch: Arch,
    pub(crate) deb: PathBuf,
    pub(crate) rpm: PathBuf,
    /// The tree of the packages in a tarball.
    pub(crate) tree: PathBuf,
    pub(crate) image: PathBuf,
    /// What is linked into the program.
    pub(crate) sbom: PathBuf,
}

impl Packages {
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        [&self.deb, &self.rpm, &self.tree, &self.image, &self.sbom].map(PathBuf::clone).to_vec()
    }

    /// The same files, moved to another directory.
    pub(crate) fn moved(self, to: &Path) -> Result<Self> {
        let m = |file: &Path| moved(file, to);
        Ok(Self {
            arch: self.arch,
            deb: m(&self.deb)?,
            rpm: m(&self.rpm)?,
            tree: m(&self.tree)?,
            image: m(&self.image)?,
            sbom: m(&self.sbom)?,
        })
    }
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let o = Options::parse(args)?;
    if o.has_tests {
        o.arch.tests(&paths::root())?;
    }
    if o.is_repeated && o.program.is_some() {
        bail!("package: --twice builds the program itself, so --program does not apply");
    }
    let packages = build(o.arch, &o.out, o.program)?;
    if o.is_repeated {
        again(&packages, &o.out)?;
    }
    let source = if o.with_source { Some(source(&o.out)?) } else { None };
    let mut files = packages.files();
    files.extend(source.clone());
    let sums = archive::sums(&o.out, &files, &format!("SHA256SUMS-{}", o.arch.debian()))?;
    files.push(sums.clone());
    if let Some(key) = &o.key {
        let signatures = sign::all(&files, key, VERSION)?;
        files.extend(signatures);
    }
    for f in &files {
        println!("{}  {} bytes", f.display(), fs::metadata(f)?.len());
    }
    if !o.is_tried {
        return Ok(ExitCode::SUCCESS);
    }
    let mut tally = trial::packages(&packages, &o.out)?;
    trial::sums(&sums, &mut tally)?;
    trial::signatures(&packages.deb, &o.out, &mut tally)?;
    if let Some(file) = source {
        trial::source(&file, &o.out, &mut tally)?;
    }
    println!("packages: {} passed, {} failed, 0 skipped", tally.passed, tally.failed);
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds all packages for a machine into `out`.
pub(crate) fn build(arch: Arch, out: &Path, program: Option<PathBuf>) -> Result<Packages> {
    let root = paths::root();
    let description = Description::read(&root.join("packaging/package.toml"))?;
    let time = source_time(&root)?;
    let program = match program {
        Some(p) => p,
        None => arch.program(&root, &paths::target().join("package-build"))?,
    };
    fs::create_dir_all(out)?;
    let work = out.join(format!("work-{}", arch.debian()));
    let _ = fs::remove_dir_all(&work);
    let stage = Stage::make(&root, &work, &description, &program, arch, VERSION, time)?;
    let manifest = manifest::write(&work, &root, &description, &stage, VERSION)?;

    let p = Packages {
        arch,
        deb: out.join(format!("ringwise_{VERSION}-1_{}.deb", arch.debian())),
        rpm: out.join(format!("ringwise-{VERSION}-1.{}.rpm", arch.rpm())),
        tree: out.join(format!("ringwise-{VERSION}-{}.tar.gz", arch.rpm())),
        image: out.join(format!("ringwise-{VERSION}-{}.oci.tar", arch.debian())),
        sbom: out.join(format!("ringwise-{VERSION}-{}.cdx.json", arch.rpm())),
    };
    let mut c = Command::new(DEB.ensure()?);
    c.args(["--no-build", "--no-strip", "--no-separate-debug-symbols", "--target", arch.rust(), "--manifest-path"]);
    c.arg(&manifest).arg("--output").arg(&p.deb).env("SOURCE_DATE_EPOCH", time.to_string());
    c.env("CARGO_TARGET_DIR", work.join("target"));
    cmd::output(&mut c)?;
    let mut c = Command::new(RPM.ensure()?);
    c.current_dir(&work).args(["--package", ".", "--auto-req", "disabled", "--payload-compress", "gzip"]);
    c.args(["--arch", arch.rpm(), "--source-date", &time.to_string(), "--output"]).arg(&p.rpm);
    cmd::output(&mut c)?;
    archive::compressed(&stage.root, &p.tree, &format!("ringwise-{VERSION}"), &work, time)?;
    oci::write(&program, &p.image, &work, arch, VERSION, time)?;
    sbom::write(&root, &p.sbom, &work, arch, time)?;
    Ok(p)
}

/// The tarball of the last commit's source with that of all dependencies.
pub(crate) fn source(out: &Path) -> Result<PathBuf> {
    let name = format!("ringwise-{VERSION}-source");
    let to = out.join(format!("{name}.tar.gz"));
    archive::source(&paths::root(), &to, &name, out, source_time(&paths::root())?)?;
    Ok(to)
}

/// Moves a file to another directory of the same file system.
pub(crate) fn moved(file: &Path, to: &Path) -> Result<PathBuf> {
    let new = to.join(file.file_name().context("a file has a name")?);
    fs::rename(file, &new).with_context(|| format!("{} to {}", file.display(), new.display()))?;
    Ok(new)
}

/// Builds everything again from a clone in another directory. The bytes are the same, or this is an error.
pub(crate) fn again(first: &Packages, out: &Path) -> Result<()> {
    let arch = first.arch;
    let dir = out.join("again");
    let _ = fs::remove_dir_all(&dir);
    let clone = dir.join("elsewhere/ringwise");
    let mut git = Command::new("git");
    cmd::output(
        git.args(["clone", "--quiet", "--depth", "1"]).arg(format!("file://{}", paths::root().display())).arg(&clone),
    )?;
    let program = arch.program(&clone, &dir.join("target"))?;
    let second = build(arch, &dir.join("out"), Some(program))?.files();
    for (a, b) in first.files().iter().zip(&second) {
        if fs::read(a)? != fs::read(b)? {
            bail!("package: {} and {} differ", a.display(), b.display());
        }
    }
    println!("package: two builds in two directories: {} files with the same bytes", second.len());
    fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())
}

/// The time of the last commit, so that two builds of one commit are the same bytes.
pub(crate) fn source_time(root: &Path) -> Result<u64> {
    if let Ok(t) = std::env::var("SOURCE_DATE_EPOCH") {
        return t.parse().context("SOURCE_DATE_EPOCH");
    }
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["log", "-1", "--format=%ct"]);
    cmd::output(&mut git)?.trim().parse().context("the time of the last commit")
}
