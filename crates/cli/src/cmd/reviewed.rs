//! Plan files on the command line: which argument is a plan file, and when a plan file expires.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::args::{ApplyArgs, InvalidValue};
use crate::exit::{Fail, Result};
use crate::source::Source;

/// `--expires`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry(pub Option<Duration>);

/// `24h`, `7d`, `90m`, `never`.
pub(crate) fn expiry(text: &str) -> std::result::Result<Expiry, InvalidValue> {
    if text == "never" {
        return Ok(Expiry(None));
    }
    let bad = || InvalidValue::form(text, "a time, e.g. 90m, 24h, 7d or never");
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let n: u64 = text[..split].parse().map_err(|_| bad())?;
    let unit = match &text[split..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(bad()),
    };
    match n.checked_mul(unit).filter(|s| (1..=3650 * 86_400).contains(s)) {
        Some(s) => Ok(Expiry(Some(Duration::from_secs(s)))),
        None => Err(bad()),
    }
}

/// The plan file, if the arguments name one instead of interfaces.
pub(super) fn file(a: &ApplyArgs, source: &Source) -> Result<Option<PathBuf>> {
    if let Some(path) = &a.plan {
        return Ok(Some(path.clone()));
    }
    let mut files = Vec::new();
    for arg in &a.devs {
        if is_file(arg, source)? {
            files.push(arg);
        }
    }
    let Some(first) = files.first() else { return Ok(None) };
    if a.devs.len() > 1 {
        return Err(Fail::usage(format!(
            "{first} is a plan file: it must be given alone, because it is applied exactly"
        )));
    }
    let more = a.intent.text(&[]);
    if !more.is_empty() {
        return Err(Fail::usage(format!("{first} is a plan file, which is applied exactly; {more} is for a new plan"))
            .next(format!("ringwise plan {more} --out FILE")));
    }
    Ok(Some(PathBuf::from(first)))
}

fn is_file(arg: &str, source: &Source) -> Result<bool> {
    if arg.contains('/') {
        return Ok(true);
    }
    let interface = source.host.readlink(&format!("/sys/class/net/{arg}")).is_ok();
    match (interface, Path::new(arg).is_file()) {
        (true, true) => Err(Fail::usage(format!(
            "{arg} is an interface and a file in this directory; for the file write ./{arg}, for the interface run \
             ringwise in another directory"
        ))),
        (true, false) => Ok(false),
        (false, true) => Ok(true),
        (false, false) => Ok(arg.ends_with(".plan") || arg.ends_with(".json")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(expiry("never"), Ok(Expiry(None)));
        assert_eq!(expiry("24h"), Ok(Expiry(Some(Duration::from_secs(86_400)))));
        assert_eq!(expiry("7d"), Ok(Expiry(Some(Duration::from_secs(604_800)))));
        for bad in ["", "24", "0h", "h", "1w", "-1h", "99999999999999999999d", "999999999999d"] {
            assert!(expiry(bad).is_err(), "{bad}");
        }
    }
}
