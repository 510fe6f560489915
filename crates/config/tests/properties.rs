//! Properties that hold for any text, checked on mutations of a whole file.

#[allow(dead_code, reason = "each test program uses a part")]
use crate::common;
use proptest::prelude::*;

const WHOLE: &str = include_str!("whole.toml");

/// Values that are valid somewhere in a file; in another place they are mostly invalid.
const VALUES: [&str; 16] = [
    "0",
    "1",
    "4",
    "-1",
    "99999999999999999999",
    "true",
    "\"\"",
    "\"0-3\"",
    "\"x\\u0007\\n\"",
    "[]",
    "[0, 0]",
    "{}",
    "\"weight 1 0\"",
    "\"n/a\"",
    "1979-05-27",
    "{ \"0-1\" = 1, 1 = 2 }",
];

#[test]
fn regressions() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions");
    let all: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(!all.is_empty());
    all.iter().for_each(|f| common::config(&std::fs::read(f).unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "[ -~\\n]{0,200}") {
        common::config(text.as_bytes());
    }

    /// Replaces values of whole lines and halves of lines of a valid file, and removes and repeats lines.
    #[test]
    fn mutations(edits in prop::collection::vec((0usize..80, 0usize..VALUES.len(), 0u8..4, 0usize..60), 1..6)) {
        let mut lines: Vec<String> = WHOLE.lines().map(str::to_string).collect();
        for (at, value, how, cut) in edits {
            let at = at % lines.len();
            match how {
                0 => drop(lines.remove(at)),
                1 => {
                    let line = lines[at].clone();
                    lines.insert(at, line);
                }
                2 => {
                    if let Some((key, _)) = lines[at].clone().split_once(" = ") {
                        lines[at] = format!("{key} = {}", VALUES[value]);
                    }
                }
                _ => {
                    let keep: String = lines[at].chars().take(cut).collect();
                    lines[at] = keep;
                }
            }
        }
        common::config(lines.join("\n").as_bytes());
    }

    /// Valid values of every knob that has no limits of its own here.
    #[test]
    fn sound_files(
        rings in 1u32..70_000, usecs in 0u32..1000, weights in prop::collection::vec(1u32..9, 1..8),
        queues in prop::collection::btree_set(0u32..64, 1..6), cpus in prop::collection::btree_set(0u32..300, 1..9),
        key in prop::collection::vec(any::<u8>(), 1..60), on in any::<bool>(), label in "[ -~]{1,20}",
    ) {
        let list = |l: &std::collections::BTreeSet<u32>| l.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let hex: String = key.iter().map(|b| format!("{b:02x}")).collect();
        let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
        let text = format!(
            "version = 1\n[[interface]]\nmatch = {{ label = '''{}''' }}\nrings.rx = {rings}\n\
             coalesce = {{ queues = \"{q}\", rx-usecs = {usecs} }}\nrss = {{ table = \"weight {}\", key = \"{hex}\" }}\n\
             features.gro = {on}\nirq_cpus = {{ \"{q}\" = \"{c}\" }}\nxps_cpus = [{c}]\n",
            label.replace('\'', "x"), weights.join(" "), q = list(&queues), c = list(&cpus),
        );
        prop_assert!(ringwise_config::parse("f", &text).is_ok(), "{}", text);
        common::config(text.as_bytes());
    }
}
