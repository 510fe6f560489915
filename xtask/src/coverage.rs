//! `docs/coverage.md` lists requirements and the tests that show them. It must not name a file, a test function or a check
//! of a scenario that does not exist, and its counts must be those of its rows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

pub(crate) const PAGE: &str = "docs/coverage.md";
const STATES: [&str; 3] = ["done", "partly", "not done"];
/// Begins the part of a row that names no tests.
const GAP: &str = "*Gap:*";

/// What is wrong with the page; each line begins with the number of a row.
pub(crate) fn wrong(root: &Path) -> Result<Vec<String>> {
    let file = root.join(PAGE);
    let page = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(faults(&page, &|path| fs::read_to_string(root.join(path)).ok()))
}

/// `read`: the text of a file of the repository, if it exists.
fn faults(page: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut out = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut counted = None;
    let mut open = Vec::new();
    for row in page.lines().filter_map(cells) {
        match *row {
            [number, _, state, shown] if is_number(number) => {
                if !STATES.contains(&state) {
                    out.push(format!("{number}: {state:?} is not a state; expected one of {STATES:?}"));
                }
                *counts.entry(state).or_default() += 1;
                if state == "not done" {
                    open.push(number);
                }
                let (tests, gap) = shown.split_once(GAP).unwrap_or((shown, ""));
                let names = names(number, tests, read, &mut out);
                if (state == "not done") != (names == 0) {
                    out.push(format!("{number}: {state}, and {names} tests are named"));
                }
                if (state == "done") != gap.is_empty() {
                    out.push(format!("{number}: only a row that is not done has a part that begins with {GAP}"));
                }
                for path in code(gap).filter(|c| is_path(c) && read(c).is_none()) {
                    out.push(format!("{number}: {path} does not exist"));
                }
            }
            ["all", ref numbers @ ..] => counted = Some(numbers.iter().map(|n| n.parse().ok()).collect()),
            _ => {}
        }
    }
    let mut all: Vec<Option<usize>> = STATES.iter().map(|s| Some(counts.get(s).copied().unwrap_or(0))).collect();
    all.push(Some(counts.values().sum()));
    if counted.as_ref() != Some(&all) {
        out.push(format!("the line `all` of the counts has {counted:?}, the rows have {all:?}"));
    }
    let listed = format!("Not done: {}.", open.join(", "));
    if !page.lines().any(|l| l == listed) {
        out.push(format!("expected the line {listed:?}"));
    }
    out
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
    Some(inner.split(" | ").map(str::trim).collect())
}

/// `R0.01`, `RX.5`.
fn is_number(cell: &str) -> bool {
    cell.strip_prefix('R').and_then(|c| c.split_once('.')).is_some_and(|(_, n)| n.parse::<u32>().is_ok())
}

fn is_path(code: &str) -> bool {
    code.contains('/') && [".rs", ".sh", ".md"].iter().any(|end| code.ends_with(end))
}

/// The parts between backquotes.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The number of tests that a row names. Each name belongs to the file before it.
fn names(number: &str, tests: &str, read: &dyn Fn(&str) -> Option<String>, out: &mut Vec<String>) -> usize {
    let mut count = 0;
    let mut file: Option<(&str, String)> = None;
    for name in code(tests) {
        if is_path(name) {
            file = read(name).map(|text| (name, text));
            if file.is_none() {
                out.push(format!("{number}: {name} does not exist"));
            }
        } else if let Some((path, text)) = &file {
            count += 1;
            let here = if path.ends_with(".sh") { is_check(text, name) } else { is_test(text, name) };
            if !here {
                out.push(format!("{number}: {path} has no test {name:?}"));
            }
        }
    }
    count
}

/// Whether a scenario has a check of this name, as its source spells it.
fn is_check(text: &str, name: &str) -> bool {
    let quoted = format!(" \"{name}\"");
    text.lines().any(|l| !l.trim_start().starts_with('#') && l.contains(&quoted))
}

/// Whether there is a test function of this name. Some files make one of each entry of a macro: `one_cpu = "one-cpu"`.
fn is_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let (head, entry) = (format!("fn {name}("), format!("{name} = \""));
    let marked = |at: usize| {
        let mut above = lines[..at].iter().rev().take_while(|l| l.starts_with("#[") || l.starts_with("//"));
        above.any(|l| *l == "#[test]")
    };
    let made = text.contains("#[test] fn $");
    lines.iter().enumerate().any(|(at, l)| (l.starts_with(&head) && marked(at)) || (made && l.starts_with(&entry)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn every_file_and_every_test_of_the_page_exists() {
        let wrong = wrong(&paths::root()).unwrap();
        assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
        let page = fs::read_to_string(paths::root().join(PAGE)).unwrap();
        let rows = page.lines().filter_map(cells).filter(|c| is_number(c[0])).count();
        assert!(rows > 100, "only {rows} rows were found");
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let read = |path: &str| match path {
            "a/t.rs" => Some("#[test]\nfn one() {\n}\nfn two() {\n}\n".to_string()),
            "a/m.rs" => Some("$(#[test] fn $test() {})*\nthree = \"3\",\n".to_string()),
            "a/s.sh" => Some("check \"$dev: four\" true\n# check \"five\"\n".to_string()),
            _ => None,
        };
        let of = |rows: &[&str], all: &str| {
            faults(&format!("{}\n| all | {all} |\nNot done: R5.03.\n", rows.join("\n")), &read)
        };
        let good = [
            "| R0.01 | a, b | done | `a/t.rs`: `one`; `a/m.rs`: `three` (Q01); `a/s.sh`: `$dev: four` |",
            "| RX.2 | c | partly | `a/t.rs`: `one`. *Gap:* `d` and `a/s.sh` |",
            "| R5.03 | e | not done | *Gap:* f |",
        ];
        assert_eq!(of(&good, "1 | 1 | 1 | 3"), [""; 0]);
        for (row, words) in [
            ("| R0.01 | a | done | `a/x.rs`: `one`; `a/t.rs`: `one` |", "R0.01: a/x.rs does not exist"),
            ("| R0.01 | a | done | `a/t.rs`: `two` |", "R0.01: a/t.rs has no test \"two\""),
            ("| R0.01 | a | done | `a/t.rs`: `three` |", "R0.01: a/t.rs has no test \"three\""),
            ("| R0.01 | a | done | `a/s.sh`: `five` |", "R0.01: a/s.sh has no test \"five\""),
            ("| R0.01 | a | done | `a/t.rs` |", "R0.01: done, and 0 tests are named"),
            ("| R0.01 | a | done | `a/t.rs`: `one`. *Gap:* b |", "R0.01: only a row that is not done"),
        ] {
            let found = of(&[row], "1 | 0 | 0 | 1");
            assert!(found.iter().any(|f| f.starts_with(words)), "{row}: {found:?}");
        }
        assert!(of(&good, "2 | 0 | 1 | 3")[0].starts_with("the line `all`"));
        assert!(of(&good[..2], "1 | 1 | 0 | 2")[0].starts_with("expected the line \"Not done: "));
    }
}
