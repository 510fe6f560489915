//! Errors of the simulated kernel.

use ringwise_model::Fact;
use ringwise_model::errno::EOPNOTSUPP;
use ringwise_sys::{Error, Result};

pub(super) fn no(errno: i32) -> Error {
    Error::errno("", errno)
}

/// A model that cannot be encoded, or a message that cannot be decoded, is a fault of the test.
pub(super) fn bad(e: impl std::fmt::Display) -> Error {
    Error::other("", format!("simulated host: {e}"))
}

/// An absent fact is EOPNOTSUPP, an unknown one the errno with which it was read.
pub(super) fn fact<T>(f: &Fact<T>) -> Result<&T> {
    match f {
        Fact::Known(v) => Ok(v),
        Fact::Absent => Err(no(EOPNOTSUPP)),
        Fact::Unknown(u) => Err(Error { errno: u.errno, words: u.errno.is_none().then(|| u.why.clone()), ..no(0) }),
    }
}
