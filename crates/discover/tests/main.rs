//! All integration tests of the crate in one program: it is linked once, and tests of different files run in parallel.

mod chain;
mod common;
mod competing_programs;
mod hosts;
mod known_machines;
mod large;
mod missing;
mod odd;
mod real_machine;
mod recorded;
mod reread;
mod rss;
mod rules;
mod sockets;
mod virtual_functions;
mod whole;
mod without_interface;
