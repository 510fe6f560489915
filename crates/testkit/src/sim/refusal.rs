//! What the simulated kernel answers instead of a reply.

use ringwise_model::Fact;
use ringwise_model::errno::EOPNOTSUPP;
use ringwise_sys::{Error, Result};

pub(super) fn no(errno: i32) -> Error {
    Error::errno("", errno)
}

/// A model that cannot be put into a message, or a message that is none, is a fault of the test.
pub(super) fn bad(e: impl std::fmt::Display) -> Error {
    Error::other("", format!("simulated host: {e}"))
}

/// Absent is EOPNOTSUPP, unknown the errno it was read with.
pub(super) fn fact<T>(f: &Fact<T>) -> Result<&T> {
    match f {
        Fact::Known(v) => Ok(v),
        Fact::Absent => Err(no(EOPNOTSUPP)),
        Fact::Unknown(u) => Err(Error { errno: u.errno, words: u.errno.is_none().then(|| u.why.clone()), ..no(0) }),
    }
}
