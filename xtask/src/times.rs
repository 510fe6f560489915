//! How long boots and scenarios took: printed at the end of a run, and kept in lab/README.md after a green one.

use crate::paths;
use crate::scenario::Score;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::time::Duration;

/// How many of the slowest scenarios are printed.
const SLOWEST: usize = 10;

#[derive(Debug, Default)]
pub(crate) struct Times {
    /// `HOST on KERNEL` with the seconds from the beginning of its first boot to the end of its last one.
    pub boots: Vec<(String, f64)>,
    /// Each scenario with the boot it ran in and the seconds of the guest's clock.
    pub scenarios: Vec<(String, f64)>,
}

impl Times {
    pub(crate) fn add(&mut self, boot: &str, took: Duration, scenarios: Vec<(String, f64)>) {
        self.boots.push((boot.to_string(), took.as_secs_f64()));
        self.scenarios.extend(scenarios.into_iter().map(|(s, t)| (format!("{s} ({boot})"), t)));
    }

    fn slowest(&self) -> Vec<&(String, f64)> {
        let mut all: Vec<_> = self.scenarios.iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.truncate(SLOWEST);
        all
    }
}

pub(crate) fn print(t: &Times) {
    if t.boots.is_empty() {
        return;
    }
    let list = |all: &[String]| all.iter().map(|l| format!("lab:   {l}\n")).collect::<String>();
    let boots: Vec<String> = t.boots.iter().map(|(b, s)| format!("{s:6.0} s  {b}")).collect();
    let slow: Vec<String> = t.slowest().iter().map(|(b, s)| format!("{s:6.0} s  {b}")).collect();
    print!(
        "lab: time for each boot:\n{}lab: the slowest scenarios, by the guest's clock:\n{}",
        list(&boots),
        list(&slow)
    );
}

const BEGIN: &str = "<!-- The last green run of everything: written by `cargo xtask lab --record`. -->\n";
const END: &str = "<!-- end of the last green run -->\n";

/// Writes the section of lab/README.md, if the run was green.
pub(crate) fn record(t: &Times, score: &Score, lost: usize) -> Result<()> {
    if score.failed > 0 {
        println!("lab: lab/README.md is not changed: this run was not green");
        return Ok(());
    }
    let path = paths::lab().join("README.md");
    let text = fs::read_to_string(&path)?;
    let (head, rest) = text.split_once(BEGIN).context("lab/README.md has no section for the last green run")?;
    let (_, tail) = rest.split_once(END).context("lab/README.md: the section for the last green run has no end")?;
    fs::write(&path, format!("{head}{BEGIN}{}{END}{tail}", section(t, score, lost)?))?;
    println!("lab: lab/README.md has the times and counts of this run");
    Ok(())
}

fn section(t: &Times, score: &Score, lost: usize) -> Result<String> {
    let mut s = String::new();
    let guests = t.boots.len();
    writeln!(
        s,
        "{} checks passed, {} skipped; {guests} boots, {lost} lost and repeated.\n",
        score.passed, score.skipped
    )?;
    s += "| boot | seconds |\n|---|---|\n";
    for (b, seconds) in &t.boots {
        writeln!(s, "| {b} | {seconds:.0} |")?;
    }
    s += "\n| slowest scenarios | seconds of the guest's clock |\n|---|---|\n";
    for (b, seconds) in t.slowest() {
        writeln!(s, "| {b} | {seconds:.0} |")?;
    }
    Ok(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_come_first_and_the_readme_has_a_place_for_them() {
        let mut t = Times::default();
        t.add("a on 6.12", Duration::from_secs(90), vec![("10-x".into(), 3.0), ("20-y".into(), 60.0)]);
        let s = section(&t, &Score { passed: 7, ..Score::default() }, 1).unwrap();
        assert!(s.starts_with("7 checks passed, 0 skipped; 1 boots, 1 lost"), "{s}");
        assert!(s.find("20-y (a on 6.12) | 60").unwrap() < s.find("10-x").unwrap());
        let text = fs::read_to_string(paths::lab().join("README.md")).unwrap();
        assert!(text.contains(BEGIN) && text.contains(END));
    }
}
