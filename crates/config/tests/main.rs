//! All integration tests of the crate in one program: one link, and tests of different files run side by side.

mod bind;
mod common;
mod export;
mod file;
mod mixed;
mod properties;
mod wrong;
