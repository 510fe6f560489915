//! Installs, upgrades, removes and purges the packages in fresh Debian trees. Nothing of this machine is changed.

mod files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::arch::Arch;
use super::{Packages, VERSION, oci};
use crate::apt::Apt;
use crate::{apt, cmd, paths};

/// Debian releases in which the .deb is tried. The last one is the newest.
const RELEASES: [&str; 3] = ["bookworm", "trixie", "testing"];
/// Releases whose systemd rates the units: it does not change any more.
const RATED: [&str; 2] = ["bookworm", "trixie"];
/// Services of the package, and their highest exposure levels in tenths (`systemd-analyze security`).
const EXPOSURE: [(&str, &str); 4] = [
    ("ringwise.service", "40"),
    ("ringwise@.service", "40"),
    ("ringwise-daemon.service", "40"),
    ("ringwise-exporter.service", "16"),
];
/// Where units may be enabled.
const WANTS: &str = "etc/systemd/system/multi-user.target.wants";

pub(crate) use files::{signatures, signed, source, sums};

/// Counts checks, and prints those that fail.
#[derive(Default)]
pub(crate) struct Tally {
    pub passed: usize,
    pub failed: usize,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    pub(super) fn check(&mut self, what: &str, holds: bool) {
        if holds {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("  not ok {what}");
        }
    }
}

/// Everything that this machine can try with the packages of one machine.
pub(crate) fn packages(p: &Packages, work: &Path) -> Result<Tally> {
    let mut t = Tally::default();
    files::versions(p, &mut t)?;
    match p.arch {
        Arch::Amd64 => {
            t.add(&trees(&p.deb, &p.rpm, work)?);
            image(&p.image, work, &mut t)?;
        }
        Arch::Arm64 => files::unpacked(p, work, &mut t)?,
    }
    lint(&p.deb, &p.rpm, &mut t)?;
    Ok(t)
}

/// Tries both packages in fresh trees.
fn trees(deb: &Path, rpm: &Path, work: &Path) -> Result<Tally> {
    let mut t = Tally::default();
    for release in RELEASES {
        println!("package: the .deb in a fresh Debian {release}");
        let root = tree(release, work)?;
        let tried = debian(&root, deb, RATED.contains(&release), &mut t);
        let last = release == RELEASES[RELEASES.len() - 1];
        let tried = tried.and_then(|()| if last { rpm_tree(&root, rpm, &mut t) } else { Ok(()) });
        let _ = fs::remove_dir_all(&root);
        tried?;
    }
    Ok(t)
}

fn tree(release: &str, work: &Path) -> Result<PathBuf> {
    let own = apt::codename()?;
    let suites: Vec<String> = match release == own {
        true => vec![release.to_string(), format!("{release}-security")],
        false => vec![release.to_string()],
    };
    let suites: Vec<&str> = suites.iter().map(String::as_str).collect();
    let sources = Apt::new(&format!("package-{release}"), &suites)?.sources();
    let root = work.join(format!("root-{release}"));
    let _ = fs::remove_dir_all(&root);
    cmd::retried("making a Debian tree", || {
        let _ = fs::remove_dir_all(&root);
        let mut c = Command::new(cmd::need("unshare")?);
        c.arg("-m").arg(cmd::need("mmdebstrap")?);
        // A mirror may lag behind with its newest suite; signatures are still checked.
        c.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
        if RATED.contains(&release) {
            c.arg("--include=systemd");
        }
        c.args(["--quiet", "--mode=root", "--variant=essential", "--format=directory", release]);
        c.arg(&root).arg(&sources);
        cmd::output(&mut c).map(drop)
    })?;
    Ok(root)
}

/// A command in the tree.
fn within(root: &Path, words: &[&str]) -> Result<Output> {
    let mut c = Command::new(cmd::need("chroot")?);
    c.arg(root).args(words).stdin(Stdio::null()).env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
    c.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    c.output().with_context(|| words.join(" "))
}

fn succeeds(root: &Path, words: &[&str]) -> Result<String> {
    let out = within(root, words)?;
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    ensure!(out.status.success(), "{}: {}\n{text}", words.join(" "), out.status);
    Ok(text)
}

/// The state directory that a released version left.
fn old_state(root: &Path, version: &str) -> Result<()> {
    let from = paths::root().join("fixtures/releases").join(version);
    let to = root.join("var/lib/ringwise");
    fs::create_dir_all(&to)?;
    for entry in fs::read_dir(&from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "jsonl" || e == "json") {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}

fn debian(root: &Path, deb: &Path, rated: bool, t: &mut Tally) -> Result<()> {
    let name = deb.file_name().context("a package has a name")?.to_string_lossy().into_owned();
    fs::copy(deb, root.join(&name))?;
    let file = format!("/{name}");
    old_state(root, "0.1.0")?;

    succeeds(root, &["dpkg", "--install", &file])?;
    let version = succeeds(root, &["ringwise", "--version"])?;
    t.check("the program runs", version.contains(VERSION));
    installed(root, t);
    if rated {
        exposure(root, t)?;
    }
    let history = succeeds(root, &["ringwise", "history"])?;
    t.check("it reads the journals of 0.1.0", history.contains("goal"));
    t.check("dpkg verifies the files", succeeds(root, &["dpkg", "--verify", "ringwise"])?.trim().is_empty());

    // The administrator's files survive an upgrade.
    fs::write(root.join("etc/ringwise/ringwise.toml.example"), "# changed\n")?;
    succeeds(root, &["dpkg", "--install", "--force-confold", &file])?;
    let example = fs::read_to_string(root.join("etc/ringwise/ringwise.toml.example"))?;
    t.check("an upgrade keeps a changed file", example == "# changed\n");
    t.check("an upgrade keeps the state", root.join("var/lib/ringwise/tx-0001.jsonl").exists());

    persist(root, t)?;

    succeeds(root, &["dpkg", "--remove", "ringwise"])?;
    t.check("removal keeps the state", root.join("var/lib/ringwise/tx-0001.jsonl").exists());
    t.check("removal keeps the configuration", root.join("etc/ringwise/ringwise.toml").exists());
    for unit in ["ringwise.service", "ringwise-daemon.service"] {
        t.check(&format!("removal disables {unit}"), !root.join(WANTS).join(unit).is_symlink());
    }
    // What the scripts leave when settings are in effect.
    fs::create_dir_all(root.join("run/ringwise"))?;
    fs::write(root.join("run/ringwise/in-effect"), "")?;
    let purged = succeeds(root, &["dpkg", "--purge", "ringwise"])?;
    t.check("purge keeps the state while something is in effect", root.join("var/lib/ringwise/tx-0001.jsonl").exists());
    t.check("purge reports that", purged.contains("/var/lib/ringwise stays"));
    t.check("purge removes the configuration", !root.join("etc/ringwise").exists());

    succeeds(root, &["dpkg", "--install", &file])?;
    fs::remove_file(root.join("run/ringwise/in-effect")).ok();
    succeeds(root, &["dpkg", "--remove", "ringwise"])?;
    fs::remove_file(root.join("run/ringwise/in-effect")).ok();
    succeeds(root, &["dpkg", "--purge", "ringwise"])?;
    t.check("purge removes the state of nothing", !root.join("var/lib/ringwise").exists());
    Ok(())
}

/// The sandbox of each service, rated by the systemd of the tree.
fn exposure(root: &Path, t: &mut Tally) -> Result<()> {
    for (unit, most) in EXPOSURE {
        // For a template, one instance is rated.
        let copy = format!("/tmp/{}", unit.replace('@', "@eth0"));
        fs::copy(root.join("usr/lib/systemd/system").join(unit), root.join(&copy[1..]))?;
        let threshold = format!("--threshold={most}");
        let words = ["systemd-analyze", "security", "--offline=true", "--no-pager", &threshold, &copy];
        let out = within(root, &words)?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let level = text.lines().find_map(|l| l.split_once("Overall exposure level for ").map(|(_, l)| l));
        println!("package: exposure of {}", level.unwrap_or("nothing"));
        t.check(&format!("exposure of {unit}, at most {most} tenths"), out.status.success() && level.is_some());
        fs::remove_file(root.join(&copy[1..]))?;
    }
    Ok(())
}

/// The service is enabled instead of the units that apply once, and the other way round.
fn persist_service(root: &Path, t: &mut Tally) -> Result<()> {
    let (link, once) = (root.join(WANTS).join("ringwise-daemon.service"), root.join(WANTS).join("ringwise.service"));
    let unit = Path::new("/usr/lib/systemd/system/ringwise-daemon.service");
    let enabled = within(root, &["ringwise", "persist", "--daemon", "--root", "/", "--yes"])?;
    t.check("persist --daemon succeeds", enabled.status.success());
    t.check("persist --daemon enables the package's service", fs::read_link(&link).is_ok_and(|to| to == unit));
    t.check("persist --daemon disables the other unit", !once.is_symlink());
    t.check("persist --daemon writes no unit", !root.join("etc/systemd/system/ringwise-daemon.service").exists());
    let back = within(root, &["ringwise", "persist", "--root", "/", "--yes"])?;
    t.check("persist disables the service", back.status.success() && once.is_symlink() && !link.is_symlink());
    let again = within(root, &["ringwise", "persist", "--daemon", "--root", "/", "--yes"])?;
    t.check("persist --daemon succeeds again", again.status.success() && link.is_symlink());
    Ok(())
}

/// `persist` enables the units of the package, and `persist --remove` disables them again. Both are enabled at the end.
fn persist(root: &Path, t: &mut Tally) -> Result<()> {
    let link = root.join(WANTS).join("ringwise.service");
    let unit = "usr/lib/systemd/system/ringwise.service";
    let enable = ["ringwise", "persist", "--root", "/", "--goal", "rpc", "--yes"];
    t.check("persist succeeds", within(root, &enable)?.status.success());
    let enables = |link: &Path| fs::read_link(link).is_ok_and(|to| to == Path::new("/").join(unit));
    t.check("persist enables the package's unit", enables(&link));
    t.check("persist writes no unit", !root.join("etc/systemd/system/ringwise.service").exists());

    let removed = within(root, &["ringwise", "persist", "--remove", "--root", "/", "--yes"])?;
    t.check("persist --remove succeeds", removed.status.success());
    t.check("persist --remove disables the package's unit", !link.is_symlink());
    t.check("persist --remove keeps the package's unit", root.join(unit).is_file());
    t.check("persist --remove keeps the configuration", root.join("etc/ringwise/ringwise.toml").is_file());
    t.check("dpkg still verifies the unit", !succeeds(root, &["dpkg", "--verify", "ringwise"])?.contains(unit));

    // The configuration is there already, so no goal is named.
    let again = within(root, &["ringwise", "persist", "--root", "/", "--yes"])?;
    t.check("persist succeeds again", again.status.success());
    t.check("persist enables the package's unit again", enables(&link));
    persist_service(root, t)?;
    // Both, as after systemctl enable.
    std::os::unix::fs::symlink(Path::new("/").join(unit), &link)?;
    Ok(())
}

/// What is installed, and that nothing is enabled.
fn installed(root: &Path, t: &mut Tally) {
    for path in [
        "usr/sbin/ringwise",
        "usr/lib/systemd/system/ringwise.service",
        "usr/lib/systemd/system/ringwise-daemon.service",
        "usr/lib/systemd/system/ringwise-exporter.service",
        "usr/lib/udev/rules.d/81-ringwise.rules",
        "usr/share/bash-completion/completions/ringwise",
        "usr/share/ringwise/grafana/ringwise.json",
        "etc/ringwise/ringwise.toml.example",
    ] {
        t.check(path, root.join(path).is_file());
    }
    let enabled = root.join(WANTS).read_dir().into_iter().flatten().flatten();
    let ours = enabled.filter(|e| e.file_name().to_string_lossy().starts_with("ringwise")).count();
    t.check("nothing is enabled", ours == 0);
}

/// `rpm --root` in a Debian tree: it shows the package's files and scripts, not a host with RPM.
fn rpm_tree(root: &Path, rpm: &Path, t: &mut Tally) -> Result<()> {
    println!("package: the .rpm by rpm --root in a Debian tree");
    let command = |words: &[&str]| -> Result<String> {
        let mut c = Command::new(cmd::need("rpm")?);
        c.arg("--root").arg(root).args(["--dbpath", "/var/lib/rpm"]).args(words);
        cmd::output(&mut c)
    };
    let file = rpm.to_string_lossy().into_owned();
    command(&["--initdb"])?;
    old_state(root, "0.1.0")?;
    command(&["--install", "--nodeps", "--ignorearch", &file])?;
    installed(root, t);
    t.check("the rpm's program runs", succeeds(root, &["ringwise", "--version"])?.contains(VERSION));
    t.check("rpm verifies the files", command(&["--verify", "--nodeps", "ringwise"])?.trim().is_empty());
    command(&["--upgrade", "--nodeps", "--force", &file])?;
    t.check("an upgrade keeps the program", root.join("usr/sbin/ringwise").is_file());
    command(&["--erase", "--nodeps", "ringwise"])?;
    t.check("removal keeps the state", root.join("var/lib/ringwise/tx-0001.jsonl").exists());
    t.check("removal removes the program", !root.join("usr/sbin/ringwise").exists());
    Ok(())
}

/// lintian and rpmlint report no error.
fn lint(deb: &Path, rpm: &Path, t: &mut Tally) -> Result<()> {
    let mut lintian = Command::new(cmd::need("lintian")?);
    lintian.args(["--allow-root", "--fail-on", "error", "--suppress-tags-from-file"]);
    lintian.arg(paths::root().join("packaging/lintian-tags")).arg(deb);
    report("lintian", &mut lintian, t)?;
    let mut rpmlint = Command::new(cmd::need("rpmlint")?);
    rpmlint.arg("--config").arg(paths::root().join("packaging/rpmlint.toml")).arg(rpm);
    report("rpmlint", &mut rpmlint, t)
}

/// The image starts, and is a whole program.
fn image(image: &Path, work: &Path, t: &mut Tally) -> Result<()> {
    println!("package: the image, started once with runc");
    let out = oci::start(image, work, &["--version"])?;
    t.check("the image runs", out.contains(VERSION));
    Ok(())
}

fn report(name: &str, c: &mut Command, t: &mut Tally) -> Result<()> {
    let out = c.stdin(Stdio::null()).env("LC_ALL", "C").output().with_context(|| name.to_string())?;
    t.check(name, out.status.success());
    if !out.status.success() {
        println!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    }
    if out.status.code().is_none() {
        bail!("{name} was killed");
    }
    Ok(())
}
