//! What the next boot makes of the settings.

use serde::Serialize;

/// Whether settings are applied at the next boot, as the files of `ringwise persist` have it.
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
    /// It would be, but the file is not there.
    Missing {
        /// Its path.
        config: String,
    },
    /// It would be, but a boot did not live.
    Skipped {
        /// When that boot began to apply, in seconds since 1970.
        unix_time: u64,
    },
    /// The files of `ringwise persist` cannot be read, or are not ours.
    Unknown {
        /// The path and what the kernel answered.
        why: String,
    },
}
