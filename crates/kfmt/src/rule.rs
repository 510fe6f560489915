//! Flow steering rules in the syntax of ethtool(8) ⇄ [`Rule`] ⇄ `struct ethtool_rx_flow_spec`.
//!
//! ```text
//!   flow-type tcp4 src-ip 10.0.0.0 m 0.0.0.255 dst-port 443 action 2 loc 7
//! ```
//!
//! Each meaning has one form: parsed rules and answers of drivers are converted through the struct. Ignored bits become
//! zero, fields that match anything are removed, and two rules are equal if they match the same packets.

mod fields;
mod spec;
mod value;

use std::collections::BTreeMap;
use std::fmt;

use ringwise_model::{Action, Rule};

pub use fields::{flow_names, names as field_names};
pub use spec::{FlowSpec, RAW, SPEC_SIZE};

/// `RX_CLS_LOC_SPECIAL`: in the data of a count, the driver understands `RX_CLS_LOC_ANY` and similar values.
pub(crate) const LOC_SPECIAL: u32 = 0x8000_0000;

/// An invalid rule: the wrong word, what was found, what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// `dst-port`, `flow-type`, `action`.
    pub word: String,
    /// Empty: the value is missing.
    pub found: String,
    /// `found` is a description by ringwise, not a word of the text.
    pub described: bool,
    /// The text after "expected".
    pub expected: String,
    /// The words that are accepted instead of `word`; empty if it is not one of a list.
    pub choices: Box<[String]>,
    /// First byte of the wrong part, and the byte after its last one, if a text was parsed.
    pub at: Option<(usize, usize)>,
}

impl RuleError {
    pub(crate) fn new(word: &str, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            word: word.to_string(),
            found: found.into(),
            described: false,
            expected: expected.into(),
            choices: Box::default(),
            at: None,
        }
    }

    fn described(word: &str, found: &str, expected: &str) -> Self {
        Self { described: true, ..Self::new(word, found, expected) }
    }

    /// `subject`: what the words are for, `a word for tcp4`.
    fn one_of(word: &str, found: &str, subject: Option<String>, choices: &[&str]) -> Self {
        let list = format!("one of {}", choices.join(", "));
        let expected = subject.map_or_else(|| list.clone(), |s| format!("{s}, {list}"));
        Self { choices: choices.iter().map(ToString::to_string).collect(), ..Self::new(word, found, expected) }
    }

    fn unknown_type(found: &str) -> Self {
        Self::one_of("flow-type", found, None, &fields::flows())
    }

    fn unknown_field(word: &str, flow: &str, choices: &[&str]) -> Self {
        Self::one_of(word, word, Some(format!("a word for {flow}")), choices)
    }

    fn here(mut self, token: Token) -> Self {
        self.at.get_or_insert((token.at, token.at + token.text.len()));
        self
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = crate::ParseError::new("", &self.found, "").found;
        match found.as_str() {
            "" => write!(f, "{}: nothing found, expected {}", self.word, self.expected),
            found if self.described => write!(f, "{} {found}, expected {}", self.word, self.expected),
            found => write!(f, "{}: found \"{found}\", expected {}", self.word, self.expected),
        }
    }
}

impl std::error::Error for RuleError {}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    at: usize,
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    text.split_whitespace().map(|t| Token { text: t, at: t.as_ptr() as usize - text.as_ptr() as usize }).collect()
}

/// The parsed words, before they are checked together.
#[derive(Default)]
struct Words {
    flow: String,
    fields: BTreeMap<String, String>,
    /// The position of each field, for errors that are found only when all words are checked together.
    at: BTreeMap<String, (usize, usize)>,
    action: Option<Action>,
    vf: Option<u32>,
    queue: Option<u32>,
    context: Option<u32>,
    location: Option<u32>,
}

/// Parses a rule and its location in ethtool's syntax, with or without `flow-type` before the type. Masks are
/// ethtool's: set bits are ignored. In addition, `10.0.0.0/24`, `dscp 46`, `action drop` and `action wake` are
/// accepted.
pub fn parse_rule(words: &str) -> Result<(Rule, Option<u32>), RuleError> {
    let w = read(words, true)?;
    let action = match (w.action, w.vf, w.queue) {
        (Some(a), None, None) => a,
        (None, Some(vf), queue) => Action::Vf { vf, queue: queue.unwrap_or(0) },
        (None, None, Some(queue)) => Action::Queue(queue),
        (None, None, None) if w.context.is_some() => Action::Queue(0),
        (None, None, None) => {
            return Err(RuleError::new("action", "", "a queue, -1 to drop, or -2 to wake up (or vf, or context)"));
        }
        (Some(_), ..) => {
            return Err(RuleError::described(
                "action",
                "is given together with vf or queue",
                "action alone, or vf with \
            queue",
            ));
        }
    };
    let rule = Rule { flow: w.flow, fields: w.fields, action, context: w.context };
    let rule = normalise(&rule).map_err(|e| RuleError { at: w.at.get(&e.word).copied(), ..e })?;
    Ok((rule, w.location))
}

/// Parses only the flow type and fields, as in the flows of a group.
pub fn parse_match(words: &str) -> Result<(String, BTreeMap<String, String>), RuleError> {
    let w = read(words, false)?;
    let rule = Rule { flow: w.flow, fields: w.fields, action: Action::Queue(0), context: None };
    let rule = normalise(&rule).map_err(|e| RuleError { at: w.at.get(&e.word).copied(), ..e })?;
    Ok((rule.flow, rule.fields))
}

/// The one form of a rule (see above). Error: no struct can express it.
pub fn normalise(rule: &Rule) -> Result<Rule, RuleError> {
    Ok(FlowSpec::of(rule, 0)?.rule())
}

fn read(words: &str, actions: bool) -> Result<Words, RuleError> {
    let all = tokens(words);
    let mut rest = all.iter().copied().peekable();
    let mut next = rest.next();
    if next.is_some_and(|t| t.text == "flow-type") {
        next = rest.next();
    }
    let Some(flow) = next else { return Err(RuleError::unknown_type("")) };
    let Some(known) = fields::flow(flow.text) else {
        // A type without a name here, as an earlier version or a newer kernel reported it.
        return match spec::raw_type(flow.text) {
            Some(_) => read_fields(flow.text, rest, actions, |w| (w == RAW).then(|| RAW.to_string())),
            None => Err(RuleError::unknown_type(flow.text).here(flow)),
        };
    };
    read_fields(known.name, rest, actions, |w| fields::canonical(known, w).map(str::to_string))
}

fn read_fields<'a>(
    flow: &str,
    mut rest: std::iter::Peekable<impl Iterator<Item = Token<'a>>>,
    actions: bool,
    name: impl Fn(&str) -> Option<String>,
) -> Result<Words, RuleError> {
    let mut w = Words { flow: flow.to_string(), ..Words::default() };
    while let Some(word) = rest.next() {
        let value = rest.next();
        let field = name(word.text);
        if field.is_none() && !(actions && ["action", "vf", "queue", "context", "loc"].contains(&word.text)) {
            let mut right: Vec<&str> = fields::names(flow);
            if actions {
                right.extend(["action", "vf", "queue", "context", "loc"]);
            }
            return Err(RuleError::unknown_field(word.text, flow, &right).here(word));
        }
        let Some(value) = value else { return Err(RuleError::new(word.text, "", "a value").here(word)) };
        let Some(field) = field else {
            w.order(word.text, value)?;
            continue;
        };
        let mut text = value.text.to_string();
        let mut end = value.at + value.text.len();
        if rest.next_if(|t| t.text == "m").is_some() {
            let Some(mask) = rest.next() else { return Err(RuleError::new("m", "", "a mask").here(value)) };
            text = format!("{text} m {}", mask.text);
            end = mask.at + mask.text.len();
        }
        let at = (value.at, end);
        // Each field is checked alone first, so that the error has the right position.
        if field != RAW {
            let one = BTreeMap::from([(word.text.to_string(), text.clone())]);
            let alone = Rule { flow: flow.to_string(), fields: one, action: Action::Queue(0), context: None };
            FlowSpec::of(&alone, 0).map_err(|e| RuleError { at: Some(at), ..e })?;
            if word.text == "dscp" {
                text = value::dscp(&text).map_err(|e| RuleError { at: Some(at), ..e })?;
            }
        }
        if w.fields.insert(field.clone(), text).is_some() {
            return Err(RuleError::described(word.text, "is given twice", "each field once").here(word));
        }
        w.at.insert(field, at);
    }
    Ok(w)
}

impl Words {
    fn order(&mut self, word: &str, value: Token) -> Result<(), RuleError> {
        let twice = || RuleError::described(word, "is given twice", "only one").here(value);
        let number = |expected: &str| {
            value::number(value.text)
                .and_then(|n| u32::try_from(n).ok())
                .ok_or_else(|| RuleError::new(word, value.text, expected).here(value))
        };
        let old = match word {
            "action" => {
                let action = match value.text {
                    "-1" | "drop" => Action::Drop,
                    "-2" | "wake" => Action::Wake,
                    _ => Action::Queue(number("a queue, -1 to drop, or -2 to wake up")?),
                };
                self.action.replace(action).is_some()
            }
            "vf" => {
                let vf = number("the number of a virtual function, 0 to 254")?;
                if vf > 254 {
                    let e = RuleError::new(word, value.text, "the number of a virtual function, 0 to 254");
                    return Err(e.here(value));
                }
                self.vf.replace(vf).is_some()
            }
            "queue" => self.queue.replace(number("a queue")?).is_some(),
            "context" => {
                let context = number("the number of an RSS context, 1 or more")?;
                if context == 0 {
                    let e = RuleError::new(word, value.text, "the number of an RSS context, 1 or more");
                    return Err(e.here(value));
                }
                self.context.replace(context).is_some()
            }
            _ => {
                let location = number("a location, 0 or more")?;
                if location >= LOC_SPECIAL {
                    return Err(RuleError::new(word, value.text, "a location below 2147483648").here(value));
                }
                self.location.replace(location).is_some()
            }
        };
        if old { Err(twice()) } else { Ok(()) }
    }
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
