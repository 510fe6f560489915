//! `cargo xtask release`: everything that users download, in one directory, tried before it gets its final name. With
//! `--version` it sets the version of the next release instead.
//!
//! ```text
//!   Facts ─► disagreements? ─► packages (both machines), source, site ─► SHA256SUMS ─► signatures ─► trial ─► summary.txt
//!                                     target/dist/VERSION.partial                                   target/dist/VERSION
//! ```

mod agreement;
mod changelog;
mod summary;
mod version;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::package::arch::Arch;
use crate::package::{self, Packages, VERSION, archive, sign, trial};
use crate::{cmd, paths, site};
use agreement::Facts;
use summary::{Summary, Tried};
use version::Version;

/// What to do.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    /// Set this version.
    Set(Version),
    Make(Options),
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Sign with this secret key of minisign.
    key: Option<PathBuf>,
    /// Build the packages twice and compare the bytes.
    is_repeated: bool,
    /// Make the files of a version that is not released yet.
    is_rehearsal: bool,
    /// Programs to pack instead of builds, in a rehearsal.
    programs: Vec<(Arch, PathBuf)>,
}

fn parse(args: &[String]) -> Result<Task> {
    let (mut set, mut o) = (None, Options::default());
    let mut rest = args.iter();
    while let Some(option) = rest.next() {
        let mut value = || rest.next().with_context(|| format!("{option} needs a value"));
        match option.as_str() {
            "--version" => set = Some(value()?.parse::<Version>()?),
            "--key" => o.key = Some(std::path::absolute(value()?)?),
            "--twice" => o.is_repeated = true,
            "--rehearse" => o.is_rehearsal = true,
            "--program" => {
                let (arch, file) = value()?.split_once('=').context("--program: expected ARCH=FILE")?;
                o.programs.push((Arch::parse(arch)?, std::path::absolute(file)?));
            }
            other => bail!("release: unknown option {other:?}"),
        }
    }
    if !o.programs.is_empty() && (!o.is_rehearsal || o.is_repeated) {
        bail!("--program: a release builds its programs; add --rehearse, without --twice");
    }
    match set {
        Some(version) if o == Options::default() => Ok(Task::Set(version)),
        Some(_) => bail!("--version sets the version and makes no files, so no other option applies"),
        None => Ok(Task::Make(o)),
    }
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    match parse(args)? {
        Task::Set(version) => set(version),
        Task::Make(o) => make(&o),
    }
}

/// Writes the version into `Cargo.toml`, `Cargo.lock` and `CHANGELOG.md`.
fn set(version: Version) -> Result<ExitCode> {
    let root = paths::root();
    let files = agreement::uncommitted(&root)?;
    if !files.is_empty() {
        return Err(agreement::Disagreement::Uncommitted { files }.into());
    }
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_string());
    let manifest = read("Cargo.toml")?;
    let now = agreement::workspace_version(&manifest)?;
    ensure!(version >= now, "{version} is below {now}, the version in Cargo.toml");
    let changes = changelog::release(&read("CHANGELOG.md")?, version, &today()?).context("CHANGELOG.md")?;
    // Everything is checked before the first write.
    let manifest = agreement::with_version(&manifest, version)?;
    fs::write(root.join("Cargo.toml"), manifest)?;
    fs::write(root.join("CHANGELOG.md"), changes)?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cmd::output(cargo.current_dir(&root).args(["update", "--workspace", "--offline", "--quiet"]))
        .context("Cargo.toml and CHANGELOG.md are changed, Cargo.lock is not; to undo: git restore .")?;
    println!("release: the version is {version}; changed files:");
    cmd::visible(Command::new("git").arg("-C").arg(&root).args(["--no-pager", "diff", "--stat"]))?;
    println!(
        "Next: cargo xtask bless, review SECURITY.md (supported versions) and `git diff`, commit, then cargo xtask release"
    );
    Ok(ExitCode::SUCCESS)
}

fn today() -> Result<String> {
    Ok(cmd::output(Command::new("date").args(["--utc", "+%Y-%m-%d"]))?.trim().to_string())
}

fn make(o: &Options) -> Result<ExitCode> {
    let root = paths::root();
    let dist = paths::target().join("dist");
    let work = dist.join("work");
    let public = match &o.key {
        Some(key) => Some(sign::public(key, &work)?),
        None => None,
    };
    let facts = Facts::read(&root, VERSION, public.as_ref().map(|p| p.text.clone()))?;
    let wrong = agreement::disagreements(&facts, o.is_rehearsal);
    if !wrong.is_empty() {
        let list: Vec<String> = wrong.iter().map(|d| format!("  {d}")).collect();
        bail!("nothing was made, because:\n{}", list.join("\n"));
    }
    let name = format!("{VERSION}{}", if o.is_rehearsal { "-rehearsal" } else { "" });
    let (out, partial) = (dist.join(&name), dist.join(format!("{name}.partial")));
    if out.exists() && !o.is_rehearsal {
        bail!("{} exists; remove it to make this release again", out.display());
    }
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial)?;
    let made = files(o, &partial, &work)?;
    let sums = archive::sums(&partial, &made.files(), "SHA256SUMS")?;
    if let Some(key) = &o.key {
        let mut all = made.files();
        all.push(sums.clone());
        sign::all(&all, key, VERSION)?;
    }
    let mut summary =
        Summary::new(&root, &facts, o.is_rehearsal, &o.programs, public.as_ref().map(|p| p.text.as_str()))?;
    summary.tried = tried(&made, &sums, &work, public.as_ref().map(|p| p.file.as_path()))?;
    let text = summary.text(&partial)?;
    fs::write(partial.join("summary.txt"), &text)?;
    print!("\n{text}\n");
    if summary.failed() > 0 {
        println!("release: trials failed, so the files stay in {}", partial.display());
        return Ok(ExitCode::FAILURE);
    }
    let _ = fs::remove_dir_all(&out);
    fs::rename(&partial, &out).with_context(|| out.display().to_string())?;
    println!("release: {}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// The files of a release, without checksums and signatures.
struct Made {
    packages: Vec<Packages>,
    source: PathBuf,
    site: PathBuf,
}

impl Made {
    fn files(&self) -> Vec<PathBuf> {
        let others = [self.source.clone(), self.site.clone()];
        self.packages.iter().flat_map(Packages::files).chain(others).collect()
    }
}

/// Builds everything in `work`, and moves what is released to `to`.
fn files(o: &Options, to: &Path, work: &Path) -> Result<Made> {
    let mut packages = Vec::new();
    for arch in [Arch::Amd64, Arch::Arm64] {
        let program = o.programs.iter().find(|(a, _)| *a == arch).map(|(_, file)| file.clone());
        let p = package::build(arch, work, program)?;
        if o.is_repeated {
            package::again(&p, work)?;
        }
        packages.push(p.moved(to)?);
    }
    let source = package::moved(&package::source(work)?, to)?;
    let dir = work.join("site");
    let _ = fs::remove_dir_all(&dir);
    site::build(&dir)?;
    let name = format!("ringwise-{VERSION}-site");
    let site = to.join(format!("{name}.tar.gz"));
    archive::compressed(&dir, &site, &name, work, package::source_time(&paths::root())?)?;
    Ok(Made { packages, source, site })
}

/// Tries the files at their place. `public`: the public key of the signatures.
fn tried(made: &Made, sums: &Path, work: &Path, public: Option<&Path>) -> Result<Vec<Tried>> {
    let mut out = Vec::new();
    for p in &made.packages {
        let start = Instant::now();
        let tally = trial::packages(p, work)?;
        out.push(Tried::new(&format!("packages for {}", p.arch.debian()), &tally, start));
    }
    let mut one = |what: &str, f: &dyn Fn(&mut trial::Tally) -> Result<()>| -> Result<()> {
        let (start, mut tally) = (Instant::now(), trial::Tally::default());
        f(&mut tally)?;
        out.push(Tried::new(what, &tally, start));
        Ok(())
    };
    one("source, built without a network", &|t| trial::source(&made.source, work, t))?;
    one("checksums", &|t| trial::sums(sums, t))?;
    one("signatures, with a test key", &|t| trial::signatures(sums, work, t))?;
    if let Some(public) = public {
        let mut all = made.files();
        all.push(sums.to_path_buf());
        one("signatures of all files", &|t| trial::signed(&all, public, t))?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Result<Task> {
        parse(&words.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn options() {
        assert_eq!(of("--version 1.2.3").unwrap(), Task::Set("1.2.3".parse().unwrap()));
        assert_eq!(of("").unwrap(), Task::Make(Options::default()));
        let o = Options { key: Some("/k".into()), is_repeated: true, ..Options::default() };
        assert_eq!(of("--twice --key /k").unwrap(), Task::Make(o));
        let o =
            Options { is_rehearsal: true, programs: vec![(Arch::Arm64, PathBuf::from("/p"))], ..Options::default() };
        assert_eq!(of("--rehearse --program arm64=/p").unwrap(), Task::Make(o));
        for wrong in [
            "--version",
            "--version 1.2",
            "--version 1.2.3 --key /k",
            "--program arm64=/p",
            "--rehearse --twice --program arm64=/p",
            "--rehearse --program /p",
            "--rehearse --program riscv64=/p",
            "--all",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
