//! All integration tests of the crate in one program: one link, and tests of different files run side by side.

mod bonds;
mod common;
mod cut_short;
mod elsewhere;
mod every_error;
mod features;
mod flipped;
mod guard;
mod hands;
mod lives;
mod middle;
mod moderation;
mod offline;
mod past;
mod placement;
mod profiles;
mod published;
mod replan;
mod rivals;
mod rss;
mod rules;
mod sim_is_a_host;
mod stuck;
mod takeover;
mod transaction;
