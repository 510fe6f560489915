//! The trait [`Host`]: files, one enum of kernel requests, and a clock.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::captured_packet::CapturedPacket;
use crate::entry_counts::EntryCounts;
use ringwise_model::errno::{self, ENODEV, ENOENT, ENXIO, EOPNOTSUPP};
use ringwise_model::{Cause, Unread};

/// Result of a file operation or a kernel request.
pub type Result<T> = std::result::Result<T, Error>;

/// A file operation or kernel request that failed. It keeps the errno and the kernel's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What was tried: `read /proc/irq/30/smp_affinity_list`, `channels-set eth1`.
    pub what: String,
    /// For writes: the text that was written.
    pub data: Option<String>,
    /// The kernel's errno. `None`: the error is not from the kernel (a capture that does not hold the answer, a truncated reply).
    pub errno: Option<i32>,
    /// The kernel's extack message, or ringwise's own words if there is no errno.
    pub words: Option<String>,
    /// With [`Cause::Late`] the call exceeded its deadline and was abandoned: it may still take effect.
    pub cause: Cause,
}

impl Error {
    /// The kernel refused `what` with this errno and without a message.
    pub fn errno(what: impl Into<String>, errno: i32) -> Self {
        Self { what: what.into(), data: None, errno: Some(errno), words: None, cause: Cause::Other }
    }

    /// An error that does not come from the kernel; `words` contains the reason.
    pub fn other(what: impl Into<String>, words: impl Into<String>) -> Self {
        Self { what: what.into(), data: None, errno: None, words: Some(words.into()), cause: Cause::Other }
    }

    /// The call did not return within this time.
    pub fn late(what: impl Into<String>, time: Duration) -> Self {
        let Unread { what, why, cause, .. } = Unread::late(what, time);
        Self { cause, ..Self::other(what, why) }
    }

    /// Whether the call did not return within its deadline; it may still take effect.
    pub fn is_late(&self) -> bool {
        self.cause == Cause::Late
    }

    /// The object of the attempt, without the verb: a path, or a request.
    pub fn object(&self) -> &str {
        ["read ", "write "].iter().find_map(|verb| self.what.strip_prefix(verb)).unwrap_or(&self.what)
    }

    /// Whether the kernel answered that the object does not exist here: ENOENT, ENODEV, ENXIO, EOPNOTSUPP. If a capture merely
    /// lacks it, there is no errno.
    pub fn is_absent(&self) -> bool {
        self.errno.is_some_and(|e| [ENOENT, ENXIO, ENODEV, EOPNOTSUPP].contains(&e))
    }

    /// The errno's name and meaning, then the kernel's words: `EINVAL (Invalid argument): requested channel count exceeds maximum`.
    pub fn reason(&self) -> String {
        match (self.errno, &self.words) {
            (Some(e), Some(w)) => format!("{}: {w}", errno_text(e)),
            (Some(e), None) => errno_text(e),
            (None, Some(w)) => w.clone(),
            (None, None) => "no answer".to_string(),
        }
    }
}

/// A failed read, as the error of the call that needed it. The errno is named once.
impl From<Unread> for Error {
    fn from(u: Unread) -> Self {
        let words = match u.errno.map(errno_text) {
            Some(name) => match u.why.strip_prefix(&name) {
                Some(rest) => rest.strip_prefix(": ").map(str::to_string),
                None => Some(u.why),
            },
            None => Some(u.why),
        };
        Self { what: u.what, data: None, errno: u.errno, words, cause: u.cause }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if let Some(d) = &self.data {
            write!(f, " <- \"{}\"", d.trim_end())?;
        }
        write!(f, ": {}", self.reason())
    }
}

impl std::error::Error for Error {}

/// `EINVAL (Invalid argument)`. Knows the numbers that the interfaces in use can return.
pub fn errno_text(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_string();
    match errno::name(errno) {
        Some(name) => format!("{name} ({text})"),
        None => format!("errno {errno} ({text})"),
    }
}

/// The errno's name and the kernel's words for it, or the text of an error that is not from the kernel.
pub fn io_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(errno) => errno_text(errno),
        None if error.kind() == io::ErrorKind::InvalidData && error.get_ref().is_none() => {
            "the file is not UTF-8 text".into()
        }
        None => error.to_string(),
    }
}

/// ethtool ioctls that have no netlink form on the kernels we support. Numbers: `linux/ethtool.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum IoctlCmd {
    /// `ETHTOOL_GDRVINFO`: driver, version, firmware, bus address.
    DrvinfoGet = 0x03,
    /// `ETHTOOL_GRXFH`: hash fields of one flow type.
    RxfhFieldsGet = 0x29,
    /// `ETHTOOL_SRXFH`.
    RxfhFieldsSet = 0x2a,
    /// `ETHTOOL_GRXCLSRLCNT`: how many flow steering rules there are.
    RuleCount = 0x2e,
    /// `ETHTOOL_GRXCLSRULE`: one flow steering rule.
    RuleGet = 0x2f,
    /// `ETHTOOL_GRXCLSRLALL`: the locations of all rules.
    RuleList = 0x30,
    /// `ETHTOOL_SRXCLSRLDEL`.
    RuleDelete = 0x31,
    /// `ETHTOOL_SRXCLSRLINS`.
    RuleInsert = 0x32,
    /// `ETHTOOL_GRSSH`: table, key and function.
    RssGet = 0x46,
    /// `ETHTOOL_SRSSH`.
    RssSet = 0x47,
    /// `ETHTOOL_PERQUEUE`: reads or writes moderation of single queues, by its sub-command.
    PerQueue = 0x4b,
}

/// `ETHTOOL_GCOALESCE` as sub-command of [`IoctlCmd::PerQueue`]: the only one that only reads.
const PERQUEUE_GET: u32 = 0x0e;

/// One request to the kernel, which reads or changes something. Devices are addressed by name.
///
/// Payloads and replies are bytes in the host's byte order, encoded and decoded by `kfmt`: for netlink the attributes only
/// (without `nlmsghdr` and `genlmsghdr`), one `Vec` per message of the reply; for RTM_GETLINK `ifinfomsg` and attributes; for
/// ioctls the whole struct.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// rtnetlink RTM_GETLINK, dump, all interfaces of the namespace.
    Links,
    /// rtnetlink RTM_GETADDR, dump.
    Addrs,
    /// rtnetlink RTM_GETROUTE: the route to this address that the kernel would choose now, including all tables and rules. The
    /// reply is `rtmsg` and attributes.
    Route {
        /// Destination, IPv4 or IPv6.
        to: std::net::IpAddr,
    },
    /// `/proc/net/route` and `ipv6_route`, only the lines of default routes, because the tables may be very long.
    DefaultRoutes,
    /// The ssh sessions of this machine; not a request to the kernel. One text per message: `own` or `held` and the words of
    /// `SSH_CONNECTION`. It is a request so that recordings hold the answer but no environment variables.
    Sessions,
    /// An ethtool netlink command with no attributes besides the device header.
    /// `cmd`: number in `linux/ethtool_netlink.h`; `name`: its name there in lower case with dashes (`channels-get`).
    EthtoolGet {
        /// `ETHTOOL_MSG_*_GET` as user space sends it.
        cmd: u8,
        /// For messages and for the key of a recording; not sent.
        name: &'static str,
        /// Interface name in this network namespace.
        dev: String,
    },
    /// The same as a dump: one message for each such object of the device.
    EthtoolDump {
        /// `ETHTOOL_MSG_*_GET` as user space sends it, here with `NLM_F_DUMP`.
        cmd: u8,
        /// As in [`Request::EthtoolGet`].
        name: &'static str,
        /// The only interface that is dumped.
        dev: String,
    },
    /// An ethtool netlink SET: `attrs` are the encoded attributes after the header.
    EthtoolSet {
        /// `ETHTOOL_MSG_*_SET` as user space sends it.
        cmd: u8,
        /// As in [`Request::EthtoolGet`].
        name: &'static str,
        /// Interface that is changed.
        dev: String,
        /// Whole attributes with their headers and padding. Empty: sets nothing, which shows whether the driver has the call.
        attrs: Vec<u8>,
    },
    /// The same, with `ETHTOOL_FLAG_STATS` in the header: the reply includes the device's counters.
    EthtoolStats {
        /// `ETHTOOL_MSG_*_GET` of a command that has statistics, such as pause frames.
        cmd: u8,
        /// As in [`Request::EthtoolGet`].
        name: &'static str,
        /// Interface name in this network namespace.
        dev: String,
    },
    /// rtnetlink RTM_GETLINK of one interface, with its counters.
    Link {
        /// Interface name in this network namespace.
        dev: String,
    },
    /// rtnetlink RTM_GETQDISC, dump, all interfaces. The reply is `tcmsg` and attributes.
    Qdiscs,
    /// Names of the driver's own counters (`ETHTOOL_GSTRINGS`), 32 bytes each, all in one message.
    StatNames {
        /// Interface name in this network namespace.
        dev: String,
    },
    /// Values of the driver's own counters (`ETHTOOL_GSTATS`), 64 bits each, all in one message.
    StatValues {
        /// Interface name in this network namespace.
        dev: String,
    },
    /// netdev generic netlink, dump filtered by device: `dev-get` 1, `queue-get` 10, `napi-get` 11, `qstats-get` 12.
    NetdevDump {
        /// Number in `linux/netdev.h`.
        cmd: u8,
        /// Its name there in lower case with dashes; not sent.
        name: &'static str,
        /// Interface whose objects are returned; sent as its index.
        dev: String,
    },
    /// A SET of the netdev family: `napi-set` 14. `attrs` are all its attributes; the device name is only for messages.
    NetdevSet {
        /// Number in `linux/netdev.h`.
        cmd: u8,
        /// Its name there in lower case with dashes; not sent.
        name: &'static str,
        /// Interface name, for messages; not sent.
        dev: String,
        /// Whole attributes with their headers and padding.
        attrs: Vec<u8>,
    },
    /// net-shaper generic netlink, `get` 1, dump of one interface: the rate limits inside the NIC. Since 6.13.
    NetShaperDump {
        /// Interface name in this network namespace; sent as its index.
        dev: String,
    },
    /// CPUs that a kernel thread may run on (`sched_setaffinity`), in ascending order.
    ThreadCpus {
        /// Thread ID, 1 or above.
        pid: u32,
        /// At least one, each below 65,536.
        cpus: Vec<u32>,
    },
    /// Sleeps 10 ms on each of these CPUs, with a thread that is pinned there. The reply has eight bytes for each CPU whose
    /// thread did not return within 2 s: its number and 0; or its number and the errno because of which no thread could run there
    /// (EINVAL: offline, or forbidden by a cpuset). Numbers have 32 bits in the host's byte order.
    Sleep {
        /// CPU numbers as in `/proc/stat`.
        cpus: Vec<u32>,
    },
    /// `SIOCETHTOOL` with this struct; the reply is the struct after the call.
    Ioctl {
        /// Decides which struct is expected and how much of it the kernel writes.
        cmd: IoctlCmd,
        /// Interface name, at most 15 bytes (`IFNAMSIZ`).
        dev: String,
        /// The whole struct of this command; `cmd` overwrites its first 32 bits.
        payload: Vec<u8>,
    },
    /// One message to the control socket of irqbalance, and its answer: `setup` reads, `settings …` changes.
    Irqbalance {
        /// Absolute path of a unix socket.
        socket: String,
        /// `setup`, or `settings …` as irqbalance(1) describes.
        command: String,
    },
    /// A small file of ringwise that another program reads. It is created with its directories and replaced as a whole, or
    /// (`None`) removed.
    Place {
        /// Absolute; missing directories are created.
        path: String,
        /// The whole content; `None` removes the file.
        content: Option<String>,
        /// Mode 0755 instead of 0644.
        executable: bool,
    },
    /// systemd reads its unit files again (`systemctl daemon-reload`).
    DaemonReload,
}

impl Request {
    /// Whether the request changes anything.
    pub fn writes(&self) -> bool {
        match self {
            Self::EthtoolSet { .. }
            | Self::NetdevSet { .. }
            | Self::ThreadCpus { .. }
            | Self::Ioctl {
                cmd: IoctlCmd::RssSet | IoctlCmd::RxfhFieldsSet | IoctlCmd::RuleDelete | IoctlCmd::RuleInsert,
                ..
            }
            | Self::Place { .. }
            | Self::DaemonReload => true,
            // A sub-command that is not known to only read counts as writing.
            Self::Ioctl { cmd: IoctlCmd::PerQueue, payload, .. } => {
                payload.get(4..8).is_none_or(|sub| sub != PERQUEUE_GET.to_ne_bytes())
            }
            Self::Irqbalance { command, .. } => !matches!(command.as_str(), "setup" | "stats"),
            _ => false,
        }
    }

    /// The device that the request is about, if there is one.
    pub fn dev(&self) -> Option<&str> {
        match self {
            Self::Links | Self::Addrs | Self::Route { .. } | Self::DefaultRoutes | Self::Sessions | Self::Qdiscs => {
                None
            }
            Self::Irqbalance { .. } | Self::Place { .. } | Self::DaemonReload => None,
            Self::ThreadCpus { .. } | Self::Sleep { .. } => None,
            Self::EthtoolGet { dev, .. }
            | Self::EthtoolDump { dev, .. }
            | Self::EthtoolSet { dev, .. }
            | Self::EthtoolStats { dev, .. }
            | Self::Link { dev }
            | Self::StatNames { dev }
            | Self::StatValues { dev }
            | Self::NetdevDump { dev, .. }
            | Self::NetdevSet { dev, .. }
            | Self::NetShaperDump { dev }
            | Self::Ioctl { dev, .. } => Some(dev),
        }
    }
}

impl fmt::Display for Request {
    /// `channels-get eth1`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Links => write!(f, "link-get (dump)"),
            Self::Addrs => write!(f, "addr-get (dump)"),
            Self::Route { to } => write!(f, "route-get {to}"),
            Self::DefaultRoutes => write!(f, "default routes"),
            Self::Sessions => write!(f, "ssh sessions"),
            Self::Qdiscs => write!(f, "qdisc-get (dump)"),
            Self::Link { dev } => write!(f, "link-get {dev}"),
            Self::StatNames { dev } => write!(f, "ETHTOOL_GSTRINGS {dev}"),
            Self::StatValues { dev } => write!(f, "ETHTOOL_GSTATS {dev}"),
            Self::EthtoolDump { name, dev, .. } => write!(f, "{name} {dev} (dump)"),
            Self::EthtoolGet { name, dev, .. }
            | Self::EthtoolStats { name, dev, .. }
            | Self::EthtoolSet { name, dev, .. }
            | Self::NetdevSet { name, dev, .. }
            | Self::NetdevDump { name, dev, .. } => {
                write!(f, "{name} {dev}")
            }
            Self::NetShaperDump { dev } => write!(f, "net-shaper-get {dev}"),
            Self::ThreadCpus { pid, .. } => write!(f, "sched_setaffinity {pid}"),
            Self::Sleep { cpus } => {
                write!(f, "sleep of 10 ms on {} CPU{}", cpus.len(), if cpus.len() == 1 { "" } else { "s" })
            }
            Self::Ioctl { cmd, dev, .. } => {
                let name = match cmd {
                    IoctlCmd::DrvinfoGet => "ETHTOOL_GDRVINFO",
                    IoctlCmd::RxfhFieldsGet => "ETHTOOL_GRXFH",
                    IoctlCmd::RxfhFieldsSet => "ETHTOOL_SRXFH",
                    IoctlCmd::RuleCount => "ETHTOOL_GRXCLSRLCNT",
                    IoctlCmd::RuleGet => "ETHTOOL_GRXCLSRULE",
                    IoctlCmd::RuleList => "ETHTOOL_GRXCLSRLALL",
                    IoctlCmd::RuleDelete => "ETHTOOL_SRXCLSRLDEL",
                    IoctlCmd::RuleInsert => "ETHTOOL_SRXCLSRLINS",
                    IoctlCmd::RssGet => "ETHTOOL_GRSSH",
                    IoctlCmd::RssSet => "ETHTOOL_SRSSH",
                    IoctlCmd::PerQueue if self.writes() => "ETHTOOL_PERQUEUE set",
                    IoctlCmd::PerQueue => "ETHTOOL_PERQUEUE",
                };
                write!(f, "{name} {dev}")
            }
            Self::Irqbalance { socket, command } => write!(f, "irqbalance {socket}: {command}"),
            Self::Place { path, content: Some(_), .. } => write!(f, "write {path}"),
            Self::Place { path, .. } => write!(f, "remove {path}"),
            Self::DaemonReload => f.write_str("systemctl daemon-reload"),
        }
    }
}

/// Counts received packets by entry of an RSS table until it is dropped.
pub trait CountEntries: fmt::Debug + Send {
    /// Whether the kernel lets the counter read how many frames a packet consists of.
    fn counts_segments(&self) -> bool;

    /// Reads all counts, one system call for each entry. Packets that arrive meanwhile may be in some counts and not in others.
    ///
    /// Errors: ENODEV: the interface was removed or moved to another network namespace; nothing is counted any more.
    fn read(&mut self) -> Result<EntryCounts>;

    /// Compares with this table from now on. Only entries that differ are written. Packets that arrive while the NIC's own table
    /// is being written may count as those of another queue, and so do those that wait in the ring of the earlier queue.
    ///
    /// Errors: no errno: the table has another length; then a new counter is needed.
    fn set_table(&mut self, table: &[u32]) -> Result<()>;
}

/// Samples received frames until it is dropped.
pub trait SampleHeaders: Send {
    /// Calls `each` for all waiting frames. Does not wait for more.
    ///
    /// Errors: the interface was removed, or the socket cannot be read.
    fn drain(&mut self, each: &mut dyn FnMut(CapturedPacket)) -> Result<()>;

    /// Number of sampled frames that were dropped because the buffer was full, since the last call.
    fn lost(&mut self) -> Result<u64>;
}

/// The clock that ringwise uses; tests use one that does not wait.
pub trait Clock: Send + Sync {
    /// Time since boot, including suspend (CLOCK_BOOTTIME).
    fn since_boot(&self) -> Duration;
    /// Wall clock, seconds since 1970.
    fn unix_time(&self) -> u64;
    /// Blocks the calling thread for at least this long; a simulated clock jumps ahead instead.
    fn sleep(&self, time: Duration);
}

/// A host that wraps another one, and uses its clock.
pub trait HostWrapper: Send + Sync {
    /// The host whose clock is used; it must not be the implementer itself.
    fn inside(&self) -> &dyn Host;
}

impl<T: HostWrapper> Clock for T {
    fn since_boot(&self) -> Duration {
        self.inside().since_boot()
    }

    fn unix_time(&self) -> u64 {
        self.inside().unix_time()
    }

    fn sleep(&self, time: Duration) {
        self.inside().sleep(time);
    }
}

/// A host: the real one, a capture, or a simulated one. Paths are absolute (`/proc/…`, `/sys/…`, `/etc/…`).
pub trait Host: Clock {
    /// The whole content. A kernel file is read with as few calls as possible.
    fn read(&self, path: &str) -> Result<Vec<u8>>;
    /// Writes `data` with one `write(2)` to an existing file, which is neither created nor truncated.
    fn write(&self, path: &str, data: &[u8]) -> Result<()>;
    /// Names in a directory, unsorted, without `.` and `..`.
    fn list(&self, path: &str) -> Result<Vec<String>>;
    /// Target of a symbolic link, not resolved.
    fn readlink(&self, path: &str) -> Result<String>;
    /// Sends one kernel request, and returns the messages of the reply.
    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>>;
    /// Whether this is not a running machine: nothing can be written, and live state cannot be read.
    fn is_recorded(&self) -> bool {
        false
    }

    /// Counts the packets that this interface receives from now on, by entry of this RSS table, which has the queue of each entry
    /// ([`EntryCounter`](crate::entry_counter::EntryCounter) on a real machine). Counts are momentary, and are never recorded.
    ///
    /// Errors: those of [`EntryCounter::open`](crate::entry_counter::EntryCounter::open); on a host that is not a running machine
    /// always.
    fn count_entries(&self, dev: &str, _table: &[u32]) -> Result<Box<dyn CountEntries>> {
        let what = format!("count packets by table entry on {dev}");
        Err(Error::other(what, "packets can be counted on a running machine only"))
    }

    /// Samples one in `one_in` frames that this interface with `queues` receive queues receives from now on
    /// ([`PacketListener`](crate::packets::PacketListener) on a real machine). Frames are momentary, and are never recorded.
    ///
    /// Errors: those of [`PacketListener::open`](crate::packets::PacketListener::open); on a host that is not a running machine always.
    fn sample_headers(&self, dev: &str, _queues: u32, _one_in: u32) -> Result<Box<dyn SampleHeaders>> {
        Err(Error::other(format!("listen on {dev}"), "frames can be sampled on a running machine only"))
    }

    /// `read` as text without trailing white space. Bytes that are not valid UTF-8 are replaced.
    fn read_text(&self, path: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.read(path)?).trim_end().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alpha, MIPS, PA-RISC and SPARC have tables of their own; ringwise is not built for them.
    #[test]
    fn the_numbers_of_errnos_are_those_of_the_c_library() {
        macro_rules! numbers {
            ($($name:ident)*) => { [$((stringify!($name), errno::$name, libc::$name)),*] };
        }
        let all = numbers!(
            EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST ENODEV
            ENOTDIR EISDIR EINVAL ENFILE EMFILE EFBIG ENOSPC EROFS EPIPE ERANGE ENOSYS ELOOP EPROTO
            EOVERFLOW EMSGSIZE ENOPROTOOPT EOPNOTSUPP EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH
            ECONNRESET ENOBUFS ETIMEDOUT ECONNREFUSED EHOSTUNREACH
        );
        for (name, ours, libc) in all {
            assert_eq!((errno::name(ours), ours), (Some(name), libc));
        }
        let named = (1..4096).filter_map(errno::name).count();
        assert_eq!(named, all.len(), "a number that this test does not compare");
    }

    #[test]
    fn an_errno_is_named_where_it_has_a_name() {
        assert_eq!(errno_text(22), "EINVAL (Invalid argument)");
        assert!(errno_text(524).starts_with("errno 524 ("), "{}", errno_text(524));
    }

    #[test]
    fn what_only_asks_does_not_write() {
        let queue = |sub: u32| {
            let payload = [0x4bu32.to_ne_bytes(), sub.to_ne_bytes()].concat();
            Request::Ioctl { cmd: IoctlCmd::PerQueue, dev: "eth0".into(), payload }
        };
        assert!(!queue(0x0e).writes() && queue(0x0f).writes() && queue(0).writes());
        assert_eq!(queue(0x0f).to_string(), "ETHTOOL_PERQUEUE set eth0");
        assert!(Request::ThreadCpus { pid: 1, cpus: vec![0] }.writes());
        assert!(Request::NetdevSet { cmd: 14, name: "napi-set", dev: "eth0".into(), attrs: Vec::new() }.writes());
    }
}
