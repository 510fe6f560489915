//! Times for people: ISO 8601, local with offset, or UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;

fn zoned(unix: u64, utc: bool) -> Option<jiff::Zoned> {
    let t = Timestamp::from_second(i64::try_from(unix).ok()?).ok()?;
    Some(t.to_zoned(if utc { TimeZone::UTC } else { TimeZone::system() }))
}

fn format(unix: u64, utc: bool, pattern: &str) -> String {
    match zoned(unix, utc) {
        Some(z) => z.strftime(pattern).to_string(),
        None => format!("{unix} s since 1970"),
    }
}

/// `2026-11-20T14:02:07+01:00`; `…Z` in UTC.
pub fn full(unix: u64, utc: bool) -> String {
    format(unix, utc, if utc { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" })
}

/// `2026-11-20 14:02`, for tables whose heading names the time zone.
pub fn minute(unix: u64, utc: bool) -> String {
    format(unix, utc, "%Y-%m-%d %H:%M")
}

/// `2026-11-20 14:02:07`
pub fn second(unix: u64, utc: bool) -> String {
    format(unix, utc, "%Y-%m-%d %H:%M:%S")
}

/// `14:02:07`
pub fn clock(unix: u64, utc: bool) -> String {
    format(unix, utc, "%H:%M:%S")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_text() {
        assert_eq!(full(1_795_183_327, true), "2026-11-20T14:02:07Z");
        assert_eq!(minute(1_795_183_327, true), "2026-11-20 14:02");
        assert_eq!(clock(1_795_183_327, true), "14:02:07");
        assert!(full(u64::MAX, true).contains("since 1970"));
    }
}
