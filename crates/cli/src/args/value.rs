//! Parsers of option values, and their errors. Each error names what is expected and what was found.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use ringwise_model::CpuSet;
use ringwise_model::cpuset::BadCpuList;
use ringwise_text::thousands;

/// A value that does not have the form or the range of its option. The name of the option is printed before the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InvalidValue {
    /// `expected`: the form of the value, with its article, and bounds or an example.
    Form { found: String, expected: &'static str },
    /// A whole number that does not fit into the type of the option.
    TooLarge { found: String },
    /// Not a whole number, or one outside these bounds. `most` is `None` if only the size of the type limits it.
    Number { found: String, least: u64, most: Option<u64> },
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
            Self::Form { found, expected } => write!(f, "expected {expected}; found \"{found}\""),
            Self::Number { found, least, most } => {
                match (*least, *most) {
                    (0, None) => write!(f, "expected a whole number")?,
                    (least, None) => write!(f, "expected a whole number of at least {}", thousands(least))?,
                    (least, Some(most)) => {
                        write!(f, "expected a whole number from {} to {}", thousands(least), thousands(most))?
                    }
                }
                write!(f, "; found \"{found}\"")
            }
            Self::TooLarge { found } => write!(f, "{found} is too large"),
            Self::OutOfRange { found, least, most } => write!(f, "expected {least} to {most}; found {found}"),
            Self::CpuList(e) => e.fmt(f),
            Self::NoCpu => f.write_str("the CPU list is empty; expected at least one CPU, e.g. 0-3,8"),
        }
    }
}

impl std::error::Error for InvalidValue {}

/// A parser of whole numbers of at least `least`.
pub(super) fn at_least<T: TryFrom<u64>>(least: u64) -> impl Fn(&str) -> Result<T, InvalidValue> + Clone {
    whole(least, None)
}

/// A parser of whole numbers from `least` to `most`.
pub(super) fn between<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, InvalidValue> + Clone {
    whole(least, Some(most))
}

fn whole<T: TryFrom<u64>>(least: u64, most: Option<u64>) -> impl Fn(&str) -> Result<T, InvalidValue> + Clone {
    move |text| {
        let number = text.parse::<u64>();
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match number {
            Ok(n) if n < least || most.is_some_and(|most| n > most) => {
                Err(InvalidValue::Number { found: text.into(), least, most })
            }
            Ok(n) => T::try_from(n).map_err(|_| InvalidValue::TooLarge { found: text.into() }),
            Err(_) if digits && most.is_none() => Err(InvalidValue::TooLarge { found: text.into() }),
            Err(_) => Err(InvalidValue::Number { found: text.into(), least, most }),
        }
    }
}

/// An IP address.
pub(super) fn address(text: &str) -> Result<IpAddr, InvalidValue> {
    text.parse().map_err(|_| InvalidValue::form(text, "an IP address, e.g. 192.0.2.7 or 2001:db8::7"))
}

/// An IP address with a port.
pub(super) fn socket_address(text: &str) -> Result<SocketAddr, InvalidValue> {
    let expected = "an IP address and a port, e.g. 192.0.2.7:4710 or [2001:db8::7]:4710";
    text.parse().map_err(|_| InvalidValue::form(text, expected))
}

/// A CPU list with at least one CPU.
pub(super) fn cpus(text: &str) -> Result<CpuSet, InvalidValue> {
    let set: CpuSet = text.parse().map_err(InvalidValue::CpuList)?;
    if set.is_empty() { Err(InvalidValue::NoCpu) } else { Ok(set) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_what_is_expected_and_what_was_found() {
        let form = InvalidValue::form("fast", "a rate between 1 and 1000M a second, e.g. 20k");
        assert_eq!(form.to_string(), "expected a rate between 1 and 1000M a second, e.g. 20k; found \"fast\"");
        let range = InvalidValue::OutOfRange { found: "25h".into(), least: "1ms", most: "24h" };
        assert_eq!(range.to_string(), "expected 1ms to 24h; found 25h");
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(at_least::<u32>(1)("4294967295"), Ok(u32::MAX));
        assert_eq!(between::<u16>(0, 4094)("0"), Ok(0));
        let text = |r: Result<u32, InvalidValue>| r.unwrap_err().to_string();
        for bad in ["", "x", "-1", "0", "1.5"] {
            let expected = format!("expected a whole number of at least 1; found \"{bad}\"");
            assert_eq!(text(at_least(1)(bad)), expected);
        }
        for bad in ["4294967296", "99999999999999999999"] {
            assert_eq!(text(at_least(1)(bad)), format!("{bad} is too large"));
        }
        assert_eq!(text(at_least(0)("x")), "expected a whole number; found \"x\"");
        assert_eq!(text(between(1, 100_000)("0")), "expected a whole number from 1 to 100,000; found \"0\"");
    }

    #[test]
    fn addresses_and_cpus() {
        assert!(address("192.0.2.7").is_ok() && socket_address("[::1]:80").is_ok());
        let e = address("192.0.2").unwrap_err().to_string();
        assert_eq!(e, "expected an IP address, e.g. 192.0.2.7 or 2001:db8::7; found \"192.0.2\"");
        let e = socket_address("192.0.2.7").unwrap_err().to_string();
        let expected =
            "expected an IP address and a port, e.g. 192.0.2.7:4710 or [2001:db8::7]:4710; found \"192.0.2.7\"";
        assert_eq!(e, expected);
        assert_eq!(cpus(" ").unwrap_err(), InvalidValue::NoCpu);
    }
}
