//! All integration tests of the crate in one program: one link, and tests of different files run side by side.

mod common;
mod hash;
mod imbalance;
mod steering;
mod udp_ports;
