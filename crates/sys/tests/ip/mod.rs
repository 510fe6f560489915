//! ip(8).

use std::process::Command;

/// Runs ip(8) with these arguments.
pub(crate) fn ip(args: &str) {
    let done = Command::new("ip").args(args.split(' ')).status().expect("the ip command is needed");
    assert!(done.success(), "ip {args}");
}
