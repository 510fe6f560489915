//! All integration tests of the crate in one program: one link, and tests of different files run side by side.

mod bonds;
mod clocks;
mod common;
mod cut_short;
mod elsewhere;
mod every_error;
mod features;
mod flipped;
mod flipped_state;
mod full_disk;
mod guard;
mod hands;
mod lives;
mod middle;
mod moderation;
mod past;
mod profiles;
mod published;
mod rivals;
mod rss;
mod rules;
mod sim_is_a_host;
mod stuck;
mod transaction;
