//! `cargo xtask layering`: compares the dependencies between the crates that the table in ARCHITECTURE.md allows
//! with those of `cargo metadata`. It also checks that the pure crates do not name forbidden items, which files use
//! files, sockets and processes without `sys`, and that no code makes decisions by sentences.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Crates without files, sockets, processes and clocks.
const PURE: &[&str] = &["model", "knob", "kfmt", "config", "flow", "adapt", "plan", "emit", "check", "draw", "render"];
/// Items that such crates must not name outside of tests.
const FORBIDDEN: &[&str] = &[
    "std::fs",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "std::process",
    "std::os::unix",
    "std::env::var",
    "Instant::now",
    "SystemTime::now",
    "std::thread",
];

pub(crate) fn run(root: &Path) -> Result<()> {
    let allowed = table(&std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?)?;
    let actual = actual(root)?;
    let mut wrong = Vec::new();
    for (krate, sees) in &actual {
        match allowed.get(krate) {
            None => wrong.push(format!("crates/{krate} has no row in the table of ARCHITECTURE.md")),
            Some(may) => {
                for s in sees.difference(may) {
                    wrong.push(format!("crates/{krate} depends on {s}; ARCHITECTURE.md does not allow that"));
                }
            }
        }
    }
    for krate in allowed.keys().filter(|r| !actual.contains_key(*r)) {
        wrong.push(format!("ARCHITECTURE.md has a row for {krate}, which is not a crate"));
    }
    for krate in actual.keys() {
        words(root, krate, &mut wrong)?;
        forgotten(&root.join("crates").join(krate), &mut wrong)?;
    }
    crate::prose::check(&root.join("crates"), &mut wrong)?;
    crate::circles::check(&root.join("crates"), &mut wrong)?;
    crate::host_access::check(root, &mut wrong)?;
    if !wrong.is_empty() {
        bail!("dependencies:\n  {}", wrong.join("\n  "));
    }
    println!("dependencies: {} crates conform to ARCHITECTURE.md", actual.len());
    Ok(())
}

/// Finds test files that no test program contains: if `tests/main.rs` names the modules, cargo ignores other files.
fn forgotten(krate: &Path, wrong: &mut Vec<String>) -> Result<()> {
    let tests = krate.join("tests");
    let Ok(main) = std::fs::read_to_string(tests.join("main.rs")) else { return Ok(()) };
    for file in std::fs::read_dir(&tests)? {
        let path = file?.path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()?.strip_suffix(".rs")) else { continue };
        if name != "main" && !main.lines().any(|l| l == format!("mod {name};")) {
            wrong.push(format!("{}: tests/main.rs has no `mod {name};`, so its tests never run", path.display()));
        }
    }
    Ok(())
}

/// Rows `| crate | depends on a, b |` under the heading "Directions".
fn table(text: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut out = BTreeMap::new();
    let section = text.split("## Directions").nth(1).context("ARCHITECTURE.md has no heading \"## Directions\"")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    for line in section.lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [krate, sees, ..] = cells.as_slice() else { bail!("ARCHITECTURE.md: not a row: {line}") };
        let names = |s: &str| -> BTreeSet<String> { s.split('`').skip(1).step_by(2).map(str::to_string).collect() };
        let krate = names(krate).into_iter().next().with_context(|| format!("no crate in {line}"))?;
        out.insert(krate, names(sees));
    }
    if out.is_empty() {
        bail!("ARCHITECTURE.md: the table under \"## Directions\" has no rows");
    }
    Ok(out)
}

fn crate_of(package: &str) -> Option<String> {
    match package {
        "ringwise" => Some("cli".to_string()),
        p => p.strip_prefix("ringwise-").map(str::to_string),
    }
}

/// Normal and build dependencies between crates, without development dependencies.
fn actual(root: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    if !out.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    }
    let meta: serde_json::Value = serde_json::from_slice(&out.stdout)?;
    let mut crates = BTreeMap::new();
    for p in meta["packages"].as_array().context("cargo metadata: no packages")? {
        let Some(krate) = p["name"].as_str().and_then(crate_of) else { continue };
        let deps = p["dependencies"].as_array().into_iter().flatten();
        let sees = deps.filter(|d| d["kind"].as_str() != Some("dev"));
        crates.insert(krate, sees.filter_map(|d| crate_of(d["name"].as_str()?)).collect());
    }
    Ok(crates)
}

fn words(root: &Path, krate: &str, wrong: &mut Vec<String>) -> Result<()> {
    let src = root.join("crates").join(krate).join("src");
    let mut forbids_unsafe = false;
    for file in sources(&src)? {
        let text = std::fs::read_to_string(&file)?;
        forbids_unsafe |= text.contains("#![forbid(unsafe_code)]");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        for (n, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            if PURE.contains(&krate) && !shown.ends_with("_tests.rs") {
                for f in FORBIDDEN.iter().filter(|f| line.contains(**f)) {
                    wrong.push(format!("{shown}:{}: {f} in the pure crate {krate}", n + 1));
                }
            }
        }
    }
    if krate != "sys" && !forbids_unsafe {
        wrong.push(format!("crates/{krate} lacks #![forbid(unsafe_code)]"));
    }
    Ok(())
}

fn sources(dir: &Path) -> Result<Vec<std::path::PathBuf>> {
    let mut out = Vec::new();
    for e in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let p = e?.path();
        if p.is_dir() {
            out.extend(sources(&p)?);
        } else if p.extension().is_some_and(|x| x == "rs") {
            out.push(p);
        }
    }
    out.sort();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_table() {
        let t = table(
            "x\n## Directions\n\n| crate | may see |\n|---|---|\n| `a` | |\n| `b` | `a`, `c` |\n\n## Next\n| `z` | |\n",
        )
        .unwrap();
        assert_eq!(t.len(), 2);
        assert_eq!(t["b"], ["a", "c"].map(String::from).into());
        assert!(table("nothing").is_err());
    }
}
