//! Runs netperf and iperf3 as children, without a shell. [`netperf`] and [`iperf3`] parse their output.

pub(crate) mod iperf3;
pub(crate) mod netperf;

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ringwise_sys::guardian::kill_group;
use ringwise_sys::load::dies_with_us;

use crate::error::{ChildEnd, ProgramError, SystemError};
use crate::load::{self, one_host};
use crate::result::LoadResult;
use crate::side::{LoadGroup, LoadGroups};

/// The extra time of a client for connecting and for the report.
const SLACK: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);
const LISTENS_WITHIN: Duration = Duration::from_secs(5);
/// Limit for the output of a child.
const MOST: u64 = 8 << 20;

/// A child whose output is read continuously. It is killed with its own children when this value is dropped.
struct Running {
    name: String,
    child: Child,
    output: Option<JoinHandle<String>>,
    errors: Option<JoinHandle<String>>,
}

/// The status and the output of a child that has ended.
#[derive(Debug)]
struct ChildOutput {
    status: Result<ExitStatus, SystemError>,
    output: String,
    errors: String,
}

impl ChildOutput {
    /// Whether it exited with status 0.
    fn good(&self) -> bool {
        self.status.as_ref().is_ok_and(ExitStatus::success)
    }
}

impl Running {
    /// Errors: the child does not start; if it is missing, the error names its package.
    fn start(name: &str, args: &[String]) -> Result<Self, ProgramError> {
        let mut command = Command::new(name);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        dies_with_us(&mut command);
        let mut child = command.spawn().map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => ProgramError::Missing { name: name.into() },
            _ => ProgramError::NotStarted { name: name.into(), error: e.into() },
        })?;
        let collect = |stream: Option<Box<dyn Read + Send>>| {
            stream.and_then(|s| std::thread::Builder::new().name("output".into()).spawn(move || all_of(s)).ok())
        };
        let output = collect(child.stdout.take().map(|s| Box::new(s) as _));
        let errors = collect(child.stderr.take().map(|s| Box::new(s) as _));
        Ok(Self { name: name.into(), child, output, errors })
    }

    /// Whether it has ended by itself.
    fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it, if it has not ended.
    fn left(mut self) -> ChildOutput {
        if !self.ended() {
            kill_group(self.child.id());
        }
        let status = self.child.wait();
        let text = |t: Option<JoinHandle<String>>| t.and_then(|t| t.join().ok()).unwrap_or_default();
        ChildOutput {
            status: status.map_err(SystemError::from),
            output: text(self.output.take()),
            errors: text(self.errors.take()).trim().to_string(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended() {
            kill_group(self.child.id());
            let _ = self.child.wait();
        }
    }
}

fn all_of(stream: Box<dyn Read + Send>) -> String {
    let mut bytes = Vec::new();
    // After an error, the output so far is used.
    let _ = stream.take(MOST).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn known(name: &str) -> Result<(), ProgramError> {
    match name {
        "netperf" | "netserver" | "iperf3" => Ok(()),
        _ => Err(ProgramError::Unknown(name.into())),
    }
}

/// `netserver` or `iperf3 -s`.
pub(crate) struct Server {
    at: SocketAddr,
    running: Running,
}

impl Server {
    pub(crate) fn at(&self) -> SocketAddr {
        self.at
    }

    /// Errors: it had ended before, with its output.
    pub(crate) fn stop(mut self) -> Result<(), ProgramError> {
        if self.running.ended() {
            let name = self.running.name.clone();
            return Err(ProgramError::EndedByItself { name, end: end(&self.running.left()) });
        }
        Ok(())
    }
}

/// Errors: the program is missing, does not listen, or the address is not that of a single host.
pub(crate) fn serve(program: &str, bind: IpAddr, port: u16) -> Result<Server, ProgramError> {
    known(program)?;
    one_host(bind).map_err(|why| ProgramError::BindAddress { ip: bind, why })?;
    let text = |s: &str| s.to_string();
    let (name, args) = match program {
        "iperf3" => ("iperf3", [text("-s"), text("-B"), bind.to_string(), text("-p"), port.to_string()].to_vec()),
        _ => ("netserver", [text("-D"), text("-L"), bind.to_string(), text("-p"), port.to_string()].to_vec()),
    };
    let at = SocketAddr::new(bind, port);
    if is_listening(port) {
        return Err(ProgramError::PortTaken { name: name.into(), port });
    }
    let mut running = Running::start(name, &args)?;
    let until = Instant::now() + LISTENS_WITHIN;
    while !is_listening(port) {
        if running.ended() {
            return Err(ProgramError::Ended { name: name.into(), end: end(&running.left()) });
        }
        if Instant::now() > until {
            let (name, end) = (name.into(), Box::new(end(&running.left())));
            return Err(ProgramError::NotListening { name, at, within: LISTENS_WITHIN, end });
        }
        std::thread::sleep(LOOK);
    }
    Ok(Server { at, running })
}

/// Whether the server listens, by `/proc/net/tcp`, because a test connection would occupy a server that accepts one.
fn is_listening(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let port = format!(":{port:04X}");
    ["tcp", "tcp6"].iter().any(|file| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
        text.lines().any(|l| {
            let mut fields = l.split_ascii_whitespace().skip(1);
            fields.next().is_some_and(|local| local.ends_with(&port)) && fields.nth(1) == Some(LISTEN)
        })
    })
}

/// The part of an output that messages show.
fn end(left: &ChildOutput) -> ChildEnd {
    let words = if left.errors.is_empty() { left.output.trim() } else { &left.errors };
    ChildEnd { status: left.status.clone(), words: words.chars().take(500).collect() }
}

/// Runs all groups at the same time; blocks until they are over or `stop` is set.
///
/// Errors: the load is refused, a program is missing, or the program's own error.
pub(crate) fn run(
    program: &str,
    port: u16,
    load: &LoadGroups,
    stop: &AtomicBool,
) -> Result<Vec<LoadResult>, ProgramError> {
    known(program)?;
    load::check(load)?;
    if load.time.as_secs() < 1 || load.time.subsec_nanos() > 0 || load.warmup.subsec_nanos() > 0 {
        let (warmup, time) = (load.warmup, load.time);
        return Err(ProgramError::PartOfSecond { program: program.into(), warmup, time });
    }
    if program == "iperf3" { iperf3::run(port, load, stop) } else { netperf::run(port, load, stop) }
}

/// Starts one child for each list of arguments and waits for all. In the order of `lists`.
///
/// Errors: a child failed, with its output; `stop` was set; a child runs too long.
fn together(
    name: &str,
    lists: &[Vec<String>],
    time: Duration,
    stop: &AtomicBool,
) -> Result<Vec<ChildOutput>, ProgramError> {
    let mut running = Vec::new();
    for args in lists {
        running.push(Running::start(name, args)?);
    }
    let until = Instant::now() + time + SLACK;
    while !running.iter_mut().all(Running::ended) {
        if stop.load(Ordering::Relaxed) {
            return Err(ProgramError::Stopped);
        }
        if Instant::now() > until {
            let ends = running.into_iter().map(|r| end(&r.left())).collect();
            return Err(ProgramError::Late { name: name.into(), slack: SLACK, ends });
        }
        std::thread::sleep(LOOK);
    }
    Ok(running.into_iter().map(Running::left).collect())
}

/// CPU of the i-th thread of a group.
fn cpu(g: &LoadGroup, i: usize) -> Option<u32> {
    if g.cpus.is_empty() { None } else { Some(g.cpus[i % g.cpus.len()]) }
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;
