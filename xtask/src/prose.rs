//! No sentence of the program's own is an interface inside it: nothing in `crates/` decides by the words of a text.
//! Kernel files, other programs' output and file formats are read in the rooms that exist for it; the few other places
//! are listed here with what they read.

use std::path::Path;

use anyhow::Result;

/// They read what others have written.
const READERS: &[&str] = &["kfmt", "sys", "discover", "testkit"];

/// File below `crates/`, the beginning of the literal, and whose text it is.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("bench/src/pktgen.rs", " usec, ", "the kernel's result of pktgen"),
    ("check/src/rules/host.rs", "Clear CPU buffers", "the kernel's list of vulnerabilities"),
    ("check/src/rules/host.rs", "SMT vulnerable", "the kernel's list of vulnerabilities"),
    ("cli/src/cmd/bench/forward.rs", "flow-type ", "a flow rule as ethtool takes it"),
    ("cli/src/cmd/bench/states.rs", "error: ", "a message of the argument parser"),
    ("cli/src/cmd/persist/place.rs", " - ", "/proc/self/mountinfo"),
    ("recording/src/record.rs", "begin ", "the format of recordings"),
    ("flow/src/rules.rs", " m ", "the mask of a flow rule as ethtool takes it"),
    ("observe/src/flat.rs", "sample ", "the format of recordings"),
];

const METHODS: &[&str] = &[
    ".starts_with(",
    ".ends_with(",
    ".contains(",
    ".strip_prefix(",
    ".strip_suffix(",
    ".find(",
    ".rfind(",
    ".split_once(",
    ".rsplit_once(",
    ".trim_start_matches(",
    ".trim_end_matches(",
    ".replace(",
    ".replacen(",
    " == ",
    " != ",
];

/// Adds a line for each place, and for each entry of the list that no place needs any more.
pub(crate) fn check(crates: &Path, wrong: &mut Vec<String>) -> Result<()> {
    let mut used = vec![false; ALLOWED.len()];
    for room in std::fs::read_dir(crates)? {
        let room = room?;
        if READERS.contains(&room.file_name().to_string_lossy().as_ref()) {
            continue;
        }
        walk(&room.path().join("src"), &mut |path| {
            let text = std::fs::read_to_string(path)?;
            let file = path.strip_prefix(crates)?.display().to_string();
            for (line, literal) in places(&text) {
                match ALLOWED.iter().position(|(f, begin, _)| *f == file && literal.starts_with(begin)) {
                    Some(at) => used[at] = true,
                    None => wrong.push(format!(
                        "crates/{file}:{line} decides by a text (\"{literal}\"): use a type, or list it in xtask/src/prose.rs with \
                         whose text it is"
                    )),
                }
            }
            Ok(())
        })?;
    }
    let unused = ALLOWED.iter().zip(used).filter(|(_, used)| !used);
    wrong.extend(
        unused.map(|((file, begin, _), _)| format!("xtask/src/prose.rs lists {file} \"{begin}\", which is gone")),
    );
    Ok(())
}

fn walk(dir: &Path, each: &mut impl FnMut(&Path) -> Result<()>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            walk(&path, each)?;
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") && !path.to_string_lossy().contains("/secrets") {
            each(&path)?;
        }
    }
    Ok(())
}

/// Line and literal of each comparison with a text of several words, without tests.
fn places(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim() == "#[cfg(test)]" {
            break;
        }
        if line.trim_start().starts_with("//") {
            continue;
        }
        for method in METHODS {
            for (at, _) in line.match_indices(method) {
                let Some(literal) = line[at + method.len()..].strip_prefix('"').and_then(|l| l.split('"').next())
                else {
                    continue;
                };
                let words = literal.trim_start_matches("- ").contains(' ');
                // What is made of a text, not decided by it.
                let made = method.starts_with(".replace") && !literal.trim().contains(' ');
                if words && literal.chars().any(|c| c.is_alphabetic() || c == '-') && !made {
                    out.push((i + 1, literal.to_string()));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_found_and_words_are_not() {
        let found = |line: &str| places(line).into_iter().map(|p| p.1).collect::<Vec<_>>();
        assert_eq!(found("if why.starts_with(\"no answer\") {"), ["no answer"]);
        assert_eq!(found("match u.why == \"not asked\" {"), ["not asked"]);
        assert_eq!(found("let (a, b) = t.split_once(\" line \")?;"), [" line "]);
        assert_eq!(found("name.starts_with(\"eth\") || name == \"rx-usecs\""), [""; 0]);
        assert_eq!(found("    // u.why.starts_with(\"no answer\")"), [""; 0]);
        assert_eq!(found("out.split_once(\": \")"), [""; 0]);
        assert_eq!(places("#[cfg(test)]\nassert!(e.contains(\"no such\"));"), []);
    }
}
