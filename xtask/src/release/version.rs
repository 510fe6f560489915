//! Versions: three numbers.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Ordered by its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a version; expected three numbers, for example 1.2.3")]
pub(crate) struct NotAVersion(pub(crate) String);

impl FromStr for Version {
    type Err = NotAVersion;

    /// No suffixes: `1.0.0-rc.1` would sort after 1.0.0 in the names of Debian and RPM.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let wrong = || NotAVersion(text.to_string());
        let number = |part: &str| {
            let is_plain = part.bytes().all(|b| b.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
            is_plain.then(|| part.parse::<u32>().ok()).flatten().ok_or_else(wrong)
        };
        let parts = text.split('.').map(number).collect::<Result<Vec<_>, _>>()?;
        match parts[..] {
            [major, minor, patch] => Ok(Self { major, minor, patch }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let v = |t: &str| t.parse::<Version>().unwrap();
        let all = ["0.1.0", "0.1.9", "0.1.10", "0.2.0", "0.10.0", "1.0.0", "10.0.0"];
        for pair in all.windows(2) {
            assert!(v(pair[0]) < v(pair[1]), "{pair:?}");
        }
        assert_eq!(all.map(|t| v(t).to_string()), all);
    }

    #[test]
    fn what_is_not_a_version() {
        for text in
            ["", "1", "1.2", "1.2.3.4", "1.2.x", "01.2.3", "1.2.3-rc.1", "1.+2.3", "1..3", "v1.2.3", "1.2.99999999999"]
        {
            assert_eq!(text.parse::<Version>(), Err(NotAVersion(text.into())));
        }
    }
}
