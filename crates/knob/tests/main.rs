//! All integration tests of the crate in one program: it is linked once, and tests of different files run in parallel.

mod collateral;
mod commands;
mod irqbalance;
mod kernel;
mod kinds;
mod learned;
