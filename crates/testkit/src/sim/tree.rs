//! Files and symbolic links by path, and walking them as the kernel does.

use std::collections::BTreeMap;

/// Part of a file tree. A directory exists if it contains something or is listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    /// A file with its text, or the errno with which reading it fails.
    pub files: BTreeMap<String, Result<String, i32>>,
    /// Relative or absolute targets.
    pub links: BTreeMap<String, String>,
}

impl Tree {
    pub(crate) fn file(&mut self, path: impl Into<String>, text: impl std::fmt::Display) {
        self.files.insert(path.into(), Ok(format!("{text}\n")));
    }

    pub(crate) fn error(&mut self, path: impl Into<String>, errno: i32) {
        self.files.insert(path.into(), Err(errno));
    }

    pub(crate) fn link(&mut self, path: impl Into<String>, target: impl Into<String>) {
        self.links.insert(path.into(), target.into());
    }
}

/// The path without links and `..`, walking over several trees. Loops end after 40 links as in the kernel.
pub(super) fn resolve(trees: &[&Tree], path: &str, follow_last: bool) -> Option<String> {
    let mut todo: Vec<String> = path.split('/').rev().filter(|p| !p.is_empty()).map(str::to_string).collect();
    let mut at = String::new();
    let mut links = 0;
    while let Some(part) = todo.pop() {
        match part.as_str() {
            "." => continue,
            ".." => {
                at.truncate(at.rfind('/').unwrap_or(0));
                continue;
            }
            _ => {}
        }
        let next = format!("{at}/{part}");
        let target = trees.iter().find_map(|t| t.links.get(&next));
        match target {
            Some(target) if follow_last || !todo.is_empty() => {
                links += 1;
                if links > 40 {
                    return None;
                }
                if target.starts_with('/') {
                    at.clear();
                }
                todo.extend(target.split('/').rev().filter(|p| !p.is_empty()).map(str::to_string));
            }
            _ => at = next,
        }
    }
    Some(if at.is_empty() { "/".to_string() } else { at })
}

/// Names directly below a resolved directory.
pub(super) fn children(trees: &[&Tree], dir: &str) -> Vec<String> {
    let prefix = if dir == "/" { "/".to_string() } else { format!("{dir}/") };
    let mut names = Vec::new();
    let mut add = |path: &str| {
        if let Some(rest) = path.strip_prefix(&prefix) {
            let name = rest.split('/').next().unwrap_or(rest).to_string();
            if !name.is_empty() && names.last() != Some(&name) {
                names.push(name);
            }
        }
    };
    for t in trees {
        t.files.range(prefix.clone()..).take_while(|(p, _)| p.starts_with(&prefix)).for_each(|(p, _)| add(p));
        t.links.range(prefix.clone()..).take_while(|(p, _)| p.starts_with(&prefix)).for_each(|(p, _)| add(p));
    }
    names.sort();
    names.dedup();
    names
}
