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
            Self::NoInterfaceNamed => "it belongs to an interface, and none is named".into(),
            Self::OfflineCpus { offline, of: Some(all), .. } => format!("CPUs {offline} of {all} are not online"),
            Self::OfflineCpus { offline, of: None, .. } => format!("CPUs {offline} are not online"),
            Self::NoCpus | Self::NoCpusOfGroup { .. } => "an empty list".into(),
            Self::NoSuchQueue { direction, queues: 1 } => format!("there is 1 {direction} queue"),
            Self::NoSuchQueue { direction, queues } => format!("there are {queues} {direction} queues"),
            Self::SharedInterrupt { queues, setting, by } => format!(
                "queue {} shares its interrupt and is to go to CPUs {} ({})",
                with_blanks(queues),
                setting.value_text(),
                places(by)
            ),
            Self::TooManyChannels { most } => format!("the driver has at most {most}"),
            Self::NoQueueLeft { receive, transmit } => {
                let left = [(receive, "receive"), (transmit, "transmit")].into_iter();
                let left = left.filter_map(|(n, direction)| n.map(|n| format!("{n} {direction}")));
                format!("{} queues would be left", left.collect::<Vec<_>>().join(" and "))
            }
            Self::RingSize { now, most: Some(most) } | Self::RingNumber { now, most: Some(most), .. } => {
                format!("the driver has {now} now and at most {most}")
            }
            Self::RingSize { now, most: None } | Self::RingNumber { now, most: None, .. } => {
                format!("the driver has {now} now")
            }
            Self::NoSuchFeature { .. } => "the kernel knows no such feature of this device".into(),
            Self::FeatureFixed { on, .. } => format!("it is fixed at {}", if *on { "on" } else { "off" }),
            Self::NoParameter { .. } => "the driver has no such parameter".into(),
            Self::Switch | Self::ThreadSwitch => "it is a switch".into(),
            Self::OfDeviceOnly => "the kernel sets this for a device, not for single queues".into(),
            Self::AdaptiveOverwrites { switch } => format!("{switch} is to be on and would overwrite it"),
            Self::OneInterval { driver } => format!("{driver} is known to refuse it: {}", Obstacle::OneInterval),
            Self::DriverRefuses { driver, takes, .. } => format!("{driver} is known to refuse it: it takes {takes}"),
            Self::NoFlowType { .. } => "no such flow type".into(),
            Self::NoField { letter } => format!("'{letter}' is no field"),
            Self::Table { error, .. } => error.to_string(),
            Self::KeyNotHex { .. } => "it is not bytes in hex".into(),
            Self::KeyLength { has, .. } => format!("it has {has} bytes"),
            Self::NoTransform { .. } => "there is no such transform".into(),
            Self::NoContext { context } => format!("there is no RSS context {context}"),
            Self::DriverChoosesPlaces => {
                "its driver chooses the places of rules itself and takes none of the user's".into()
            }
            Self::NoSuchPlace { places } => format!("the device has {places} places"),
            Self::PlacesFull { places } => format!("all {places} places of the device hold rules"),
            Self::RulesNeedFeature { by } => format!("flow rules are laid down too ({})", places(by)),
            Self::TooManyEntries { .. } => "more than the kernel takes".into(),
            Self::NoSysctl { .. } => "not among the sysctls that are set here".into(),
            Self::NotALatency => "not what the file takes".into(),
            Self::BesideArticle => "--pair-as-article makes groups latency and bulk of all queues".into(),
            Self::SameName => "there are two of that name".into(),
            Self::OtherNumber { number } => format!("--latency-queues, or latency_queues, says {number}"),
            Self::NoPolicy { .. } => "there is no such policy".into(),
            Self::InOtherGroup { group } => format!("group {group} has it already"),
            Self::InterruptOfSeveralGroups { queues } => {
                format!("queues {} share one interrupt", with_blanks(queues))
            }
            Self::GroupSize { queues, room } => format!(
                "there {} {}, and {room} of them can be its own",
                if *queues == 1 { "is" } else { "are" },
                plural(*queues as usize, "queue")
            ),
            Self::Other(kept) => kept.found.clone(),
        }
    }

    /// What is expected, or what to do.
    pub fn right(&self) -> String {
        match self {
            Self::Strict { .. } => "leave it out, or do without --strict".into(),
            Self::NoInterface { have } | Self::NoFlowType { have } => format!("there are {}", have.join(" ")),
            Self::NoInterfaceNamed => "name the interface".into(),
            Self::OfflineCpus { online, .. } | Self::NoCpusOfGroup { online } => format!("online are {online}"),
            Self::NoCpus => "at least one online CPU".into(),
            Self::NoSuchQueue { queues, .. } => format!("queues {}", span(*queues)),
            Self::SharedInterrupt { .. } => "one CPU set for queues of one interrupt".into(),
            Self::TooManyChannels { most } => format!("0 to {most}"),
            Self::NoQueueLeft { .. } => "at least one of each".into(),
            Self::RingSize { most: Some(most), .. } => format!("1 to {most} descriptors"),
            Self::RingSize { most: None, .. } => "1 or more descriptors".into(),
            Self::RingNumber { least, most: Some(most), .. } => format!("{least} to {most}"),
            Self::RingNumber { least, most: None, .. } => format!("{least} or more"),
            Self::NoSuchFeature { like } => format!("there is {}", like.join(", ")),
            Self::FeatureFixed { dev, .. } => {
                format!("leave it out: nobody can change it on this device ([fixed] in ethtool -k {dev})")
            }
            Self::NoParameter { has } if has.is_empty() => "it has none".into(),
            Self::NoParameter { has } => format!("it has {}", has.join(" ")),
            Self::Switch => "0 (off) or 1 (on)".into(),
            Self::ThreadSwitch => "0 (off), 1 (a thread), 2 (a thread that polls busily)".into(),
            Self::OfDeviceOnly => "the same without queues".into(),
            Self::AdaptiveOverwrites { switch } => format!("{switch} off, or no fixed value"),
            Self::OneInterval { .. } => "leave it out".into(),
            Self::DriverRefuses { nearest, .. } => format!("{nearest} is nearest"),
            Self::NoField { .. } => format!("letters of {LETTERS}, such as sdfn"),
            Self::Table { entries, queues, .. } => {
                format!("a table of {entries} entries over queues {}", span(*queues))
            }
            Self::KeyNotHex { bytes } | Self::KeyLength { bytes, .. } => format!("{bytes} bytes in hex"),
            Self::NoTransform { have } => have.join(", "),
            Self::NoContext { .. } => "lay down the context too".into(),
            Self::DriverChoosesPlaces => "the rule without loc".into(),
            Self::NoSuchPlace { places } => format!("locations {}", span(*places)),
            Self::PlacesFull { .. } => "name the location of one that it is to replace".into(),
            Self::RulesNeedFeature { .. } => "on, or no rules".into(),
            Self::TooManyEntries { most } => format!("0 to {most}"),
            Self::NoSysctl { have } if have.is_empty() => "none was read on this host".into(),
            Self::NoSysctl { have } | Self::NoPolicy { have } => format!("one of {}", have.join(" ")),
            Self::NotALatency => "microseconds, 0 for no limit, n/a for no waiting at all".into(),
            Self::BesideArticle => "the group, or --pair-as-article".into(),
            Self::SameName => "one group of each name".into(),
            Self::OtherNumber { .. } => "the same number, or one of them alone".into(),
            Self::InOtherGroup { .. } => "each queue in one group".into(),
            Self::InterruptOfSeveralGroups { .. } => "queues of one interrupt in one group".into(),
            Self::GroupSize { room, .. } => format!("1 to {room} queues"),
            Self::Other(kept) => kept.right.clone(),
        }
    }
}

fn with_blanks(queues: &[u32]) -> String {
    queues.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}
