//! All integration tests of the crate in one program: one link, and tests of different files run side by side.

mod chain;
mod common;
mod hosts;
mod large;
mod missing;
mod odd;
mod real_machine;
mod recorded;
mod reread;
mod rivals;
mod rss;
mod rules;
mod sockets;
mod whole;
