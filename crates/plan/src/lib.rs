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
mod channels;
mod control;
mod dev;
mod doc;
mod effect;
mod entries;
mod goal;
mod goal_knobs;
mod groups;
mod hands;
mod irq;
mod machine;
mod messages;
mod mistake;
mod moderation;
mod napi;
mod obstacle;
mod pick;
mod place;
mod planner;
pub mod policies;
mod programs;
mod refusal;
mod rfs;
mod rivals;
mod rps;
mod rules;
mod select;
mod shares;
mod stay;
mod target;
mod wanted;
mod wishes;
mod words;
mod xps;

pub use doc::{
    Cut, DevLayout, DoubledCore, Expected, Group, Kept, LeftAlone, LeftOut, NotPossible, Placed, Plan, PlanHost,
    Program, SCHEMA, VERSION,
};
pub use effect::{Score, score};
pub use goal::in_full;
pub use goal_knobs::{LaysDown, lays_down};
pub use groups::implied;
pub use hands::Hands;
pub use mistake::{Mistake, MistakeParts};
pub use obstacle::{AfterChange, Obstacle};
pub use planner::{plan, plan_around};
pub use refusal::{Refusal, WrongWish};
pub use rules::{RuleText, explain_rule, rules};
