//! What must agree before a release: the tree, the versions in `Cargo.toml`, `Cargo.lock` and `CHANGELOG.md`, the stored
//! files of the version, the published key.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use thiserror::Error;

use super::changelog::{self, Heading};
use super::version::Version;
use crate::cmd;

/// What was read.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// Changed or new files, as paths.
    pub(crate) uncommitted: Vec<String>,
    /// `Cargo.toml`, the workspace.
    pub(crate) version: Version,
    /// `Cargo.lock`: the members of the workspace with their versions.
    pub(crate) locked: Vec<(String, String)>,
    /// The newest heading of `CHANGELOG.md`.
    pub(crate) newest: Heading,
    /// Whether `fixtures/releases/VERSION` has the files that this version writes.
    pub(crate) has_fixtures: bool,
    /// The version that this program and the packages get.
    pub(crate) built: String,
    /// Public key that belongs to `--key`, and whether SECURITY.md names it.
    pub(crate) key: Option<(String, bool)>,
}

/// What does not agree.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Disagreement {
    #[error("files that are not committed: {}, the first one is {}; commit or remove them", files.len(), files[0])]
    Uncommitted { files: Vec<String> },
    #[error("Cargo.lock has {name} {found}, Cargo.toml {version}; run: cargo update --workspace")]
    Locked { name: String, found: String, version: Version },
    #[error("this xtask was built as {built}, Cargo.toml has {version}; run it by cargo xtask")]
    Built { built: String, version: Version },
    #[error("the newest heading of CHANGELOG.md is {found}, Cargo.toml has {version}")]
    Changelog { found: Version, version: Version },
    #[error("CHANGELOG.md has no date for {version}; run: cargo xtask release --version {version}")]
    Unreleased { version: Version },
    #[error("fixtures/releases/{version} is missing; run: cargo xtask bless, and commit it")]
    NoFixtures { version: Version },
    #[error("SECURITY.md does not name the public key {public}, so users could not check the signatures")]
    KeyNotPublished { public: String },
}

/// Everything that does not agree. A rehearsal needs neither a date nor a published key.
pub(crate) fn disagreements(f: &Facts, is_rehearsal: bool) -> Vec<Disagreement> {
    let version = f.version;
    let mut out = Vec::new();
    if !f.uncommitted.is_empty() {
        out.push(Disagreement::Uncommitted { files: f.uncommitted.clone() });
    }
    if f.built != version.to_string() {
        out.push(Disagreement::Built { built: f.built.clone(), version });
    }
    if let Some((name, found)) = f.locked.iter().find(|(_, v)| *v != version.to_string()) {
        out.push(Disagreement::Locked { name: name.clone(), found: found.clone(), version });
    }
    match f.newest.version {
        Some(found) if found != version => out.push(Disagreement::Changelog { found, version }),
        _ if f.newest.date.is_none() && !is_rehearsal => out.push(Disagreement::Unreleased { version }),
        _ => {}
    }
    if !f.has_fixtures {
        out.push(Disagreement::NoFixtures { version });
    }
    if let Some((public, false)) = &f.key
        && !is_rehearsal
    {
        out.push(Disagreement::KeyNotPublished { public: public.clone() });
    }
    out
}

impl Facts {
    /// Reads the checkout. `public`: the public key that belongs to `--key`.
    pub(crate) fn read(root: &Path, built: &str, public: Option<String>) -> Result<Self> {
        let text = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_string());
        let version = workspace_version(&text("Cargo.toml")?)?;
        let newest = changelog::headings(&text("CHANGELOG.md")?).context("CHANGELOG.md")?;
        let key = match public {
            Some(public) => {
                let is_published = text("SECURITY.md")?.contains(&public);
                Some((public, is_published))
            }
            None => None,
        };
        Ok(Self {
            uncommitted: uncommitted(root)?,
            version,
            locked: locked(&text("Cargo.lock")?)?,
            newest: newest.into_iter().next().context("CHANGELOG.md has no heading")?,
            has_fixtures: root.join(format!("fixtures/releases/{version}")).is_dir(),
            built: built.to_string(),
            key,
        })
    }
}

/// Changed and new files.
pub(crate) fn uncommitted(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    let text = cmd::output(git.arg("-C").arg(root).args(["status", "--porcelain", "--untracked-files=all"]))?;
    Ok(text.lines().filter_map(|l| l.get(3..)).map(str::to_string).collect())
}

#[derive(Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Deserialize)]
struct Workspace {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    version: String,
}

/// The version of the workspace.
pub(crate) fn workspace_version(manifest: &str) -> Result<Version> {
    let m: Manifest = toml::from_str(manifest).context("Cargo.toml")?;
    m.workspace.package.version.parse().context("Cargo.toml: workspace.package.version")
}

/// The manifest with another version of the workspace; comments and order stay.
pub(crate) fn with_version(manifest: &str, version: Version) -> Result<String> {
    let mut is_inside = false;
    let mut out = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_inside = line == "[workspace.package]";
        }
        match is_inside && line.starts_with("version = ") {
            true => out.push_str(&format!("version = \"{version}\"\n")),
            false => out.push_str(&format!("{line}\n")),
        }
    }
    let found = workspace_version(&out)?;
    anyhow::ensure!(found == version, "Cargo.toml: no line with the version below [workspace.package]");
    Ok(out)
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    /// Absent: a member of the workspace.
    source: Option<String>,
}

fn locked(text: &str) -> Result<Vec<(String, String)>> {
    let lock: Lock = toml::from_str(text).context("Cargo.lock")?;
    let own = lock.package.into_iter().filter(|p| p.source.is_none());
    Ok(own.map(|p| (p.name, p.version)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    fn v(text: &str) -> Version {
        text.parse().unwrap()
    }

    fn newest(text: &str) -> Heading {
        changelog::headings(text).unwrap().remove(0)
    }

    fn agreeing() -> Facts {
        Facts {
            uncommitted: Vec::new(),
            version: v("0.2.0"),
            locked: vec![("ringwise".into(), "0.2.0".into()), ("xtask".into(), "0.2.0".into())],
            newest: newest("## 0.2.0 (2026-12-01)"),
            has_fixtures: true,
            built: "0.2.0".into(),
            key: Some(("RWQ".into(), true)),
        }
    }

    #[test]
    fn each_disagreement_is_found() {
        assert_eq!(disagreements(&agreeing(), false), []);
        let version = v("0.2.0");
        let wrong = |change: &dyn Fn(&mut Facts)| {
            let mut f = agreeing();
            change(&mut f);
            disagreements(&f, false)
        };
        let files = vec!["a".to_string(), "b".to_string()];
        assert_eq!(wrong(&|f| f.uncommitted = files.clone()), [Disagreement::Uncommitted { files: files.clone() }]);
        assert_eq!(wrong(&|f| f.built = "0.1.0".into()), [Disagreement::Built { built: "0.1.0".into(), version }]);
        let locked = Disagreement::Locked { name: "xtask".into(), found: "0.1.0".into(), version };
        assert_eq!(wrong(&|f| f.locked[1].1 = "0.1.0".into()), [locked]);
        let other = Disagreement::Changelog { found: v("0.3.0"), version };
        assert_eq!(wrong(&|f| f.newest = newest("## 0.3.0 (2026-12-01)")), [other]);
        for heading in ["## Unreleased", "## 0.2.0 (unreleased)"] {
            assert_eq!(wrong(&|f| f.newest = newest(heading)), [Disagreement::Unreleased { version }]);
        }
        assert_eq!(wrong(&|f| f.has_fixtures = false), [Disagreement::NoFixtures { version }]);
        let key = Disagreement::KeyNotPublished { public: "RWX".into() };
        assert_eq!(wrong(&|f| f.key = Some(("RWX".into(), false))), [key]);
        assert_eq!(wrong(&|f| f.key = None), []);
    }

    #[test]
    fn all_disagreements_are_reported_at_once() {
        let mut f = agreeing();
        (f.has_fixtures, f.newest, f.built) = (false, newest("## 0.1.0 (2026-11-23)"), "0.1.0".into());
        assert_eq!(disagreements(&f, false).len(), 3);
        assert_eq!(disagreements(&f, true).len(), 3);
    }

    #[test]
    fn a_rehearsal_needs_no_date_and_no_published_key() {
        let mut f = agreeing();
        (f.newest, f.key) = (newest("## 0.2.0 (unreleased)"), Some(("RWX".into(), false)));
        assert_eq!(disagreements(&f, true), []);
        f.newest = newest("## 0.3.0 (unreleased)");
        let other = Disagreement::Changelog { found: v("0.3.0"), version: v("0.2.0") };
        assert_eq!(disagreements(&f, true), [other]);
    }

    #[test]
    fn versions_of_the_workspace() {
        let text = "[workspace]\nresolver = \"3\"\n\n[workspace.package]\nversion = \"0.2.0\" # now\nedition = \"2024\"\n\n\
            [workspace.dependencies]\nversion = \"1\"\n";
        assert_eq!(workspace_version(text).unwrap(), v("0.2.0"));
        let new = with_version(text, v("0.3.0")).unwrap();
        assert_eq!(new, text.replace("\"0.2.0\" # now", "\"0.3.0\""));
        assert!(with_version("[workspace.package]\nversion= \"0.2.0\"\n", v("0.3.0")).is_err());
        let lock = "[[package]]\nname = \"a\"\nversion = \"0.2.0\"\n[[package]]\nname = \"b\"\nversion = \"9.0.0\"\nsource = \"x\"\n";
        assert_eq!(locked(lock).unwrap(), [("a".to_string(), "0.2.0".to_string())]);
    }

    #[test]
    fn the_versions_of_the_checkout_agree() {
        let text = fs::read_to_string(paths::root().join("Cargo.lock")).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert!(locked(&text).unwrap().iter().all(|(_, v)| v == version));
        let text = fs::read_to_string(paths::root().join("Cargo.toml")).unwrap();
        assert_eq!(workspace_version(&text).unwrap(), v(version));
    }
}
