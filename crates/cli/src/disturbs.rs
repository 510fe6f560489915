//! The texts behind the options of `--help` and of the man pages: examples, exit statuses, and what a reading command
//! disturbs. What is stated about disturbance was measured in the lab (`210-isolation.sh`) or is in the kernel's source,
//! which is then named.

use crate::page::Page;

/// A command of `bench` that measures.
const fn bench(examples: &'static str) -> Page {
    Page::new(
        examples,
        "  0  measured, and the host is as found
  1  error; 2 wrong command line
  4  failed, and restored; 5 failed, and not fully restored
  6  refused before anything was changed",
    )
}

const STATUS: Page = Page {
    disturbs: Some(
        "  One dump of all links and one of all addresses, and a few requests for each
  interface with queues of its own. /proc/interrupts is read only if a device
  has no list of its interrupts.",
    ),
    ..Page::new(
        "  ringwise status
  ringwise status -j
  ringwise status --from host.tar.gz",
        "  0  nothing needs attention; findings of ringwise check are not counted
  3  something needs attention: settings that changed since apply, a trial, an
     unfinished transaction, settings of a rollback that can be restored now,
     tuning that boot skips, a problem of the service, a state that cannot be
     read
  1  the host cannot be read; 2 wrong command line",
    )
};
const SHOW: Page = Page {
    disturbs: Some(
        "  Two dumps, and about a dozen requests for each interface with queues of its
  own: channels, rings, moderation, pause, RSS, features, driver and firmware.
  Two small files for each CPU; where a driver keeps an energy preference
  (intel_pstate), reading it interrupts each CPU that is not isolated.
  /proc/interrupts visits the counters of every CPU, without an interrupt.
  Nothing is written except the file of --svg.",
    ),
    ..Page::new(
        "  ringwise show                     one line for each interface
  ringwise show eth0                the matrix of one interface
  ringwise show eth0 eth1           compare two interfaces
  ringwise show eth0 --svg eth0.svg",
        "  0  shown
  1  the host cannot be read, or it has no such interface; 2 wrong command line",
    )
};
const PLAN: Page = Page {
    disturbs: Some(
        "  The same as show without firmware and energy preference. Nothing is written
  except the file of --out.",
    ),
    ..Page::new(
        "  ringwise plan
  ringwise plan eth0 --goal forward --allow-disruption
  ringwise plan eth0 --goal rpc --out eth0.plan   then: ringwise apply eth0.plan
  ringwise plan eth0 --set eth0.rings.rx=1024 -o diff
  ringwise plan --goal rpc --from caps/           which hosts share a plan",
        "  0  planned, or nothing to do
  3  with --exit-code: there is something to do, or a requested setting is not
     planned
  1  the host, one of several captures or the configuration cannot be used
  2  wrong command line",
    )
};
const EXPLAIN: Page = Page {
    disturbs: Some(
        "  The same as show, and the RSS key that some drivers share. For one flow: two
  route requests and the lists of connections in /proc/net; if a socket belongs
  to the flow, the open files of processes until its owner is found.
  --sockets asks sock_diag, as ss does; where tcp_diag and udp_diag are modules,
  the kernel loads them. --observe reads /proc/interrupts and
  /proc/net/softnet_stat twice (counters of every CPU, no interrupt) and the
  sockets twenty times, each time holding the socket of the flow for a moment to
  read its CPU (pidfd_getfd). --observe and --per-flow listen as watch
  --per-flow does. Nothing is sent, and nothing is written except the file of
  --svg.",
    ),
    ..Page::new(
        "  ringwise explain 10.0.0.1:1234-10.0.0.2:80/tcp
  ringwise explain --sockets eth0
  ringwise explain --pcap trace.pcap eth0 --what-if channels.combined=4
  ringwise explain --synthetic count=10000,zipf=1.0 eth0 --balance",
        "  0  explained
  1  the host or the flows cannot be read; 2 wrong command line",
    )
};
const APPLY: Page = Page::new(
    "  ringwise apply eth0 --goal rpc
  ringwise apply eth0.plan                        a file of ringwise plan --out
  ringwise apply --goal forward --confirm 60s     then: ringwise confirm
  ringwise apply -n                               show the plan, change nothing",
    "  0  applied, or nothing to do
  1  error, nothing was changed; 2 wrong command line
  3  applied, except settings that were refused or ignored, or that wait for an
     offline CPU; also if a trial could not be confirmed
  4  failed, and everything was restored; 5 failed, and not fully restored
  6  refused before anything was changed",
);
const CONFIRM: Page = Page::new(
    "  ringwise apply --goal rpc --confirm 60s
  ringwise confirm                  within 60 seconds, from any session",
    "  0  kept, also if it was confirmed before
  3  the guard process does not answer; the message shows whether the changes
     are kept, and which process to end
  4  too late, the changes are restored; 5 too late, and not fully restored
  6  nothing is on trial, or the trial has ended and its guard is gone
  1  error; 2 wrong command line",
);
const VERIFY: Page = Page {
    disturbs: Some(
        "  The same as plan. With --for: /proc/interrupts and /proc/net/softnet_stat
  twice more (counters of every CPU, no interrupt).",
    ),
    ..Page::new(
        "  ringwise verify
  ringwise verify --for 5s          also count interrupts",
        "  0  everything is as applied
  3  a setting differs or cannot be read; a transaction is on trial, unfinished
     or cannot be read; with --for also: a queue is stuck, or its interrupts or
     packets are on another CPU
  1  the host or the record of transactions cannot be read; 2 wrong command line",
    )
};
const CHECK: Page = Page {
    disturbs: Some(
        "  The same as show, then what watch reads, twice (--for apart). Also one dump of
  all queueing disciplines, two more requests for each interface with queues of
  its own (EEE, rings), its PCI configuration space, and about thirty small
  files: count and limit of conntrack, clock, flags of the first CPU, modules,
  packet sockets. Nothing is written except the file of --accept.",
    ),
    ..Page::new(
        "  ringwise check
  ringwise check eth0 --goal rpc --fail-on warning
  ringwise check --from caps/*.tar.gz             many hosts, worst first
  ringwise check --explain A02
  ringwise check --accept A02 --reason 'known, see ticket 12' --until 2027-03-01",
        "  0  no finding of severity error, or of --fail-on and above
  3  there are such findings
  1  the host, or one of several captures, cannot be read; 2 wrong command line",
    )
};
const WATCH: Page = Page {
    disturbs: Some(
        "  At each interval: one request for the counters of each interface, and one for
  its pause frames where the driver counts them; one dump of all queueing
  disciplines; the counters of the queues, by netdev-genl where the driver
  supports that, else everything that ethtool -S shows, which some drivers
  request from their firmware; /proc/stat, /proc/net/softnet_stat and three more
  files of /proc/net; a small file for each interrupt of a queue and for each
  CPU. With --once, -j and --record also two or three small files for each
  transmit queue, and one for each idle state of each CPU that handles
  interrupts. When an interface appears, disappears or changes its queues, it is
  read again. A device that does not answer delays nothing else.
  -v reports the cost of each sample.
  --per-flow sends nothing to the device. It opens a packet socket for each
  receive queue; the filter of that socket runs for every received packet. The
  number of packets that are looked at is limited, and none is stored.",
    ),
    ..Page::new(
        "  ringwise watch                    the full screen
  ringwise watch eth0 --plain --interval 5s --count 12
  ringwise watch eth0 --record eth0.rec   then: ringwise watch --replay eth0.rec
  ringwise watch eth0 --per-flow",
        "  0  ended as requested
  1  the host or the recording cannot be read; 2 wrong command line",
    )
};
const EXPORT: Page = Page {
    disturbs: Some(
        "  For each request, but at most once a second: what an interval of watch -j
  reads. At most once per --verify-every: what verify reads, for the settings
  that are in effect. At most once per --check-every: what check reads, without
  its second sample. No capability is needed. What cannot be read without root
  is omitted and counted by ringwise_unread and ringwise_check_rules_unread.",
    ),
    ..Page::new(
        "  ringwise export                   serves http://127.0.0.1:9787/metrics
  ringwise export --listen 192.0.2.7:9787
  ringwise export --textfile /var/lib/node_exporter --interval 30s",
        "  0  the file was written (--textfile without --interval)
  1  cannot listen, write or read the host; 2 wrong command line",
    )
};
const ROLLBACK: Page = Page {
    notes: "Settings that interrupt traffic (channels, rings, most features, pause frames)
are restored too, without --allow-disruption: a link can go down again. -n
reports it. If that would interrupt the control path, rollback refuses unless
--force and --confirm are given.
rollback also works while the service (ringwise daemon) runs. The service does
not set the rolled back interfaces again in this boot, unless you apply.
A rollback does not change what the next boot applies. To stop that too:
ringwise persist --remove",
    ..Page::new(
        "  ringwise rollback                 lists the last transactions
  ringwise rollback 12 -n           shows what would be restored
  ringwise rollback 12
  ringwise rollback 0               every setting as first found since boot",
        "  0  restored, or nothing to do
  1  error, nothing was changed; 2 wrong command line, or no ID
  3  restored, except settings that were refused or ignored, or that wait for an
     offline CPU
  4  failed, and undone; 5 failed, and not fully undone
  6  refused, for example because settings changed since (see --take-over)",
    )
};
const ADOPT: Page = Page::new(
    "  ringwise adopt eth0 -n            lists the manual changes
  ringwise adopt eth0 --reason 'larger rings for backups'
  ringwise adopt --all",
    "  0  adopted, or nothing to adopt
  1  error; 2 wrong command line; 6 refused, nothing was recorded",
);
const HISTORY: Page = Page::new(
    "  ringwise history
  ringwise history 12
  ringwise history -j",
    "  0  listed
  1  the record cannot be read, or there is no such transaction
  2  wrong command line",
);
const LEARNED: Page = Page::new(
    "  ringwise learned
  ringwise learned eth0
  ringwise learned eth0 --forget    the next plan tries these settings again",
    "  0  listed or forgotten
  1  the record cannot be read, or contains nothing about DEV
  2  wrong command line",
);
const REPORT: Page = Page {
    notes: "The counters are in the record of transactions (measure-NNNN.rec; the last 20,
at most 32 MB), where apply --measure stored them. If the measurement was
interrupted, or the transaction was confirmed later, the second window lasts
until now: counters are read once, as watch reads them.
The traffic before and after was not the same: the numbers show what happened,
not what caused it.",
    ..Page::new(
        "  ringwise apply --goal rpc --measure 5m          makes transaction 12
  ringwise report --since 12
  ringwise report --since 12 --html report.html",
        "  0  reported
  1  there is no such transaction, or it was not measured; 2 wrong command line",
    )
};
const RECOVER: Page = Page::new(
    "  ringwise recover -n               shows what would be restored
  ringwise recover",
    "  0  restored, or nothing to do
  1  error; 2 wrong command line
  3  restored, except settings that were refused or ignored, or that wait for an
     offline CPU
  4  failed, and undone; 5 not fully restored
  6  refused before anything was changed",
);
const DAEMON: Page = Page {
    disturbs: Some(
        "  Every 10 s what verify reads, as far as settings in effect need it. Every
  correction is a transaction with a guard and a journal, like apply; at most
  one in 10 s. A correction interrupts traffic only on a device that was set up
  again. The first start in a boot and a reload (SIGHUP) apply the configuration
  file: with allow_disruption = true in it, links can go down for seconds. If
  that would interrupt the control path (an ssh session, the default route, a
  network mount), the changes that interrupt traffic are skipped.",
    ),
    notes: "It learns of changes by notifications of the kernel. Two seconds after the last
one, it writes again what a driver or the kernel has reset. What a person or a
program has changed is a manual change: it stays and is reported once. apply,
rollback, confirm and adopt decide; their result is kept from then on.
SIGHUP loads the configuration again and applies it. SIGTERM ends the service;
settings stay, except what was changed because of the load (RSS tables, CPUs of
interrupts with XPS, RPS masks, settings of groups), which is restored after
15 s.",
    ..Page::new(
        "  ringwise persist --daemon         enables ringwise-daemon.service
  ringwise daemon --config none     in the foreground; keeps what apply has set
  ringwise daemon pause eth0
  ringwise daemon resume",
        "  0  ended, or the request was carried out
  1  error; 2 wrong command line
  6  refused: the service runs already",
    )
};
const DAEMON_PAUSE: Page = Page::new(
    "  ringwise daemon pause             the whole host, until resume
  ringwise daemon pause eth0",
    "  0  paused
  1  the service does not run, or does not answer; 2 wrong command line",
);
const DAEMON_RESUME: Page = Page::new(
    "  ringwise daemon resume
  ringwise daemon resume eth0",
    "  0  resumed
  1  the service does not run, or does not answer; 2 wrong command line",
);
const DAEMON_STOP: Page = Page {
    notes: "--restore also restores settings that interrupt traffic, so a link can go down.
It is refused if that would interrupt the control path (an ssh session, the
default route, a network mount). Then stop the service, and run
ringwise rollback 0 --force --confirm 60s",
    ..Page::new(
        "  ringwise daemon stop              settings stay in effect
  ringwise daemon stop --restore    every setting as first found since boot",
        "  0  stopped
  1  the service does not run or does not answer; 2 wrong command line
  3  stopped, and restored except settings that were refused or ignored, or that
     wait for an offline CPU
  4  the restore failed, and was undone; 5 failed, and not fully restored: the
     service continues
  6  the restore was refused, and the service continues",
    )
};
const HOLD: Page = Page::new(
    "  ringwise hold --cpu-latency 0 -- sockperf ping-pong -i 192.0.2.7
  ringwise hold --cpu-latency 10 -- sleep 1h",
    "  The status of CMD, or 128 plus the signal number if a signal ended CMD.
  125  hold itself failed, and CMD was not started
  126  CMD cannot be executed
  127  CMD was not found
  Signals are passed on to CMD.",
);
const CAPTURE: Page = Page {
    disturbs: Some(
        "  The same as show, then /proc/stat, /proc/softirqs, /proc/net/softnet_stat and
  /proc/cpuinfo, every file of the device directories that show reads, and what
  check reads. With --for also the counters of watch, twice.",
    ),
    notes: "With --redact the same original gets the same replacement everywhere, and show,
check and plan give the same results apart from names.
Replaced: MAC and IP addresses, ids of ports and switches, host name, machine
and boot id, UUIDs, aliases and alternative names of interfaces, user names,
serial numbers, passwords and tokens that are labelled as such, servers and
shares of mounts, URLs.
Removed: reasons and health commands, values of command lines, values in files
of other programs, attributes and files that ringwise does not know.
Kept: names of interfaces and of files that set queues, drivers, models,
versions, CPU and PCI layout, RSS keys, times. docs/capture.md has the tables.",
    ..Page::new(
        "  ringwise capture host.tar.gz
  ringwise capture host.tar.gz --redact
  ringwise capture host.tar.gz --for 5s   then: check --from host.tar.gz",
        "  0  written
  1  the file exists or cannot be written, or the host cannot be read
  2  wrong command line",
    )
};
const PERSIST: Page = Page {
    notes: "persist uses /etc/ringwise/ringwise.toml, or the file of --config; a file that
you gave to apply does not matter here. If the file exists, every boot applies
it as it is, and persist refuses options that request a setting or a goal: edit
the file instead. If it does not exist, persist writes it: from the options, or
without options with the goals and options that were applied, and with the
values that you set yourself or adopted. What a goal decides, such as the CPU of
each interrupt, is not in the file: each boot plans it. allow_disruption is in
it if an apply whose settings are in effect had --allow-disruption.

--remove stops applying at boot, and leaves that file and the settings in effect
as they are. It does not stop a service that runs. To undo everything:
  ringwise persist --remove         no boot applies anything any more
  ringwise daemon stop --restore    if the service runs: ends it and restores
  ringwise rollback 0               otherwise: every setting as first found
Files that you made with config export (.link, ...) stay until you remove them.

The boot does not wait for the units of ringwise. If one fails, nothing else
does: systemctl --failed lists it. Each interface also has a unit of its own. It
starts at boot, or when the interface appears or is renamed later, and waits up
to one minute for the link.
If the host stops without an orderly shutdown within five minutes after a boot
has tuned it, later boots do not apply the configuration. ringwise status
reports this. To apply it again, repeat your command: ringwise persist, or
ringwise persist --daemon.",
    ..Page::new(
        "  ringwise persist                  the file, or else what you applied
  ringwise persist --goal rpc
  ringwise persist -n               lists the files
  ringwise persist --remove",
        "  0  written, removed, or nothing to do
  1  error; 2 wrong command line; 6 refused before anything was changed",
    )
};
const CONFIG: Page = Page::new(
    "  ringwise config init > /etc/ringwise/ringwise.toml
  ringwise config check
  ringwise config show
  ringwise config export --as udev",
    "  0  fine
  1  the file has faults or cannot be read; 2 wrong command line
  3  check --from: the file fits a host only partly",
);
const SUPPORT: Page = Page {
    disturbs: Some(
        "  The same as capture, the kernel's log once, and the driver version of each
  interface.",
    ),
    notes: "The archive is always redacted, as ringwise capture --help describes. Journals
and state files are stored without --reason, --health and the output of health
commands; of command lines only the program and the names of options are kept.
Of the kernel's log, lines that begin with an interface or its driver are kept,
and a few known forms of lines about them; the other lines are counted.
docs/capture.md has the tables.",
    ..Page::new(
        "  ringwise support -n host.tar.gz   lists what it would contain
  ringwise support host.tar.gz",
        "  0  written or listed
  1  the file exists or cannot be written, or the host cannot be read
  2  wrong command line",
    )
};
const BENCH: Page = Page {
    disturbs: Some(
        "  It loads the network between the two ends and the CPUs of both, for the time
  that it prints before it begins. Each state is a transaction on trial. It is
  restored before the next state is measured, at the end, at a signal, and by
  its guard if ringwise is killed or the time of its measurement is over.
  Before and after each trial: what watch reads. During a trial, a thread on
  each CPU that is not isolated wakes up every ten milliseconds to measure how
  late it runs. forward --routes adds routes of its own (ip route show proto
  251) while it measures. serve and report change nothing; serve sends and
  answers at the request of the other host.",
    ),
    ..Page::new(
        "  ringwise bench serve --listen 192.0.2.7:4710 --secret-file s.txt    (the peer)
  ringwise bench rr eth0 --peer 192.0.2.7:4710 --secret-file s.txt \\
      --state 'tuned=--goal rpc' --html rr.html
  ringwise bench search eth0 --ssh peer1 --size 256 --threads 4 --save best.toml
  ringwise bench report rr.jsonl",
        "  0  measured, and the host is as found
  1  error; 2 wrong command line
  3  report: the files were measured under different conditions
  4  failed, and restored; 5 failed, and not fully restored
  6  refused before anything was changed",
    )
};

const BENCH_RR: Page = bench(
    "  ringwise bench rr eth0 --ssh peer1 --state 'tuned=--goal rpc'
  ringwise bench rr eth0 --peer 192.0.2.7:4710 --secret-file s.txt --goals rpc",
);
const BENCH_BURST: Page = bench(
    "  ringwise bench burst eth0 --ssh peer1 --sweep queues=1,2,4
  ringwise bench burst eth0 --ssh peer1 --size 64,1k --threads 8 --burst 16",
);
const BENCH_MIXED: Page = bench(
    "  ringwise bench mixed eth0 --ssh peer1 --goals rpc,mixed
  ringwise bench mixed eth0 --ssh peer1 --mix 1/2:1/2 --weight 0.7",
);
const BENCH_STREAM: Page = bench(
    "  ringwise bench stream eth0 --ssh peer1 --sweep eth0.coalesce.rx-usecs=0,10,50
  ringwise bench stream eth0 --ssh peer1 --driver iperf3",
);
const BENCH_RECEIVE: Page = bench("  ringwise bench receive eth0 --ssh peer1");
const BENCH_FORWARD: Page = bench(
    "  ringwise bench forward --in eth0,eth1 --out eth2 --ssh gen1 --gen eth0,eth1 \\
      --sink eth2 --state 'tuned=--goal forward --allow-disruption'
  ... --find-rate                   also find the highest rate without loss",
);
const BENCH_SEARCH: Page = bench(
    "  ringwise bench search eth0 --ssh peer1 --size 256 --threads 4
  ringwise bench search eth0 --ssh peer1 --workload stream --size 1k \\
      --threads 4 --among queues,rings --allow-disruption --save best.toml",
);
const BENCH_SERVE: Page = Page::new(
    "  ringwise bench serve --listen 192.0.2.7:4710 --secret-file s.txt
  ringwise bench serve --listen 192.0.2.7:4710 --secret-file s.txt \\
      --allow-pktgen eth1",
    "  0  ended by a signal
  1  cannot listen; 2 wrong command line",
);
const BENCH_REPORT: Page = Page::new(
    "  ringwise bench report rr.jsonl --html rr.html
  ringwise bench report before.jsonl after.jsonl",
    "  0  reported
  3  the files were measured under different conditions
  1  a file cannot be read or written; 2 wrong command line",
);
const CONFIG_CHECK: Page = Page::new(
    "  ringwise config check
  ringwise config check ./new.toml
  ringwise config check ./new.toml --from caps/*",
    "  0  the file has no faults; with --from: it fits every captured host
  3  with --from: it fits a host only partly
  1  it has faults or cannot be read; with --from: it fails on a host, or a
     capture cannot be used; 2 wrong command line",
);
const CONFIG_SHOW: Page = Page::new(
    "  ringwise config show
  ringwise config show ./new.toml --from host.tar.gz",
    "  0  shown
  1  the file or the host cannot be read, or they do not match
  2  wrong command line",
);
const CONFIG_INIT: Page = Page::new(
    "  ringwise config init > /etc/ringwise/ringwise.toml
  ringwise config init --goal forward --from host.tar.gz",
    "  0  printed
  1  the host cannot be read; 2 wrong command line",
);
const CONFIG_IMPORT: Page = Page::new(
    "  ringwise config import --out /etc/ringwise/ringwise.toml
  ringwise config import --from host.tar.gz --tuned ./tuned.conf
  ringwise config import > new.toml && ringwise plan --config new.toml",
    "  0  written; what could not be carried over is listed on stderr
  1  the host or a file cannot be read, or the file of --out exists or cannot
     be written; 2 wrong command line",
);
const CONFIG_EXPORT: Page = Page::new(
    "  ringwise config export --as link
  ringwise config export ./new.toml --as nmstate --from host.tar.gz",
    "  0  printed; settings that the format cannot express are listed on stderr
  1  the file or the host cannot be read, they do not match, or the format can
     express none of the settings
  2  wrong command line",
);
const CONFIG_SCHEMA: Page = Page::new(
    "  ringwise config schema > ringwise.schema.json",
    "  0  printed
  1  cannot write; 2 wrong command line",
);
const HELP: Page = Page {
    disturbs: Some(
        "  Only a topic with a part \"On this host\" reads the host: what status reads, and
  for a setting its files or requests.",
    ),
    ..Page::new(
        "  ringwise help rps                 a setting: meaning, how to set it, values
  ringwise help far                 a word of the output
  ringwise help forward             a goal
  ringwise help A03                 a rule of ringwise check
  ringwise help rules               all rules
  ringwise help apply               the same as ringwise apply --help
  ringwise help --topics            all topics",
        "  0  shown
  1  the file of --from cannot be read; 2 wrong command line, or no such topic",
    )
};

/// The pages of commands, by their names as typed behind `ringwise`.
const PAGES: [(&str, Page); 42] = [
    ("status", STATUS),
    ("show", SHOW),
    ("check", CHECK),
    ("explain", EXPLAIN),
    ("plan", PLAN),
    ("apply", APPLY),
    ("confirm", CONFIRM),
    ("verify", VERIFY),
    ("watch", WATCH),
    ("export", EXPORT),
    ("rollback", ROLLBACK),
    ("adopt", ADOPT),
    ("persist", PERSIST),
    ("daemon", DAEMON),
    ("daemon pause", DAEMON_PAUSE),
    ("daemon resume", DAEMON_RESUME),
    ("daemon stop", DAEMON_STOP),
    ("history", HISTORY),
    ("learned", LEARNED),
    ("report", REPORT),
    ("recover", RECOVER),
    ("bench", BENCH),
    ("bench rr", BENCH_RR),
    ("bench burst", BENCH_BURST),
    ("bench mixed", BENCH_MIXED),
    ("bench stream", BENCH_STREAM),
    ("bench receive", BENCH_RECEIVE),
    ("bench forward", BENCH_FORWARD),
    ("bench search", BENCH_SEARCH),
    ("bench serve", BENCH_SERVE),
    ("bench report", BENCH_REPORT),
    ("hold", HOLD),
    ("capture", CAPTURE),
    ("config", CONFIG),
    ("config check", CONFIG_CHECK),
    ("config show", CONFIG_SHOW),
    ("config init", CONFIG_INIT),
    ("config import", CONFIG_IMPORT),
    ("config export", CONFIG_EXPORT),
    ("config schema", CONFIG_SCHEMA),
    ("support", SUPPORT),
    ("help", HELP),
];

/// The page of a command, such as `bench rr`.
pub(crate) fn of(command: &str) -> Option<Page> {
    PAGES.iter().find(|(name, _)| *name == command).map(|(_, page)| *page)
}
