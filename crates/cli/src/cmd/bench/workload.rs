//! The workload that the command line describes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use ringwise_bench::forward::Addresses;
use ringwise_bench::side::Protocol;
use ringwise_experiment::{
    Forward, ForwardSpec, Level, LoadDriver, Messages, MessagesSpec, MessagesWorkload, Recipe, Sides,
};
use ringwise_model::{Fact, Snapshot};

use crate::args::{self, DriveArg, DriverArg, PeerArgs, ProtocolArg, RunArgs};
use crate::exit::{Fail, Result};
use crate::source::Source;

pub(super) fn secret(file: Option<&Path>) -> Result<Option<String>> {
    let Some(path) = file else { return Ok(None) };
    let text = std::fs::read_to_string(path).map_err(|e| Fail::io(path.display(), &e))?;
    let word = text.trim();
    if word.is_empty() {
        return Err(Fail::error(format!("{} contains no secret: it is empty", path.display())));
    }
    Ok(Some(word.to_string()))
}

/// Opens both ends.
fn sides(p: &PeerArgs) -> Result<Sides> {
    let secret = secret(p.secret_file.as_deref())?;
    if let Some(addr) = &p.peer {
        let at: SocketAddr = addr.parse().map_err(|_| {
            Fail::usage(format!("--peer \"{addr}\" is not an address with a port: expected e.g. 192.0.2.7:4710"))
        })?;
        Ok(Sides::tcp(at, secret.as_deref())?)
    } else if let Some(host) = &p.ssh {
        Ok(Sides::ssh(host)?)
    } else if let Some(name) = p.netns.as_deref() {
        Ok(Sides::netns(name)?)
    } else {
        Err(Fail::usage("the other end is missing: expected --peer ADDR:PORT, --ssh HOST or --netns NAME")
            .next("ringwise bench serve --listen ADDR:PORT      (on the other host)"))
    }
}

/// A load that exchanges messages with `dev`.
pub(super) fn messages(kind: MessagesWorkload, a: &RunArgs, dev: &str, s: &Snapshot) -> Result<Messages> {
    let address = a.peer.address.map_or_else(|| ringwise_experiment::address(dev, s), Ok)?;
    let l = &a.load;
    let spec = MessagesSpec {
        kind,
        sizes: l.size.clone(),
        threads: l.threads.clone(),
        levels: l.level.iter().map(|l| level(*l)).collect(),
        mixes: l.mix.clone(),
        flows: l.flows.clone(),
        skews: l.skew.clone(),
        rates: l.rate.clone(),
        protocol: l.protocol.map(|p| match p {
            ProtocolArg::Tcp => Protocol::Tcp,
            ProtocolArg::Udp => Protocol::Udp,
        }),
        burst: l.burst,
        cpus_here: l.cpus.clone(),
        cpus_peer: l.peer_cpus.clone(),
        driver: match l.driver {
            DriverArg::BuiltIn => LoadDriver::BuiltIn,
            DriverArg::Netperf => LoadDriver::Netperf,
            DriverArg::Iperf3 => LoadDriver::Iperf3,
        },
        here_loads: l.drive == DriveArg::Here,
        address,
        peer_address: a.peer.peer_address,
        delay_us: l.delay_us,
        delay_in: l.delay_in.clone(),
    };
    if !a.forward.frames.is_empty() {
        return Err(Fail::usage(
            "--frame works with forward only; the sizes of this workload are those of the payload: --size",
        ));
    }
    let sides = sides(&a.peer)?;
    sound(&spec)?;
    Ok(Messages::new(spec, sides, s)?)
}

fn level(l: args::Level) -> Level {
    match l {
        args::Level::Light => Level::Light,
        args::Level::Medium => Level::Medium,
        args::Level::Heavy => Level::Heavy,
    }
}

/// Refuses flags that cannot be combined.
fn sound(m: &MessagesSpec) -> Result<()> {
    let udp = m.protocol() == Protocol::Udp;
    if let Some(n) = m.sizes().iter().find(|n| udp && !(16..=65_507).contains(*n)) {
        return Err(Fail::usage(format!("{n} bytes do not fit into a datagram: expected 16 to 65507")));
    }
    let wrong = [
        (m.here_loads && m.peer_address.is_none(), "--drive here needs the address of the peer: --peer-address"),
        (
            m.kind == MessagesWorkload::Receive && (m.here_loads || m.driver != LoadDriver::BuiltIn),
            "receive needs the built-in generator at the peer: no --drive here, no other --driver",
        ),
        (
            m.driver == LoadDriver::Iperf3 && m.kind != MessagesWorkload::Stream,
            "--driver iperf3 works with stream only; for rr, burst and mixed use built-in or netperf",
        ),
        (
            m.driver == LoadDriver::Netperf && m.kind == MessagesWorkload::Stream,
            "--driver netperf works with rr, burst and mixed only; for stream use built-in or iperf3",
        ),
        (
            m.driver != LoadDriver::BuiltIn && !m.rates.is_empty(),
            "--rate needs the built-in generator; netperf and iperf3 send as fast as the replies allow",
        ),
    ];
    wrong.iter().find(|(wrong, _)| *wrong).map_or(Ok(()), |(_, why)| Err(Fail::usage(*why)))
}

/// A load of packets that this host forwards.
pub(super) fn forward(a: &RunArgs, s: &Snapshot, source: &Source) -> Result<(Forward, ForwardSpec)> {
    let f = &a.forward;
    let sound = !f.into.is_empty() && f.generators.len() == f.into.len();
    let (Some(out), Some(sink), true) = (&f.out, &f.sink, sound) else {
        return Err(Fail::usage(
            "forward needs --in DEV,DEV and --out DEV here, and at the peer --gen DEV,DEV (one for each of --in) and --sink DEV",
        ));
    };
    if f.into.contains(out) {
        return Err(Fail::usage(format!("{out} is in both --in and --out: expected a different interface for --out")));
    }
    if s.host.forwarding == Fact::Known(false) {
        return Err(Fail::error("this host does not forward packets: net.ipv4.ip_forward is 0"));
    }
    let sides = sides(&a.peer)?;
    let default = Addresses::default();
    let addresses = Addresses {
        sources: net(f.sources.as_deref(), default.sources, 8, "--sources")?,
        destinations: net(f.destinations.as_deref(), default.destinations, 24, "--destinations")?,
    };
    let spec = ForwardSpec {
        into: f.into.clone(),
        out: out.clone(),
        generators: f.generators.clone(),
        sink: sink.clone(),
        recipe: match f.recipe {
            args::Recipe::Random => Recipe::Random,
            args::Recipe::Turn => Recipe::Turn,
            args::Recipe::Ports => Recipe::Ports,
        },
        addresses,
        sizes: a.load.size.clone(),
        frames: f.frames.clone(),
        flows: a.load.flows.clone(),
        rates: a.load.rate.clone(),
        interfaces: f.interfaces.clone(),
        routes: f.routes.clone(),
        find_rate: f.find_rate,
        cpus_peer: a.load.peer_cpus.clone(),
        same_host: a.peer.netns.is_some(),
    };
    Ok((Forward::new(spec.clone(), sides, s, source.host.as_ref())?, spec))
}

fn net(text: Option<&str>, default: Ipv4Addr, bits: u32, flag: &str) -> Result<Ipv4Addr> {
    let Some(text) = text else { return Ok(default) };
    let (addr, len) = text.split_once('/').unwrap_or((text, ""));
    let right = addr.parse().ok().filter(|_| len.is_empty() || len == bits.to_string());
    right.ok_or_else(|| {
        Fail::usage(format!("{flag} \"{text}\" is not a /{bits} network: expected e.g. {default}/{bits}"))
    })
}
