//! The text of each reason in a plan.

use std::fmt;

use ringwise_model::ConfiguredBy;
use ringwise_model::words::plural;

use super::{Forgets, Nearest, Reason, ResetBy, With};
use crate::coalesce;

const ADAPTIVE_OFF: &str = "adaptive moderation goes off first, it would overwrite the value";
const NEAREST: &str = "each CPU sends on the queue whose interrupt is nearest to it";

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self))
    }
}

/// `laid down in FILE line 3, --set eth0.rings.rx=512`
pub fn configured_in(by: &[ConfiguredBy]) -> String {
    let by: Vec<String> = by.iter().map(ConfiguredBy::to_string).collect();
    format!("laid down in {}", by.join(", "))
}

fn text(r: &Reason) -> String {
    use Reason as R;
    match r {
        R::NewQueue => "the queue pair gets a CPU to itself as far as there are CPUs".into(),
        R::CpuUnknown => "where it goes now is not known; one CPU is laid down".into(),
        R::IsolatedCpu { cpu } => format!("CPU {cpu} is isolated, interrupts disturb what runs there"),
        R::FreeToMove { among, arrived } => {
            format!(
                "it may wander over CPUs {among}; {}",
                if *arrived { "it is held on one" } else { "one CPU is laid down" }
            )
        }
        R::FarNode { dev, node } => {
            let node = node.map_or_else(|| "unknown".to_string(), |n| n.to_string());
            format!("its CPU is on node {node}, away from {dev}")
        }
        R::MostOnOneCpu { dev, cpu, queues, of } => {
            format!("CPU {cpu} takes {queues} of {dev}'s {of} queue interrupts")
        }
        R::QueuesShareCpu { dev, cpu, queues } => format!("{queues} queues of {dev} share CPU {cpu}"),
        R::QueuesShareCore => "its core carries another queue while a near core has none".into(),
        R::CrowdedCpu => "its CPU takes more queues of all interfaces than the new one".into(),
        R::ExcludedCpu { cpu } => format!("CPU {cpu} is excluded from queue interrupts"),
        R::CoreNotUsed { goal, cpu } => {
            format!("the goal {goal} uses fewer cores for queues, and not that of CPU {cpu}")
        }
        R::SecondThread { goal, cpu } => {
            format!("CPU {cpu} is a second hardware thread, which the goal {goal} leaves to programs")
        }
        R::PartOfCore { cpu } => {
            format!("the other hardware thread of CPU {cpu}'s core is excluded from queue interrupts")
        }
        R::SlowerCore { cpu, planned } => format!("CPU {cpu} is a slower core than CPU {planned}"),
        R::DistantNode { cpu, planned } => format!("CPU {cpu} is on a more distant node than CPU {planned}"),
        R::CpuOfOtherGroup { cpu } => format!("CPU {cpu} serves a queue of another group"),
        R::SameNumberOneCpu => "queues with the same number share a CPU, so that a forwarded packet stays on it".into(),
        R::CrowdedCache { dev } => format!("its L3 cache serves more queues of {dev} than a free one nearby"),
        R::LessLoaded { planned } => format!("with the other queues where they are now, CPU {planned} is less loaded"),
        R::OneQueue { cpu, helpers } => {
            let at = cpu.map_or_else(|| "one CPU".to_string(), |c| format!("CPU {c}"));
            let help = match helpers.len() {
                1 => format!("CPU {helpers} helps, the nearest one"),
                _ => format!("CPUs {helpers} help, the nearest ones"),
            };
            format!("one receive queue: {at} takes the interrupts, {help} outside its own core")
        }
        R::RpsNotForGoal => {
            "RPS adds an interrupt between CPUs to every burst; this goal wants the shortest way".into()
        }
        R::NoHelper => "no other near CPU could help".into(),
        R::QueuesCoverCores { queues, cores } => format!(
            "{queues} queues already spread over {}; RPS would add an interrupt between CPUs for each packet burst",
            if *cores == 1 { "the near core".into() } else { format!("all {cores} near cores") }
        ),
        R::DeviceSpreads { queues } => format!(
            "the device itself spreads flows over {queues} queues; RPS on top adds an interrupt between CPUs for each packet burst"
        ),
        R::RfsNoGain => "this goal gains nothing from following sockets; the lookup for each packet is saved".into(),
        R::RfsManyConnections { entries } => {
            format!("packets follow their program's CPU: {entries} entries, for many connections")
        }
        R::RfsLongFlows { entries } => format!(
            "packets follow their program's CPU: {entries} entries are enough for few long flows and stay in the cache"
        ),
        R::RfsOff => "RFS is off for this goal".into(),
        R::RfsShare { entries, queues } => format!("{entries} entries over {queues} queues, as a power of two"),
        R::AcceleratedRfs { driver } => format!(
            "accelerated RFS: the device sends a flow to the queue of its program's CPU; {driver} has it by its name, \
             its map of CPUs to queues cannot be read"
        ),
        R::QueueWithoutCpu { queues, cpus } => format!(
            "{} for {}: every CPU has one already",
            plural(*queues as usize, "transmit queue"),
            plural(*cpus as usize, "CPU")
        ),
        R::NoXps { queues } => format!("no XPS on {queues} transmit queues: {NEAREST}"),
        R::NearestQueue => NEAREST.into(),
        R::NearestKnownQueue => format!("{NEAREST}, as far as it is known where interrupts go"),
        R::ThreadWithInterrupt => "a thread polls this queue: it runs where the interrupt of the queue goes".into(),
        R::RestartForgetsBan => {
            "bans die with the irqbalance that was told; the next one is started so that it leaves them alone".into()
        }
        R::IrqbalanceMoves { interval_s, forgets } => {
            let every = interval_s.map_or_else(|| "soon".to_string(), |n| format!("within {n} s"));
            let after = match forgets {
                None => String::new(),
                Some(why) => {
                    let why = match why {
                        Forgets::UnitFixed => "its unit cannot be added to",
                        Forgets::NotByUnit => "systemd did not start it",
                    };
                    format!("; {why}, so its restart forgets it: ringwise verify shows that, apply mends it")
                }
            };
            format!("it would move these interrupts {every}{after}")
        }
        R::UntilBanned => "right when it was planned; irqbalance may move it until it is told".into(),
        R::QueuesRequested { .. } | R::FewestQueues { .. } | R::OneQueueACpu { .. } | R::OneQueueACore { .. } => {
            count(r)
        }
        R::OnlyMember { dev, bond } => format!("{dev} is the only member that carries {bond}, which it would cut off"),
        R::LroBreaksForwarding => {
            "packets joined by LRO cannot be sent on as they came, and the kernel drops them".into()
        }
        R::GroJoins => "packets of a stream are joined before the stack sees them".into(),
        R::TsoCuts => "the device cuts long sends into packets, not the CPU".into(),
        R::PauseStopsLink => {
            "a slow queue that sends pause frames stops all others of the link; a router rather drops".into()
        }
        R::DeepSleep { usecs } => {
            format!("a CPU that sleeps deeper wakes up later than the {usecs} us that a packet may wait")
        }
        R::Policy { policy, when, moved, adaptive_off } => {
            let off = "; adaptive moderation goes off first, it would overwrite the values";
            format!("policy {policy}: {when}{}{}", nearest(moved), if *adaptive_off { off } else { "" })
        }
        R::Adaptive { own_mode } => {
            let own = match own_mode.is_empty() {
                true => String::new(),
                false => format!(" ({} is its own adaptive mode)", coalesce::text(own_mode)),
            };
            format!("requests come alone and in bursts: the driver fits the interval to the load{own}")
        }
        R::TableByCapacity => {
            "each queue gets what its CPU carries: both threads of a core together a third more than one (modelled)"
                .into()
        }
        R::GroupPolicy { policy, group, when } => format!("policy {policy} of group {group}: {when}"),
        R::GroupPolicyByNapi { policy, group } => {
            format!("policy {policy} of group {group}, by NAPI: the driver moderates the device as a whole")
        }
        R::GroupPolicyForAll { policy, deferred, moved } => {
            let how = match deferred {
                true => {
                    "the device interrupts at once, and NAPI defers where a group can wait: its driver moderates no single \
                     queue"
                }
                false => "one policy for the device, that of the larger group: the driver moderates no single queue",
            };
            format!("policy {policy}: {how}{}", nearest(moved))
        }
        R::AdaptiveOffFirst => "adaptive moderation goes off before fixed values, which it would overwrite".into(),
        R::TableOfGroup { group } => format!("a table of its own over the queues of group {group}"),
        R::OtherRuleForFlow => "another rule for the same flow".into(),
        R::FlowOfGroup { group } => format!("a flow of group {group}"),
        R::RulesNeedFeature => "flow rules need it".into(),
        R::SharesOfGroups => "shares of the groups".into(),
        R::RuleQueuesKeptFree => "flows that no rule knows stay off the queues that live by rules".into(),
        R::NoFlowsNamed => "no flow is named for a group, so every queue takes part".into(),
        R::FlowNotLed { transaction } => {
            format!("no group leads this flow any more; transaction {transaction} did")
        }
        R::NotNeededByGroup { transaction } => {
            format!("no group needs it any more; transaction {transaction} made it")
        }
        R::TableBeforeShares { transaction } => {
            format!("as it was before queues had unlike shares of it (transaction {transaction})")
        }
        R::Configured { by, with } => {
            let with = match with {
                None => "",
                Some(With::AdaptiveOff) => ADAPTIVE_OFF,
                Some(With::RulesMayGo) => "many drivers drop the flow rules that are there with it",
                Some(With::RulesNeedIt) => "flow rules need it",
            };
            format!("{}{}{with}", configured_in(by), if with.is_empty() { "" } else { "; " })
        }
        R::OfConfiguredGroup { reason, by } => format!("{reason} ({})", configured_in(std::slice::from_ref(by))),
        R::Adopted => "somebody has set it so, and it is to stay".into(),
        R::Reset { by, reason } => {
            let by = match by {
                ResetBy::Channels => "the channel change",
                ResetBy::Rings => "the ring change",
                ResetBy::Coalesce => "writing the whole device's moderation",
            };
            format!("as it is now; {by} before it may reset it ({reason})")
        }
        R::CpuWasOffline { transaction } => {
            format!("transaction {transaction} had to leave it while a CPU was offline")
        }
        R::Undone { transaction: None } => "as first found since boot".into(),
        R::Undone { transaction: Some(id) } => format!("as before transaction {id}"),
        R::Text(text) => text.clone(),
        R::Other(value) => value.get("text").and_then(|t| t.as_str()).map_or_else(|| value.to_string(), str::to_string),
    }
}

fn count(r: &Reason) -> String {
    let queues = |now: u32| plural(now as usize, "queue");
    let leave = |now: u32| if now == 1 { "leaves" } else { "leave" };
    match r {
        Reason::QueuesRequested { queues: asked, now } => {
            let (was, is) = (if *asked == 1 { "was" } else { "were" }, if *now == 1 { "is" } else { "are" });
            format!("{} {was} asked for, there {is} {now}", queues(*asked))
        }
        Reason::FewestQueues { cores } => {
            format!("the fewest queues that carry the load: half of the {cores} near physical cores")
        }
        Reason::OneQueueACpu { now, cpus } if now > cpus => format!(
            "one queue a CPU: {} for the {} of its node; each costs interrupts",
            queues(*now),
            plural(*cpus as usize, "CPU")
        ),
        Reason::OneQueueACpu { now, cpus } => {
            let idle = cpus - now;
            format!("one queue a CPU: {} {} {idle} of the {cpus} CPUs of its node idle", queues(*now), leave(*now))
        }
        Reason::OneQueueACore { now, cores } if now > cores => format!(
            "one queue a physical core: {} for the {} of its node; each costs interrupts",
            queues(*now),
            plural(*cores as usize, "core")
        ),
        Reason::OneQueueACore { now, cores } => {
            let idle = cores - now;
            format!(
                "one queue a physical core: {} {} {idle} of the {cores} cores of its node idle",
                queues(*now),
                leave(*now)
            )
        }
        _ => String::new(),
    }
}

/// `; rx-usecs 10 instead of 5, the least fixed interval that the driver takes`
fn nearest(all: &[Nearest]) -> String {
    let one = |n: &Nearest| {
        let most = if n.takes > n.wanted { "least" } else { "greatest" };
        format!("; {} {} instead of {}, the {most} fixed interval that the driver takes", n.name, n.takes, n.wanted)
    };
    all.iter().map(one).collect()
}
