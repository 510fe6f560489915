//! Small tasks for developers: golden results, man pages.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

/// Rewrites the golden results of every test that reads `RINGWISE_BLESS`.
pub(crate) fn bless(root: &Path) -> Result<ExitCode> {
    let status = Command::new(env!("CARGO"))
        .args(["test", "--workspace", "--no-fail-fast", "--quiet"])
        .env("RINGWISE_BLESS", "1")
        .current_dir(root)
        .status()?;
    println!("golden results rewritten; look at `git diff` before you commit");
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Man pages and completions from the binary's own flag table, into DIR (`target/man`).
pub(crate) fn man(root: &Path, args: &[String]) -> Result<ExitCode> {
    let dir = args.first().map_or_else(|| root.join("target/man"), PathBuf::from);
    std::fs::create_dir_all(&dir)?;
    let ringwise = |words: &[&str]| -> Result<Vec<u8>> {
        let out = Command::new(env!("CARGO"))
            .args(["run", "--quiet", "--package", "ringwise", "--"])
            .args(words)
            .current_dir(root)
            .output()?;
        if !out.status.success() {
            bail!("ringwise {}: {}", words.join(" "), String::from_utf8_lossy(&out.stderr));
        }
        Ok(out.stdout)
    };
    ringwise(&["__man", &dir.to_string_lossy()])?;
    for (shell, file) in [("bash", "ringwise.bash"), ("zsh", "_ringwise"), ("fish", "ringwise.fish")] {
        std::fs::write(dir.join(file), ringwise(&["__completions", shell])?)?;
    }
    let mut names: Vec<String> =
        std::fs::read_dir(&dir)?.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    println!("{}: {}", dir.display(), names.join(" "));
    Ok(ExitCode::SUCCESS)
}
