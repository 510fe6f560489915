//! Reasons in JSON documents: a text for people, with a code and its facts for programs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The fields of a reason. A reason that this version does not know is kept in this form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonFields {
    /// The text.
    pub why: String,
    /// `None`: written by a version that recorded only texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `None`: the code has no facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Value>,
}

impl ReasonFields {
    /// `named`: the reason as serde names a variant, `"code"` or `{"code": facts}`.
    pub fn new(why: String, named: Value) -> Self {
        let (code, facts) = match named {
            Value::Object(named) => named.into_iter().next().map_or((None, None), |(c, f)| (Some(c), Some(f))),
            code => (code.as_str().map(str::to_string), None),
        };
        Self { why, code, facts }
    }

    /// The inverse, as serde names a variant. `None`: there is only the text.
    pub fn named(&self) -> Option<Value> {
        let code = self.code.clone()?;
        Some(match &self.facts {
            Some(facts) => Value::Object([(code, facts.clone())].into_iter().collect()),
            None => Value::String(code),
        })
    }
}

/// Implements `Serialize` and `Deserialize` for an enum of reasons through [`ReasonFields`].
///
/// The enum derives both with `#[serde(remote = "Self")]` and has a skipped variant `Other(ReasonFields)`, which keeps what
/// another version of ringwise wrote. Its text is that of [`std::fmt::Display`].
#[macro_export]
macro_rules! serde_as_coded {
    ($reason:ty) => {
        impl serde::Serialize for $reason {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                let coded = match self {
                    Self::Other(kept) => kept.clone(),
                    known => {
                        let named = Self::serialize(known, serde_json::value::Serializer);
                        $crate::ReasonFields::new(self.to_string(), named.map_err(serde::ser::Error::custom)?)
                    }
                };
                serde::Serialize::serialize(&coded, s)
            }
        }

        impl<'de> serde::Deserialize<'de> for $reason {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let coded = <$crate::ReasonFields as serde::Deserialize>::deserialize(d)?;
                let known = coded.named().and_then(|named| Self::deserialize(named).ok());
                Ok(known.unwrap_or(Self::Other(coded)))
            }
        }
    };
}
