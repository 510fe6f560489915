//! The calls in the lists of the script. Each calls a function of the shell files in this directory.

use std::fmt;

use ringwise_knob::coalesce;

use super::quote;

/// One line of a list. [`fmt::Display`] writes the line.
pub(super) enum Call {
    /// Does nothing; the text is a comment.
    Nothing(String),
    Echo(String),
    /// The undo cannot restore this setting.
    Unable(String),
    /// `places`: glob patterns, one of which must match.
    SameDevice {
        dev: String,
        places: String,
    },
    Value(File),
    /// `actions`: possible names of the interrupt's action.
    Irq {
        dev: String,
        actions: String,
        cpus: String,
    },
    /// The user has to configure irqbalance for this interface.
    ByHand {
        dev: String,
    },
    Ethtool(Order),
    /// `left`: receive queues afterwards. `contexts`: RSS contexts that may exist while the script runs.
    Channels {
        left: u32,
        contexts: Vec<u32>,
        order: Order,
    },
    /// `printed`: the name that ethtool prints.
    Feature {
        dev: String,
        name: String,
        printed: String,
        on: bool,
    },
    /// `queue`: `None` is the whole interface. `expect`: expected values such as `rx-usecs:5`.
    Moderation {
        dev: String,
        queue: Option<u32>,
        expect: Vec<String>,
    },
    Context {
        dev: String,
        context: u32,
        expect: String,
        words: String,
    },
    NoContext {
        dev: String,
        context: u32,
    },
    Rule {
        dev: String,
        place: Place,
        words: String,
    },
    /// `words`: the rule as text, needed if the driver chose its location.
    NoRule {
        dev: String,
        place: Place,
        words: Option<String>,
    },
}

/// A file, and the value to write.
pub(super) struct File {
    pub(super) what: String,
    pub(super) path: String,
    /// How two values are compared.
    pub(super) kind: Kind,
    pub(super) value: String,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Mask,
    Number,
    Words,
}

/// The arguments of ethtool, and what it must print afterwards.
pub(super) struct Order {
    pub(super) dev: String,
    /// The option that shows the values, and the arguments after the interface.
    pub(super) ask: (&'static str, String),
    /// The option that sets the values.
    pub(super) tell: &'static str,
    pub(super) expect: String,
    pub(super) words: String,
    /// Sets a transform of the hash, which needs ethtool 6.8 or later.
    pub(super) transform: bool,
}

/// The location of a flow rule.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// A location that the driver chose.
    Any,
    At(u32),
}

/// What the calls need on the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    Ethtool,
    Awk,
    Grep,
    EthtoolTransform,
    EthtoolContext,
    EthtoolPerQueue,
}

impl Call {
    /// What this call needs; empty if sh, cat, echo and sed are enough.
    pub(super) fn needs(&self) -> Vec<Need> {
        let more = match self {
            Self::Nothing(_)
            | Self::Echo(_)
            | Self::Unable(_)
            | Self::SameDevice { .. }
            | Self::Value(_)
            | Self::Irq { .. }
            | Self::ByHand { .. } => return Vec::new(),
            Self::Ethtool(order) if order.transform => Some(Need::EthtoolTransform),
            Self::Context { .. } => Some(Need::EthtoolContext),
            Self::Moderation { queue: Some(_), .. } => Some(Need::EthtoolPerQueue),
            Self::Ethtool(_)
            | Self::Channels { .. }
            | Self::Feature { .. }
            | Self::Moderation { queue: None, .. }
            | Self::NoContext { .. }
            | Self::Rule { .. }
            | Self::NoRule { .. } => None,
        };
        [Need::Ethtool, Need::Awk, Need::Grep].into_iter().chain(more).collect()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(remark) => write!(f, ": {remark}"),
            Self::Echo(text) => write!(f, "echo {}", quote(text)),
            Self::Unable(what) => write!(f, "unable {}", quote(what)),
            Self::SameDevice { dev, places } => write!(f, "same_device {} {}", quote(dev), quote(places)),
            Self::Value(File { what, path, kind, value }) => {
                write!(f, "value {} {} {kind} {}", quote(what), quote(path), quote(value))
            }
            Self::Irq { dev, actions, cpus } => {
                write!(f, "irq_cpus {} {} {}", quote(dev), quote(actions), quote(cpus))
            }
            Self::ByHand { dev } => write!(f, "by_hand {}", quote(dev)),
            Self::Ethtool(order) => write!(f, "by_ethtool {order}"),
            Self::Channels { left, contexts, order } => {
                let contexts: Vec<String> = contexts.iter().map(u32::to_string).collect();
                write!(f, "channels {left} {} {order}", quote(&contexts.join(" ")))
            }
            Self::Feature { dev, name, printed, on } => {
                write!(f, "feature {} {name} {printed} {}", quote(dev), ringwise_knob::features::text(*on))
            }
            Self::Moderation { dev, queue, expect } => {
                let mask = queue.map(coalesce::queue_mask).unwrap_or_default();
                let expect: Vec<String> = expect.iter().map(|e| quote(e)).collect();
                write!(f, "moderation {} {} {}", quote(dev), quote(&mask), expect.join(" "))
            }
            Self::Context { dev, context, expect, words } => {
                write!(f, "context {} {context} {} {words}", quote(dev), quote(expect))
            }
            Self::NoContext { dev, context } => write!(f, "no_context {} {context}", quote(dev)),
            Self::Rule { dev, place, words } => write!(f, "rule {} {place} {words}", quote(dev)),
            Self::NoRule { dev, place, words: Some(words) } => write!(f, "no_rule {} {place} {words}", quote(dev)),
            Self::NoRule { dev, place, words: None } => write!(f, "no_rule {} {place}", quote(dev)),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mask => "mask",
            Self::Number => "number",
            Self::Words => "words",
        })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dev, ask: (ask, more), tell, expect, words, .. } = self;
        write!(f, "{} {ask} {} {tell} {} {words}", quote(dev), quote(more), quote(expect))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::At(location) => write!(f, "{location}"),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ethtool => "need ethtool",
            Self::Awk => "need awk",
            Self::Grep => "need grep",
            Self::EthtoolTransform => "need ethtool xfrm",
            Self::EthtoolContext => "need ethtool context",
            Self::EthtoolPerQueue => "need ethtool per-queue",
        })
    }
}
