//! `cargo xtask layering`: the directions between the rooms, as the table in ARCHITECTURE.md has them,
//! compared with what `cargo metadata` says; what the pure rooms must not name, who uses
//! files, sockets and processes beside `sys`, and that nothing decides by sentences.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Rooms without files, sockets, processes and clocks.
const PURE: &[&str] = &["model", "knob", "kfmt", "config", "flow", "plan", "emit", "check", "draw", "render"];
/// What such rooms must not name outside tests.
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
    for (room, sees) in &actual {
        match allowed.get(room) {
            None => wrong.push(format!("crates/{room} has no row in the table of ARCHITECTURE.md")),
            Some(may) => {
                for s in sees.difference(may) {
                    wrong.push(format!("crates/{room} sees {s}; ARCHITECTURE.md does not allow it"));
                }
            }
        }
    }
    for room in allowed.keys().filter(|r| !actual.contains_key(*r)) {
        wrong.push(format!("ARCHITECTURE.md has a row for {room}, which is no crate"));
    }
    for room in actual.keys() {
        words(root, room, &mut wrong)?;
        forgotten(&root.join("crates").join(room), &mut wrong)?;
    }
    crate::prose::check(&root.join("crates"), &mut wrong)?;
    crate::circles::check(&root.join("crates"), &mut wrong)?;
    crate::host_access::check(root, &mut wrong)?;
    if !wrong.is_empty() {
        bail!("directions:\n  {}", wrong.join("\n  "));
    }
    println!("directions: {} rooms as ARCHITECTURE.md says", actual.len());
    Ok(())
}

/// Test files that no program has: where `tests/main.rs` names the modules, cargo looks for no others.
fn forgotten(room: &Path, wrong: &mut Vec<String>) -> Result<()> {
    let tests = room.join("tests");
    let Ok(main) = std::fs::read_to_string(tests.join("main.rs")) else { return Ok(()) };
    for file in std::fs::read_dir(&tests)? {
        let path = file?.path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()?.strip_suffix(".rs")) else { continue };
        if name != "main" && !main.lines().any(|l| l == format!("mod {name};")) {
            wrong.push(format!("{}: tests/main.rs has no `mod {name};`, so that nothing runs it", path.display()));
        }
    }
    Ok(())
}

/// Rows `| room | sees a, b |` under the heading "Directions".
fn table(text: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut out = BTreeMap::new();
    let section = text.split("## Directions").nth(1).context("ARCHITECTURE.md has no heading \"## Directions\"")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    for line in section.lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [room, sees, ..] = cells.as_slice() else { bail!("ARCHITECTURE.md: not a row: {line}") };
        let names = |s: &str| -> BTreeSet<String> { s.split('`').skip(1).step_by(2).map(str::to_string).collect() };
        let room = names(room).into_iter().next().with_context(|| format!("no room in {line}"))?;
        out.insert(room, names(sees));
    }
    if out.is_empty() {
        bail!("ARCHITECTURE.md: the table under \"## Directions\" has no rows");
    }
    Ok(out)
}

fn room_of(package: &str) -> Option<String> {
    match package {
        "ringwise" => Some("cli".to_string()),
        p => p.strip_prefix("ringwise-").map(str::to_string),
    }
}

/// Normal and build dependencies between rooms; development ones do not count.
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
    let mut rooms = BTreeMap::new();
    for p in meta["packages"].as_array().context("cargo metadata: no packages")? {
        let Some(room) = p["name"].as_str().and_then(room_of) else { continue };
        let deps = p["dependencies"].as_array().into_iter().flatten();
        let sees = deps.filter(|d| d["kind"].as_str() != Some("dev"));
        rooms.insert(room, sees.filter_map(|d| room_of(d["name"].as_str()?)).collect());
    }
    Ok(rooms)
}

fn words(root: &Path, room: &str, wrong: &mut Vec<String>) -> Result<()> {
    let src = root.join("crates").join(room).join("src");
    let mut forbids_unsafe = false;
    for file in sources(&src)? {
        let text = std::fs::read_to_string(&file)?;
        forbids_unsafe |= text.contains("#![forbid(unsafe_code)]");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        for (n, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            if PURE.contains(&room) && !shown.ends_with("_tests.rs") {
                for f in FORBIDDEN.iter().filter(|f| line.contains(**f)) {
                    wrong.push(format!("{shown}:{}: {f} in the pure room {room}", n + 1));
                }
            }
        }
    }
    if room != "sys" && !forbids_unsafe {
        wrong.push(format!("crates/{room} does not say #![forbid(unsafe_code)]"));
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
            "x\n## Directions\n\n| room | may see |\n|---|---|\n| `a` | |\n| `b` | `a`, `c` |\n\n## Next\n| `z` | |\n",
        )
        .unwrap();
        assert_eq!(t.len(), 2);
        assert_eq!(t["b"], ["a", "c"].map(String::from).into());
        assert!(table("nothing").is_err());
    }
}
