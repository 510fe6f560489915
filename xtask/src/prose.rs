//! Checks that no code in `crates/` makes decisions by the words of the program's own texts.
//! Kernel files, other programs' output and file formats are read in the crates for that purpose; the few other places
//! are listed here with what they read.

use std::path::Path;

use anyhow::Result;

/// Crates that read texts of other programs.
const READERS: &[&str] = &["kfmt", "sys", "discover", "testkit"];

/// File below `crates/`, the beginning of the literal, and whose text it is.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("bench/src/pktgen.rs", " usec, ", "the kernel's result of pktgen"),
    ("check/src/rules/host.rs", "Clear CPU buffers", "the kernel's list of vulnerabilities"),
    ("check/src/rules/host.rs", "SMT vulnerable", "the kernel's list of vulnerabilities"),
    ("model/src/json_fault.rs", "missing field ", "serde's error"),
    ("model/src/json_fault.rs", ", expected ", "serde's error"),
    ("model/src/json_fault.rs", "struct ", "serde's error"),
    ("model/src/json_fault.rs", "enum ", "serde's error"),
    ("config/src/import/irqbalance.rs", "export ", "irqbalance's environment file"),
    ("cli/src/cmd/manual_changes.rs", "take over", "the answer of a person"),
    ("cli/src/cmd/bench/states.rs", "flow-type ", "a flow rule as ethtool takes it"),
    ("recording/src/record.rs", "begin ", "the format of recordings"),
    ("flow/src/rules.rs", " m ", "the mask of a flow rule as ethtool takes it"),
    ("persist/src/place.rs", " - ", "/proc/self/mountinfo"),
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
        unused.map(|((file, begin, _), _)| {
            format!("xtask/src/prose.rs lists {file} \"{begin}\", which no longer exists")
        }),
    );
    Ok(())
}

pub(crate) fn walk(dir: &Path, each: &mut impl FnMut(&Path) -> Result<()>) -> Result<()> {
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

/// Line and literal of each comparison with a text of several words, without tests: by a method, where the literal may
/// stand on the next line, by an arm of a `match`, and by `matches!`.
fn places(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let lines: Vec<&str> = text.lines().take_while(|l| l.trim() != "#[cfg(test)]").collect();
    for (i, line) in lines.iter().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for method in METHODS {
            for (at, _) in line.match_indices(method) {
                let rest = &line[at + method.len()..];
                let (at, rest) = match rest.trim().is_empty() {
                    true => (i + 1, lines.get(i + 1).map_or("", |l| l.trim_start())),
                    false => (i, rest),
                };
                let Some(literal) = rest.strip_prefix('"').and_then(|l| l.split('"').next()) else { continue };
                // A text that is converted, not a decision.
                let made = method.starts_with(".replace") && !literal.trim().contains(' ');
                if is_prose(literal) && !made {
                    out.push((at + 1, literal.to_string()));
                }
            }
            // rustfmt leaves no space at the end of a line.
            if method.ends_with(' ') && line.ends_with(method.trim_end()) {
                let next = lines.get(i + 1).and_then(|l| l.trim_start().strip_prefix('"')?.split('"').next());
                out.extend(next.filter(|l| is_prose(l)).map(|l| (i + 2, l.to_string())));
            }
        }
        out.extend(pattern(line).into_iter().filter(|l| is_prose(l)).map(|l| (i + 1, l.to_string())));
    }
    out
}

fn is_prose(literal: &str) -> bool {
    let words = literal.trim_start_matches("- ").contains(' ');
    words && literal.chars().any(|c| c.is_alphabetic() || c == '-')
}

/// Literals of a pattern: before `=>`, behind a leading `|`, and in `matches!`.
fn pattern(line: &str) -> Vec<&str> {
    let parts: Vec<&str> = line.split('"').collect();
    // Every second part is inside of quotes; literals with an escaped quote are not examined.
    if line.contains("\\\"") {
        return Vec::new();
    }
    let arrow = (0..parts.len()).step_by(2).find(|i| parts[*i].contains("=>")).unwrap_or(0);
    let before = if line.trim_start().starts_with("| \"") && arrow == 0 { parts.len() } else { arrow };
    let mut out: Vec<&str> = (1..before).step_by(2).map(|i| parts[i]).collect();
    for i in (0..parts.len().saturating_sub(1)).step_by(2) {
        let Some((_, value)) = parts[i].rsplit_once("matches!(") else { continue };
        let mut depth = 0;
        let inside = value.chars().all(|c| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth >= 0
        });
        if inside {
            let more = (i + 2..parts.len()).step_by(2).take_while(|n| parts[*n].trim() == "|").count();
            out.extend((0..=more).filter_map(|n| parts.get(i + 1 + 2 * n)));
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
        assert_eq!(found("    \"not asked\" | \"no answer\" => Cause::Other,"), ["not asked", "no answer"]);
        assert_eq!(found("    Some(\"not asked\") if late => \"it is late\".into(),"), ["not asked"]);
        assert_eq!(found("    | \"no answer\""), ["no answer"]);
        assert_eq!(found("    Cause::Late => \"no answer in time\","), [""; 0]);
        assert_eq!(found("if matches!(u.why(), \"late\" | \"no answer\") {"), ["no answer"]);
        assert_eq!(found("if matches!(e, Error::Late) { \"no answer\" } else { \"\" }"), [""; 0]);
        assert_eq!(places("if why.contains(\n    \"no answer\",\n)"), [(2, "no answer".to_string())]);
        assert_eq!(places("why ==\n    \"no answer\""), [(2, "no answer".to_string())]);
        assert_eq!(places("#[cfg(test)]\nassert!(e.contains(\"no such\"));"), []);
    }
}
