//! Times for people: ISO 8601, local with offset, or UTC.

use std::time::Duration;

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

/// `2026-11-20 14:02`, for tables whose head names the zone.
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

/// `5s`, `500ms`, `1m`, `2h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let n: u64 = number.parse().map_err(|_| format!("\"{text}\" is no time (right would be e.g. 5s, 500ms, 1m)"))?;
    let d = match unit {
        "ms" => Duration::from_millis(n),
        "" | "s" => Duration::from_secs(n),
        "m" => Duration::from_secs(n.saturating_mul(60)),
        "h" => Duration::from_secs(n.saturating_mul(3600)),
        _ => return Err(format!("\"{unit}\" is no unit of time; there are ms, s, m and h")),
    };
    if d.is_zero() || d > Duration::from_secs(86_400) {
        return Err(format!("{text} is not between 1ms and 24h"));
    }
    Ok(d)
}

/// The same, and `0` for none.
pub fn duration_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
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

    #[test]
    fn durations() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m"), Ok(Duration::from_secs(60)));
        for bad in ["", "s", "0s", "5x", "-1s", "999999999h", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
