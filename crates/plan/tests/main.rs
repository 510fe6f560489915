//! All integration tests of the crate in one program: one link, and tests of different files run side by side.

mod cases;
mod edges;
mod goal_knobs;
mod goals;
mod groups;
mod hands;
mod moderation;
mod properties;
mod shares;
mod steering;
mod unknown_queues;
mod wishes;
