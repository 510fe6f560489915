//! `survivors.toml`: faults that no test can find, because they do not change the program's behaviour, each with its
//! reason.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::choice::{Fault, Listed};

/// From the root of the repository.
pub(super) const FILE: &str = "xtask/survivors.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    survivor: Vec<Listed>,
}

pub(super) fn read(path: &Path) -> Result<Vec<Listed>> {
    parse(&fs::read_to_string(path).with_context(|| path.display().to_string())?).context(FILE)
}

fn parse(text: &str) -> Result<Vec<Listed>> {
    let file: File = toml::from_str(text)?;
    for l in &file.survivor {
        ensure!(!l.reason.trim().is_empty(), "{}: {}: needs a reason", l.file, l.fault);
    }
    Ok(file.survivor)
}

fn same(l: &Listed, f: &Fault) -> bool {
    (l.file.as_str(), l.fault.as_str(), l.line.as_str()) == (f.file.as_str(), f.what.as_str(), f.line.as_str())
}

pub(super) fn is_listed(listed: &[Listed], f: &Fault) -> bool {
    listed.iter().any(|l| same(l, f))
}

/// Entries whose fault no longer exists. `krate`: the only crate whose faults are known.
pub(super) fn without_fault<'a>(listed: &'a [Listed], all: &[Fault], krate: Option<&str>) -> Vec<&'a Listed> {
    let known = |l: &&Listed| krate.is_none_or(|c| l.file.starts_with(&format!("crates/{c}/")));
    listed.iter().filter(known).filter(|l| !all.iter().any(|f| same(l, f))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_for_one_line_and_has_a_reason() {
        let entry = |reason: &str| {
            format!(
                "[[survivor]]\nfile='crates/plan/src/a.rs'\nfault='replace + with -'\nline='a + b'\nreason='{reason}'\n"
            )
        };
        assert!(parse(&entry(" ")).is_err());
        let listed = parse(&entry("b is 0")).unwrap();
        let fault = |line: &str| Fault {
            krate: "plan",
            file: "crates/plan/src/a.rs".into(),
            name: "crates/plan/src/a.rs:1:3: replace + with -".into(),
            what: "replace + with -".into(),
            line: line.into(),
            key: String::new(),
            place: (0, 1),
        };
        assert!(is_listed(&listed, &fault("a + b")) && !is_listed(&listed, &fault("a + c")));
        assert!(without_fault(&listed, &[fault("a + b")], None).is_empty());
        assert_eq!(without_fault(&listed, &[fault("a + c")], None).len(), 1);
        assert!(without_fault(&listed, &[], Some("knob")).is_empty());
    }

    #[test]
    fn the_list_can_be_read() {
        read(&crate::paths::root().join(FILE)).unwrap();
    }
}
