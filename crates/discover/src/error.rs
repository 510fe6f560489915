//! Errors that stop discovery as a whole. Smaller ones are recorded as `Unread` in the snapshot.
use std::fmt;

use ringwise_model::order::Order;
use ringwise_model::{NicKind, Snapshot, nearest};

/// Discovery that could not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Neither `/proc` nor `/sys` could be read.
    NothingReadable {
        /// Errno and meaning of the attempt to read `/proc`.
        proc: String,
        /// The same for `/sys`.
        sys: String,
    },
    /// The user named an interface that does not exist.
    NoSuchDevice {
        /// As the user wrote it.
        name: String,
        /// In natural order, without loopback; with software interfaces only if there are few.
        existing: Vec<String>,
        /// The one that was probably meant.
        near: Option<String>,
    },
}

/// Names that the message lists before it counts the rest.
const NAMES: usize = 16;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingReadable { proc, sys } => {
                write!(f, "neither /proc nor /sys can be read: /proc: {proc}; /sys: {sys}")
            }
            Self::NoSuchDevice { name, existing, near } => {
                write!(f, "there is no interface \"{name}\"")?;
                if let Some(n) = near {
                    write!(f, "; did you mean {n}?")?;
                }
                if existing.is_empty() {
                    return write!(f, "; no interface was found");
                }
                let shown: Vec<&str> = existing.iter().take(NAMES).map(String::as_str).collect();
                let lead = match (near, existing.len()) {
                    (Some(_), 1) => " There is",
                    (Some(_), _) => " There are",
                    (None, 1) => "; there is",
                    (None, _) => "; there are",
                };
                write!(f, "{lead} {}", shown.join(" "))?;
                if existing.len() > NAMES {
                    write!(f, " and {} more", existing.len() - NAMES)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// An interface that was named is not in the snapshot.
    pub fn not_in(s: &Snapshot, name: &str) -> Self {
        let names = s.nics.iter().filter(|n| n.kind != NicKind::Loopback).map(|n| n.name().to_string());
        Self::no_such_device(name, names.collect())
    }

    /// `existing`: the names to choose from.
    pub fn no_such_device(name: &str, mut existing: Vec<String>) -> Self {
        existing.order_by(|a, b| crate::natural::compare(a, b));
        existing.dedup();
        let near = nearest(name, existing.iter().map(String::as_str)).map(str::to_string);
        Self::NoSuchDevice { name: name.to_string(), existing, near }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_existing_and_the_near_miss() {
        let e = Error::no_such_device("eht1", vec!["eth10".into(), "eth1".into(), "eth0".into()]);
        assert_eq!(e.to_string(), "there is no interface \"eht1\"; did you mean eth1? There are eth0 eth1 eth10");
        let e = Error::no_such_device("wlan0", vec!["eth0".into()]);
        assert_eq!(e.to_string(), "there is no interface \"wlan0\"; there is eth0");
        let e = Error::no_such_device("x", (0..40).map(|i| format!("enp{i}s0")).collect());
        assert!(e.to_string().ends_with("enp15s0 and 24 more"), "{e}");
    }
}
