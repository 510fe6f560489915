//! The sizes of the groups of `mixed` by a sample of the traffic: by the mean size of frames, or by the packets of steered
//! flows. Where the sample does not tell, they stay as without a sample.

use ringwise_model::{GroupQueues, GroupWish, Sample, SampledInterface, TrafficSample};

use super::steered;
use crate::dev::Dev;
use crate::policies::{BULK, LATENCY};
use crate::sampled_groups::{FEWEST_FRAMES_PER_S, GroupSizes, GroupsUndecided, SMALL_FRAME_BYTES};

/// Ethernet header, which counters of bytes include and the MTU does not.
const HEADER_BYTES: u32 = 14;

/// The counters of this interface, if they show traffic.
pub(super) fn traffic<'a>(
    sample: &'a Sample,
    dev: &str,
) -> Result<(&'a TrafficSample, &'a SampledInterface, u64), GroupsUndecided> {
    let taken = match sample {
        Sample::Taken(taken) => taken,
        Sample::NotTaken(why) => return Err(GroupsUndecided::NotSampled { why: *why }),
    };
    let interface = taken.interface(dev).ok_or(GroupsUndecided::NotCounted)?;
    let frames = interface.frames.ok_or(GroupsUndecided::NotCounted)?;
    if is_little(frames, taken.duration_ms) {
        return Err(GroupsUndecided::NoTraffic { frames });
    }
    Ok((taken, interface, frames))
}

/// Number of latency queues by the traffic, where the goal divides the queues of both groups. `free`: the queues to
/// divide, by interrupt.
pub(super) fn sizes(d: &Dev, meant: &[GroupWish], free: &[Vec<u32>], sample: &Sample) -> GroupSizes {
    let units: Vec<u32> = free.iter().map(|u| u.len() as u32).collect();
    let chosen = by_goal(meant).and_then(|(latency, bulk)| {
        let share = match (latency.flows.is_empty(), bulk.flows.is_empty()) {
            (true, true) => Share::Small(small_frames(d, sample)?),
            (false, _) => steered(d, latency, sample)?,
            (true, false) => steered(d, bulk, sample)?.of_the_rest(),
        };
        Ok((share, nearest(&units, share.percent()).ok_or(GroupsUndecided::NotDivided)?))
    });
    of_share(chosen, units.iter().sum())
}

/// Number of latency queues of the article's layout, which puts queues of each group on both nodes.
pub(crate) fn of_halves(d: &Dev, queues: u32, configured: bool, sample: &Sample) -> GroupSizes {
    let chosen = match configured {
        true => Err(GroupsUndecided::Configured),
        false => small_frames(d, sample).and_then(|s| {
            let wanted = nearest(&vec![1; queues as usize], s.percent).ok_or(GroupsUndecided::NotDivided)?;
            let both = if queues >= 4 { wanted.clamp(2, queues - 2) } else { wanted };
            Ok((Share::Small(s), both))
        }),
    };
    of_share(chosen, queues)
}

fn of_share(chosen: Result<(Share, u32), GroupsUndecided>, of_queues: u32) -> GroupSizes {
    match chosen {
        Ok((Share::Small(s), latency_queues)) => GroupSizes::Traffic {
            frames: s.frames,
            mean_frame_bytes: s.mean_frame_bytes,
            small_percent: s.percent,
            latency_queues,
            of_queues,
        },
        Ok((Share::Steered { packets, percent }, latency_queues)) => {
            GroupSizes::Steered { packets, latency_percent: percent, latency_queues, of_queues }
        }
        Err(why) => GroupSizes::Kept { why },
    }
}

/// The groups latency and bulk, if the goal divides the queues.
fn by_goal(meant: &[GroupWish]) -> Result<(&GroupWish, &GroupWish), GroupsUndecided> {
    let of = |name: &str| meant.iter().find(|w| w.name.eq_ignore_ascii_case(name)).ok_or(GroupsUndecided::Configured);
    let (latency, bulk) = (of(LATENCY)?, of(BULK)?);
    let open = [latency, bulk].iter().all(|w| w.queues == GroupQueues::Auto);
    open.then_some((latency, bulk)).ok_or(GroupsUndecided::Configured)
}

/// The part of the traffic that is for latency.
#[derive(Clone, Copy)]
enum Share {
    /// Estimated from the mean size of frames.
    Small(SmallFrames),
    /// Counted at the queues to which rules steer the flows of a group.
    Steered { packets: u64, percent: u32 },
}

impl Share {
    fn percent(self) -> u32 {
        match self {
            Self::Small(s) => s.percent,
            Self::Steered { percent, .. } => percent,
        }
    }

    fn of_the_rest(self) -> Self {
        match self {
            Self::Steered { packets, percent } => Self::Steered { packets, percent: 100 - percent },
            Self::Small(s) => Self::Small(SmallFrames { percent: 100 - s.percent, ..s }),
        }
    }
}

/// The share of received packets that arrived on the queues of this group, if its flows alone did.
fn steered(d: &Dev, group: &GroupWish, sample: &Sample) -> Result<Share, GroupsUndecided> {
    let (taken, interface, _) = traffic(sample, d.name())?;
    let queues = steered::alone(d.nic, &group.flows).ok_or(GroupsUndecided::FlowsNotSteered)?;
    let (mut all, mut mine) = (0u64, 0u64);
    for q in &interface.queues {
        let packets = q.packets.ok_or(GroupsUndecided::NotCounted)?;
        all = all.saturating_add(packets);
        mine = mine.saturating_add(if queues.contains(&q.queue) { packets } else { 0 });
    }
    if is_little(all, taken.duration_ms) {
        return Err(GroupsUndecided::NoTraffic { frames: all });
    }
    Ok(Share::Steered { packets: all, percent: (mine as f64 * 100.0 / all as f64).round() as u32 })
}

fn is_little(frames: u64, duration_ms: u64) -> bool {
    frames == 0 || frames.saturating_mul(1000) < FEWEST_FRAMES_PER_S.saturating_mul(duration_ms)
}

#[derive(Clone, Copy)]
struct SmallFrames {
    frames: u64,
    mean_frame_bytes: u32,
    percent: u32,
}

/// The share of small frames, by the mean size of all frames.
fn small_frames(d: &Dev, sample: &Sample) -> Result<SmallFrames, GroupsUndecided> {
    let (_, interface, frames) = traffic(sample, d.name())?;
    let bytes = interface.bytes.ok_or(GroupsUndecided::NotCounted)?;
    let full = d.nic.link.mtu.known().ok_or(GroupsUndecided::MtuUnknown)?.saturating_add(HEADER_BYTES);
    let mean = bytes as f64 / frames as f64;
    // Frames that the kernel or the device has merged are longer than the MTU.
    let mean_frame_bytes = mean.round().min(f64::from(u32::MAX)) as u32;
    let between = (f64::from(full) - mean) / f64::from(full.saturating_sub(SMALL_FRAME_BYTES).max(1));
    Ok(SmallFrames { frames, mean_frame_bytes, percent: (between.clamp(0.0, 1.0) * 100.0).round() as u32 })
}

/// The number of queues of the first units that is nearest to this share of all, with at least one unit on each side.
/// `None`: there are fewer than two units.
fn nearest(units: &[u32], percent: u32) -> Option<u32> {
    let all: u32 = units.iter().sum();
    let mut first = 0;
    let sums = units[..units.len().saturating_sub(1)].iter().map(|n| {
        first += n;
        first
    });
    sums.min_by_key(|n| (u64::from(*n) * 100).abs_diff(u64::from(all) * u64::from(percent)))
}
