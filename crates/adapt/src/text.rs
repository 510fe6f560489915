//! The texts of the reasons.

use std::fmt::{Display, Formatter, Result};

use crate::action::{Forbidden, OffReason, RestReason, StepWait};
use crate::buckets::Unusable;
use crate::judge::{KeepReason, RestoreReason};
use crate::limits::LimitReached;
use crate::load::{Exclusion, SuspectReason};
use crate::propose::{Elephant, Gain, NoProposal};

impl Display for Exclusion {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::BusyPolled => "a program polls the queue",
            Self::AfXdp => "an AF_XDP socket receives from the queue",
            Self::Leased => "the queue is leased to a virtual interface",
            Self::Memory => "the queue receives into memory of a program",
        })
    }
}

impl Display for SuspectReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::UnevenCpus { cpu, busy_percent, mean_percent, samples } => write!(
                f,
                "CPU {cpu} is busy with packets {busy_percent:.0} % of the time, the mean is {mean_percent:.0} % \
                 ({samples} of 10 samples were this uneven)"
            ),
            Self::DropsOnHotQueue { queue, cpu, samples } => {
                write!(f, "receive queue {queue} on CPU {cpu} dropped packets in {samples} of 10 samples")
            }
        }
    }
}

impl Display for Unusable {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::NotCounted => f.write_str("the packets of the table entries were not counted"),
            Self::TooShort { duration } => write!(f, "packets were counted for {} ms only", duration.as_millis()),
            Self::TooFewPackets { packets } => write!(f, "only {packets} packets were counted"),
            Self::OtherTable { counted, entries } => {
                write!(f, "{counted} entries were counted, the table has {entries}")
            }
            Self::SegmentsIncomplete => f.write_str("segments were counted for some entries only"),
            Self::Unhashed { percent } => write!(f, "{percent:.1} % of the packets have no hash"),
            Self::Elsewhere { percent } => {
                write!(f, "{percent:.1} % of the packets came by another queue than that of the table")
            }
            Self::UnknownQueue { percent } => write!(f, "the queue of {percent:.1} % of the packets is unknown"),
        }
    }
}

impl Display for Gain {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Maximum { points } => write!(f, "the load of the busiest CPU falls by {points:.1} points"),
            Self::Variance { percent } => write!(f, "the variance of the loads falls by {percent:.0} %"),
        }
    }
}

impl Display for Elephant {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(
            f,
            "table entry {} has {:.0} % of the packets and takes {:.0} % of CPU {}: no table can split it. A rule for its \
             flow, or RFS, would help",
            self.entry, self.packets_percent, self.points, self.cpu
        )
    }
}

impl Display for NoProposal {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Elephant(e) => e.fmt(f),
            Self::TooLittle { entries: 0, .. } => f.write_str("no entry can move to another CPU within the limits"),
            Self::TooLittle { entries, maximum_points, variance_percent } => write!(
                f,
                "moving {entries} entries would lower the busiest CPU by {maximum_points:.1} points and the variance by \
                 {variance_percent:.0} % only"
            ),
            Self::Unknown => f.write_str("loads or queues are unknown"),
        }
    }
}

impl Display for LimitReached {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::Apart { .. } => "the last step was too short a time ago",
            Self::HourlyEntries { .. } => "as many entries as an hour allows have moved",
        })
    }
}

impl Display for StepWait {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Limit(limit) => limit.fmt(f),
            Self::Forbidden(why) => why.fmt(f),
            Self::Unusable { why, .. } => why.fmt(f),
            Self::NoStep { why, .. } => why.fmt(f),
            Self::NotWritten { .. } => f.write_str("the last step was not written"),
        }
    }
}

impl Display for Forbidden {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::WriteResetsDevice => "the driver resets the device when the table is written",
            Self::ResetUnknown => "it is unknown whether a write of the table takes the link down",
            Self::HashOff => "the device does not hash packets",
            Self::Rps => "RPS is configured",
            Self::Rules => "rules select the queue of flows",
            Self::Rfs => "accelerated RFS selects the queue of flows",
            Self::Unknown => "it is unknown whether the table may be written",
        })
    }
}

impl Display for KeepReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Gained { predicted, measured } => write!(f, "{measured}; predicted: {predicted}"),
            Self::Saturated => f.write_str("a CPU is saturated before and after, and drops are unknown"),
        }
    }
}

impl Display for RestoreReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::TooLittle { predicted, measured } => write!(f, "{measured}; predicted: {predicted}"),
            Self::Drops { before, after } => {
                write!(f, "{after:.0} packets per second are dropped, {before:.0} before the step")
            }
            Self::OutOfOrder { before, after } => {
                write!(f, "{after:.0} segments per second arrive out of order, {before:.0} before the step")
            }
            Self::AsManyInterrupts { before, after } => {
                write!(f, "{after:.2} interrupts per packet of the bulk queues, {before:.2} before the step")
            }
            Self::NotMeasured => f.write_str("the loads after the step are unknown"),
        }
    }
}

impl Display for RestReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::TooFewSamples { known } => write!(f, "the loads are known in {known} of 10 samples"),
            Self::Even => f.write_str("the load is even, or too low to matter"),
            Self::Forbidden(why) => why.fmt(f),
            Self::TableUnknown => f.write_str("the indirection table is unknown"),
            Self::CpusNotRead => f.write_str("which CPUs may serve the queues was not read yet"),
            Self::TooFewTimes { known } => {
                write!(f, "the times of the CPUs that may serve the queues are known in {known} of 10 samples")
            }
            Self::NoInterruptMoves => f.write_str("a CPU that serves queues is busy, and no interrupt moves now"),
            Self::MaskStays => f.write_str(
                "a CPU that processes the packets of the queue is busy, and the RPS mask stays as it is now",
            ),
            Self::WritePending => f.write_str("the last step is being written"),
            Self::Judging { .. } => f.write_str("the last step is judged soon"),
            Self::Kept(why) => write!(f, "the last step stays: {why}"),
        }
    }
}

impl Display for OffReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::ToAndFro => "two table entries, or two interrupts, moved and returned",
            Self::Restored => "two steps were restored within an hour",
            Self::ChangedOutside => "what was moved was changed outside ringwise",
            Self::WriteRefused => "the last step could not be written",
            Self::LinkInterrupted => {
                "the link went down right after a step was written; the driver may reset the device for it"
            }
        })
    }
}
