//! Checks that a panic in a reading thread loses only that answer, in builds where a panic ends the process. Tests cannot
//! check it, because they unwind. `cargo run --profile lab -p ringwise --example panics`; `cargo xtask ci --all` runs it.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ringwise_discover::Options;
use ringwise_model::{Fact, Snapshot, Subject};
use ringwise_observe::{Layout, Sampler};
use ringwise_sys::{Host, HostWrapper, Request, Result};
use ringwise_testkit::sim::{Sim, build};

/// A host that panics at a file or request whose name contains this text.
struct Panics {
    host: Arc<dyn Host>,
    at: &'static str,
}

impl Panics {
    fn look(&self, what: &str) {
        assert!(self.at.is_empty() || !what.contains(self.at), "on purpose: {what}");
    }
}

impl HostWrapper for Panics {
    fn inside(&self) -> &dyn Host {
        self.host.as_ref()
    }
}

impl Host for Panics {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.look(path);
        self.host.read(path)
    }
    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        self.host.write(path, data)
    }
    fn list(&self, path: &str) -> Result<Vec<String>> {
        self.look(path);
        self.host.list(path)
    }
    fn readlink(&self, path: &str) -> Result<String> {
        self.host.readlink(path)
    }
    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        self.look(&request.to_string());
        self.host.kernel(request)
    }
}

const TIME: Duration = Duration::from_secs(20);

fn host(at: &'static str) -> Arc<dyn Host> {
    let sim = Sim::new(&build::host(4, 1).mqnic("mq0", 0, 4).mqnic("mq1", 0, 4).done());
    Arc::new(Panics { host: Arc::new(sim), at })
}

fn look(at: &'static str) -> Snapshot {
    let options = Options { deadline: TIME, ..Options::all() };
    ringwise_discover::snapshot(&host(at), &options).expect("the host is readable")
}

/// Whether this device is unknown and the other is not.
fn only(s: &Snapshot, dev: &str, other: &str) -> bool {
    let gone = |name: &str| s.nic(name).is_some_and(|n| n.unread.iter().any(|u| u.subject == Some(Subject::Device)));
    gone(dev) && !gone(other) && s.nic(other).is_some_and(|n| n.channels.is_known())
}

fn extra(at: &'static str) -> ringwise_model::CheckOnlyFacts {
    let s = look("");
    ringwise_discover::extra(&host(at), &s, TIME)
}

fn sampled(at: &'static str) -> bool {
    let s = look("");
    let host = host(at);
    let mut sampler =
        Sampler::new(host.as_ref(), &Layout::of(&s, &[]), true).with_deadline(&host, Duration::from_secs(2));
    let counters = sampler.read(host.as_ref());
    !counters.links.contains_key("mq0") || !counters.silent.is_empty()
}

type Case = (&'static str, fn() -> bool);

const CASES: &[Case] = &[
    ("a device in a snapshot", || only(&look("channels-get mq0"), "mq0", "mq1")),
    ("one device read again", || {
        let nic = ringwise_discover::device(&host("channels-get mq0"), "mq0", TIME);
        nic.is_ok_and(|n| n.unread.iter().any(|u| u.subject == Some(Subject::Device)))
    }),
    ("the list of links", || {
        let s = look(LINKS);
        s.nics.iter().any(|n| n.name() == "mq0") && s.unread.iter().any(|u| u.what == LINKS)
    }),
    ("addresses", || look(ADDRESSES).nics.iter().all(|n| n.addresses.unread().is_some())),
    ("files that only check reads", || {
        let all = extra("/proc/cpuinfo");
        matches!(all.file("/proc/net/sockstat"), Fact::Unknown(_)) && all.devs.len() == 2
    }),
    ("requests that only check makes", || {
        let all = extra("eee-get mq0");
        let unknown = |dev: &str| matches!(all.devs[dev].eee, Some(Fact::Unknown(_)));
        unknown("mq0") && !unknown("mq1")
    }),
    ("counters", || sampled("mq0")),
];

const LINKS: &str = "link-get (dump)";
const ADDRESSES: &str = "addr-get (dump)";

fn main() -> ExitCode {
    if !cfg!(panic = "abort") {
        eprintln!("panics: this build unwinds: cargo run --profile lab -p ringwise --example panics");
        return ExitCode::FAILURE;
    }
    ringwise_cli::panic_hook();
    let failed: Vec<&str> = CASES.iter().filter(|(_, holds)| !holds()).map(|(name, _)| *name).collect();
    failed
        .iter()
        .for_each(|name| eprintln!("panics: {name}: another value was lost as well, or this one was not lost"));
    println!("panics: {} passed, {} failed", CASES.len() - failed.len(), failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
