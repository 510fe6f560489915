//! Pure values that all crates share: CPU sets, ids, the topology of the host, its network interfaces with their queues
//! and interrupts, and the snapshot that contains them all.
//!
//! This crate reads no file, sends no request to the kernel, and has no clock.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bond;
pub mod boot;
pub mod busy_thread;
pub mod coded;
pub mod competing_programs;
pub mod configured;
pub mod control;
pub mod counter;
pub mod cpuset;
pub mod errno;
pub mod extra;
pub mod fact;
pub mod features;
pub mod flows_unknown;
pub mod fnv;
pub mod function;
pub mod ids;
pub mod intent;
mod json_fault;
pub mod napi;
pub mod natural;
mod nearest;
pub mod nic;
pub mod order;
pub mod queue;
pub mod requested;
pub mod rings;
pub mod rules;
pub mod sample;
pub mod shaper;
pub mod shell;
pub mod snapshot;
pub mod title;
pub mod topology;
pub mod traffic_class;
pub mod vector;
pub mod wish;
pub mod words;

pub use bond::{Bond, BondMember};
pub use boot::Boot;
pub use busy_thread::{BusyThread, PermittedPlaces};
pub use coded::ReasonFields;
pub use competing_programs::{CompetingProgram, Irqbalance};
pub use configured::ConfiguredBy;
pub use control::{ControlPath, ControlReason};
pub use counter::{Counter, CounterKind, CounterValues, CpuCounter, CpuCounts, PoolUse, QueueCounter, QueueCounts};
pub use cpuset::CpuSet;
pub use extra::{CheckOnlyFacts, DevExtra, Eee, PacketSocket, PciControl, Qdiscs};
pub use fact::{Cause, Fact, Subject, Unread};
pub use features::Feature;
pub use flows_unknown::FlowsUnknown;
pub use function::{
    FunctionHolder, FunctionVector, FunctionWithoutInterface, UserspaceFunction, VirtualFunction, VirtualFunctions,
};
pub use ids::{CpuId, DevId, Dir, IfIndex, IrqId, NodeId};
pub use intent::{DEFAULT_CONFIG, FarNode, Goal, Intent, Smt};
pub use json_fault::JsonFault;
pub use napi::{Napi, NapiInstance, NapiThread, NapiValues};
pub use nearest::nearest;
pub use nic::{
    Channels, Coalesce, Count, Link, Nic, NicKind, Pause, Pcie, PcieLink, Rss, RssContext, User, XdpMetadata,
    not_requested,
};
pub use queue::{Bql, RxQueue, TxQueue};
pub use requested::{GoalChoice, IntentFlags, Requested};
pub use rings::{RingKind, RingPart, RingValues, Rings};
pub use rules::{Action, Rule, Rules};
pub use sample::{NotSampled, Sample, SampledCpu, SampledInterface, SampledQueue, TrafficSample};
pub use shaper::{RateUnit, Shaper, ShaperPlace, Shapers};
pub use snapshot::{Host, Power, QueuelessInterfaces, Snapshot};
pub use title::Title;
pub use topology::{Cpu, Node, NodeMemory, Topology};
pub use traffic_class::{QueueRange, TrafficClasses};
pub use vector::{Confidence, Immovable, MapSource, Movable, Role, Vector};
pub use wish::{Flow, GroupQueues, GroupWish, Knob, Policy, Table, Wish};
