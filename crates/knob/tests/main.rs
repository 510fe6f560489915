//! All integration tests of the crate in one program: one link, and tests of different files run side by side.

mod collateral;
mod commands;
mod kernel;
mod kinds;
mod learned;
