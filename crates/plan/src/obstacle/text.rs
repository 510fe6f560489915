//! The texts of obstacles.

use std::fmt;

use ringwise_knob::learned::LearnedWrite;
use ringwise_knob::{configured_in, rules};
use ringwise_model::words::{article, plural, visible};
use ringwise_model::{RingKind, RingPart, User, errno};

use super::{AfterChange, Obstacle};

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self))
    }
}

fn text(o: &Obstacle) -> String {
    use Obstacle as O;
    match o {
        O::Software { kind } if kind == "other" => "a software interface has no queues of its own".into(),
        O::Software { kind } => format!("{} has no queues of its own", article(kind)),
        O::UserspaceDriver { driver } => format!("bound to user-space driver {driver}"),
        O::OtherNamespace { driver } => format!("driver {driver}, in another network namespace"),
        O::NoInterface { driver } => format!("driver {driver}, without an interface"),
        O::LiesOn { obstacle, below } => {
            format!("{obstacle}; plan the interface below it instead: {}", below.join(" "))
        }
        O::ChannelsInUse { by } => format!("only its channels are skipped: in use by {}", users(by)),
        O::InUse { by } => format!("in use by {}", users(by)),
        O::TableReachesUser { by } => {
            format!("the table would send further flows to a queue in use by {}", users(by))
        }
        O::LeftAlone { obstacle } => format!("the interface is skipped: {obstacle}"),
        O::NotReadable { unread } => format!("not readable, so left unchanged: {unread}"),
        O::NotReadableStays { unread } => format!("not readable, so left unchanged: {}", unread.why),
        O::ChannelCountsUnread { unread } => format!("its channel counts could not be read: {unread}"),
        O::QueueModerationUnread { unread } => format!("could not read whether the driver supports it: {}", visible(&unread.why)),
        O::FlowRulesUnread { unread } => {
            format!("could not read whether the driver supports them ({unread}), so no flow is steered to a group")
        }
        O::TableUnread { unread } => {
            format!("the RSS table could not be read ({unread}): other flows may reach every queue")
        }
        O::Learned { what: LearnedWrite::Refused { errno, words } } => {
            let name = errno::name(*errno).map_or_else(|| format!("errno {errno}"), str::to_string);
            format!("refused before on this kernel ({name}): {words}")
        }
        O::Learned { what: LearnedWrite::Ignored { got } } => {
            format!("accepted before on this kernel, but without effect: it read back as {}", got.value_text())
        }
        O::Learned { what: LearnedWrite::LinkWentDown { .. } } => "the link went down for it before on this kernel".into(),
        O::Instead { obstacle, instead } => format!("{obstacle}; {} instead", instead.value_text()),
        O::Configured { obstacle, by } => format!("{obstacle} ({})", configured_in(by)),
        O::RulesNeedRestart => "they need ntuple, and this driver may restart the device when it is switched, which was skipped \
                                (--allow-disruption permits it)"
            .into(),
        O::AfterChannelChange { whose } => {
            let whose = match whose {
                AfterChange::Table => "its queues",
                AfterChange::Named => "they",
            };
            format!("{whose} exist only after the channel change, which was skipped (--allow-disruption permits it)")
        }
        O::NoChannelCountHas { queues } => {
            format!(
                "the driver does not support changing the number of channels; the interface has {}",
                plural(*queues as usize, "queue")
            )
        }
        O::NoChannels { kind } => format!("the driver has no {kind} channels"),
        O::RuleNeedsQueue { dev, location, rule, queues, more } => {
            let more = if *more > 0 { format!(" (and {more} more)") } else { String::new() };
            format!(
                "flow rule {location} ({}) steers to a queue that would not exist with {}{more}: delete it (ethtool -N {dev} \
                 delete {location}), or configure another rule in its place",
                rules::text(rule),
                plural(*queues as usize, "queue")
            )
        }
        O::BondKeepsLayout { bond, dev, queues } => format!(
            "all members of {bond} have the same layout, and {dev} stays at {}",
            plural(*queues as usize, "queue")
        ),
        O::NoRing { kind } => match RingPart::of(kind).map(|p| p.kind) {
            Some(RingKind::Mode) => format!("{kind} is off, and the kernel does not show whether the driver has it"),
            None | Some(RingKind::Size) => format!("the driver reports no {kind} ring"),
            Some(_) => format!("the driver reports no {kind}"),
        },
        O::PauseFramesForRdma { device } => format!("RDMA device {device} may depend on them, so they stay as they are"),
        O::FeatureFixed { on } => format!("fixed at {} by the driver", if *on { "on" } else { "off" }),
        O::NotAmongParameters { has } if has.is_empty() => "not supported by the driver, which supports none".into(),
        O::NotAmongParameters { has } => format!("not supported by the driver, which supports {}", has.join(" ")),
        O::NoParameter { policy } => format!("not supported by the driver; policy {policy} would set it"),
        O::NoParameterOfQueue { policy } => {
            format!("not supported by the driver for single queues; policy {policy} would set it")
        }
        O::OnePolicyForAll { policy } => format!(
            "the driver moderates only the whole device, and the kernel cannot defer interrupts of single NAPI instances here \
             (needs Linux 6.13 or later, and support by the driver): policy {policy} applies to all queues"
        ),
        O::NoNapiOfDevice { missing } => format!("this kernel has no {} for the device", missing.join(", ")),
        O::NoNapiOfInstance { missing } => format!("this kernel has no {} for single NAPI instances", missing.join(", ")),
        O::QueueCountUnknown { direction } => format!("the number of its {direction} queues is unknown"),
        O::PairNodeUnknown { dev } => {
            format!("--pair-as-article needs a device whose node is known; the node of {dev} is unknown")
        }
        O::PairImmovable { dev } => {
            format!("--pair-as-article needs interrupts that can be moved; some interrupts of {dev} cannot be moved")
        }
        O::PairLatencyQueues { dev, latency, queues } => format!(
            "--pair-as-article with {}: {dev} has {}; expected 1 to {}",
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
        O::Loopback => "the loopback interface has no queues of its own".into(),
        O::NoQueues => "it has no queues of its own".into(),
        O::NoQueuesRead => "its queues are unknown".into(),
        O::NoDriver => "no kernel driver is bound to it".into(),
        O::KindUnknown => "its kind and its interrupts are unknown".into(),
        O::LinkDown => "link down".into(),
        O::LinkDownNoInterrupts => "its link is down, and it has no queue interrupts until the link is up".into(),
        O::NotThere => "it does not exist on this host".into(),
        O::NoAffinityFile => "its affinity file (smp_affinity_list) does not exist".into(),
        O::InterruptsUnknown => "the interrupts of these queues are unknown".into(),
        O::InterruptCpusUnknown => "the CPUs of its interrupts are unknown".into(),
        O::NoChannelCount => "the driver does not support changing the number of channels".into(),
        O::NoRingSizes => "the driver does not support setting ring sizes".into(),
        O::NoNodeMemory { why } => {
            let why = why.as_ref().map_or_else(String::new, |u| format!(" ({u})"));
            format!("the largest safe size cannot be computed, because the memory of the device's node is unknown{why}; configure a number")
        }
        O::NoPauseFrames => "the driver does not support setting pause frames".into(),
        O::NoFeatures => "the device reports no features".into(),
        O::NoSuchFeature => "not supported by the device".into(),
        O::FeatureDepends => {
            "requested already, but a feature that it depends on is off (checksums, scatter-gather)".into()
        }
        O::NoModerationSet => "not supported by the driver".into(),
        O::NoModeration => "the driver does not support interrupt moderation".into(),
        O::NoAdaptive => "not supported by the driver; its fixed interval stays".into(),
        O::ModeratesAsWhole => "the driver moderates only the whole device, not single queues".into(),
        O::OneInterval => "one interrupt serves receive and transmit, and rx-usecs is its interval".into(),
        O::ModerationConfigured => {
            "the driver moderates only the whole device, and its moderation is configured in addition to the groups: that \
             value applies to all queues"
                .into()
        }
        O::NoModerationNoDeferral => {
            "the driver does not support interrupt moderation, and the kernel cannot defer interrupts of single NAPI \
             instances here"
                .into()
        }
        O::NoNapi => "this kernel has no NAPI settings".into(),
        O::NoNapiInstances => {
            "this kernel or driver has no settings for single NAPI instances (needs Linux 6.13 or later)".into()
        }
        O::NoResumeLatency => "this kernel has no file pm_qos_resume_latency_us".into(),
        O::NoRss => "the device has no RSS".into(),
        O::NoRssTable => "the device has no RSS table".into(),
        O::NoHashFunction => "the hash function of the device cannot be set".into(),
        O::NoHashKey => "the hash key of the device cannot be set".into(),
        O::NoSymmetric => "this kernel has no symmetric transforms (needs Linux 6.8 or later)".into(),
        O::HashFieldsUnread => "the hashed fields could not be read, so they stay unchanged".into(),
        O::NoContexts => "the driver has no RSS contexts".into(),
        O::NoContextForGroup => "the driver has no RSS contexts: each rule steers to one queue of the group".into(),
        O::NoFlowRules => "the driver does not support flow rules".into(),
        O::NoFlowRulesForGroup => "not supported by the driver, so no flow can be steered to a group".into(),
        O::FlowRulesFull => "all rule locations of the device are in use".into(),
        O::NoTableForGroups => "the device has none: the driver distributes the other flows".into(),
        O::NoRps => "this kernel is built without RPS".into(),
        O::OneTransmitQueue => "a device with one transmit queue has no XPS".into(),
        O::NoXpsFile => "this kernel has no file xps_cpus for it".into(),
        O::ClassesUnread { unread } => format!("its traffic classes could not be read, and XPS works within a class: {unread}"),
        O::ClassesNeedQueues { need, queues } => format!(
            "its traffic classes need {}, and the plan leaves {queues}: change the classes first",
            plural(*need as usize, "transmit queue")
        ),
        O::ClassInterruptCpusUnknown { class } => {
            format!("it is unknown which CPUs handle the interrupts of traffic class {class}")
        }
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
        User::Dmabuf { queue, .. } => format!("a DMA buffer (devmem) on queue {queue}"),
        User::IoUring { queue } => format!("io_uring zero copy on queue {queue}"),
        User::Lease { queue, .. } => format!("a virtual interface that leases queue {queue}"),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}
