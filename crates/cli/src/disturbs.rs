//! What each reading command disturbs, for its `--help` and man page. What is said here was measured in the
//! lab (`210-isolation.sh`) or is in the kernel's source, which is then named.

/// Of every command that reads the host.
macro_rules! disturbs {
    ($own:expr) => {
        concat!(
            "What it disturbs:\n",
            $own,
            "
  Before anything else is read, ringwise takes the isolated CPUs (isolcpus, nohz_full, isolated
  cgroup partitions) out of the CPUs that it and its children may run on. Three files are read for
  that wherever the caller runs; with isolated CPUs only (taskset) it stays there. -v says so.
  Requests to the kernel (netlink, ethtool) take the network lock, one for all interfaces: whoever
  changes an interface meanwhile waits, and some drivers wake a sleeping device. Reading speed,
  duplex, carrier and XPS maps takes it too. --passive asks none of these, and not /proc/cpuinfo,
  which interrupts other CPUs on older kernels (x86), nor that preference; what was left out is shown as unknown."
        )
    };
}

pub(crate) const STATUS: &str = disturbs!(
    "  One dump of all links and of all addresses, and a few requests for each interface with queues of
  its own; not /proc/interrupts, unless a device has no list of its interrupts."
);
pub(crate) const SHOW: &str = disturbs!(
    "  Two dumps, and a dozen or so requests for each interface with queues of its own: channels, rings,
  moderation, pause, RSS, features, driver and firmware. Two small files for each CPU; where a driver
  keeps an energy preference (intel_pstate), asking for it interrupts each CPU that is not isolated.
  /proc/interrupts visits the counters of every CPU, without an interrupt. Nothing is written but the
  file of --svg."
);
pub(crate) const PLAN: &str =
    disturbs!("  The same as show without firmware and energy preference; nothing is written but the file of --out.");
pub(crate) const EXPLAIN: &str = disturbs!(
    "  The same as show, and the key that some drivers share. For one flow two route requests and the lists of
  connections in /proc/net; where a socket belongs to it, the open files of processes until its own is
  found. --sockets asks sock_diag, as ss does: where tcp_diag and udp_diag are modules, the kernel loads them.
  --observe reads /proc/interrupts and /proc/net/softnet_stat twice (counters of every CPU, no interrupt), and
  the sockets twenty times, each time holding the flow's own for a moment to ask for its CPU (pidfd_getfd);
  it and --per-flow listen as watch --per-flow does. Nothing is sent, nothing is written but --svg."
);
pub(crate) const VERIFY: &str = disturbs!(
    "  The same as plan; with --for /proc/interrupts and /proc/net/softnet_stat twice more (counters of
  every CPU, no interrupt)."
);
pub(crate) const CHECK: &str = disturbs!(
    "  The same as show, then what watch reads, twice (--for apart); besides one dump of all queueing
  disciplines, two more requests for each interface with queues of its own (EEE, rings), its PCI
  configuration space, and some thirty small files: conntrack's count and limit, clock, flags of the
  first CPU, modules, packet sockets. Nothing is written but the file of --accept."
);
pub(crate) const WATCH: &str = disturbs!(
    "  Each interval: one request for the counters and one for the pause frames of each interface (the
  second only where the driver counts them), one dump of all queueing disciplines, the counters of the
  queues, by netdev-genl where the driver has them so, else all that ethtool -S shows, which some drivers
  ask of their firmware; /proc/stat, /proc/net/softnet_stat and three more files of /proc/net; a small
  file for each interrupt of a queue and for each CPU. With --once, -j and --record two or three small
  files for each transmit queue, and one for each idle state of each CPU that takes interrupts. What
  comes, goes or changes its queues is looked at anew. Nobody waits for a device that does not answer.
  -v says what a sample costs.
  --per-flow asks nothing of the device: a packet socket for each of its receive queues, whose filter
  every received packet meets; what is looked at is bounded, and nothing of it is kept."
);
pub(crate) const EXPORT: &str = disturbs!(
    "  Whenever a page is asked for, but not twice within a second: what an interval of watch -j reads. Not
  older than --verify-every: what verify reads, as far as something of it is in force. Not
  older than --check-every: what check reads, without its second sample. No capability is needed; what
  cannot be read without root is left out and counted by ringwise_unread and
  ringwise_check_rules_unread."
);
pub(crate) const REPORT: &str = "\
What it tells is in the record of transactions (measure-NNNN.rec; the last 20, at most 32 MB) as
apply --measure has left it there. Where that was interrupted, or its transaction was confirmed later,
the window after goes until now: counters are read once as watch reads them.
The traffic before and after was not the same: the numbers say what was seen, not what caused it.";
pub(crate) const CAPTURE: &str = concat!(
    disturbs!(
        "  The same as show, then /proc/stat, /proc/softirqs, /proc/net/softnet_stat and /proc/cpuinfo; every
  file of the devices' directories that show reads, and what check reads; with --for the counters of watch, twice."
    ),
    "

With --redact the same original has the same replacement everywhere, and show, check and plan give the
same results apart from names. Replaced: MAC and IP addresses, ids of ports and switches, host name, machine
and boot id, UUIDs, aliases and alternative names of interfaces, names of users, serial numbers, passwords and
tokens that are labelled as such, servers and shares of mounts, URLs. Removed: reasons and health commands,
values of command lines, values in files of other programs, attributes and files that ringwise does not know.
Left: names of interfaces and of files that set queues, drivers, models, versions, CPU and PCI layout, RSS
keys, times. docs/capture.md has the tables."
);
pub(crate) const PERSIST: &str = "\
Nobody waits for it: the units are ordered before nothing, and one that fails is only listed by
systemctl --failed. An interface that comes late, or is renamed, is waited for in a unit of its own
(one minute for its link). If a boot ends within five minutes of tuning, other than by an orderly
shutdown, the boots after it do not apply until ringwise persist is called again; status says so.";
pub(crate) const SUPPORT: &str = concat!(
    disturbs!("  The same as capture, the kernel's log once, and the driver's version of each interface."),
    "

The archive is always redacted, as ringwise capture --help describes. Journals and state come without
--reason, --health and what a health command printed; of command lines the program and the names of flags
stay. Of the kernel's log the lines that begin with an interface or its driver stay, and a few forms about them;
the others are counted. docs/capture.md has the tables."
);
pub(crate) const BENCH: &str = disturbs!(
    "  It loads the network between the two ends and the CPUs of both, within the times that it says before
  it begins. Each state is a transaction on trial: it is put back when the next one is measured, at the
  end, at a signal, and by its guard when ringwise is killed or the time of its measurement is over.
  Before and after each trial: what watch reads, and meanwhile a thread on each CPU that is not
  isolated and wants to run every ten milliseconds, to see how late it comes. forward --routes adds
  routes of its own (ip route show proto 251) while it measures. serve and report change nothing;
  serve sends and answers for whoever asks."
);
