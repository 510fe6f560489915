//! Selects the faults that are tested, by a seed. An edit elsewhere does not change the selection.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::names;
use crate::cmd;

/// A fault that cargo-mutants knows to make.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub(super) krate: &'static str,
    pub(super) file: String,
    /// With line and column, as cargo-mutants names it.
    pub(super) name: String,
    /// The same without them.
    pub(super) what: String,
    /// The line of the source with the fault, without the space around it.
    pub(super) line: String,
    /// File, fault, line and, where these are the same for several, which of them: holds across edits of other lines.
    pub(super) key: String,
    /// Its place among the faults of the file, from 0, and how many there are.
    pub(super) place: (usize, usize),
}

/// A fault of `survivors.toml` that no test can find.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listed {
    pub(super) file: String,
    /// As cargo-mutants names it, without file, line and column.
    pub(super) fault: String,
    /// The line of the source, without the space around it.
    pub(super) line: String,
    pub(super) reason: String,
}

#[derive(Deserialize)]
struct Made {
    file: String,
    name: String,
    package: String,
    span: Span,
}

#[derive(Deserialize)]
struct Span {
    start: Start,
}

#[derive(Deserialize)]
struct Start {
    line: usize,
}

/// `list`: JSON of `cargo mutants --list --json`, of the sources in `tree`.
pub(super) fn all(list: &str, tree: &Path) -> Result<Vec<Fault>> {
    let made: Vec<Made> = serde_json::from_str(list).context("the list of cargo-mutants")?;
    let mut sources: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    let mut out = Vec::new();
    for m in made {
        let names = names();
        let krate = names.iter().find(|n| m.package.strip_prefix("ringwise-") == Some(n));
        let krate = *krate.with_context(|| format!("a fault in {}", m.package))?;
        if !sources.contains_key(&m.file) {
            let text = fs::read_to_string(tree.join(&m.file)).with_context(|| m.file.clone())?;
            sources.insert(m.file.clone(), text.lines().map(|l| l.trim().to_string()).collect());
        }
        let line = sources[&m.file].get(m.span.start.line.saturating_sub(1)).cloned().unwrap_or_default();
        let what = m.name.split_once(": ").map_or(m.name.as_str(), |(_, w)| w).to_string();
        let mut key = format!("{}\n{what}\n{line}", m.file);
        let which = seen.entry(key.clone()).or_default();
        *which += 1;
        if *which > 1 {
            key.push_str(&format!("\n{which}"));
        }
        let here = count.entry(m.file.clone()).or_default();
        out.push(Fault { krate, file: m.file, name: m.name, what, line, key, place: (*here, 0) });
        *here += 1;
    }
    out.iter_mut().for_each(|f| f.place.1 = count[&f.file]);
    Ok(out)
}

/// The first `count` by a hash of seed and key.
pub(super) fn choose(all: Vec<Fault>, count: usize, seed: u64, wanted: impl Fn(&str) -> bool) -> Vec<Fault> {
    let mut all: Vec<(u64, Fault)> =
        all.into_iter().filter(|f| wanted(&f.file)).map(|f| (rank(seed, &f.key), f)).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.key.cmp(&b.1.key)));
    all.truncate(count);
    all.into_iter().map(|(_, f)| f).collect()
}

/// Similar keys must have very different hashes, which FNV alone does not achieve.
fn rank(seed: u64, key: &str) -> u64 {
    let hash = cmd::hash(&[&seed.to_le_bytes(), key.as_bytes()]);
    let mut x = u64::from_str_radix(&hash, 16).unwrap_or_default();
    // The end of SplitMix64.
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: usize) -> serde_json::Value {
        serde_json::json!({
            "file": "lib.rs", "name": format!("lib.rs:{line}:3: replace + with - in f"), "package": "ringwise-plan",
            "span": {"start": {"line": line, "column": 3}, "end": {"line": line, "column": 4}},
        })
    }

    fn made(source: &str, lines: &[usize], name: &str) -> Vec<Fault> {
        let dir = std::env::temp_dir().join(format!("xtask-choice-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("lib.rs"), source).unwrap();
        let list = serde_json::Value::from(lines.iter().map(|l| fault(*l)).collect::<Vec<_>>()).to_string();
        let out = all(&list, &dir).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        out
    }

    #[test]
    fn a_fault_keeps_its_key_when_lines_are_added_above() {
        let before = made("  a + b\n  a + b\n  c + d\n", &[1, 2, 3], "before");
        let after = made("//\n//\n  a + b\n  a + b\n  c + d\n", &[3, 4, 5], "after");
        let keys = |f: &[Fault]| f.iter().map(|f| f.key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&before), keys(&after));
        assert_eq!(before[0].what, "replace + with - in f");
        assert_eq!((before[2].line.as_str(), before[2].krate), ("c + d", "plan"));
        assert_eq!(before.iter().map(|f| f.place).collect::<Vec<_>>(), [(0, 3), (1, 3), (2, 3)]);
        // Two faults with the same line of text are different faults.
        assert_ne!(before[0].key, before[1].key);
    }

    #[test]
    fn a_seed_chooses_the_same_always_and_another_one_others() {
        let source: String = (0..200).map(|i| format!("a + {i}\n")).collect();
        let all = made(&source, &(1..=200).collect::<Vec<_>>(), "seed");
        let lines = |seed| choose(all.clone(), 20, seed, |_| true).into_iter().map(|f| f.line).collect::<Vec<_>>();
        assert_eq!(lines(1), lines(1));
        assert_ne!(lines(1), lines(2));
        // A fault that is gone does not change the selection of others.
        let first = lines(1);
        let fewer: Vec<Fault> = all.iter().filter(|f| f.line != first[0]).cloned().collect();
        let again: Vec<String> = choose(fewer, 20, 1, |_| true).into_iter().map(|f| f.line).collect();
        assert_eq!(first[1..], again[..19]);
        assert!(choose(all, 20, 1, |file| file == "other.rs").is_empty());
    }
}
