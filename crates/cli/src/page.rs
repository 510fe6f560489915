//! What `--help` and the man page of a command have in common: examples, exit statuses, notes, files and related pages.

/// What every command that reads the host disturbs.
pub(crate) const READING: &str = "  Before it reads anything else, ringwise moves itself and its children off the
  isolated CPUs (isolcpus, nohz_full, isolated cgroup partitions). To find them
  it reads three files, on whichever CPU the caller runs. Where it is allowed to
  use isolated CPUs only (taskset), it stays there. -v reports this.
  Requests to the kernel (netlink, ethtool) take the network lock, which all
  interfaces share: a program that changes an interface meanwhile waits, and
  some drivers wake a sleeping device. Reading speed, duplex, carrier and XPS
  maps takes the lock too. Commands that have --passive (show, check, ...) send
  no such request with it, and skip the energy preference and /proc/cpuinfo,
  which interrupts other CPUs on older kernels (x86). Skipped values are shown
  as unknown.";

/// The texts of a command behind its options. Lines have at most 80 columns; those of lists begin with two spaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub examples: &'static str,
    pub status: &'static str,
    /// What reading disturbs, for commands that read the host.
    pub disturbs: Option<&'static str>,
    /// Empty: none.
    pub notes: &'static str,
}

impl Page {
    pub(crate) const fn new(examples: &'static str, status: &'static str) -> Self {
        Self { examples, status, disturbs: None, notes: "" }
    }

    /// The text that `--help` prints after the options.
    pub(crate) fn after_help(&self) -> String {
        let mut out = format!("Examples:\n{}\n\nExit status:\n{}", self.examples, self.status);
        if let Some(own) = self.disturbs {
            out += &format!("\n\nWhat it disturbs:\n{own}\n{}", READING);
        }
        if !self.notes.is_empty() {
            out += &format!("\n\n{}", self.notes);
        }
        out
    }
}

/// The page of `ringwise` itself.
pub(crate) const ROOT: Page = Page::new(
    "  ringwise                          is anything wrong?
  ringwise show eth0                which CPUs serve which queues
  ringwise check                    what costs packets or latency
  ringwise plan                     what would be better, and why
  ringwise apply                    tune, and restore everything if a step fails
  ringwise rollback 1               undo transaction 1",
    "  0  fine, or nothing to do
  1  error; nothing was changed
  2  wrong command line
  3  something needs attention: changed settings, findings, a trial
  4  failed, and everything was restored
  5  failed, and not fully restored
  6  refused before anything was changed",
);

/// Variables of the environment that decide how pages look, for the man page of `ringwise`.
pub(crate) const ENVIRONMENT: [(&str, &str); 4] = [
    (
        "COLUMNS",
        "Columns of a page that does not go to a terminal; without it, lines are not folded. A terminal has its own width, and \
         COLUMNS counts only if the terminal does not report one.",
    ),
    (
        "RINGWISE_COLUMNS",
        "Overrides COLUMNS for ringwise where the output is not a terminal. 0: lines are not folded, for scripts.",
    ),
    ("NO_COLOR", "If it is set and not empty, the output has no colours, unless --color always is given."),
    ("LC_ALL, LC_CTYPE, LANG", "Unless they name UTF-8, the output has only ASCII characters, as with --ascii."),
];

/// A file or directory, what it is for, and the commands that use it. No command: every one.
pub(crate) struct File {
    pub path: &'static str,
    pub about: &'static str,
    commands: &'static [&'static str],
}

const FILES: [File; 11] = [
    File {
        path: "/etc/ringwise/ringwise.toml",
        about: "The configuration; see ringwise.toml(5).",
        commands: &["plan", "apply", "check", "verify", "persist", "daemon", "config", "bench"],
    },
    File {
        path: "/etc/ringwise/accepted.json",
        about: "Accepted findings of ringwise check.",
        commands: &["check", "export"],
    },
    File {
        path: "/var/lib/ringwise/",
        about: "The record of transactions, readable by root alone. --state-dir names another directory.",
        commands: &[],
    },
    File {
        path: "/run/ringwise/status.json",
        about: "What is applied, for users who may not read the record.",
        commands: &["status", "verify", "history", "export", "apply", "confirm", "rollback", "adopt", "recover"],
    },
    File {
        path: "/run/ringwise/daemon.json",
        about: "What the service does, for every user to read.",
        commands: &["daemon", "status", "export"],
    },
    File {
        path: "/run/ringwise/daemon.sock",
        about: "The socket by which root talks to the service.",
        commands: &["daemon"],
    },
    File {
        path: "/etc/systemd/system/ringwise.service",
        about: "The unit that applies the configuration at boot.",
        commands: &["persist"],
    },
    File {
        path: "/etc/systemd/system/ringwise-daemon.service",
        about: "The unit of the service, which applies at boot and keeps the settings.",
        commands: &["persist", "daemon"],
    },
    File { path: "/proc, /sys", about: "What is read from the kernel.", commands: READERS },
    File {
        path: "/dev/cpu_dma_latency",
        about: "Limits the time that a CPU needs to wake up, while it is open.",
        commands: &["hold"],
    },
    File { path: "/var/lib/ringwise/bench/", about: "Results, unless --results names a file.", commands: &["bench"] },
];

const READERS: &[&str] =
    &["status", "show", "check", "explain", "plan", "apply", "verify", "watch", "export", "capture", "support", "help"];

/// The files of a command. Those of a subcommand are the files of its command.
pub(crate) fn files(command: &str) -> impl Iterator<Item = &'static File> {
    let first = command.split(' ').next().unwrap_or_default().to_string();
    FILES.iter().filter(move |f| first.is_empty() || f.commands.is_empty() || f.commands.contains(&first.as_str()))
}

/// Pages that help to understand a command, without the page of the command above it.
pub(crate) fn see_also(command: &str) -> &'static [&'static str] {
    match command.split(' ').next().unwrap_or_default() {
        "" => &["ringwise.toml(5)", "ethtool(8)", "ip-link(8)", "irqbalance(1)", "systemd.link(5)"],
        "status" => &["ringwise-show(8)", "ringwise-verify(8)", "ringwise-check(8)"],
        "show" => &["ringwise-check(8)", "ringwise-watch(8)", "ethtool(8)", "ip-link(8)"],
        "check" => &["ringwise-plan(8)", "ringwise-show(8)", "ringwise-watch(8)"],
        "explain" => &["ringwise-show(8)", "ringwise-watch(8)", "ethtool(8)", "ss(8)"],
        "plan" => &["ringwise-apply(8)", "ringwise-check(8)", "ringwise.toml(5)", "ethtool(8)"],
        "apply" => &["ringwise-plan(8)", "ringwise-confirm(8)", "ringwise-rollback(8)", "ringwise-persist(8)"],
        "confirm" => &["ringwise-apply(8)", "ringwise-rollback(8)"],
        "verify" => &["ringwise-apply(8)", "ringwise-adopt(8)", "ringwise-history(8)"],
        "watch" => &["ringwise-show(8)", "ringwise-export(8)", "ethtool(8)"],
        "export" => &["ringwise-watch(8)", "ringwise-check(8)"],
        "rollback" => &["ringwise-apply(8)", "ringwise-history(8)", "ringwise-recover(8)"],
        "adopt" => &["ringwise-verify(8)", "ringwise-apply(8)"],
        "persist" => &["ringwise-apply(8)", "ringwise-config(8)", "ringwise.toml(5)", "systemctl(1)"],
        "daemon" => &["ringwise-persist(8)", "ringwise-apply(8)", "ringwise-status(8)", "systemctl(1)"],
        "history" => &["ringwise-rollback(8)", "ringwise-verify(8)"],
        "learned" => &["ringwise-plan(8)", "ringwise-apply(8)"],
        "report" => &["ringwise-apply(8)", "ringwise-watch(8)", "ringwise-history(8)"],
        "recover" => &["ringwise-rollback(8)", "ringwise-status(8)"],
        "bench" => &["ringwise-plan(8)", "ringwise-watch(8)", "ip-netns(8)"],
        "hold" => &["ringwise-bench(8)", "taskset(1)"],
        "capture" => &["ringwise-support(8)", "ringwise-show(8)", "ringwise-check(8)"],
        "support" => &["ringwise-capture(8)"],
        "help" => &["ringwise-check(8)", "ringwise-plan(8)"],
        "config" => &["ringwise.toml(5)", "ringwise-plan(8)", "ringwise-persist(8)"],
        _ => &[],
    }
}
