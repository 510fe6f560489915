//! Invalid files and their messages on a terminal with 80 columns. RINGWISE_BLESS=1 rewrites the expected messages.

use std::path::{Path, PathBuf};

use ringwise_config::parse;

fn files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong");
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    all.sort();
    all
}

#[test]
fn every_fault_is_reported_at_once_with_its_position() {
    let all = files();
    assert!(all.len() >= 20, "{}", all.len());
    let mut wrong = Vec::new();
    for f in all {
        let name = f.file_name().unwrap().to_str().unwrap().to_string();
        let text = std::fs::read_to_string(&f).unwrap();
        let short = format!("{}.toml", &name[..2]);
        let said = format!("{}\n", parse(&short, &text).expect_err(&name));
        // As users name it: relative to its directory.
        let wide: Vec<&str> = said.lines().filter(|l| l.chars().count() > 80).collect();
        wrong.extend((!wide.is_empty()).then(|| format!("{name}: more than 80 columns:\n{}", wide.join("\n"))));
        let golden = f.with_extension("txt");
        if ringwise_testkit::golden::blessing() {
            std::fs::write(&golden, &said).unwrap();
        } else if std::fs::read_to_string(&golden).unwrap_or_default() != said {
            wrong.push(format!("{name} now causes this message:\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
