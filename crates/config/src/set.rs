//! `--set eth0.rss.table="equal 4"`: one key of the file, read by the same code as the file.

use crate::decode::{self, Origin};
use crate::fault::{Fault, Faults};
use crate::spec::{FILE, INTERFACE};
use crate::value::Config;
use ringwise_model::shell;

/// `DEV.KEY[.KEY]=VALUE` or `host.KEY=VALUE`. Quote a name that contains a dot. A value that is not
/// valid TOML is taken as a string, so that the shell's quotes are enough.
pub fn parse_set(argument: &str) -> Result<Config, Faults> {
    parse_set_of("--set", argument, argument)
}

/// The same for an option that accepts such arguments under another name. Faults show this option and what the user gave.
pub fn parse_set_of(option: &str, given: &str, argument: &str) -> Result<Config, Faults> {
    let shown = format!("{option} {}", shell::quote(given));
    read(argument, &shown).map_err(|f| Faults { is_argument: true, ..f })
}

fn read(argument: &str, shown: &str) -> Result<Config, Faults> {
    let fail = |found: &str| {
        let right = Some("DEV.KEY=VALUE, e.g. eth0.rings.rx=1024 or eth0.rss.table=\"equal 4\"".to_string());
        let fault = Fault { at: 0..argument.len(), with: Vec::new(), found: found.into(), right };
        Err(Faults::new(shown, argument, vec![fault]))
    };
    let Some((path, value)) = split(argument) else { return fail("there is no \"=\" after a key") };
    let Some((dev, key)) = head(path) else { return fail("there is no key after the interface") };
    if dev.is_empty() || key.is_empty() {
        return fail("the interface or the key is empty");
    }
    let (dev, key, value) = (unquote(dev), key.trim(), value.trim());
    let first = head(key).map_or(key, |(f, _)| f);
    if INTERFACE.key(&dev).is_some() && INTERFACE.key(first).is_none() {
        return fail(&format!("the interface is missing: \"{dev}\" is a key"));
    }
    if dev.chars().any(char::is_control) || key.contains(['\n', '#']) || value.contains('\n') {
        return fail("line breaks and comments are not allowed");
    }
    let mut value = if is_toml(value) { value.to_string() } else { quote(value) };
    // A key that is a list of tables accepts a single table.
    let wrapped = matches!(first, "rule" | "group") && first == key && !value.starts_with('[');
    if wrapped {
        value = format!("[{value}]");
    }
    let head_text = match dev.as_str() {
        "host" => "[host]\n".to_string(),
        _ => format!("[[interface]]\nmatch = {{ name = {} }}\n", quote(&dev)),
    };
    let text = format!("version = 1\n{head_text}{key} = {value}\n");
    let known = INTERFACE.key(first).is_some() || dev == "host";
    decode::document(shown, &text, Origin::Argument(argument)).map_err(|mut f| {
        if !known && FILE.key(&dev).is_some() {
            f.all.retain(|f| f.at.start > 0);
        }
        f
    })
}

/// At the first `=` outside of quotes.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let at = text.char_indices().find(|(_, c)| {
        quoted ^= *c == '"';
        *c == '=' && !quoted
    })?;
    Some((text[..at.0].trim(), &text[at.0 + 1..]))
}

/// At the first dot outside of quotes.
fn head(path: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let at = path.char_indices().find(|(_, c)| {
        quoted ^= *c == '"';
        *c == '.' && !quoted
    })?;
    Some((&path[..at.0], &path[at.0 + 1..]))
}

fn unquote(name: &str) -> String {
    let name = name.trim();
    name.strip_prefix('"').and_then(|n| n.strip_suffix('"')).unwrap_or(name).to_string()
}

/// A TOML string.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            c if c.is_control() => out += &format!("\\u{:04X}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether the value is TOML. No key accepts a date, so dates are treated as text.
fn is_toml(value: &str) -> bool {
    toml::de::DeValue::parse(value).is_ok_and(|v| !v.get_ref().is_datetime())
}
