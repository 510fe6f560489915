//! Golden results: compared with the file, rewritten with `RINGWISE_BLESS=1` (`cargo xtask bless`).

use std::path::Path;

use serde_json::Value;

/// Whether golden results are rewritten: only with `RINGWISE_BLESS=1`.
pub fn blessing() -> bool {
    std::env::var_os("RINGWISE_BLESS").is_some_and(|v| v == "1")
}

/// Fails with the first differing line. With `RINGWISE_BLESS=1` the file is written instead.
///
/// # Panics
/// On a difference, or when the file cannot be read or written.
pub fn compare(path: &Path, got: &str) {
    if blessing() {
        if std::fs::read_to_string(path).is_ok_and(|old| old == got) {
            return;
        }
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        }
        std::fs::write(path, got).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return;
    }
    let want =
        std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}; RINGWISE_BLESS=1 writes it", path.display()));
    if want == got {
        return;
    }
    let (mut w, mut g) = (want.lines(), got.lines());
    let mut line = 0;
    loop {
        line += 1;
        match (w.next(), g.next()) {
            (a, b) if a == b && a.is_some() => {}
            (a, b) => panic!(
                "{}:{line} differs; if this is intended, RINGWISE_BLESS=1 rewrites it\n  file: {}\n  now:  {}",
                path.display(),
                a.unwrap_or("(end, or only the last newline)"),
                b.unwrap_or("(end, or only the last newline)")
            ),
        }
    }
}

/// JSON with one line for each object that people compare: a CPU, a queue, a vector.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out.push('\n');
    out
}

/// Longest text that is still put on one line, in characters.
const LINE: usize = 160;

fn write(value: &Value, indent: usize, out: &mut String) {
    let short = value.to_string();
    let pad = " ".repeat(indent + 1);
    // Each object of a list gets its own line.
    let unfold = |v: &Value| v.as_array().is_some_and(|a| a.len() > 1 && a.iter().any(Value::is_object));
    match value {
        _ if short.len() <= LINE && !unfold(value) => out.push_str(&short),
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            list(items.iter().map(|v| (None, v)), ('[', ']'), &pad, indent, out);
        }
        Value::Object(members) => {
            list(members.iter().map(|(k, v)| (Some(k.as_str()), v)), ('{', '}'), &pad, indent, out);
        }
        _ => out.push_str(&short),
    }
}

fn list<'a>(
    items: impl Iterator<Item = (Option<&'a str>, &'a Value)>,
    (open, close): (char, char),
    pad: &str,
    indent: usize,
    out: &mut String,
) {
    out.push(open);
    for (i, (key, value)) in items.enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        out.push_str(pad);
        if let Some(key) = key {
            out.push_str(&Value::from(key).to_string());
            out.push_str(": ");
        }
        write(value, indent + 1, out);
    }
    out.push('\n');
    out.push_str(&pad[1..]);
    out.push(close);
}

/// Names of the folders below `dir`, sorted.
///
/// # Panics
/// When the directory cannot be read.
pub fn folders(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut names: Vec<String> = entries
        .filter_map(|e| {
            let e = e.ok()?;
            e.file_type().ok()?.is_dir().then(|| e.file_name().to_string_lossy().into_owned())
        })
        .collect();
    names.sort();
    names
}
