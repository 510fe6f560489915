//! `cargo xtask docs`: the documentation site. mdBook builds it from a copy of the documents that keeps their layout, so
//! that links between `docs/` and the rest of the repository work on the site as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::cargo_tool::CargoTool;
use crate::{cmd, coverage, paths, tree};

/// The search works without network and without a server.
const MDBOOK: CargoTool =
    CargoTool { name: "mdbook", version: "0.5.4", args: &["--no-default-features", "--features", "search"] };

/// What documents link to, beside `docs/`.
const LINKED: &[&str] = &["schemas", "contrib", "lab", "fixtures/README.md"];

const BOOK: &str = "\
[book]
title = \"ringwise\"
description = \"Tunes multi-queue network interfaces on Linux, and can undo every change it makes.\"
language = \"en\"
src = \"src\"

[build]
create-missing = false

[output.html]
no-section-label = true
";

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let out = match args {
        [] => paths::target().join("site"),
        [dir] if !dir.starts_with('-') => std::path::absolute(dir)?,
        _ => bail!("docs expects at most one directory, found {args:?}"),
    };
    let pages = build(&out)?;
    println!("docs: {pages} pages in {}; start with index.html", out.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds the site; returns the number of its pages.
pub(crate) fn build(out: &Path) -> Result<usize> {
    let wrong = coverage::wrong(&paths::root())?;
    if !wrong.is_empty() {
        bail!("{}:\n{}", coverage::PAGE, wrong.join("\n"));
    }
    let program = MDBOOK.ensure()?;
    let work = paths::target().join("site-source");
    let _ = fs::remove_dir_all(&work);
    copy_sources(&paths::root(), &work.join("src"))?;
    fs::write(work.join("book.toml"), BOOK)?;
    let mut c = Command::new(program);
    c.arg("build").arg(&work).arg("--dest-dir").arg(out);
    let log = cmd::output(&mut c)?;
    let pages = pages(out)?;
    if pages.is_empty() {
        bail!("mdbook wrote no page into {}\n{log}", out.display());
    }
    let broken = broken_links(&pages, out)?;
    if !broken.is_empty() {
        bail!("broken links of the site:\n{}", broken.join("\n"));
    }
    Ok(pages.len())
}

fn copy_sources(root: &Path, to: &Path) -> Result<()> {
    let summary = root.join("docs/SUMMARY.md");
    let text = fs::read_to_string(&summary).with_context(|| summary.display().to_string())?;
    fs::create_dir_all(to)?;
    fs::write(to.join("SUMMARY.md"), from_root(&text))?;
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "md") {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
        }
    }
    tree::mirror(&root.join("docs"), &to.join("docs"))?;
    fs::remove_file(to.join("docs/SUMMARY.md"))?;
    for name in LINKED {
        let path = root.join(name);
        if path.is_dir() {
            tree::mirror(&path, &to.join(name))?;
        }
    }
    Ok(())
}

/// The table of contents with its links as seen from the root of the repository.
fn from_root(summary: &str) -> String {
    let link = |target: &str| match target.strip_prefix("../") {
        Some(above) => above.to_string(),
        None => format!("docs/{target}"),
    };
    let mut out = String::new();
    for line in summary.lines() {
        match line.split_once("](").and_then(|(head, tail)| Some((head, tail.split_once(')')?))) {
            Some((head, (target, rest))) => out.push_str(&format!("{head}]({}){rest}\n", link(target))),
            None => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

fn pages(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut folders: Vec<PathBuf> = vec![dir.to_path_buf()];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "html") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Links between files of the site whose target does not exist.
fn broken_links(pages: &[PathBuf], site: &Path) -> Result<Vec<String>> {
    let mut out = Vec::new();
    for page in pages {
        let text = fs::read_to_string(page)?;
        for href in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let file = href.split(['#', '?']).next().unwrap_or_default();
            // mdBook copies the first page to index.html; its links are relative to where it was.
            if file.is_empty() || href.contains(':') || *page == site.join("index.html") {
                continue;
            }
            if !page.with_file_name("").join(file).exists() {
                out.push(format!("{}: {href}", page.display()));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_table_of_contents() {
        let summary = "# Contents\n\n- [Tour](tour.md)\n  - [Architecture](../ARCHITECTURE.md)\n";
        let want = "# Contents\n\n- [Tour](docs/tour.md)\n  - [Architecture](ARCHITECTURE.md)\n";
        assert_eq!(from_root(summary), want);
    }
}
