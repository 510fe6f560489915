//! Durations as option values.

use std::time::Duration;

use super::InvalidValue;

/// `5s`, `500ms`, `1m`, `2h`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, InvalidValue> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let bad = |_| InvalidValue::form(text, "a time, e.g. 5s, 500ms or 1m");
    let n: u64 = number.parse().map_err(bad)?;
    let d = match unit {
        "ms" => Duration::from_millis(n),
        "" | "s" => Duration::from_secs(n),
        "m" => Duration::from_secs(n.saturating_mul(60)),
        "h" => Duration::from_secs(n.saturating_mul(3600)),
        _ => return Err(InvalidValue::form(text, "a time in ms, s, m or h, e.g. 500ms or 5s")),
    };
    if d.is_zero() || d > Duration::from_secs(86_400) {
        return Err(InvalidValue::OutOfRange { found: text.into(), least: "1ms", most: "24h" });
    }
    Ok(d)
}

/// A time of at least a second: the kernel counts CPU time in ticks of up to 10 ms.
pub(crate) fn sample_time(text: &str) -> Result<Duration, InvalidValue> {
    match duration(text)? {
        d if d < Duration::from_secs(1) => {
            Err(InvalidValue::OutOfRange { found: text.into(), least: "1s", most: "24h" })
        }
        d => Ok(d),
    }
}

/// The same, and `0` for none.
pub(crate) fn duration_or_none(text: &str) -> Result<Duration, InvalidValue> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m"), Ok(Duration::from_secs(60)));
        assert_eq!(sample_time("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(sample_time("999ms").unwrap_err().to_string(), "expected 1s to 24h; found 999ms");
        for bad in ["", "s", "0s", "5x", "-1s", "999999999h", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
