//! The two ends: this process, and the peer behind TCP, ssh or in a network namespace.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use ringwise_bench::local::LocalSide;
use ringwise_bench::remote::RemoteSide;
use ringwise_bench::side::{self, Hello, Reply, Request, RequestRefusal, Side};
use ringwise_model::{CpuSet, Fact, Snapshot};

use crate::error::{AddressFault, Error, Result};

/// Time limit of every request except a load.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Both ends of every trial. Dropping this ends what they run.
pub struct Sides {
    pub(crate) here: LocalSide,
    pub(crate) peer: RemoteSide,
    pub(crate) hello: Hello,
}

impl Sides {
    /// Connects to `bench serve` at an address.
    ///
    /// Errors: unreachable, another version, another secret.
    pub fn tcp(at: SocketAddr, secret: Option<&str>) -> Result<Self> {
        Ok(Self::with(RemoteSide::tcp(at, secret)?))
    }

    /// Starts `bench serve` on another host.
    ///
    /// Errors: as [`Sides::tcp`], and errors of ssh.
    pub fn ssh(host: &str) -> Result<Self> {
        if host.starts_with('-') {
            return Err(Error::NotAHost(host.into()));
        }
        let mut c = Command::new("ssh");
        c.args(["-o", "BatchMode=yes", "--", host, "ringwise", "bench", "serve", "--stdio"]);
        c.process_group(0);
        Ok(Self::with(RemoteSide::child(c, host)?))
    }

    /// Starts this program again in a network namespace (named as for `ip netns`).
    ///
    /// Errors: as [`Sides::tcp`], or the namespace does not exist.
    pub fn netns(name: &str) -> Result<Self> {
        let mut c = Command::new(std::env::current_exe().map_err(Error::NoProgram)?);
        c.args(["bench", "serve", "--stdio", "--netns", name]);
        // Ctrl-C is meant for this process only; the other one ends when its input ends.
        c.process_group(0);
        Ok(Self::with(RemoteSide::child(c, &format!("namespace {name}"))?))
    }

    fn with(peer: RemoteSide) -> Self {
        let hello = peer.hello().clone();
        Self { here: LocalSide::new("this host"), peer, hello }
    }

    pub(crate) fn facts(&self) -> BTreeMap<String, String> {
        let h = &self.hello;
        let list = [("host", &h.host), ("kernel", &h.kernel), ("cpus online", &h.cpus), ("ringwise", &h.ringwise)];
        list.into_iter().map(|(k, v)| (k.to_string(), v.clone())).collect::<BTreeMap<_, _>>()
    }

    /// The end that answers, and the end that loads.
    pub(crate) fn pair(&mut self, here_loads: bool) -> (&mut dyn Side, &mut dyn Side) {
        match here_loads {
            false => (&mut self.here, &mut self.peer),
            true => (&mut self.peer, &mut self.here),
        }
    }

    /// Ends what both ends run. Errors are ignored, because an end may be gone already.
    pub(crate) fn stop(&mut self) {
        let _ = self.here.ask(Request::Stop, PATIENCE);
        let _ = self.peer.ask(Request::Stop, PATIENCE);
    }
}

/// The error for a reply that does not match the request.
pub(crate) fn unexpected(side: &dyn Side, reply: Reply) -> Error {
    let side = side.name().to_string();
    match reply {
        Reply::Failed { why } => side::Error::Refused { side, why: RequestRefusal::Peer(why) }.into(),
        reply => Error::Unexpected { side, reply: Box::new(reply) },
    }
}

/// The first global address of the interface, IPv4 before IPv6.
///
/// Errors: it has none, or its addresses are unknown.
pub fn address(dev: &str, s: &Snapshot) -> Result<IpAddr> {
    let none = |why: AddressFault| Error::NoAddress { dev: dev.into(), why };
    let nic = s.nic(dev).ok_or_else(|| none(AddressFault::NoDevice))?;
    let list = match &nic.addresses {
        Fact::Known(l) => l.as_slice(),
        Fact::Absent => &[],
        Fact::Unknown(u) => return Err(none(AddressFault::Unread(u.clone()))),
    };
    let mut found: Vec<IpAddr> = list.iter().filter_map(|t| t.split('/').next()?.parse().ok()).collect();
    found.retain(|ip| match ip {
        IpAddr::V4(v) => !v.is_link_local(),
        IpAddr::V6(v) => !v.is_unicast_link_local(),
    });
    found.sort_by_key(IpAddr::is_ipv6);
    found.first().copied().ok_or_else(|| none(AddressFault::NoAddress))
}

/// CPUs of the threads at one end.
pub(crate) fn cpus(wanted: Option<&CpuSet>, online: &str) -> Vec<u32> {
    let all = || online.parse::<CpuSet>().unwrap_or_default();
    wanted.cloned().unwrap_or_else(all).iter().map(|c| c.0).collect()
}
