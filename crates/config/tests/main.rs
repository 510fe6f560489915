//! All integration tests of the crate in one program: it is linked once, and tests of different files run in parallel.

mod bind;
mod common;
mod export;
mod file;
mod host_groups;
mod import;
mod mixed;
mod properties;
mod wrong;
