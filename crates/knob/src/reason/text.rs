//! The text of each reason in a plan.

use std::fmt;

use ringwise_model::ConfiguredBy;
use ringwise_model::words::plural;

use super::{BanLossCause, MoveCause, Reason, ReplacedValue, ResetBy, SideEffect};
use crate::coalesce;

const ADAPTIVE_OFF: &str = "adaptive moderation is switched off first, because it would overwrite the value";
const NEAREST: &str = "give each CPU the transmit queue with the nearest interrupt";

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self))
    }
}

/// `configured in FILE line 3, by --set eth0.rings.rx=512`
pub fn configured_in(by: &[ConfiguredBy]) -> String {
    let place = |by: &ConfiguredBy| match by {
        ConfiguredBy::Argument { .. } | ConfiguredBy::Flag { .. } => format!("by {by}"),
        ConfiguredBy::InEffect => "by the settings in effect".to_string(),
        _ => format!("in {by}"),
    };
    format!("configured {}", by.iter().map(place).collect::<Vec<_>>().join(", "))
}

impl Reason {
    /// The reason for several interrupts, which may differ in their present CPU. `None`: there is no such text for this reason.
    pub fn of_several(&self) -> Option<String> {
        use Reason as R;
        Some(match self {
            R::ExcludedCpu { .. } => "their CPUs are excluded from queue interrupts".into(),
            R::FarNode { dev, node: Some(node) } => format!("their CPUs are on node {node}, remote from {dev}"),
            R::CoreNotUsed { goal, .. } => {
                format!("goal {goal} uses fewer cores for queues, and not those of their CPUs")
            }
            R::SecondThread { .. } => {
                "their CPUs are second hardware threads, and this plan uses one thread of each core".into()
            }
            R::PartOfCore { .. } => {
                "the other hardware threads of their cores are excluded from queue interrupts".into()
            }
            _ => return None,
        })
    }
}

fn text(r: &Reason) -> String {
    use Reason as R;
    match r {
        R::NewQueue => "a new queue pair gets its own CPU as long as CPUs are left".into(),
        R::CpuUnknown => "its current CPU is unknown; pin it to one".into(),
        R::IsolatedCpu { cpu } => format!("interrupts disturb what runs on isolated CPU {cpu}"),
        R::FreeToMove { among, arrived: true, .. } => {
            format!("already on the right CPU, but free to move among CPUs {among}: pin it")
        }
        R::FreeToMove { among, moved, .. } => {
            let why = moved.map_or_else(String::new, |why| format!("; {}", move_cause(why)));
            format!("may run on any of CPUs {among}: pin it to one{why}")
        }
        R::PinAsOnOtherPorts { among } => format!(
            "may run on any of CPUs {among}: pin it to the CPU of this queue number on all ports of its node, so that a \
             forwarded packet stays on it"
        ),
        R::FarNode { dev, node } => match node {
            Some(node) => format!("its CPU is on node {node}, remote from {dev}"),
            None => format!("its CPU is on an unknown node, not on that of {dev}"),
        },
        R::MostOnOneCpu { dev, cpu, queues, of, pending: None } => {
            format!("CPU {cpu} handles {queues} of {dev}'s {of} queue interrupts")
        }
        R::MostOnOneCpu { dev, cpu, queues, of, pending: Some(pending) } if pending >= queues => {
            format!("{queues} of {dev}'s {of} queue interrupts are set to CPU {cpu}, but not delivered there yet")
        }
        R::MostOnOneCpu { dev, cpu, queues, of, pending: Some(pending) } => {
            let (there, are) = (queues.saturating_sub(*pending), if *pending == 1 { "is" } else { "are" });
            let handles = format!("CPU {cpu} handles {there} of {dev}'s {of} queue interrupts");
            format!("{handles}, and {pending} more {are} set to it but not delivered there yet")
        }
        R::QueuesShareCpu { dev, cpu, queues, pending } => {
            let yet = |n| format!(" ({n} of them set to it, but not delivered there yet)");
            format!("{queues} queues of {dev} share CPU {cpu}{}", pending.map_or_else(String::new, yet))
        }
        R::QueuesShareCore => "its core has another queue, while another local or nearby core has none".into(),
        R::CrowdedCpu => "counted over all interfaces, its CPU has more queues than the new one".into(),
        R::ExcludedCpu { cpu } => format!("CPU {cpu} is excluded from queue interrupts"),
        R::CoreNotUsed { goal, cpu } => {
            format!("goal {goal} uses fewer cores for queues, and not the core of CPU {cpu}")
        }
        R::SecondThread { cpu, .. } => {
            format!("CPU {cpu} is a second hardware thread, and this plan uses one thread of each core")
        }
        R::PartOfCore { cpu } => {
            format!("the other hardware thread of CPU {cpu}'s core is excluded from queue interrupts")
        }
        R::SlowerCore { cpu, planned } => format!("CPU {cpu} is on a slower core than CPU {planned}"),
        R::DistantNode { cpu, planned } => format!("CPU {cpu} is on a more distant node than CPU {planned}"),
        R::CpuOfOtherGroup { cpu } => format!("CPU {cpu} handles a queue of another group"),
        R::CpuOfOtherQueue { cpu, queue } => format!("the plan gives CPU {cpu} to queue {queue}"),
        R::CpuForInterface { cpu, other } => format!("the plan gives CPU {cpu} to a queue of {other}"),
        R::SameNumberOneCpu => "queues with the same number share a CPU, so that a forwarded packet stays on it".into(),
        R::CrowdedCache { dev } => format!("its L3 cache serves more queues of {dev} than that of the planned CPU"),
        R::CpuOfOtherInterface { other, node } => {
            let planned = node.map_or_else(|| "remote".to_string(), |n| format!("on remote node {n}"));
            format!("{other} gets its CPU, and no other local CPU that --smt allows is free: the planned CPU is {planned}")
        }
        R::LessLoaded { planned } => format!("CPU {planned} is less loaded, given where the other queues are now"),
        R::BusyInSample { planned } => {
            format!("by the packets that each queue received in the sample, CPU {planned} makes the load of the cores more even")
        }
        R::QueuesOfOneNumber => "queues of this number of other interfaces get other CPUs: packets without a hash arrive on all of them".into(),
        R::ConfiguredForItsCpu => "its CPU sends through a queue whose XPS CPUs you configured".into(),
        R::RemoteRequested => "remote CPUs handle queues too, as requested (--far-node ok)".into(),
        R::PlacedForCount { queues } => {
            format!("placed for the new number of queues: {}", plural(*queues as usize, "queue"))
        }
        R::OneQueue { cpu, helpers } => {
            let at = cpu.map_or_else(|| "one CPU".to_string(), |c| format!("CPU {c}"));
            let s = if helpers.len() == 1 { "" } else { "s" };
            format!(
                "one receive queue: {at} handles its interrupt, and RPS uses CPU{s} {helpers}, the nearest outside its core"
            )
        }
        R::RpsNotForGoal => {
            "RPS adds an inter-processor interrupt to each packet burst; this goal needs the shortest path".into()
        }
        R::NoHelper => "there is no other nearby CPU that RPS could use".into(),
        R::QueuesCoverCores { queues, cores } => format!(
            "{queues} queues already cover {}; RPS would add an inter-processor interrupt for each packet burst",
            if *cores == 1 { "the local core".into() } else { format!("all {cores} local cores") }
        ),
        R::DeviceSpreads { queues } => format!(
            "the device already spreads flows over {queues} queues; RPS adds an inter-processor interrupt for each packet burst"
        ),
        R::RfsNoGain => {
            "this goal does not benefit from RFS; without RFS, the kernel saves a lookup for each packet".into()
        }
        R::RfsManyConnections { entries } => {
            format!("RFS processes packets on the CPU of their program: {entries} entries, for many connections")
        }
        R::RfsLongFlows { entries } => format!(
            "RFS processes packets on the CPU of their program: {entries} entries are enough for few long flows and stay in \
             the cache"
        ),
        R::RfsOff => "RFS is off for this goal".into(),
        R::RfsShare { entries, queues } => {
            let queues = plural(*queues as usize, "queue");
            format!("{entries} entries divided among {queues}, rounded down to a power of two")
        }
        R::AcceleratedRfs { driver } => format!(
            "accelerated RFS: the device steers each flow to the queue of its program's CPU; driver {driver} is known to \
             support it, but its map of CPUs to queues cannot be read"
        ),
        R::QueueWithoutCpu { queues, cpus } => format!(
            "{} for {}: every CPU already has one",
            plural(*queues as usize, "transmit queue"),
            plural(*cpus as usize, "CPU")
        ),
        R::NoXps { queues } => format!("no XPS on {queues} transmit queues: {NEAREST}"),
        R::NearestQueue => NEAREST.into(),
        R::NearestKnownQueue => format!("{NEAREST}, as far as the CPUs of the interrupts are known"),
        R::ThreadWithInterrupt => "a NAPI thread polls this queue: it runs on the CPU of the queue's interrupt".into(),
        R::RestartForgetsBan => {
            "irqbalance loses its bans when it restarts; a policy script makes the restarted irqbalance ignore these interrupts"
                .into()
        }
        R::IrqbalanceMoves { interval_s, forgets } => {
            let every = interval_s.map_or_else(|| "soon".to_string(), |n| format!("within {n} s"));
            let after = match forgets {
                None => String::new(),
                Some(why) => {
                    let why = match why {
                        BanLossCause::UnitFixed => "ringwise cannot extend its systemd unit",
                        BanLossCause::NotByUnit => "systemd did not start it",
                    };
                    format!("; {why}, so a restart loses the ban: ringwise verify reports that, apply fixes it")
                }
            };
            format!("irqbalance would move these interrupts {every}{after}")
        }
        R::UntilBanned => "already on this CPU when planned, but irqbalance may move it until it is banned".into(),
        R::QueuesRequested { .. }
        | R::FewestQueues { .. }
        | R::OneQueueACpu { .. }
        | R::OneQueueACore { .. }
        | R::OneQueueAPermittedCpu { .. } => count(r),
        R::OnlyMember { dev, bond } => {
            format!("{dev} is the only member that carries traffic of {bond}: the change would cut {bond} off")
        }
        R::LroBreaksForwarding => {
            "packets merged by LRO cannot be forwarded as they came, so the kernel drops them".into()
        }
        R::GroJoins => "GRO merges packets of a stream before the network stack processes them".into(),
        R::TsoCuts => "the device, not the CPU, splits long sends into packets".into(),
        R::PauseStopsLink => {
            "one slow queue makes the NIC send pause frames, which stop the whole link; a router should drop packets instead".into()
        }
        R::DeepSleep { usecs } => {
            format!("a CPU in a deeper sleep state needs longer to wake up than the {usecs} us that a packet may wait")
        }
        R::Policy { policy, when, moved, adaptive_off } => {
            let off = "; adaptive moderation is switched off first, because it would overwrite the values";
            format!("policy {policy}: {when}{}{}", nearest(moved), if *adaptive_off { off } else { "" })
        }
        R::Adaptive { own_mode } => {
            let own = match own_mode.is_empty() {
                true => String::new(),
                false => format!(" ({} selects its own adaptive mode)", coalesce::text(own_mode)),
            };
            format!("for requests that arrive singly and in bursts, the driver adapts the interval to the load{own}")
        }
        R::TableByCapacity => {
            "each queue gets a share that matches its CPU: queues of one CPU share it, and two threads of a core carry a third \
             more than one (modelled)"
                .into()
        }
        R::GroupPolicy { policy, group, when, busy_percent } => {
            format!("policy {policy} of group {group}: {when}{}", measured(*busy_percent))
        }
        R::GroupPolicyByNapi { policy, group, busy_percent } => format!(
            "policy {policy} of group {group}, through NAPI: the driver moderates only the whole device{}",
            measured(*busy_percent)
        ),
        R::GroupPolicyForAll { policy, deferred, moved, busy_percent } => {
            let how = match deferred {
                true => {
                    "the device interrupts at once, and NAPI defers interrupts for groups that can wait: the driver cannot \
                     moderate single queues"
                }
                false => {
                    "one policy for the device, that of the largest group: the driver cannot moderate single queues"
                }
            };
            format!("policy {policy}: {how}{}{}", measured(*busy_percent), nearest(moved))
        }
        R::AdaptiveOffFirst => {
            "adaptive moderation is switched off first, because it would overwrite fixed values".into()
        }
        R::TableOfGroup { group } => format!("a separate RSS table for the queues of group {group}"),
        R::OtherRuleForFlow => "another rule matches the same flow".into(),
        R::FlowOfGroup { group } => format!("steers a flow to group {group}"),
        R::RulesNeedFeature => "flow rules need it".into(),
        R::SharesOfGroups => "shares of the groups in the RSS table".into(),
        R::RuleQueuesKeptFree => "flows that match no rule stay off the queues that get their flows by rules".into(),
        R::NoFlowsNamed => "no flow is named for a group, so the RSS table uses every queue".into(),
        R::FlowNotLed { transaction } => {
            format!("no group uses this flow any more; transaction {transaction} added the rule")
        }
        R::NotNeededByGroup { transaction } => {
            format!("no group needs it any more; transaction {transaction} created it")
        }
        R::TableBeforeShares { transaction } => {
            format!("the table from before transaction {transaction}, which gave the queues different shares")
        }
        R::Configured { by, with } => {
            let with = match with {
                None => "",
                Some(SideEffect::AdaptiveOff) => ADAPTIVE_OFF,
                Some(SideEffect::RulesMayGo) => "many drivers then delete the existing flow rules",
                Some(SideEffect::RulesNeedIt) => "flow rules need it",
            };
            format!("{}{}{with}", configured_in(by), if with.is_empty() { "" } else { "; " })
        }
        R::OfConfiguredGroup { reason, by } => format!("{reason} ({})", configured_in(std::slice::from_ref(by))),
        R::UnevenLoad { before_percent, predicted_percent } => format!(
            "the busiest CPU spends {before_percent} % of its time on packets, predicted with these entries: \
             {predicted_percent} %"
        ),
        R::InterruptOnBusyCpu { cpu, before_percent, predicted_percent } => format!(
            "CPU {cpu}, which serves the queue, is busy for {before_percent} % of its time, predicted with this CPU: \
             {predicted_percent} %"
        ),
        R::MaskWithBusyCpu { cpu, before_percent, predicted_percent } => format!(
            "CPU {cpu}, which processes the packets of the queue, is busy for {before_percent} % of its time, predicted with \
             these CPUs: {predicted_percent} %"
        ),
        R::XpsFollowsInterrupt { cpu } => format!("the interrupt of a queue moves to CPU {cpu}, and XPS follows it"),
        R::GroupsFollowTraffic { latency_queues, policy } => format!(
            "for the traffic at present: {} for latency, policy {policy} for the bulk queues",
            plural(*latency_queues as usize, "queue")
        ),
        R::MoveTakenBack => "the last change did not help as predicted".into(),
        R::BeforeUnevenLoad { transaction } => format!("as before transaction {transaction}, which followed the load"),
        R::AppliedBefore { transaction } => format!("as applied in transaction {transaction}"),
        R::Adopted => "changed outside ringwise and adopted: it stays".into(),
        R::Reset { by, reason } => {
            let by = match by {
                ResetBy::Channels => "channel change",
                ResetBy::Rings => "ring change",
                ResetBy::Coalesce => "change of the whole device's moderation",
            };
            format!("already as planned, but the earlier {by} may reset it ({reason})")
        }
        R::CpuWasOffline { transaction } => {
            format!("transaction {transaction} had to skip it while a CPU was offline")
        }
        R::Undone { transaction: None } => "as first found since boot".into(),
        R::Undone { transaction: Some(id) } => format!("as before transaction {id}"),
        R::Text(text) => text.clone(),
        R::Other(value) => value.get("text").and_then(|t| t.as_str()).map_or_else(|| value.to_string(), str::to_string),
    }
}

fn move_cause(why: MoveCause) -> &'static str {
    match why {
        MoveCause::ExcludedCpu => "the CPU that it is on now is excluded from queue interrupts",
        MoveCause::CoreNotUsed => "the goal uses fewer cores for queues",
        MoveCause::SecondThread => "it is on a second hardware thread now, and this plan uses one thread of each core",
        MoveCause::PartOfCore => "the other hardware thread of its core is excluded from queue interrupts",
        MoveCause::SlowerCore => "it is on a slower core now",
        MoveCause::DistantNode => "it is on a more distant node now",
        MoveCause::CpuOfOtherGroup => "the CPU that it is on now handles a queue of another group",
        MoveCause::CpuOfOtherInterface => {
            "another interface gets its CPU, and no other local CPU that --smt allows is free: the planned CPU is remote"
        }
        MoveCause::CrowdedCache => "its L3 cache serves more queues than that of the planned CPU",
        MoveCause::RemoteRequested => "remote CPUs handle queues too, as requested (--far-node ok)",
        MoveCause::BothDirections => "both interrupts of a queue use one CPU",
        MoveCause::BusyInSample => "CPUs are assigned by the packets that each queue received in the sample",
        MoveCause::QueuesOfOneNumber => "queues of this number of other interfaces get other CPUs",
        MoveCause::SpreadEvenly => "all queues are placed together, evenly over the cores",
    }
}

fn count(r: &Reason) -> String {
    let queues = |now: u32| plural(now as usize, "queue");
    let leave = |now: u32| if now == 1 { "leaves" } else { "leave" };
    match r {
        Reason::QueuesRequested { queues: asked, now } => {
            let (was, is) = (if *asked == 1 { "was" } else { "were" }, if *now == 1 { "is" } else { "are" });
            format!("{} {was} requested; now there {is} {now}", queues(*asked))
        }
        Reason::FewestQueues { cores } => {
            if *cores < 4 {
                format!("few queues, for low delay: one on each of the {cores} usable local cores")
            } else {
                format!("few queues, for low delay: on half of the {cores} usable local cores")
            }
        }
        Reason::OneQueueACpu { now, cpus } if now > cpus => format!(
            "one queue per CPU: {} for the {} of its node; each queue costs interrupts",
            queues(*now),
            plural(*cpus as usize, "usable CPU")
        ),
        Reason::OneQueueACpu { now, cpus } => format!(
            "one queue per CPU: {} {} {} of the {cpus} usable CPUs of its node idle",
            queues(*now),
            leave(*now),
            cpus - now
        ),
        Reason::OneQueueAPermittedCpu { now, cpus } => format!(
            "one queue per CPU that the options permit: {} for {}; each queue costs interrupts",
            queues(*now),
            plural(*cpus as usize, "CPU")
        ),
        Reason::OneQueueACore { now, cores } if now > cores => format!(
            "one queue per physical core: {} for the {} of its node; each queue costs interrupts",
            queues(*now),
            plural(*cores as usize, "usable core")
        ),
        Reason::OneQueueACore { now, cores } => {
            let idle = cores - now;
            format!(
                "one queue per physical core: {} {} {idle} of the {cores} usable cores of its node idle",
                queues(*now),
                leave(*now)
            )
        }
        _ => String::new(),
    }
}

/// How busy the CPUs of a group were in a sample.
fn measured(busy_percent: Option<u32>) -> String {
    busy_percent.map_or_else(String::new, |busy| format!("; the CPUs of its queues were {busy} % busy in the sample"))
}

/// `; rx-usecs 10 us instead of the policy's 5 us, because the driver accepts no shorter fixed interval`
fn nearest(all: &[ReplacedValue]) -> String {
    let one = |n: &ReplacedValue| {
        let limit = if n.takes > n.wanted { "shorter" } else { "longer" };
        format!(
            "; {} {} us instead of the policy's {} us, because the driver accepts no {limit} fixed interval",
            n.name, n.takes, n.wanted
        )
    };
    all.iter().map(one).collect()
}
