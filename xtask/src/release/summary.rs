//! `summary.txt` of a release: from what it was made, the files, and what was tried.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use super::agreement::Facts;
use crate::cmd;
use crate::package::arch::Arch;
use crate::package::trial::Tally;

/// What no trial of a release covers.
const NOT_TRIED: [&str; 3] = [
    "hosts with RPM: the .rpm is tried by rpm --root in a Debian tree",
    "installation on arm64: its packages are unpacked, and their program runs by qemu-user; its image is not started",
    "SELinux and AppArmor with an enforcing policy",
];

/// One group of trials.
#[derive(Debug)]
pub(super) struct Tried {
    what: String,
    passed: usize,
    failed: usize,
    seconds: u64,
}

impl Tried {
    pub(super) fn new(what: &str, t: &Tally, start: Instant) -> Self {
        Self { what: what.to_string(), passed: t.passed, failed: t.failed, seconds: start.elapsed().as_secs() }
    }
}

#[derive(Debug)]
pub(super) struct Summary {
    version: String,
    commit: String,
    /// Date of the newest heading of `CHANGELOG.md`.
    date: Option<String>,
    is_rehearsal: bool,
    /// Programs that were given, not built.
    given: Vec<String>,
    /// The public key of the signatures.
    public: Option<String>,
    pub(super) tried: Vec<Tried>,
}

impl Summary {
    pub(super) fn new(
        root: &Path,
        facts: &Facts,
        is_rehearsal: bool,
        programs: &[(Arch, PathBuf)],
        public: Option<&str>,
    ) -> Result<Self> {
        let commit = cmd::output(Command::new("git").arg("-C").arg(root).args(["rev-parse", "HEAD"]))?;
        Ok(Self {
            version: facts.version.to_string(),
            commit: commit.trim().to_string(),
            date: facts.newest.date.clone(),
            is_rehearsal,
            given: programs.iter().map(|(a, _)| a.debian().to_string()).collect(),
            public: public.map(str::to_string),
            tried: Vec::new(),
        })
    }

    pub(super) fn failed(&self) -> usize {
        self.tried.iter().map(|t| t.failed).sum()
    }

    /// The page; `dir` has the files.
    pub(super) fn text(&self, dir: &Path) -> Result<String> {
        let mut out = self.head();
        out.push_str("\nfiles (bytes)\n");
        for (name, bytes) in sizes(dir)? {
            let _ = writeln!(out, "  {bytes:>10}  {name}");
        }
        out.push_str("\ntried (passed, failed, seconds)\n");
        for t in &self.tried {
            let _ = writeln!(out, "  {:>4} {:>4} {:>5}  {}", t.passed, t.failed, t.seconds, t.what);
        }
        out.push_str("\nnot tried\n");
        NOT_TRIED.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        Ok(out)
    }

    fn head(&self) -> String {
        let mut out = format!("ringwise {}, {}\n", self.version, self.date.as_deref().unwrap_or("unreleased"));
        let _ = writeln!(out, "commit {}", self.commit);
        match &self.public {
            Some(key) => out.push_str(&format!("signed; public key {key}\n")),
            None => out.push_str("NOT SIGNED: no --key was given\n"),
        }
        if self.is_rehearsal {
            out.push_str("REHEARSAL: not to be published\n");
        }
        if !self.given.is_empty() {
            let _ = writeln!(out, "the program for {} was given, not built from this commit", self.given.join(", "));
        }
        out
    }
}

/// Names and sizes of the files, without signatures.
fn sizes(dir: &Path) -> Result<Vec<(String, u64)>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "summary.txt" && !name.ends_with(".minisig") {
            out.push((name, entry.metadata()?.len()));
        }
    }
    out.sort();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            version: "0.2.0".into(),
            commit: "c0ffee".into(),
            date: Some("2026-12-01".into()),
            is_rehearsal: false,
            given: Vec::new(),
            public: Some("RWQ".into()),
            tried: Vec::new(),
        }
    }

    #[test]
    fn what_is_missing_is_in_the_head() {
        let s = summary();
        assert_eq!(s.head(), "ringwise 0.2.0, 2026-12-01\ncommit c0ffee\nsigned; public key RWQ\n");
        let s = Summary { date: None, is_rehearsal: true, given: vec!["arm64".into()], public: None, ..s };
        let head = s.head();
        for line in ["ringwise 0.2.0, unreleased", "NOT SIGNED: no --key was given", "REHEARSAL: not to be published"] {
            assert!(head.lines().any(|l| l == line), "{line}: {head}");
        }
        assert!(head.contains("the program for arm64 was given"), "{head}");
    }

    #[test]
    fn one_failed_check_is_a_failed_release() {
        let mut s = summary();
        let tally = |passed, failed| Tally { passed, failed };
        s.tried.push(Tried::new("packages for amd64", &tally(9, 0), Instant::now()));
        assert_eq!(s.failed(), 0);
        s.tried.push(Tried::new("checksums", &tally(1, 1), Instant::now()));
        assert_eq!(s.failed(), 1);
    }
}
