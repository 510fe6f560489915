//! The planner: computes a list of settings, each with its reason, from a snapshot of the host and an intent.
//!
//! ```text
//!   select ─► channels ─► units ─► place ─► irq xps rps rfs ─► steps, layout, expected effect
//!   which     how many    what     which    one file per knob
//!   devices   queues      shares   CPU
//!                         vectors
//! ```
//!
//! Pure functions: the planner reads no file and no clock, and the layout depends neither on the order nor on the names
//! of devices.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod arfs;
mod article;
mod bonds;
mod by_load;
mod channels;
mod control;
mod dev;
mod doc;
mod effect;
mod entries;
pub mod fleet;
mod goal;
mod goal_knobs;
mod groups;
mod interrupt_wait;
mod irq;
mod irqbalance;
mod keep_layout;
mod machine;
mod manual_changes;
mod messages;
mod mistake;
mod moderation;
mod napi;
mod obstacle;
mod permitted;
mod pick;
mod place;
mod planner;
pub mod policies;
mod program_cpus;
mod programs;
mod proposals;
mod rdma;
mod refusal;
mod rfs;
mod rps;
mod rules;
mod same_number;
mod sampled_groups;
mod score;
mod select;
mod shares;
mod stacks;
mod target;
mod unhashed;
mod wanted;
mod wishes;
mod words;
mod xps;

pub use arfs::arfs_drivers;
pub use doc::{
    ControlPathCut, DevLayout, DoubledCore, Expected, Group, KeptChange, NotPossible, Outage, Placed, Plan, PlanHost,
    ProgramPlacement, ProposedChange, SCHEMA, SkippedInterface, UnknownPath, VERSION,
};
pub use effect::MODELLED_LOAD;
pub use goal::{in_full, ports_alike};
pub use goal_knobs::{GoalSettings, goal_settings};
pub use groups::implied;
pub use manual_changes::ManualChanges;
pub use mistake::{Mistake, MistakeParts};
pub use obstacle::{AfterChange, Obstacle};
pub use permitted::permitted_cpus;
pub use planner::{plan, plan_around};
pub use program_cpus::{ListeningProgram, ListeningSocket, ProgramCpus, ProgramReport, ProposedFor, program_cpus};
pub use programs::{affinity_of_others, interrupts_of_others, program_drop_in};
pub use refusal::{InvalidSetting, Refusal};
pub use rps::rps_helpers;
pub use rules::{RuleText, explain_rule, rules};
pub use sampled_groups::{
    BUSY_PERCENT, BulkPolicy, FEWEST_FRAMES_PER_S, GroupSizes, GroupsUndecided, PlacementChoice, SMALL_FRAME_BYTES,
    SampledGroups, SampledPlacement,
};
pub use score::{Score, score};
pub use xps::{chooses_xps_masks, xps_masks};
