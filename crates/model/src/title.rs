//! What a transaction is for, as data. In JSON `title`, the text, and `purpose`, its code and facts; journals of earlier
//! versions have the text alone.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::Goal;

/// What a transaction is for. [`fmt::Display`] is the text: `goal forward`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "code", content = "facts", remote = "Self")]
pub enum Title {
    /// A goal.
    Goal {
        /// The goal that the plan was made for.
        goal: Goal,
    },
    /// A reviewed plan. `None`: the name of its file was left out.
    Plan {
        /// As it was named on the command line.
        file: Option<String>,
    },
    /// Empty: all interfaces.
    Adopt {
        /// Interface names.
        devs: Vec<String>,
    },
    /// As a user requested it: the transaction that is undone, with all later ones.
    Rollback {
        /// Number of that transaction. 0: the state first found.
        of: u64,
    },
    /// As a guard requested it. 0: the state first found.
    BackToBefore {
        /// Number of the transaction that is undone first.
        transaction: u64,
    },
    /// What a rollback had to skip while CPUs were offline.
    RestOf {
        /// Number of the rollback.
        transaction: u64,
    },
    /// The service wrote again what was lost. `devs`: the interfaces.
    Keep {
        /// Interface names.
        devs: Vec<String>,
    },
    /// The service applied the configuration to interfaces that appeared.
    SetUp {
        /// Interface names.
        devs: Vec<String>,
    },
    /// The service moved entries of an indirection table, because the load was uneven, or restored that table.
    Balance {
        /// The interface.
        dev: String,
    },
    /// A state of a measurement. `None`: its name was removed.
    Bench {
        /// Its name.
        state: Option<String>,
    },
    /// As an earlier version recorded it.
    #[serde(skip)]
    Text(String),
    /// From a later version.
    #[serde(skip)]
    Other {
        /// The text.
        title: String,
        /// As it was written.
        purpose: Value,
    },
}

/// Written in place of text that a person may have typed.
const LEFT_OUT: &str = "(left out)";

/// The content of the document.
#[derive(Serialize, Deserialize)]
struct TitleDocument {
    title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    purpose: Option<Value>,
}

impl Title {
    /// Whether the purpose is unknown.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    /// Without text that a person typed: names of files, of states, and of interfaces that are not in this list.
    pub fn without_names(&self, interfaces: &[impl AsRef<str>]) -> Self {
        match self {
            Self::Plan { .. } => Self::Plan { file: None },
            Self::Bench { .. } => Self::Bench { state: None },
            Self::Adopt { devs } | Self::Keep { devs } | Self::SetUp { devs }
                if devs.iter().all(|d| interfaces.iter().any(|i| i.as_ref() == d)) =>
            {
                self.clone()
            }
            Self::Balance { dev } if interfaces.iter().any(|i| i.as_ref() == dev) => self.clone(),
            Self::Text(text) if text.is_empty() => self.clone(),
            Self::Adopt { .. }
            | Self::Keep { .. }
            | Self::SetUp { .. }
            | Self::Balance { .. }
            | Self::Text(_)
            | Self::Other { .. } => Self::Text(LEFT_OUT.into()),
            Self::Goal { .. } | Self::Rollback { .. } | Self::BackToBefore { .. } | Self::RestOf { .. } => self.clone(),
        }
    }
}

impl Default for Title {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goal { goal } => write!(f, "goal {goal}"),
            Self::Plan { file: Some(file) } => write!(f, "plan {file}"),
            Self::Plan { file: None } => f.write_str("plan"),
            Self::Adopt { devs } if devs.is_empty() => f.write_str("adopt --all"),
            Self::Adopt { devs } => write!(f, "adopt {}", devs.join(" ")),
            Self::Rollback { of } => write!(f, "rollback of {of}"),
            Self::BackToBefore { transaction: 0 } => f.write_str("state as first found"),
            Self::BackToBefore { transaction } => write!(f, "state before transaction {transaction}"),
            Self::RestOf { transaction } => write!(f, "rest of transaction {transaction}"),
            Self::Keep { devs } => write!(f, "keep {}", devs.join(" ")),
            Self::SetUp { devs } => write!(f, "set up {}", devs.join(" ")),
            Self::Balance { dev } => write!(f, "balance {dev}"),
            Self::Bench { state: Some(state) } => write!(f, "bench: {state}"),
            Self::Bench { state: None } => f.write_str("bench"),
            Self::Text(text) | Self::Other { title: text, .. } => f.write_str(text),
        }
    }
}

impl Serialize for Title {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let purpose = match self {
            Self::Text(_) => None,
            Self::Other { purpose, .. } => Some(purpose.clone()),
            known => {
                let value = Self::serialize(known, serde_json::value::Serializer);
                Some(value.map_err(serde::ser::Error::custom)?)
            }
        };
        TitleDocument { title: self.to_string(), purpose }.serialize(s)
    }
}

/// Also reads the plain text of earlier versions, and keeps what a later version wrote.
impl<'de> Deserialize<'de> for Title {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let TitleDocument { title, purpose } = TitleDocument::deserialize(d)?;
        Ok(match purpose {
            Some(purpose) => Self::deserialize(&purpose).unwrap_or(Self::Other { title, purpose }),
            None => earlier(title),
        })
    }
}

/// The goal in the text of an earlier version, which recorded only the text.
fn earlier(title: String) -> Title {
    let goal = title.split_once(' ').filter(|(kind, _)| *kind == "goal").and_then(|(_, goal)| goal.parse().ok());
    goal.map_or(Title::Text(title), |goal| Title::Goal { goal })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_its_code_and_its_facts() {
        let json = json!({ "title": "goal forward", "purpose": { "code": "goal", "facts": { "goal": "forward" } } });
        assert_eq!(serde_json::to_value(Title::Goal { goal: Goal::Forward }).unwrap(), json);
        for (title, text) in [
            (Title::Goal { goal: Goal::Forward }, "goal forward"),
            (Title::Plan { file: Some("/tmp/x.json".into()) }, "plan /tmp/x.json"),
            (Title::Plan { file: None }, "plan"),
            (Title::Adopt { devs: vec!["eth0".into(), "eth1".into()] }, "adopt eth0 eth1"),
            (Title::Adopt { devs: Vec::new() }, "adopt --all"),
            (Title::Rollback { of: 13 }, "rollback of 13"),
            (Title::BackToBefore { transaction: 0 }, "state as first found"),
            (Title::BackToBefore { transaction: 4 }, "state before transaction 4"),
            (Title::RestOf { transaction: 4 }, "rest of transaction 4"),
            (Title::Keep { devs: vec!["eth0".into()] }, "keep eth0"),
            (Title::SetUp { devs: vec!["eth2".into()] }, "set up eth2"),
            (Title::Bench { state: Some("acme".into()) }, "bench: acme"),
            (Title::Text("own text".into()), "own text"),
            (Title::default(), ""),
        ] {
            assert_eq!(title.to_string(), text);
            assert_eq!(serde_json::from_value::<Title>(serde_json::to_value(&title).unwrap()).unwrap(), title);
        }
    }

    #[test]
    fn titles_of_earlier_and_later_versions() {
        let of = |v: Value| serde_json::from_value::<Title>(v).unwrap();
        assert_eq!(of(json!({ "title": "goal rpc" })), Title::Goal { goal: Goal::Rpc });
        assert_eq!(of(json!({ "title": "goal of mine" })), Title::Text("goal of mine".into()));
        assert_eq!(of(json!({ "title": "plan /tmp/x.json" })), Title::Text("plan /tmp/x.json".into()));
        let later = json!({ "title": "a new title", "purpose": { "code": "new", "facts": { "x": 1 } } });
        let read = of(later.clone());
        assert_eq!((read.to_string().as_str(), serde_json::to_value(&read).unwrap()), ("a new title", later));
    }

    #[test]
    fn without_what_a_person_typed() {
        let clean = |t: Title| t.without_names(&["eth0"]).to_string();
        assert_eq!(clean(Title::Goal { goal: Goal::Forward }), "goal forward");
        assert_eq!(clean(Title::Plan { file: Some("/home/anna/x.json".into()) }), "plan");
        assert_eq!(clean(Title::Bench { state: Some("acme".into()) }), "bench");
        assert_eq!(clean(Title::Adopt { devs: vec!["eth0".into()] }), "adopt eth0");
        assert_eq!(clean(Title::Adopt { devs: vec!["acme".into()] }), "(left out)");
        assert_eq!(clean(Title::Keep { devs: vec!["eth0".into()] }), "keep eth0");
        assert_eq!(clean(Title::Keep { devs: vec!["acme".into()] }), "(left out)");
        assert_eq!(clean(Title::SetUp { devs: vec!["acme".into()] }), "(left out)");
        assert_eq!(clean(Title::Adopt { devs: Vec::new() }), "adopt --all");
        assert_eq!(clean(Title::Rollback { of: 13 }), "rollback of 13");
        assert_eq!(clean(Title::Text("plan /home/anna/x.json".into())), "(left out)");
        assert_eq!(clean(Title::Other { title: "x acme".into(), purpose: json!({}) }), "(left out)");
        assert_eq!(clean(Title::default()), "");
    }
}
