//! Checks that files of a crate do not use each other in a circle, so that a reader can begin with the lowest one.
//! Uses are found by `crate::` and `super::` paths outside of tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

type Uses = BTreeMap<String, BTreeSet<String>>;

/// Adds a line for each circle.
pub(crate) fn check(crates: &Path, wrong: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(crates)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut files = BTreeMap::new();
        read(&entry.path().join("src"), &mut Vec::new(), &mut files)?;
        for circle in circles(&uses(&files)) {
            wrong.push(format!("crates/{name}: files use each other in a circle: {}", circle.join(" ")));
        }
    }
    Ok(())
}

/// Module path and text without tests and comments.
fn read(dir: &Path, at: &mut Vec<String>, out: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            at.push(stem);
            read(&path, at, out)?;
            at.pop();
        } else if path.extension().is_some_and(|e| e == "rs") && !stem.ends_with("tests") {
            let root = matches!(stem.as_str(), "mod" | "lib" | "main");
            let name: Vec<&str> = at.iter().map(String::as_str).chain((!root).then_some(stem.as_str())).collect();
            let text = std::fs::read_to_string(&path)?;
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = text.lines().map(|l| l.split("//").next().unwrap_or_default());
            out.insert(name.join("::"), lines.collect::<Vec<_>>().join("\n"));
        }
    }
    Ok(())
}

fn uses(files: &BTreeMap<String, String>) -> Uses {
    files.iter().map(|(name, text)| (name.clone(), used(name, text, files))).collect()
}

fn used(name: &str, text: &str, files: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    for first in ["crate::", "super::"] {
        for (at, _) in text.match_indices(first) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| word(c) || c == ':') {
                continue;
            }
            let mut base: Vec<&str> = match first {
                "super::" => name.split("::").filter(|p| !p.is_empty()).collect(),
                _ => Vec::new(),
            };
            base.pop();
            let mut rest = &text[at + first.len()..];
            while let Some(up) = rest.strip_prefix("super::") {
                base.pop();
                rest = up;
            }
            paths(rest, &base, &mut |path| {
                // The longest part that is a file; the root of the crate does not count.
                let file = (1..=path.len()).rev().map(|n| path[..n].join("::")).find(|p| files.contains_key(p));
                out.extend(file.filter(|f| f != name));
            });
        }
    }
    out
}

/// Each path of what follows `crate::`, lists in braces included.
fn paths<'t>(text: &'t str, base: &[&'t str], each: &mut impl FnMut(&[&str])) {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(text.len());
    let mut path: Vec<&str> = base.to_vec();
    path.extend(text[..end].split("::").filter(|p| !p.is_empty() && *p != "self"));
    let Some(list) = text[end..].strip_prefix('{').filter(|_| text[..end].is_empty() || text[..end].ends_with("::"))
    else {
        return each(&path);
    };
    let (mut depth, mut from) = (1, 0);
    for (at, c) in list.char_indices() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 || depth == 1 && c == ',' {
            let item = list[from..at].trim();
            if !item.is_empty() {
                paths(item, &path, each);
            }
            from = at + 1;
        }
        if depth == 0 {
            return;
        }
    }
}

/// Sets of files that reach each other, each sorted.
fn circles(uses: &Uses) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|from| (from.as_str(), reached(uses, from))).collect();
    let mut out: BTreeSet<Vec<String>> = BTreeSet::new();
    for (from, all) in &reach {
        let both = all.iter().filter(|to| reach.get(**to).is_some_and(|back| back.contains(from)));
        let circle: BTreeSet<String> = both.map(|s| s.to_string()).collect();
        if circle.len() > 1 {
            out.insert(circle.into_iter().collect());
        }
    }
    out.into_iter().collect()
}

fn reached<'a>(uses: &'a Uses, from: &str) -> BTreeSet<&'a str> {
    let mut out = BTreeSet::new();
    let mut open: Vec<&'a str> = uses.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(one) = open.pop() {
        if out.insert(one) {
            open.extend(uses.get(one).into_iter().flatten().map(String::as_str));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_whatever_the_paths_look_like() {
        let files = |list: &[(&str, &str)]| list.iter().map(|(n, t)| (n.to_string(), t.to_string())).collect();
        let found = |list: &[(&str, &str)]| circles(&uses(&files(list)));
        assert_eq!(found(&[("a", "use crate::b::X;"), ("b", "fn f() { crate::c::g() }"), ("c", "")]), [[""; 0]; 0]);
        let three = [("a", "use crate::{b, x::{Y}};"), ("b", "fn f() { crate::c::g() }"), ("c", "use super::a::T;")];
        assert_eq!(found(&three), [["a", "b", "c"]]);
        let deep = [
            ("d::e", "use super::f::{self, G};"),
            ("d::f", "use super::super::h;"),
            ("h", "use crate::d::{e::Z, q};"),
            ("d", ""),
        ];
        assert_eq!(found(&deep), [["d::e", "d::f", "h"]]);
    }
}
