//! What is wrong with the value of an option.

use std::fmt;

use ringwise_model::cpuset::BadCpuList;

/// A value that is not of the form, or not in the range, that its option takes. clap puts the option's name before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InvalidValue {
    /// `expected`: what the value should be, with its bounds or an example.
    Form { found: String, expected: &'static str },
    /// A value of the right form outside its bounds, which are in the option's own unit.
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
            Self::Form { found, expected } => write!(f, "\"{found}\" is no {expected}"),
            Self::OutOfRange { found, least, most } => write!(f, "{found} is not between {least} and {most}"),
            Self::CpuList(e) => e.fmt(f),
            Self::NoCpu => f.write_str("the list is empty (right would be e.g. 0-3,8)"),
        }
    }
}

impl std::error::Error for InvalidValue {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_what_was_found_and_what_is_expected() {
        let form = InvalidValue::form("fast", "rate between 1 and 1000M a second (right would be e.g. 20k)");
        assert_eq!(form.to_string(), "\"fast\" is no rate between 1 and 1000M a second (right would be e.g. 20k)");
        let range = InvalidValue::OutOfRange { found: "25h".into(), least: "1ms", most: "24h" };
        assert_eq!(range.to_string(), "25h is not between 1ms and 24h");
    }
}
