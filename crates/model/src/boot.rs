//! What the next boot does with the settings.

use serde::Serialize;

/// Whether settings are applied at the next boot, according to the files of `ringwise persist`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Boot {
    /// Nothing is installed.
    Nothing,
    /// A file is applied at boot.
    Applies {
        /// Its path.
        config: String,
    },
    /// The service applies a file at boot, and keeps it.
    Service {
        /// Its path. `None`: there is no file, and the service keeps what `apply` has set.
        config: Option<String>,
    },
    /// A file is to be applied at boot, but does not exist.
    Missing {
        /// Its path.
        config: String,
    },
    /// Nothing is applied, because an earlier boot began to apply the settings and did not survive.
    Skipped {
        /// When that boot began to apply, in seconds since 1970.
        unix_time: u64,
    },
    /// The files of `ringwise persist` cannot be read, or were not written by ringwise.
    Unknown {
        /// The path and the kernel's answer.
        why: String,
    },
}
