//! `cargo xtask lab bench`: the articles' experiments in guests of their own, one at a time; `docs/reproduction.md`
//! from what they leave. It is a separate lane: neither `lab` nor `ci` runs it.

use crate::job::Job;
use crate::scenario::{self, Scenario};
use crate::{host, kernel, lab, paths, program, reproduction, setup};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Default)]
struct Options {
    quick: bool,
    /// Measure nothing.
    page: bool,
    only: Option<String>,
    kernel: Option<String>,
    program: Option<PathBuf>,
    /// Of a row of the matrix: only these alternatives.
    against: Option<String>,
    /// Of a row of the matrix: `overload` or `lossless`.
    load: Option<String>,
}

/// Shell variables for the section. Their values are quoted, so they may only be words.
fn variables(o: &Options) -> Result<String> {
    let mut out = format!("QUICK={}\n", if o.quick { "1" } else { "" });
    for (option, name, value) in [("--against", "ONLY", &o.against), ("--load", "WHAT", &o.load)] {
        let words = value.as_deref().unwrap_or_default();
        if !words.bytes().all(|b| b.is_ascii_alphanumeric() || b == b',') {
            bail!("lab bench: {option} needs words with commas between them, found {words:?}");
        }
        out += &format!("{name}='{}'\n", words.replace(',', " "));
    }
    Ok(out)
}

fn options(args: &[String]) -> Result<Options> {
    let mut o = Options::default();
    let mut it = args.iter();
    while let Some(arg) = it.next() {
        let mut value = || it.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--quick" => o.quick = true,
            "--page" => o.page = true,
            "--only" => o.only = Some(value()?.clone()),
            "--kernel" => o.kernel = Some(value()?.clone()),
            "--program" => o.program = Some(value()?.into()),
            "--against" => o.against = Some(value()?.clone()),
            "--load" => o.load = Some(value()?.clone()),
            other => bail!("lab bench: unknown option {other:?}"),
        }
    }
    Ok(o)
}

/// The result files of the last run of each section. They are in the repository, so that anyone can redo the page and the figures.
pub(crate) fn results() -> PathBuf {
    paths::lab().join("bench/results")
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let o = options(args)?;
    if o.page {
        write_page()?;
        return Ok(ExitCode::SUCCESS);
    }
    let dir = paths::lab().join("bench");
    let mut hosts = host::in_dir(&dir)?;
    for h in &mut hosts {
        h.variables = variables(&o)?;
    }
    let mut sections = scenario::in_dir(&dir)?;
    if let Some(only) = &o.only {
        sections.retain(|s| only.split(',').any(|o| s.name.contains(o)));
        if sections.is_empty() {
            bail!("no section of lab/bench has {only:?} in its name");
        }
    }
    let kernels = kernel::table()?;
    let wanted = o.kernel.as_deref().unwrap_or("6.12");
    lab::known("kernel", Some(wanted), kernels.iter().map(|k| k.name.as_str()))?;
    let kernel = kernels.iter().find(|k| k.name == wanted).context("it is known")?;
    let keep = results();
    let mut jobs = Vec::new();
    for host in &hosts {
        let scenarios: Vec<&Scenario> = sections.iter().filter(|s| s.runs_on(&host.name, &kernel.name)).collect();
        if !scenarios.is_empty() {
            jobs.push(Job { host, kernel, scenarios, keep: Some(&keep), once: None, long: false });
        }
    }
    setup::tools(setup::Lane::All)?;
    let ringwise = o.program.clone().map_or_else(|| program::build(program::Profile::Release), Ok)?;
    fs::create_dir_all(&keep)?;
    // One guest at a time, because two would disturb each other's measurements.
    let outcome = lab::work(jobs, &ringwise, false, None, 1, crate::green::Earlier::Ignored)?;
    write_page()?;
    lab::report(outcome)
}

/// Writes the page and its figures from all result files that exist.
fn write_page() -> Result<()> {
    let page = paths::root().join("docs/reproduction.md");
    fs::write(&page, reproduction::page(&results())?).with_context(|| page.display().to_string())?;
    let dir = figures();
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
    }
    fs::create_dir_all(&dir)?;
    for (name, svg) in reproduction::figures(&results())? {
        fs::write(dir.join(name), svg)?;
    }
    println!("lab bench: docs/reproduction.md and docs/figures are written");
    Ok(())
}

fn figures() -> PathBuf {
    paths::root().join("docs/figures")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_a_host_of_its_own_kind() {
        let dir = paths::lab().join("bench");
        let hosts = host::in_dir(&dir).unwrap();
        let sections = scenario::in_dir(&dir).unwrap();
        assert!(!sections.is_empty());
        for s in sections {
            assert!(hosts.iter().any(|h| s.runs_on(&h.name, "6.12")), "{}: no host of lab/bench", s.name);
        }
    }

    #[test]
    fn the_page_is_made_from_the_results_in_the_repository() {
        let page = fs::read_to_string(paths::root().join("docs/reproduction.md")).unwrap();
        let made = reproduction::page(&results()).unwrap();
        assert!(page == made, "docs/reproduction.md differs from the results: run cargo xtask lab bench --page");
        let made = reproduction::figures(&results()).unwrap();
        assert_eq!(made.len(), fs::read_dir(figures()).unwrap().count());
        for (name, svg) in made {
            assert!(fs::read_to_string(figures().join(&name)).is_ok_and(|f| f == svg), "docs/figures/{name} differs");
        }
    }

    #[test]
    fn options_are_read() {
        let o = options(&["--quick", "--only", "greenhost"].map(String::from)).unwrap();
        assert!(o.quick && o.only.as_deref() == Some("greenhost"));
        let o = options(&["--against", "irqbalance,tuned", "--load", "overload"].map(String::from)).unwrap();
        assert_eq!(variables(&o).unwrap(), "QUICK=\nONLY='irqbalance tuned'\nWHAT='overload'\n");
        assert!(variables(&Options { load: Some("x'; reboot".into()), ..Options::default() }).is_err());
        assert!(options(&["--only".into()]).is_err());
        assert!(options(&["--all".into()]).is_err());
    }
}
