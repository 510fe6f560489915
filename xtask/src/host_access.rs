//! Checks which files use files, sockets and processes without `sys`: the table under "Files, sockets and processes" in
//! ARCHITECTURE.md is compared with the sources. A use without an entry is a fault, and so is an entry without a use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

const HEADING: &str = "## Files, sockets and processes";
/// Crates that are not checked: the interface to the host, and crates that are not shipped.
const FREE: &[&str] = &["sys", "testkit"];
/// The name of each kind in the table, and the names in the code.
const KINDS: &[(&str, &[&str])] = &[
    ("files", &["std::fs"]),
    ("sockets", &["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "UnixListener", "UnixDatagram"]),
    ("processes", &["Command::new", "process::Command", "Child", "Stdio"]),
];

/// By crate and kind: files below `src`, without `.rs`.
type Places = BTreeMap<(String, String), BTreeSet<String>>;

/// Adds a line for each difference.
pub(crate) fn check(root: &Path, wrong: &mut Vec<String>) -> Result<()> {
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    compare(&table(&text)?, &places(&root.join("crates"))?, wrong);
    Ok(())
}

fn compare(allowed: &Places, actual: &Places, wrong: &mut Vec<String>) {
    let none = BTreeSet::new();
    let keys: BTreeSet<_> = allowed.keys().chain(actual.keys()).collect();
    for key in keys {
        let (may, does) = (allowed.get(key).unwrap_or(&none), actual.get(key).unwrap_or(&none));
        let (krate, kind) = key;
        for file in does.difference(may) {
            wrong.push(format!(
                "crates/{krate}/src/{file}.rs uses {kind}: use sys instead, or add it to the table \"{}\" of ARCHITECTURE.md with \
                 the reason",
                &HEADING[3..]
            ));
        }
        for file in may.difference(does) {
            wrong.push(format!("ARCHITECTURE.md allows {krate} to use {kind} in {file}.rs, which does not use it"));
        }
    }
}

/// Rows `| crate | kind | files | why |`.
fn table(text: &str) -> Result<Places> {
    let mut out = Places::new();
    let section =
        text.split(HEADING).nth(1).with_context(|| format!("ARCHITECTURE.md has no heading \"{HEADING}\""))?;
    let section = section.split("\n## ").next().unwrap_or_default();
    for line in section.lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [krate, kind, files, why] = cells.as_slice() else { bail!("ARCHITECTURE.md: not a row: {line}") };
        if why.is_empty() || !KINDS.iter().any(|(k, _)| k == kind) {
            bail!("ARCHITECTURE.md: expected files, sockets or processes, and a reason: {line}");
        }
        let names = |s: &str| -> BTreeSet<String> { s.split('`').skip(1).step_by(2).map(str::to_string).collect() };
        let krate = names(krate).pop_first().with_context(|| format!("no crate in {line}"))?;
        out.entry((krate, kind.to_string())).or_default().extend(names(files));
    }
    Ok(out)
}

fn places(crates: &Path) -> Result<Places> {
    let mut out = Places::new();
    for krate in std::fs::read_dir(crates)? {
        let krate = krate?;
        let name = krate.file_name().to_string_lossy().into_owned();
        if FREE.contains(&name.as_str()) {
            continue;
        }
        let src = krate.path().join("src");
        crate::prose::walk(&src, &mut |path| {
            let shown = path.strip_prefix(&src)?.with_extension("").display().to_string();
            let text = std::fs::read_to_string(path)?;
            for kind in kinds(&shown, &text) {
                out.entry((name.clone(), kind.to_string())).or_default().insert(shown.clone());
            }
            Ok(())
        })?;
    }
    Ok(out)
}

/// The kinds that the code of a file uses, without tests and comments.
fn kinds(file: &str, text: &str) -> Vec<&'static str> {
    if file.ends_with("tests") || file.split('/').any(|part| part == "tests") {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines: Vec<&str> = code.lines().map(|l| l.split("//").next().unwrap_or_default()).collect();
    let uses = |names: &[&str]| lines.iter().any(|l| names.iter().any(|n| has(l, n)));
    // clap has a `Command` too.
    let starts = lines.iter().any(|l| l.contains("std::process"));
    let found = KINDS.iter().filter(|(kind, names)| uses(names) && (*kind != "processes" || starts));
    found.map(|(kind, _)| *kind).collect()
}

/// The name as a word of its own.
fn has(line: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(i, _)| !line[..i].ends_with(word) && !line[i + name.len()..].starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# x\n## Files, sockets and processes\n\n| crate | uses | in | why |\n|---|---|---|---|\n\
        | `a` | files | `one`, `two/three` | state |\n| `a` | sockets | `one` | guard |\n\n## Next\n| `z` | files | `q` | x |\n";

    #[test]
    fn reads_the_table_and_reports_both_differences() {
        let t = table(TEXT).unwrap();
        assert_eq!(t.len(), 2);
        let key = |krate: &str, kind: &str| (krate.to_string(), kind.to_string());
        assert_eq!(t[&key("a", "files")], ["one", "two/three"].map(String::from).into());
        let actual: Places = [(key("a", "files"), ["one".to_string(), "new".to_string()].into())].into();
        let mut wrong = Vec::new();
        compare(&t, &actual, &mut wrong);
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[0].starts_with("crates/a/src/new.rs uses files"), "{wrong:?}");
        assert!(wrong[2].contains("allows a to use sockets in one.rs"), "{wrong:?}");
        assert!(table("nothing").is_err());
        assert!(table(&TEXT.replace("| state |", "| |")).is_err(), "without a reason");
        assert!(table(&TEXT.replace("| sockets |", "| clocks |")).is_err());
    }

    #[test]
    fn what_a_file_uses() {
        assert_eq!(kinds("a", "use std::fs;\nuse std::os::unix::net::UnixStream;\n"), ["files", "sockets"]);
        assert_eq!(kinds("a", "use std::process::{Child, Command};\n"), ["processes"]);
        // clap's command, a comment, a test, words that only begin so.
        assert_eq!(kinds("a", "use clap::Command;\nlet c = Command::new(\"x\");\n"), Vec::<&str>::new());
        assert_eq!(kinds("a", "// std::fs\nstruct MyTcpStreams;\n#[cfg(test)]\nuse std::fs;\n"), Vec::<&str>::new());
        assert_eq!(kinds("load/tests", "use std::fs;\n"), Vec::<&str>::new());
        assert_eq!(kinds("a", "std::process::exit(1)\n"), Vec::<&str>::new());
    }
}
