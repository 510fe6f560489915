//! The machine on which this program runs.
//!
//! Files are read with one open and as few reads as their size allows, and written with exactly one `write(2)`. Kernel requests:
//! `netlink` (socket), `requests` (families and bodies), `ioctl`. Thread-safe: a request that hangs in the kernel holds no lock
//! that another one needs.

mod defaults;
mod ioctl;
pub(crate) mod netlink;
mod others;
mod requests;
mod sessions;
mod sleepers;
mod tasks;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::entry_counter::EntryCounter;
use crate::host::{Clock, CountEntries, Error, Host, Request, Result, SampleHeaders};
use crate::ifindex::ifindex;
use crate::packets::PacketListener;

pub use others::irqbalance_answered;
pub(crate) use requests::{dump_once, group};

/// The running machine, accessed through its files, netlink sockets and ioctls. Sockets are kept for the next request.
pub struct Real {
    root: Option<PathBuf>,
    sockets: Mutex<requests::Pool>,
}

impl Real {
    /// Uses paths as they are.
    pub fn new() -> Result<Self> {
        Ok(Self { root: None, sockets: Mutex::default() })
    }

    /// Reads files below `prefix` instead of `/`; kernel requests still go to this machine.
    pub fn with_root(prefix: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self { root: Some(prefix.into()), sockets: Mutex::default() })
    }

    fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("/"))
    }

    fn path(&self, path: &str) -> PathBuf {
        match &self.root {
            Some(root) => root.join(path.trim_start_matches('/')),
            None => PathBuf::from(path),
        }
    }
}

/// `verb path: errno`; without an errno, the error text of std.
pub fn io_error(verb: &str, path: &str, error: &io::Error) -> Error {
    match error.raw_os_error() {
        Some(errno) => Error::errno(format!("{verb} {path}"), errno),
        None => Error::other(format!("{verb} {path}"), error.to_string()),
    }
}

fn read_all(file: &mut File) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut first = [0u8; 4096];
    let mut bigger: Vec<u8> = Vec::new();
    loop {
        let buffer = if out.is_empty() { &mut first[..] } else { &mut bigger[..] };
        match file.read(buffer) {
            Ok(0) => return Ok(out),
            Ok(n) => {
                out.extend_from_slice(&buffer[..n]);
                // A first answer that fills the page indicates a large table (/proc/interrupts).
                let next = if out.len() < 2048 { 4096 } else { 256 * 1024 };
                bigger.resize(next, 0);
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

impl Host for Real {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        File::open(self.path(path)).and_then(|mut f| read_all(&mut f)).map_err(|e| io_error("read", path, &e))
    }

    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        let failed = |mut error: Error| {
            error.data = Some(String::from_utf8_lossy(data).into_owned());
            error
        };
        let mut file =
            OpenOptions::new().write(true).open(self.path(path)).map_err(|e| failed(io_error("write", path, &e)))?;
        // One call, because kernel files treat each write as a separate value. EINTR means that the kernel accepted nothing.
        loop {
            return match file.write(data) {
                Ok(n) if n == data.len() => Ok(()),
                Ok(n) => {
                    let words = format!("the kernel accepted only {n} of {} bytes", data.len());
                    Err(failed(Error::other(format!("write {path}"), words)))
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => Err(failed(io_error("write", path, &e))),
            };
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        let entries = std::fs::read_dir(self.path(path)).map_err(|e| io_error("list", path, &e))?;
        entries
            .map(|entry| entry.map(|e| e.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<_>>()
            .map_err(|e| io_error("list", path, &e))
    }

    fn readlink(&self, path: &str) -> Result<String> {
        let target = std::fs::read_link(self.path(path)).map_err(|e| io_error("readlink", path, &e))?;
        Ok(target.to_string_lossy().into_owned())
    }

    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        match request {
            Request::Sessions => sessions::sessions(self.root()),
            Request::DefaultRoutes => defaults::default_routes(self.root()),
            Request::Ioctl { cmd, dev, payload } => Ok(vec![ioctl::ethtool(request, *cmd, dev, payload)?]),
            Request::StatNames { dev } => Ok(vec![ioctl::stats(request, dev, true)?]),
            Request::StatValues { dev } => Ok(vec![ioctl::stats(request, dev, false)?]),
            Request::Irqbalance { socket, command } => others::irqbalance(&self.path(socket), request, command),
            Request::Place { path, content, executable } => {
                others::place(&self.path(path), request, content.as_deref(), *executable)
            }
            Request::DaemonReload => others::daemon_reload(request),
            Request::Sleep { cpus } => sleepers::late(request, cpus),
            Request::ThreadCpus { pid, cpus } => tasks::set_cpus(request, *pid, cpus),
            _ => requests::netlink(&self.sockets, request),
        }
    }

    fn count_entries(&self, dev: &str, table: &[u32]) -> Result<Box<dyn CountEntries>> {
        let what = format!("count packets by table entry on {dev}");
        let index = ifindex(&what, dev)?;
        Ok(Box::new(EntryCounter::open_as(what, index, table)?))
    }

    fn sample_headers(&self, dev: &str, queues: u32, one_in: u32) -> Result<Box<dyn SampleHeaders>> {
        Ok(Box::new(PacketListener::open(dev, queues, one_in)?))
    }
}

impl Clock for Real {
    fn since_boot(&self) -> Duration {
        // SAFETY: all-zero is a valid timespec (plain integers).
        let mut now: libc::timespec = unsafe { std::mem::zeroed() };
        // SAFETY: `now` is a live timespec; CLOCK_BOOTTIME exists since 2.6.39, so the call can not fail.
        let rc = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
        assert_eq!(rc, 0, "CLOCK_BOOTTIME: {}", io::Error::last_os_error());
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    fn unix_time(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
