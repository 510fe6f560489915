//! The texts of mistakes.

use ringwise_knob::rss::LETTERS;
use ringwise_model::words::plural;

use super::Mistake;
use crate::Obstacle;
use crate::words::{places, span};

impl Mistake {
    /// What was configured, or the host's actual state.
    pub fn found(&self) -> String {
        match self {
            Self::Strict { obstacle } => obstacle.to_string(),
            Self::NoInterface { .. } => "there is no such interface".into(),
            Self::NoInterfaceNamed => "this setting needs an interface, and none is named".into(),
            Self::OfflineCpus { offline, of: Some(all), .. } if offline != all => {
                format!("of CPUs {all}, {offline} {} not online", if offline.len() == 1 { "is" } else { "are" })
            }
            Self::OfflineCpus { offline, .. } if offline.len() == 1 => format!("CPU {offline} is not online"),
            Self::OfflineCpus { offline, .. } => format!("CPUs {offline} are not online"),
            Self::NoCpus | Self::NoCpusOfGroup { .. } => "the list of CPUs is empty".into(),
            Self::NoSuchQueue { direction, queues: 1 } => format!("there is 1 {direction} queue"),
            Self::NoSuchQueue { direction, queues } => format!("there are {queues} {direction} queues"),
            Self::SharedInterrupt { queues, setting, by } => format!(
                "it shares its interrupt with queue {}, which is configured for CPUs {} ({})",
                with_blanks(queues),
                setting.value_text(),
                places(by)
            ),
            Self::TooManyChannels { most } => format!("the driver supports at most {most}"),
            Self::NoQueueLeft { receive, transmit } => {
                let left = [(receive, "receive"), (transmit, "transmit")].into_iter();
                let left = left.filter_map(|(n, direction)| n.map(|n| format!("{n} {direction}")));
                format!("{} queues would be left", left.collect::<Vec<_>>().join(" and "))
            }
            Self::RingSize { now, most: Some(most) } | Self::RingNumber { now, most: Some(most), .. } => {
                format!("the current value is {now}, and the driver supports at most {most}")
            }
            Self::RingSize { now, most: None } | Self::RingNumber { now, most: None, .. } => {
                format!("the current value is {now}")
            }
            Self::NoSuchFeature { .. } => "the device has no such feature".into(),
            Self::Switch | Self::ThreadSwitch => "this parameter is a switch".into(),
            Self::OfDeviceOnly => "the kernel sets this only for the whole device, not for single queues".into(),
            Self::AdaptiveOverwrites { switch } => format!("{switch} is configured as on and would overwrite it"),
            Self::OneInterval { driver } => format!("{driver} is known to refuse it: {}", Obstacle::OneInterval),
            Self::DriverRefuses { driver, takes, .. } => format!("{driver} is known to refuse it: it accepts {takes}"),
            Self::NoFlowType { .. } => "there is no such flow type".into(),
            Self::NoField { letter } => format!("'{letter}' is not a hash field"),
            Self::Table { error, .. } => error.to_string(),
            Self::KeyNotHex { .. } => "the key is not in hex".into(),
            Self::KeyLength { has, .. } => format!("the key has {has} bytes"),
            Self::NoTransform { .. } => "there is no such transform".into(),
            Self::NoContext { context } => format!("there is no RSS context {context}"),
            Self::DriverChoosesPlaces => "the driver chooses the locations of rules itself".into(),
            Self::NoSuchPlace { places } => format!("the device has {places} rule locations"),
            Self::PlacesFull { places } => format!("all {places} rule locations of the device are in use"),
            Self::RulesNeedFeature { by } => format!("flow rules are configured too ({})", places(by)),
            Self::TooManyEntries { .. } => "more than the kernel accepts".into(),
            Self::NoSysctl { .. } => "ringwise does not set this sysctl here".into(),
            Self::NotALatency => "not a valid resume latency".into(),
            Self::BesideArticle => "--pair-as-article divides all queues into groups latency and bulk".into(),
            Self::SameName => "two groups have this name".into(),
            Self::OtherNumber { number } => format!("--latency-queues, or latency_queues, is {number}"),
            Self::NoPolicy { .. } => "there is no such policy".into(),
            Self::InOtherGroup { group } => format!("it already belongs to group {group}"),
            Self::InterruptOfSeveralGroups { queues } => {
                format!("queues {} share one interrupt", with_blanks(queues))
            }
            Self::GroupSize { queues, room } => {
                format!(
                    "the interface has {}, and the group can have {room} of them",
                    plural(*queues as usize, "queue")
                )
            }
            Self::Other(kept) => kept.found.clone(),
        }
    }

    /// What is expected, or what to do.
    pub fn right(&self) -> String {
        match self {
            Self::Strict { .. } => "remove it, or omit --strict".into(),
            Self::NoInterface { have } | Self::NoFlowType { have } => format!("expected one of {}", have.join(" ")),
            Self::NoInterfaceNamed => "name the interface".into(),
            Self::OfflineCpus { online, .. } | Self::NoCpusOfGroup { online } => format!("online CPUs are {online}"),
            Self::NoCpus => "expected at least one online CPU".into(),
            Self::NoSuchQueue { queues, .. } => format!("expected queues {}", span(*queues)),
            Self::SharedInterrupt { .. } => "expected the same CPUs for all queues of one interrupt".into(),
            Self::TooManyChannels { most } => format!("expected 0 to {most}"),
            Self::NoQueueLeft { .. } => "expected at least one of each".into(),
            Self::RingSize { most: Some(most), .. } => format!("expected 1 to {most} descriptors"),
            Self::RingSize { most: None, .. } => "expected 1 or more descriptors".into(),
            Self::RingNumber { least, most: Some(most), .. } => format!("expected {least} to {most}"),
            Self::RingNumber { least, most: None, .. } => format!("expected {least} or more"),
            Self::NoSuchFeature { like } => format!("expected, for example, {}", like.join(", ")),
            Self::Switch => "expected 0 (off) or 1 (on)".into(),
            Self::ThreadSwitch => "expected 0 (off), 1 (a thread) or 2 (a busy-polling thread)".into(),
            Self::OfDeviceOnly => "configure it without queues".into(),
            Self::AdaptiveOverwrites { switch } => format!("expected {switch} off, or no fixed value"),
            Self::OneInterval { .. } => "remove it".into(),
            Self::DriverRefuses { nearest, .. } => format!("the nearest value is {nearest}"),
            Self::NoField { .. } => format!("expected letters of {LETTERS}, such as sdfn"),
            Self::Table { entries, queues, .. } => {
                format!("expected a table of {entries} entries over queues {}", span(*queues))
            }
            Self::KeyNotHex { bytes } | Self::KeyLength { bytes, .. } => format!("expected {bytes} bytes in hex"),
            Self::NoTransform { have } => format!("expected one of {}", have.join(" ")),
            Self::NoContext { .. } => "configure the context too".into(),
            Self::DriverChoosesPlaces => "configure the rule without loc".into(),
            Self::NoSuchPlace { places } => format!("expected locations {}", span(*places)),
            Self::PlacesFull { .. } => "name the location of a rule that it replaces".into(),
            Self::RulesNeedFeature { .. } => "expected on, or no flow rules".into(),
            Self::TooManyEntries { most } => format!("expected 0 to {most}"),
            Self::NoSysctl { have } | Self::NoPolicy { have } => format!("expected one of {}", have.join(" ")),
            Self::NotALatency => "expected microseconds, 0 for no limit, or n/a for no latency at all".into(),
            Self::BesideArticle => "use either the group or --pair-as-article".into(),
            Self::SameName => "expected a different name for each group".into(),
            Self::OtherNumber { .. } => "expected the same number, or only one of the two".into(),
            Self::InOtherGroup { .. } => "expected each queue in one group only".into(),
            Self::InterruptOfSeveralGroups { .. } => "expected all queues of one interrupt in one group".into(),
            Self::GroupSize { room, .. } => format!("expected 1 to {room} queues"),
            Self::Other(kept) => kept.right.clone(),
        }
    }
}

fn with_blanks(queues: &[u32]) -> String {
    queues.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}
