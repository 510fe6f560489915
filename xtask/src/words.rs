//! `cargo xtask words`: terms that ringwise does not use, in comments, string literals and documents. Each has a
//! standard term of the field. The terms in older texts are counted per file in `words.toml`: a count may fall but not
//! rise, and a file that is not listed must not contain any.

mod prose_text;
mod terms;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::{cmd, paths};
use prose_text::Kind;

const COUNTS: &str = "xtask/words.toml";
const HEAD: &str = "# Terms that older texts still contain, counted per file by `cargo xtask words`. A count may fall, never rise;\n\
                    # `cargo xtask words --lower` writes what is left.\n\n";
/// Recorded, generated or foreign texts, and the list of terms itself.
const NOT_READ: &[&str] = &["fixtures/", "xtask/src/words", "crates/kfmt/tests/regressions", "LICENSE"];

/// A term that was found.
struct Found {
    line: usize,
    text: String,
    instead: &'static str,
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let lower = match args {
        [] => false,
        [flag] if flag == "--lower" => true,
        [flag] if flag == "--strings" => return strings("crates/"),
        [flag, folder] if flag == "--strings" => return strings(folder),
        [folder] if !folder.starts_with('-') => return list(folder),
        _ => bail!("expected no argument, --lower, --strings or a path below the repository, found {args:?}"),
    };
    let root = paths::root();
    let found = all(&root)?;
    let counts = counts(&root)?;
    let mut wrong = Vec::new();
    for (file, places) in &found {
        let allowed = counts.get(file).copied().unwrap_or(0);
        if places.len() > allowed {
            wrong.push(format!("{file}: {} terms to replace, {allowed} in {COUNTS}", places.len()));
            wrong.extend(places.iter().map(|p| place(file, p)));
        }
    }
    let fallen = counts.iter().filter(|(file, n)| found.get(*file).map_or(0, Vec::len) < **n);
    let fallen: Vec<&String> = fallen.map(|(file, _)| file).collect();
    if lower && wrong.is_empty() {
        write(&root, &found)?;
    } else if !fallen.is_empty() {
        let files = fallen.iter().map(|f| f.as_str()).collect::<Vec<_>>().join(" ");
        wrong.push(format!("fewer terms than {COUNTS} has, run `cargo xtask words --lower`: {files}"));
    }
    let total: usize = found.values().map(Vec::len).sum();
    if wrong.is_empty() {
        println!("words: no new term to replace; {total} older ones are left in {} files", found.len());
        return Ok(ExitCode::SUCCESS);
    }
    wrong.iter().for_each(|w| println!("{w}"));
    Ok(ExitCode::FAILURE)
}

/// Every place below a path, to rewrite these files.
fn list(folder: &str) -> Result<ExitCode> {
    for (file, places) in all(&paths::root())?.iter().filter(|(f, _)| f.starts_with(folder)) {
        places.iter().for_each(|p| println!("{}", place(file, p)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The strings of the program's sources that a user may see, for a reader who checks them.
fn strings(folder: &str) -> Result<ExitCode> {
    let root = paths::root();
    let mut git = Command::new("git");
    git.current_dir(&root).args(["ls-files", "--cached", "--others", "--exclude-standard", "--", folder]);
    let sources = cmd::output(&mut git)?;
    let ours =
        |f: &&str| f.ends_with(".rs") && f.contains("/src/") && !f.contains("/testkit/") && !f.ends_with("tests.rs");
    for file in sources.lines().filter(ours) {
        let text = fs::read_to_string(root.join(file)).with_context(|| file.to_string())?;
        prose_text::literals(&text).iter().for_each(|(line, text)| println!("{file}:{line}: {text}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn place(file: &str, p: &Found) -> String {
    format!("{file}:{}: \"{}\": {}", p.line, p.text, p.instead)
}

/// Files with at least one term, by path from the root.
fn all(root: &Path) -> Result<BTreeMap<String, Vec<Found>>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let mut out = BTreeMap::new();
    for file in cmd::output(&mut git)?.lines() {
        let Some(kind) = Kind::of(file) else { continue };
        if NOT_READ.iter().any(|n| file.starts_with(n)) || file.contains("/golden/") {
            continue;
        }
        let text = match fs::read_to_string(root.join(file)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            other => other.with_context(|| file.to_string())?,
        };
        let places = places(&text, kind);
        if !places.is_empty() {
            out.insert(file.to_string(), places);
        }
    }
    Ok(out)
}

fn places(text: &str, kind: Kind) -> Vec<Found> {
    let prose = prose_text::of(text, kind);
    let mut out = Vec::new();
    for (term, instead) in terms::TERMS {
        out.extend(prose.find(term).map(|line| Found { line, text: term.to_string(), instead }));
    }
    out.sort_by_key(|f| f.line);
    out
}

fn counts(root: &Path) -> Result<BTreeMap<String, usize>> {
    match fs::read_to_string(root.join(COUNTS)) {
        Ok(text) => toml::from_str(&text).context(COUNTS),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(e) => Err(e).context(COUNTS),
    }
}

fn write(root: &Path, found: &BTreeMap<String, Vec<Found>>) -> Result<()> {
    let counts: BTreeMap<&String, usize> = found.iter().map(|(file, p)| (file, p.len())).collect();
    Ok(fs::write(root.join(COUNTS), format!("{HEAD}{}", toml::to_string(&counts)?))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, kind: Kind) -> Vec<(usize, String)> {
        places(text, kind).into_iter().map(|f| (f.line, f.text)).collect()
    }

    fn one(line: usize, term: &str) -> Vec<(usize, String)> {
        vec![(line, term.to_string())]
    }

    #[test]
    fn terms_in_comments_and_literals_but_not_in_code() {
        assert_eq!(found("// Done by hand.\nfn by_hand() {}", Kind::Rust), one(1, "by hand"));
        assert_eq!(found("let s = \"changed By Hand\";", Kind::Rust), one(1, "by hand"));
        assert_eq!(found("let s = r#\"x \" by hand\"#; let c = '\"'; nobody();", Kind::Rust), one(1, "by hand"));
        assert_eq!(found("fn f<'a>(nobody: &'a str) {}", Kind::Rust), []);
        assert_eq!(found("// See `nobody` and \"bystand\".", Kind::Rust), []);
    }

    #[test]
    fn a_term_may_be_wrapped() {
        assert_eq!(found("    /// It is changed by\n    /// hand.\n", Kind::Rust), one(1, "by hand"));
        assert_eq!(found("let s = \"changed by \\\n    hand\";", Kind::Rust), one(1, "by hand"));
        assert_eq!(found("changed by\nhand", Kind::Markdown), one(1, "by hand"));
        assert_eq!(found("// Done by\nlet x = 1; // hand", Kind::Rust), []);
    }

    #[test]
    fn strings_that_a_user_may_see() {
        let source = "let a = \"one\";\n// \"a comment\"\nlet b = \"two \\\n    words\"; let c = '\"';\nf(r#\"x \"y\" z\"#);\n\
                      #[cfg(test)]\nlet d = \"not this one\";";
        let want = [(3, "two words".to_string()), (5, "x \"y\" z".to_string())];
        assert_eq!(prose_text::literals(source), want);
    }

    #[test]
    fn scripts_and_documents() {
        assert_eq!(found("# by hand\nnobody=1\n", Kind::Script), one(1, "by hand"));
        assert_eq!(found("Text\n\n```\nnobody\n```\nand `nobody`.\n", Kind::Markdown), []);
        assert_eq!(found("- name: Done by\n    hand\n  nobody: x\n", Kind::Yaml), one(1, "by hand"));
        let schema = "{ \"nobody\": 1, \"required\": [\"rivals\"], \"description\": \"by hand\" }";
        assert_eq!(found(schema, Kind::Json), one(1, "by hand"));
        assert_eq!(found("int nobody; /* by\n * hand */", Kind::C), one(1, "by hand"));
    }
}
