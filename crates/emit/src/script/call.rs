//! The calls that the script's lists consist of, each to a function of the shell files beside this one.

use std::fmt;

use ringwise_knob::coalesce;

use super::quote;

/// One line of a list. [`fmt::Display`] is the line.
pub(super) enum Call {
    /// Nothing to do, with a remark.
    Nothing(String),
    Echo(String),
    /// The setting is lost on the way back.
    Unable(String),
    /// `places`: patterns of files of which one exists.
    SameDevice {
        dev: String,
        places: String,
    },
    Value(File),
    /// `actions`: the names that the interrupt may have.
    Irq {
        dev: String,
        actions: String,
        cpus: String,
    },
    /// irqbalance of this interface is left to the user.
    ByHand {
        dev: String,
    },
    Ethtool(Order),
    /// `left`: receive queues afterwards. `contexts`: RSS contexts that may exist on the way.
    Channels {
        left: u32,
        contexts: Vec<u32>,
        order: Order,
    },
    /// `printed`: ethtool's own name.
    Feature {
        dev: String,
        name: String,
        printed: String,
        on: bool,
    },
    /// `queue`: `None` is the whole interface. `expect`: `rx-usecs:5`.
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
    /// `words`: of the rule, where the driver chose its place.
    NoRule {
        dev: String,
        place: Place,
        words: Option<String>,
    },
}

/// A file and its value.
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

/// What ethtool is called with, and what it must print afterwards.
pub(super) struct Order {
    pub(super) dev: String,
    /// The option that prints, and what follows the interface there.
    pub(super) ask: (&'static str, String),
    /// The option that sets.
    pub(super) tell: &'static str,
    pub(super) expect: String,
    pub(super) words: String,
    /// It sets a transform of the hash, which ethtool before 6.8 cannot.
    pub(super) transform: bool,
}

/// Where a flow rule is.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// The driver chose it.
    Any,
    At(u32),
}

/// What the host must have for the calls.
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
    /// Empty where sh, cat, echo and sed are enough.
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
