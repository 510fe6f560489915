//! The texts of obstacles.

use std::fmt;

use ringwise_knob::learned::What;
use ringwise_knob::{configured_in, rules};
use ringwise_model::words::{article, plural};
use ringwise_model::{RingKind, RingPart, User};

use super::{AfterChange, Obstacle};

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self))
    }
}

fn text(o: &Obstacle) -> String {
    use Obstacle as O;
    match o {
        O::Software { kind } => format!("{} has no queues of its own", article(kind)),
        O::UserspaceDriver { driver } => format!("held by user-space driver {driver}"),
        O::LiesOn { obstacle, below } => {
            format!("{obstacle}; it lies on {}: plan that instead", below.join(" "))
        }
        O::ChannelsInUse { by } => format!("channels only: in use by {}", users(by)),
        O::InUse { by } => format!("in use by {}", users(by)),
        O::LeftAlone { obstacle } => format!("the interface is left alone: {obstacle}"),
        O::NotReadable { unread } => format!("not readable, so it could not be put back: {unread}"),
        O::NotReadableStays { unread } => format!("not readable, so it stays as it is: {}", unread.why),
        O::ChannelCountsUnread { unread } => format!("its channel counts could not be read: {unread}"),
        O::QueueModerationUnread { unread } => format!("whether the driver has it could not be read: {unread}"),
        O::FlowRulesUnread { unread } => {
            format!("whether the driver takes any could not be read ({unread}), so no flow is led to a group")
        }
        O::TableUnread { unread } => {
            format!("the RSS table could not be read ({unread}): other flows may reach every queue")
        }
        O::Learned { what: What::Refused { errno, words } } => {
            format!("refused before on this kernel (errno {errno}): {words}")
        }
        O::Learned { what: What::Ignored { got } } => {
            format!("accepted before and ignored on this kernel: it read back {}", got.value_text())
        }
        O::Instead { obstacle, instead } => format!("{obstacle}; {} in its place", instead.value_text()),
        O::Configured { obstacle, by } => format!("{obstacle} ({})", configured_in(by)),
        O::AfterChannelChange { whose } => {
            let whose = match whose {
                AfterChange::Table => "its queues",
                AfterChange::Named => "they",
            };
            format!("{whose} exist only after the channel change that was left out (--allow-disruption)")
        }
        O::NoChannelCountHas { queues } => {
            format!("the driver has no channel count that can be set; it has {queues}")
        }
        O::NoChannels { kind } => format!("the driver has no {kind} channels"),
        O::RuleNeedsQueue { dev, location, rule, queues, more } => {
            let more = if *more > 0 { format!(", and {more} more") } else { String::new() };
            format!(
                "flow rule {location} ({}) sends to a queue that {queues} would not have{more}: delete it (ethtool -N {dev} \
                 delete {location}), or lay down another one in its place",
                rules::text(rule)
            )
        }
        O::BondKeepsLayout { bond, dev, queues } => format!(
            "{bond} keeps one layout for all its members, and {dev} stays at {}",
            plural(*queues as usize, "queue")
        ),
        O::NoRing { kind } => match RingPart::of(kind).map(|p| p.kind) {
            None | Some(RingKind::Size) => format!("the driver reports no {kind} ring"),
            Some(_) => format!("the driver reports no {kind}"),
        },
        O::PauseFramesForRdma { device } => format!("RDMA ({device}) may live by them; they stay"),
        O::FeatureFixed { on } => format!("fixed at {}: nobody can change it", if *on { "on" } else { "off" }),
        O::NoParameter { policy } => format!("the driver has no such parameter; policy {policy} would set it"),
        O::NoParameterOfQueue { policy } => {
            format!("the driver has no such parameter of a queue; policy {policy} would set it")
        }
        O::OnePolicyForAll { policy } => format!(
            "the driver moderates the device as a whole, and the kernel cannot defer single NAPI instances here (Linux 6.13 \
             and later, with some drivers): policy {policy} holds for all queues"
        ),
        O::NoNapiOfDevice { missing } => format!("this kernel has no {} for the device", missing.join(", ")),
        O::NoNapiOfInstance { missing } => format!("this kernel has no {} for one instance", missing.join(", ")),
        O::QueueCountUnknown { direction } => format!("the number of its {direction} queues is unknown"),
        O::PairNodeUnknown { dev } => {
            format!("--pair-as-article needs a device whose node is known; that of {dev} is not")
        }
        O::PairImmovable { dev } => {
            format!("--pair-as-article needs interrupts that can be moved; not all of {dev} can")
        }
        O::PairLatencyQueues { dev, latency, queues } => format!(
            "--pair-as-article with {}: {dev} has {}, so 1 to {}",
            plural(*latency as usize, "latency queue"),
            plural(*queues as usize, "queue"),
            queues.saturating_sub(1)
        ),
        O::PairNeedsCpus { dev, half, queues, cpus } => format!(
            "--pair-as-article gives every queue its own CPU: {half} of {dev}'s {queues} queues would go to a node with {}",
            plural(*cpus as usize, "usable CPU")
        ),
        O::Immovable { why } => why.to_string(),
        O::FlowsNotFound { why } => why.to_string(),
        O::Other(kept) => kept.why.clone(),
        O::NotNamed => "not named".into(),
        O::Loopback => "the loopback has no queues of its own".into(),
        O::NoQueues => "it has no queues of its own".into(),
        O::NoQueuesRead => "no queues could be read".into(),
        O::NoDriver => "it has no driver".into(),
        O::KindUnknown => "its kind could not be told, nor its interrupts".into(),
        O::LinkDown => "link down".into(),
        O::LinkDownNoInterrupts => "its link is down, and it has no queue interrupts before it is up".into(),
        O::NotThere => "it does not exist here".into(),
        O::NoAffinityFile => "its affinity file does not exist".into(),
        O::InterruptsUnknown => "which interrupts serve them is not known".into(),
        O::InterruptCpusUnknown => "where its interrupts go is not known".into(),
        O::NoChannelCount => "the driver has no channel count that can be set".into(),
        O::NoRingSizes => "the driver has no ring sizes to set".into(),
        O::NoPauseFrames => "the driver has no pause frames to set".into(),
        O::NoFeatures => "the device tells no features".into(),
        O::NoSuchFeature => "the device has none".into(),
        O::FeatureDepends => {
            "wanted already, but off: something that it depends on is off (checksums, scatter-gather)".into()
        }
        O::NoModerationSet => "the driver has none that can be set".into(),
        O::NoModeration => "the driver has no interrupt moderation to set".into(),
        O::NoAdaptive => "the driver has none; its fixed interval stays".into(),
        O::ModeratesAsWhole => "the driver moderates the device as a whole, not single queues".into(),
        O::OneInterval => "one interrupt serves receive and transmit, and rx-usecs is its interval".into(),
        O::ModerationConfigured => {
            "the driver moderates the device as a whole, and its moderation is laid down beside the groups: that holds \
             for all queues"
                .into()
        }
        O::NoModerationNoDeferral => {
            "the driver has no interrupt moderation to set, and the kernel cannot defer single NAPI instances here"
                .into()
        }
        O::NoNapi => "this kernel has no NAPI settings".into(),
        O::NoNapiInstances => {
            "this kernel or driver has no settings of single NAPI instances (Linux 6.13 and later)".into()
        }
        O::NoResumeLatency => "this kernel has no pm_qos_resume_latency_us".into(),
        O::NoRss => "the device has no RSS".into(),
        O::NoRssTable => "the device has no RSS table".into(),
        O::NoHashFunction => "the device has no hash function to set".into(),
        O::NoHashKey => "the device has no hash key to set".into(),
        O::NoSymmetric => "this kernel has no symmetric transforms (Linux 6.8 and later)".into(),
        O::HashFieldsUnread => "which fields are hashed could not be read, so it could not be put back".into(),
        O::NoContexts => "the driver has no RSS contexts".into(),
        O::NoContextForGroup => "the driver has no RSS contexts: each rule leads to one queue of the group".into(),
        O::NoFlowRules => "the driver takes no flow rules".into(),
        O::NoFlowRulesForGroup => "the driver takes none, so no flow can be led to a group".into(),
        O::FlowRulesFull => "all places of the device hold rules".into(),
        O::NoTableForGroups => "the device has none: where other flows go is the driver's choice".into(),
        O::NoRps => "this kernel is built without RPS".into(),
        O::OneTransmitQueue => "a device with one transmit queue has no XPS".into(),
        O::NoXpsFile => "this kernel shows no xps_cpus for it".into(),
        O::NoSysctl => "this kernel has no such sysctl".into(),
        O::NoFile => "this kernel has no such file".into(),
        O::PairNeedsPlaces => "--pair-as-article needs --far-node ok --smt all".into(),
        O::PairNeedsNodes => "--pair-as-article needs two nodes with usable CPUs".into(),
    }
}

fn users(all: &[User]) -> String {
    let one = |u: &User| match u {
        User::Xdp { mode, .. } => format!("an XDP program ({mode} mode)"),
        User::AfXdp { queue } => format!("an AF_XDP socket on queue {queue}"),
        User::Rdma { device } => format!("RDMA device {device}"),
        User::Userspace { driver } => format!("user-space driver {driver}"),
        User::Ovs => "Open vSwitch".to_string(),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}
