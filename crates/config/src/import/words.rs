//! Names and values that several programs share with ethtool.

use ringwise_model::{RingKind, RingPart};

use super::ImportedValue;
use crate::spec;

/// The groups of settings that ethtool has: `-L`, `-G`, `-C`, `-A`, `-K`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Channels,
    Ring,
    Coalesce,
    Pause,
    Feature,
}

const NO_SUCH: &str = "ringwise has no such setting";

/// A setting in ethtool's words. The error is the reason why it is not carried over.
pub(super) fn part(group: Group, word: &str, value: &str) -> Result<ImportedValue, String> {
    match group {
        Group::Channels => {
            let key = ["combined", "rx", "tx"].into_iter().find(|k| *k == word).ok_or(NO_SUCH)?;
            let n = number(value)?;
            if !(1..=4096).contains(&n) {
                return Err("expected 1 to 4096 channels".into());
            }
            Ok(ImportedValue::Channels(key, n))
        }
        Group::Ring => {
            let part = RingPart::ALL.iter().find(|p| p.word == word).ok_or(NO_SUCH)?;
            let n = match part.kind {
                RingKind::Switch | RingKind::Mode => u32::from(switch(value)?),
                RingKind::Size | RingKind::Number(_) => number(value)?,
            };
            if n == 0 && matches!(part.kind, RingKind::Size | RingKind::Number(1)) {
                return Err("expected at least 1".into());
            }
            Ok(ImportedValue::Ring(part.key, n))
        }
        Group::Coalesce => {
            let name = parameter(word);
            if !spec::COALESCE.keys.iter().any(|k| k.name == name && !name.ends_with("-profile") && name != "queues") {
                return Err(NO_SUCH.into());
            }
            let on = name.starts_with("use-").then(|| switch(value).map(u32::from));
            Ok(ImportedValue::Coalesce(name, on.unwrap_or_else(|| number(value))?))
        }
        Group::Pause => {
            let key = ["autoneg", "rx", "tx"].into_iter().find(|k| *k == word).ok_or(NO_SUCH)?;
            Ok(ImportedValue::Pause(key, switch(value)?))
        }
        Group::Feature => {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if word.is_empty() || !word.chars().all(plain) {
                return Err("this is not the name of a feature".into());
            }
            Ok(ImportedValue::Feature(word.to_string(), switch(value)?))
        }
    }
}

/// The netlink name of ethtool's word for a moderation parameter.
fn parameter(word: &str) -> String {
    match word {
        "sample-interval" => "rate-sample-interval".into(),
        w if w.starts_with("adaptive-") || w.starts_with("cqe-mode-") => format!("use-{w}"),
        w if w.contains("aggr") || w.contains("cqe") || w.contains("-max-") => w.to_string(),
        w => w.replacen("-frames", "-max-frames", 1),
    }
}

/// `on`, `true`, `yes`, `1` and their opposites.
pub(super) fn switch(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err("the value is neither on nor off".into()),
    }
}

pub(super) fn number(value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| "the value is not a number of at most 32 bits".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ethtool_and_of_netlink() {
        let of = |g, w, v| part(g, w, v);
        assert_eq!(
            of(Group::Coalesce, "rx-frames-irq", "5"),
            Ok(ImportedValue::Coalesce("rx-max-frames-irq".into(), 5))
        );
        assert_eq!(of(Group::Coalesce, "adaptive-rx", "off"), Ok(ImportedValue::Coalesce("use-adaptive-rx".into(), 0)));
        assert_eq!(
            of(Group::Coalesce, "sample-interval", "1"),
            Ok(ImportedValue::Coalesce("rate-sample-interval".into(), 1))
        );
        assert_eq!(
            of(Group::Coalesce, "tx-aggr-max-frames", "1"),
            Ok(ImportedValue::Coalesce("tx-aggr-max-frames".into(), 1))
        );
        assert_eq!(of(Group::Ring, "tx-push", "on"), Ok(ImportedValue::Ring("tx_push", 1)));
        assert_eq!(of(Group::Ring, "rx", "1"), Ok(ImportedValue::Ring("rx", 1)));
        assert!(of(Group::Ring, "rx", "on").is_err() && of(Group::Ring, "rx", "0").is_err());
        assert!(of(Group::Channels, "rx", "0").is_err() && of(Group::Channels, "rx", "4097").is_err());
        assert!(of(Group::Ring, "rx-mini", "1").is_err() && of(Group::Channels, "other", "1").is_err());
        assert!(of(Group::Coalesce, "queues", "1").is_err() && of(Group::Coalesce, "rx-profile", "1").is_err());
        assert!(of(Group::Channels, "rx", "4294967296").is_err() && of(Group::Feature, "a\nb", "on").is_err());
    }
}
