//! Selects the scenarios: all, the quick set, or those that a change can affect.

use crate::host::Host;
use crate::scenario::Scenario;
use crate::{cmd, paths};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// The selection of a run of the lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    All,
    /// Scenarios on the boots in the line `# quick:` of their header.
    Quick,
    /// Scenarios that a change can affect.
    Touched(Touched),
}

/// The areas that a change can affect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Touched {
    Everything,
    Only { areas: BTreeSet<String>, scenarios: BTreeSet<String>, hosts: BTreeSet<String> },
}

impl Choice {
    pub(crate) fn has(&self, s: &Scenario, host: &Host, kernel: &str) -> bool {
        match self {
            Choice::All | Choice::Touched(Touched::Everything) => true,
            Choice::Quick => s.quick_on(&host.name, kernel),
            Choice::Touched(Touched::Only { areas, scenarios, hosts }) => {
                scenarios.contains(&s.name) || hosts.contains(&host.name) || s.areas.iter().any(|a| areas.contains(a))
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Changes below these paths affect no scenario.
    nothing: Vec<String>,
    area: Vec<Area>,
}

/// Paths whose changes affect only the scenarios with the area in their line `# areas:`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    name: String,
    paths: Vec<String>,
}

fn table() -> Result<Table> {
    let path = paths::lab().join("areas.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

/// The names of all areas, for the headers to be checked against.
pub(crate) fn areas() -> Result<BTreeSet<String>> {
    Ok(table()?.area.into_iter().map(|a| a.name).collect())
}

/// The files that have changed since a revision, including uncommitted and new files.
pub(crate) fn since(revision: &str) -> Result<Touched> {
    let git = |args: &[&str]| cmd::output(Command::new("git").current_dir(paths::root()).args(args));
    let mut changed = git(&["diff", "--name-only", "--no-renames", revision, "--"])?;
    changed += &git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(touched(&table()?, changed.lines().filter(|l| !l.is_empty())))
}

fn touched<'a>(table: &Table, changed: impl Iterator<Item = &'a str>) -> Touched {
    let (mut areas, mut scenarios, mut hosts) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let name = |path: &str, dir: &str, end: &str| Some(path.strip_prefix(dir)?.strip_suffix(end)?.to_string());
    for path in changed {
        if let Some(s) = name(path, "lab/scenarios/", ".sh") {
            scenarios.insert(s);
        } else if let Some(h) = name(path, "lab/hosts/", ".toml") {
            hosts.insert(h);
        } else if table.nothing.iter().any(|p| within(path, p)) {
            continue;
        } else {
            let named: Vec<&Area> = table.area.iter().filter(|a| a.paths.iter().any(|p| within(path, p))).collect();
            if named.is_empty() {
                return Touched::Everything;
            }
            areas.extend(named.iter().map(|a| a.name.clone()));
        }
    }
    Touched::Only { areas, scenarios, hosts }
}

/// `*.md` is a suffix, `dir/` a directory, anything else a file.
fn within(path: &str, pattern: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => path.ends_with(end),
        None if pattern.ends_with('/') => path.starts_with(pattern),
        None => path == pattern,
    }
}

/// Checks that the areas of all headers exist.
pub(crate) fn known_areas(scenarios: &[Scenario]) -> Result<()> {
    let known = areas()?;
    for s in scenarios {
        if let Some(a) = s.areas.iter().find(|a| !known.contains(*a)) {
            bail!("{}: there is no area {a:?} in lab/areas.toml", s.name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    fn of(changed: &[&str]) -> Touched {
        touched(&table().unwrap(), changed.iter().copied())
    }

    #[test]
    fn a_change_to_what_everything_uses_touches_everything() {
        assert_eq!(of(&["crates/apply/src/lib.rs"]), Touched::Everything);
        assert_eq!(of(&["README.md", "lab/lib.sh"]), Touched::Everything);
        assert_eq!(of(&["a-new-directory/file"]), Touched::Everything);
    }

    #[test]
    fn a_change_to_one_area_touches_its_scenarios() {
        let Touched::Only { areas, scenarios, hosts } = of(&[
            "crates/bench/src/stats.rs",
            "docs/bench.md",
            "lab/scenarios/900-capture.sh",
            "lab/hosts/small2.toml",
        ]) else {
            panic!("only a part");
        };
        assert_eq!(areas.into_iter().collect::<Vec<_>>(), ["bench"]);
        assert!(scenarios.contains("900-capture") && hosts.contains("small2"));
        let all = scenario::all().unwrap();
        assert!(all.iter().any(|s| s.areas.iter().any(|a| a == "bench")), "no scenario covers bench");
    }

    #[test]
    fn documents_touch_nothing_and_headers_name_known_areas() {
        let none = Touched::Only { areas: [].into(), scenarios: [].into(), hosts: [].into() };
        assert_eq!(of(&["README.md", "docs/explain.md"]), none);
        known_areas(&scenario::all().unwrap()).unwrap();
    }
}
