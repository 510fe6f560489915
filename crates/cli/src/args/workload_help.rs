//! The workloads of `ringwise bench` share one set of options. The help of each shows only those that it uses; the others are
//! still accepted.

use clap::Command;

/// Options of `forward`.
const FORWARD: [&str; 12] = [
    "into",
    "out",
    "generators",
    "sink",
    "frames",
    "recipe",
    "lead",
    "sources",
    "destinations",
    "find_rate",
    "interfaces",
    "routes",
];

/// Name of the workload, the default of `--size`, and the arguments that it does not use besides [`FORWARD`].
const MESSAGES: [(&str, &str, &[&str]); 5] = [
    ("rr", "64 to 1k", &["mix", "burst", "weight"]),
    ("burst", "64 to 64k", &["mix", "weight"]),
    ("mixed", "64 to 64k", &[]),
    ("stream", "16k", &["mix", "burst", "weight"]),
    // It has one receiver, whose place is what it varies, and needs the built-in generator at the peer.
    ("receive", "32", &["threads", "level", "mix", "burst", "weight", "cpus", "driver", "drive", "peer_address"]),
];

/// The kernel's packet generator sends, and this host has no end of a connection.
const NOT_IN_FORWARD: [&str; 13] = [
    "devs",
    "address",
    "peer_address",
    "threads",
    "level",
    "mix",
    "skew",
    "protocol",
    "burst",
    "cpus",
    "driver",
    "drive",
    "weight",
];

/// `bench search` has no mixed workload, and adds no rules of its own to states.
const NOT_IN_SEARCH: [&str; 3] = ["mix", "weight", "lead"];

/// The command `bench` with the help of each workload.
pub(super) fn of_each(bench: Command) -> Command {
    let bench = MESSAGES.iter().fold(bench, |bench, (name, sizes, unused)| {
        let size = format!("Payload sizes in bytes (64,256,1k,64k) [default: {sizes}]");
        bench.mut_subcommand(name, |c| without(without(c, &FORWARD), unused).mut_arg("size", |a| a.help(size)))
    });
    let size = "Payload sizes of UDP in bytes (20,256,1k), instead of --frame";
    let rate = "Offer N packets a second in total (20k, 1.5M); without it pktgen sends as fast as it can; with several values, each is measured";
    bench
        .mut_subcommand("forward", |c| {
            without(c, &NOT_IN_FORWARD).mut_arg("size", |a| a.help(size)).mut_arg("rate", |a| a.help(rate))
        })
        .mut_subcommand("search", |c| without(c, &NOT_IN_SEARCH))
}

fn without(command: Command, unused: &[&str]) -> Command {
    unused.iter().fold(command, |c, id| c.mut_arg(id, |arg| arg.hide(true)))
}
