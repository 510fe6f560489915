//! Errors of option values.

use std::fmt;

use ringwise_model::cpuset::BadCpuList;

/// A value that does not have the form or the range of its option. clap puts the name of the option before the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InvalidValue {
    /// `expected`: the form of the value, with its bounds or an example. It follows `expected a`.
    Form { found: String, expected: &'static str },
    /// A value of the right form outside its bounds, which have the unit of the option.
    OutOfRange { found: String, least: &'static str, most: &'static str },
    /// A CPU list that cannot be read.
    CpuList(BadCpuList),
    /// A CPU list without a CPU.
    NoCpu,
}

impl InvalidValue {
    pub(crate) fn form(found: &str, expected: &'static str) -> Self {
        Self::Form { found: found.into(), expected }
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { found, expected } => write!(f, "\"{found}\": expected a {expected}"),
            Self::OutOfRange { found, least, most } => write!(f, "{found}: expected {least} to {most}"),
            Self::CpuList(e) => e.fmt(f),
            Self::NoCpu => f.write_str("the CPU list is empty: expected at least one CPU, e.g. 0-3,8"),
        }
    }
}

impl std::error::Error for InvalidValue {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_what_was_found_and_what_is_expected() {
        let form = InvalidValue::form("fast", "rate between 1 and 1000M a second, e.g. 20k");
        assert_eq!(form.to_string(), "\"fast\": expected a rate between 1 and 1000M a second, e.g. 20k");
        let range = InvalidValue::OutOfRange { found: "25h".into(), least: "1ms", most: "24h" };
        assert_eq!(range.to_string(), "25h: expected 1ms to 24h");
    }
}
