//! The two ends: this process, and the peer behind TCP, ssh or a network namespace.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ringwise_bench::local::LocalSide;
use ringwise_bench::remote::RemoteSide;
use ringwise_bench::side::{Error, Hello, Reply, Request, Side};
use ringwise_model::words::visible;
use ringwise_model::{CpuSet, Fact, Snapshot};

use crate::args::{PeerArgs, RunArgs};
use crate::exit::{Fail, Result};

/// What every request but a load has time for.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Sides {
    pub here: LocalSide,
    pub peer: RemoteSide,
    pub hello: Hello,
}

pub(super) fn failed(e: Error) -> Fail {
    let fail = Fail::error(e.to_string());
    match e {
        Error::Versions { .. } => fail.next("ringwise --version at both ends"),
        Error::Lost { .. } | Error::Late { .. } => fail.next("ringwise bench serve at the other end"),
        Error::Refused { .. } => fail,
    }
}

pub(super) fn secret(file: Option<&Path>) -> Result<Option<String>> {
    let Some(path) = file else { return Ok(None) };
    let text = std::fs::read_to_string(path).map_err(|e| Fail::error(format!("{}: {e}", path.display())))?;
    let word = text.trim();
    if word.is_empty() {
        return Err(Fail::error(format!("{} holds no secret: it is empty", path.display())));
    }
    Ok(Some(word.to_string()))
}

/// Opens both.
///
/// Errors: nobody named, unreachable, another version, another secret.
pub(super) fn open(p: &PeerArgs) -> Result<Sides> {
    let secret = secret(p.secret_file.as_deref())?;
    let opened = if let Some(addr) = &p.peer {
        let at: SocketAddr = addr.parse().map_err(|_| {
            Fail::usage(format!("--peer \"{addr}\" is no address with a port (right would be e.g. 192.0.2.7:4710)"))
        })?;
        RemoteSide::tcp(at, secret.as_deref())
    } else if let Some(host) = &p.ssh {
        if host.starts_with('-') {
            return Err(Fail::usage(format!("\"{host}\" is no host for ssh")));
        }
        let mut c = Command::new("ssh");
        c.args(["-o", "BatchMode=yes", "--", host, "ringwise", "bench", "serve", "--stdio"]);
        c.process_group(0);
        RemoteSide::child(c, host)
    } else if let Some(name) = p.netns.as_deref() {
        let program = std::env::current_exe().map_err(|e| Fail::error(format!("this program cannot be found: {e}")))?;
        let mut c = Command::new(program);
        c.args(["bench", "serve", "--stdio", "--netns", name]);
        // Ctrl-C is for us: it ends when its input does.
        c.process_group(0);
        RemoteSide::child(c, &format!("namespace {name}"))
    } else {
        return Err(Fail::usage("there is no other end: --peer ADDR:PORT, --ssh HOST or --netns NAME")
            .next("ringwise bench serve --listen ADDR:PORT      (at the other host)"));
    };
    let peer = opened.map_err(failed)?;
    let hello = peer.hello().clone();
    Ok(Sides { here: LocalSide::new("this host"), peer, hello })
}

impl Sides {
    pub(super) fn facts(&self) -> BTreeMap<String, String> {
        let h = &self.hello;
        let list = [("host", &h.host), ("kernel", &h.kernel), ("cpus online", &h.cpus), ("ringwise", &h.ringwise)];
        list.into_iter().map(|(k, v)| (k.to_string(), v.clone())).collect::<BTreeMap<_, _>>()
    }

    /// Who answers, and who loads.
    pub(super) fn pair(&mut self, here_loads: bool) -> (&mut dyn Side, &mut dyn Side) {
        match here_loads {
            false => (&mut self.here, &mut self.peer),
            true => (&mut self.peer, &mut self.here),
        }
    }

    /// Ends what either answers; errors of something that is gone already are nobody's concern.
    pub(super) fn stop(&mut self) {
        let _ = self.here.ask(Request::Stop, PATIENCE);
        let _ = self.peer.ask(Request::Stop, PATIENCE);
    }
}

/// The words of a reply that is not the one that belongs there.
pub(super) fn unexpected(side: &dyn Side, reply: &Reply) -> Fail {
    match reply {
        Reply::Failed { why } => Fail::error(format!("{}: {}", side.name(), visible(why))),
        _ => Fail::error(format!("{}: an answer that does not belong to the question: {reply:?}", side.name())),
    }
}

/// Where the load goes: `--address`, else the first global address of the interface, IPv4 before IPv6.
pub(super) fn address(a: &RunArgs, dev: &str, s: &Snapshot) -> Result<IpAddr> {
    if let Some(ip) = a.peer.address {
        return Ok(ip);
    }
    let none = |why: &str| {
        Fail::error(format!("{dev} {why}")).next(format!("ip address add ADDR/LEN dev {dev}, or --address"))
    };
    let nic = s.nic(dev).ok_or_else(|| none("is not here"))?;
    let list = match &nic.addresses {
        Fact::Known(l) => l.as_slice(),
        Fact::Absent => &[],
        Fact::Unknown(u) => return Err(none(&format!("has addresses that could not be read: {}", u.why))),
    };
    let mut found: Vec<IpAddr> = list.iter().filter_map(|t| t.split('/').next()?.parse().ok()).collect();
    found.retain(|ip| match ip {
        IpAddr::V4(v) => !v.is_link_local(),
        IpAddr::V6(v) => !v.is_unicast_link_local(),
    });
    found.sort_by_key(IpAddr::is_ipv6);
    found.first().copied().ok_or_else(|| none("has no address that a peer could load"))
}

/// CPUs of the threads at one end.
pub(super) fn cpus(wanted: Option<&CpuSet>, online: &str) -> Vec<u32> {
    let all = || online.parse::<CpuSet>().unwrap_or_default();
    wanted.cloned().unwrap_or_else(all).iter().map(|c| c.0).collect()
}
