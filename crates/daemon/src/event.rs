//! What the service reports while it runs, one line each.

use std::fmt;

use ringwise_apply::Event as Step;
use ringwise_knob::ManualChange;

use crate::control::ControlRequest;
use crate::follow::LoadFinding;
use crate::state::{ActionEnding, ServiceAction};

/// Something that an administrator reads in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The first look at the host is complete.
    Started {
        /// How many settings it keeps.
        settings: usize,
        /// The configuration file.
        config: Option<String>,
    },
    /// A transaction of the service ended, or was refused.
    Acted(ServiceAction),
    /// A step of a transaction.
    Step(Box<Step>),
    /// A manual change was found. It stays.
    Manual(Box<ManualChange>),
    /// A competing program moved settings of the interface back twice.
    Paused {
        /// The interface.
        interface: String,
        /// The program.
        program: String,
        /// Until when, in seconds since 1970.
        until_unix: u64,
    },
    /// The service cannot do its work at present.
    Problem(String),
    /// The last problem is over.
    ProblemSolved,
    /// A finding about the load of an interface.
    Load(LoadFinding),
    /// A write of the RSS table to balance load took the link down: the service no longer changes the table.
    TableTookLinkDown {
        /// The interface.
        interface: String,
    },
    /// The last transaction of an interface is a rollback: its load is only observed, although the user requested more.
    OnlyObserved {
        /// The interface.
        interface: String,
    },
    /// A sentence.
    Note(String),
    /// The configuration was read again.
    Loaded {
        /// The file.
        config: Option<String>,
    },
    /// A user sent this command.
    Request(ControlRequest),
    /// It ends.
    Stopping {
        /// Settings were restored as first found since boot; otherwise they stay in effect.
        restored: bool,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { settings: 0, config: None } => {
                f.write_str("started; nothing to keep yet: no setting of ringwise is in effect")
            }
            Self::Started { settings, config: None } => write!(f, "started; keeps {settings} settings"),
            Self::Started { settings, config: Some(c) } => write!(f, "started with {c}; keeps {settings} settings"),
            Self::Acted(a) => acted(a, f),
            Self::Step(step) => match step.as_ref() {
                Step::Note { text } => f.write_str(text),
                Step::Writing { setting, .. } => {
                    let address = setting.address().map(|a| a.to_string()).unwrap_or_default();
                    write!(f, "writes {address} {}", setting.value_text())
                }
                _ => Ok(()),
            },
            Self::Manual(m) => {
                let address = m.address().map(|a| a.to_string()).unwrap_or_default();
                let (now, applied) = (m.setting.value_text_beside(&m.applied), m.applied.value_text());
                write!(f, "manual change, which stays: {address} is {now} instead of {applied}")
            }
            Self::Paused { interface, program, .. } => {
                write!(f, "{program} moved settings of {interface} back twice; {interface} is paused for a while")
            }
            Self::Problem(why) => write!(f, "cannot keep the layout at present: {why}"),
            Self::ProblemSolved => f.write_str("keeps the layout again"),
            Self::Load(l) => write!(f, "{}: {}", l.interface, l.finding),
            Self::TableTookLinkDown { interface } => write!(
                f,
                "{interface}: writing the RSS table took the link down. The service no longer changes this table to balance load. To let it \
                 try again: ringwise learned --forget {interface}, then restart the service"
            ),
            Self::OnlyObserved { interface } => write!(
                f,
                "{interface}: its last transaction is a rollback, so the load is only observed until a later one: ringwise apply \
                 {interface}"
            ),
            Self::Note(text) => f.write_str(text),
            Self::Loaded { config: Some(config) } => write!(f, "loaded {config}"),
            Self::Loaded { config: None } => f.write_str("no configuration file; settings that were applied are kept"),
            Self::Request(ask) => match ask {
                ControlRequest::Pause { interface: Some(dev) } => write!(f, "{dev} is paused on request"),
                ControlRequest::Pause { interface: None } => f.write_str("paused on request"),
                ControlRequest::Resume { interface: Some(dev) } => write!(f, "{dev} is resumed on request"),
                ControlRequest::Resume { interface: None } => f.write_str("resumed on request"),
                ControlRequest::Stop { restore: false } => f.write_str("stop is requested"),
                ControlRequest::Stop { restore: true } => {
                    f.write_str("stop is requested, and that everything is restored")
                }
            },
            Self::Stopping { restored: false } => f.write_str("stops; settings stay in effect"),
            Self::Stopping { restored: true } => f.write_str("stops; settings are restored as first found since boot"),
        }
    }
}

fn acted(a: &ServiceAction, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let devs = a.interfaces.join(", ");
    let settings = if a.settings == 1 { "1 setting".to_string() } else { format!("{} settings", a.settings) };
    let cause = a.cause.text();
    if let Some(id) = a.transaction {
        write!(f, "transaction {id}: ")?;
    }
    match a.ending {
        ActionEnding::Kept if a.settings == 0 => write!(f, "recorded the present settings of {devs}, because {cause}")?,
        ActionEnding::Kept => write!(f, "set {settings} of {devs}, because {cause}")?,
        ActionEnding::Restored => write!(f, "failed and was restored: {devs}, because {cause}")?,
        ActionEnding::Incomplete => write!(f, "failed, and not everything was restored: {devs}, because {cause}")?,
        ActionEnding::Refused => write!(f, "refused: {devs}, because {cause}")?,
    }
    a.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
}
