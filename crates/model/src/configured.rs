//! Where something was configured.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where a person configured something.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
pub enum ConfiguredBy {
    /// A line of a configuration file.
    File {
        /// The file, as its path was given.
        path: String,
        /// From 1.
        line: usize,
    },
    /// `--set` with this argument.
    Argument {
        /// `DEV.KEY=VALUE`, as typed.
        argument: String,
    },
    /// A flag of its own, with its dashes.
    Flag {
        /// `--cpus`.
        name: String,
    },
    /// No user: it was taken from the settings in effect.
    InEffect,
    /// As an earlier version recorded it.
    Text {
        /// The text.
        text: String,
    },
    /// Bytes of a file that is being read; never in a document.
    #[serde(skip)]
    Bytes {
        /// The first byte.
        from: usize,
        /// The byte after the last.
        to: usize,
    },
    /// Not recorded, or recorded in a way that only a later version knows.
    #[default]
    #[serde(other)]
    Unknown,
}

impl ConfiguredBy {
    /// Whether the place was not recorded.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// The configuration file or the command line, as the source of a setting.
    pub fn source(&self) -> &str {
        match self {
            Self::File { path, .. } => path,
            Self::Text { text } => text,
            Self::InEffect => "in effect",
            Self::Argument { .. } | Self::Flag { .. } | Self::Bytes { .. } | Self::Unknown => "the command line",
        }
    }
}

impl Serialize for ConfiguredBy {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, s)
    }
}

impl<'de> Deserialize<'de> for ConfiguredBy {
    /// An object with a `kind`, or the plain text of earlier versions.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Text(String),
            Typed(#[serde(with = "ConfiguredBy")] ConfiguredBy),
        }
        Ok(match Either::deserialize(d)? {
            Either::Text(text) if text.is_empty() => Self::Unknown,
            Either::Text(text) => Self::Text { text },
            Either::Typed(by) => by,
        })
    }
}

impl fmt::Display for ConfiguredBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{path} line {line}"),
            Self::Argument { argument } => write!(f, "--set {argument}"),
            Self::Flag { name } => f.write_str(name),
            Self::InEffect => f.write_str("in effect"),
            Self::Text { text } => f.write_str(text),
            Self::Bytes { from, to } => write!(f, "bytes {from} to {to}"),
            Self::Unknown => f.write_str("an unknown place"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Knob, Wish};

    #[test]
    fn places_of_earlier_and_later_versions_are_read() {
        let read = |by: &str| -> ConfiguredBy {
            let knob = r#""wish":"rings","rx":512,"tx":null"#;
            serde_json::from_str::<Wish>(&format!("{{{knob}{by}}}")).unwrap().by
        };
        let text = |text: &str| ConfiguredBy::Text { text: text.into() };
        assert_eq!(read(r#","said":"a.toml line 3""#), text("a.toml line 3"));
        assert_eq!(read(r#","said":"""#), ConfiguredBy::Unknown);
        assert_eq!(read(""), ConfiguredBy::Unknown);
        assert_eq!(read(r#","by":{"kind":"a_later_one","x":1}"#), ConfiguredBy::Unknown);
        let all = [
            ConfiguredBy::File { path: "/etc/a b.toml".into(), line: 3 },
            ConfiguredBy::Argument { argument: "eth0.rings.rx=512".into() },
            ConfiguredBy::Flag { name: "--latency-queues".into() },
            ConfiguredBy::InEffect,
            text("x line y"),
            ConfiguredBy::Unknown,
        ];
        for by in all {
            let knob = Knob::Rings { values: crate::RingValues::sizes(Some(512), None) };
            let wish = Wish { dev: None, knob, by: by.clone(), params_by: Default::default() };
            assert_eq!(serde_json::from_value::<Wish>(serde_json::to_value(&wish).unwrap()).unwrap(), wish);
        }
    }
}
