//! The texts of the files: a service at boot, a service for an interface that appears late, and the files that start them.

use ringwise_model::DEFAULT_CONFIG;

use crate::paths::{DAEMON, LATE, LIVED, RULES, SERVICE, TIMER, WANTS, names, packaged};

/// Values that all files share.
#[derive(Debug, Clone, Copy)]
pub struct Units<'a> {
    /// The program, as its absolute path.
    pub program: &'a str,
    /// The configuration that is applied.
    pub config: &'a str,
    /// `--state-dir`
    pub state_dir: Option<&'a str>,
    /// Whether the service follows the load; otherwise its unit does not have what only counting packets needs.
    pub follow: bool,
}

/// First line of every file that `persist` writes; by it the file is recognized. The number is that of the format.
pub(crate) const MARK: &str = "# ringwise-persist: 1\n";
/// The same in files of 0.1 and 0.2.
pub(crate) const OLD_MARK: &str = "# Written by ringwise persist; ringwise persist --remove takes it away.\n";
const OWN_HEAD: &str = "# ringwise-persist: 1\n# ringwise persist --remove removes this file.\n";
const PACKAGED_HEAD: &str = "# Inactive until ringwise persist, or systemctl enable ringwise.service.\n";
const PACKAGED_DAEMON_HEAD: &str =
    "# Inactive until ringwise persist --daemon, or systemctl enable --now ringwise-daemon.service.\n";

/// Hardening of every unit. A system call that systemd does not know fails as on a kernel without it; older versions
/// have `close_range` in no group.
const COMMON: &str = "NoNewPrivileges=yes
ProtectSystem=full
ProtectHome=read-only
PrivateMounts=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service close_range
SystemCallFilter=~@privileged
SystemCallErrorNumber=ENOSYS
IPAddressDeny=any
";

/// Hardening of units that apply: what is not restricted, and why.
const APPLIES: &str = "# What ringwise needs, and what is not restricted because of it:
# NET_ADMIN: netlink, ethtool and the files below /sys/class/net. SYS_NICE: CPUs of NAPI threads.
# SYS_PTRACE and DAC_READ_SEARCH: which process holds which socket (ssh sessions, programs that the configuration names),
# and whether the first process, which starts the guard, sees the same files. SYS_RESOURCE: a guard that is started
# without systemd is not the first process to be killed when memory runs out.
CapabilityBoundingSet=CAP_NET_ADMIN CAP_SYS_NICE CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_SYS_RESOURCE
# Unix: systemd, irqbalance, the guard, the journal. Netlink: settings. Inet: ethtool's ioctl; no packet is sent.
RestrictAddressFamilies=AF_UNIX AF_NETLINK AF_INET
# ProtectKernelTunables: /proc/irq, /proc/sys/net and /sys/class/net are written. ProtectControlGroups: a guard that is
# started without systemd leaves this unit's group. ProtectProc, ProcSubset: see SYS_PTRACE, and /proc/interrupts is read.
# UMask: all users may read /run/ringwise/status.json. PrivateTmp: the state directory may be in /tmp.
";

/// What the service needs in addition, to count packets by entry of the RSS table.
const FOLLOWS: &str = "# To count packets by entry of the RSS table while the load is uneven: a packet socket with a socket filter, whose counters
# Linux 5.10 counts as locked memory. ringwise persist --daemon --follow off writes a unit without them.
CapabilityBoundingSet=CAP_NET_RAW CAP_BPF
RestrictAddressFamilies=AF_PACKET
SystemCallFilter=bpf
LimitMEMLOCK=64M
";

/// Hardening of the unit that writes one file of the state directory.
const REMEMBERS: &str = "CapabilityBoundingSet=
RestrictAddressFamilies=AF_UNIX
PrivateNetwork=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
";

impl Units<'_> {
    /// Path below the root, and text.
    pub(crate) fn files(&self) -> Vec<(&'static str, String)> {
        let texts = [
            (SERVICE, self.service()),
            (LATE, self.late()),
            (LIVED, self.lived()),
            (TIMER, timer()),
            (RULES, rules()),
            (DAEMON, self.daemon()),
        ];
        texts.into_iter().map(|(path, text)| (path, format!("{OWN_HEAD}{text}"))).collect()
    }

    /// The same files for a package: paths below the root, in the directories of packages, and texts.
    pub fn packaged(&self) -> Vec<(String, String)> {
        let files = self.files().into_iter();
        files.map(|(path, t)| (packaged(path), t.replacen(OWN_HEAD, packaged_head(path), 1))).collect()
    }

    fn program(&self) -> String {
        let dir = self.state_dir.map(|d| format!(" --state-dir {}", word(d))).unwrap_or_default();
        format!("{}{dir}", word(self.program))
    }

    fn apply(&self) -> String {
        format!("{} apply --config {} --yes --boot", self.program(), word(self.config))
    }

    /// The state directory may be below /usr, /etc and /root too.
    fn sandbox(&self, own: &str) -> String {
        let dir = self.state_dir.map(|d| format!("ReadWritePaths={}\n", quoted(&format!("-{d}")))).unwrap_or_default();
        format!("\n{own}{COMMON}{dir}")
    }

    /// No `Before=`: only the end of multi-user.target waits for this service, at most for its start timeout.
    fn service(&self) -> String {
        format!(
            "[Unit]
Description=Tune network interfaces as configured in {config}
Documentation=man:ringwise-persist(8)
After=network-pre.target network.target systemd-sysctl.service irqbalance.service tuned.service
Wants=ringwise-lived.timer

[Service]
Type=oneshot
RemainAfterExit=yes
{names}
ExecStart={apply}
ExecStop={program} persist --lived
TimeoutStartSec=3min
{sandbox}
[Install]
WantedBy=multi-user.target
",
            sandbox = self.sandbox(APPLIES),
            config = percent(self.config),
            names = names(self.config),
            apply = self.apply(),
            program = self.program(),
        )
    }

    fn late(&self) -> String {
        format!(
            "[Unit]
Description=Tune network interfaces after %i appeared
Documentation=man:ringwise-persist(8)
After=ringwise.service network-pre.target
Before=ringwise-lived.timer
Wants=ringwise-lived.timer

[Service]
Type=oneshot
ExecStart={apply} --late %i
TimeoutStartSec=5min
{sandbox}",
            apply = self.apply(),
            sandbox = self.sandbox(APPLIES),
        )
    }

    /// The longest start waits for another `--boot` first. The default file is not named: the service needs none.
    fn daemon(&self) -> String {
        let config = match self.config {
            DEFAULT_CONFIG => String::new(),
            other => format!(" --config {}", word(other)),
        };
        let (follow, needs) = if self.follow { ("", FOLLOWS) } else { (" --follow off", "") };
        format!(
            "[Unit]
Description=Keep network interfaces tuned as configured in {described}
Documentation=man:ringwise-daemon(8)
After=network-pre.target network.target systemd-sysctl.service irqbalance.service tuned.service

[Service]
Type=notify
{names}
ExecStart={program} daemon{config}{follow}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5s
TimeoutStartSec=5min
# A stop during a transaction waits until its settings are put back.
TimeoutStopSec=3min
# Longer than the longest wait within a transaction, for another run: 2 min.
WatchdogSec=3min
# A load that changes all the time must not fill the journal. journald allows several times as many if it has much space.
LogRateLimitIntervalSec=1min
LogRateLimitBurst=1000
# Only the service is stopped, not a guard that was started without systemd: when the service is killed during a
# transaction, the guard restores the settings.
KillMode=process
{sandbox}{needs}
[Install]
WantedBy=multi-user.target
",
            described = percent(self.config),
            names = names(self.config),
            program = self.program(),
            sandbox = self.sandbox(APPLIES),
        )
    }

    fn lived(&self) -> String {
        format!(
            "[Unit]
Description=Record that this boot outlived the tuning of its network interfaces

[Service]
Type=oneshot
ExecStart={program} persist --lived
{sandbox}",
            program = self.program(),
            sandbox = self.sandbox(REMEMBERS),
        )
    }
}

fn packaged_head(path: &str) -> &'static str {
    if path == DAEMON { PACKAGED_DAEMON_HEAD } else { PACKAGED_HEAD }
}

fn timer() -> String {
    "[Unit]
Description=Wait five minutes after network interfaces were tuned
After=ringwise.service

[Timer]
OnActiveSec=5min
AccuracySec=1s
RemainAfterElapse=no
"
    .into()
}

/// Runs after 80-net-setup-link.rules, which names the interface. `move`: the interface was renamed. Nothing happens while
/// the service is not enabled.
fn rules() -> String {
    format!(
        "ACTION==\"add|move\", SUBSYSTEM==\"net\", TEST==\"device/driver\", TEST==\"/{WANTS}\", TAG+=\"systemd\", \
         ENV{{SYSTEMD_WANTS}}+=\"ringwise@$name.service\"\n"
    )
}

fn percent(text: &str) -> String {
    text.replace('%', "%%")
}

/// Quotes one argument of a command line in a unit.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@+=".contains(c);
    if text.chars().all(plain) {
        return text.to_string();
    }
    quoted(text).replace('$', "$$")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", percent(text).replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::ALONE_WITHIN;

    #[test]
    fn no_unit_is_ordered_before_the_network() {
        let u = Units { program: "/usr/sbin/ringwise", config: DEFAULT_CONFIG, state_dir: None, follow: true };
        for (path, text) in u.files() {
            let before = text.lines().filter(|l| l.starts_with("Before=")).collect::<Vec<_>>();
            assert!(before.iter().all(|l| *l == "Before=ringwise-lived.timer"), "{path}: {before:?}");
            assert!(!text.contains("RequiredBy") && !text.contains("network-online"), "{path}");
        }
    }

    #[test]
    fn the_start_takes_longer_than_the_wait_for_another() {
        let u =
            Units { program: "/usr/sbin/ringwise", config: "/etc/r.toml", state_dir: Some("/srv/a b"), follow: true };
        for text in [u.service(), u.late(), u.daemon()] {
            let minutes = text.lines().find_map(|l| l.strip_prefix("TimeoutStartSec=")?.strip_suffix("min"));
            let start = std::time::Duration::from_secs(60 * minutes.unwrap().parse::<u64>().unwrap());
            assert!(start >= ALONE_WITHIN + std::time::Duration::from_secs(60), "{text}");
            assert!(text.contains("\nReadWritePaths=\"-/srv/a b\"\n"), "{text}");
        }
    }

    #[test]
    fn files_of_a_package_are_the_same_in_other_directories() {
        let u = Units { program: "/usr/sbin/ringwise", config: DEFAULT_CONFIG, state_dir: None, follow: true };
        for ((path, text), (there, packaged)) in u.files().into_iter().zip(u.packaged()) {
            assert!(text.starts_with(MARK) && !packaged.contains("ringwise-persist:"), "{there}");
            assert_eq!(text.strip_prefix(OWN_HEAD), packaged.strip_prefix(packaged_head(path)), "{there}");
            assert_eq!(there.rsplit('/').next(), path.rsplit('/').next());
            assert!(there.starts_with("usr/lib/"), "{there}");
        }
    }

    #[test]
    fn the_service_needs_no_configuration_at_the_default_place() {
        let start = |config| {
            let text =
                Units { program: "/usr/sbin/ringwise", config, state_dir: Some("/srv/s"), follow: true }.daemon();
            text.lines().find_map(|l| l.strip_prefix("ExecStart=")).unwrap().to_string()
        };
        assert_eq!(start(DEFAULT_CONFIG), "/usr/sbin/ringwise --state-dir /srv/s daemon");
        assert_eq!(start("/etc/r.toml"), "/usr/sbin/ringwise --state-dir /srv/s daemon --config /etc/r.toml");
    }

    #[test]
    fn a_service_that_does_not_follow_the_load_counts_no_packets() {
        let unit = |follow| {
            let u = Units { program: "/usr/sbin/ringwise", config: "/etc/r.toml", state_dir: None, follow };
            u.daemon().lines().filter(|l| !l.starts_with('#')).map(str::to_string).collect::<Vec<_>>()
        };
        let (with, without) = (unit(true), unit(false));
        let only = |a: &[String], b: &[String]| a.iter().filter(|l| !b.contains(l)).cloned().collect::<Vec<_>>();
        assert_eq!(only(&without, &with), ["ExecStart=/usr/sbin/ringwise daemon --config /etc/r.toml --follow off"]);
        assert_eq!(
            only(&with, &without),
            [
                "ExecStart=/usr/sbin/ringwise daemon --config /etc/r.toml",
                "CapabilityBoundingSet=CAP_NET_RAW CAP_BPF",
                "RestrictAddressFamilies=AF_PACKET",
                "SystemCallFilter=bpf",
                "LimitMEMLOCK=64M",
            ]
        );
        let granted = |list: &[String], what: &str| list.iter().any(|l| l.contains(what));
        for what in ["CAP_NET_RAW", "CAP_BPF", "MEMLOCK", "AF_PACKET"] {
            assert!(granted(&with, what) && !granted(&without, what), "{what}");
        }
        // What changes settings stays.
        assert!(granted(&without, "CapabilityBoundingSet=CAP_NET_ADMIN "), "{without:?}");
    }

    #[test]
    fn the_watchdog_waits_longer_than_the_service_may() {
        let u = Units { program: "/usr/sbin/ringwise", config: "/etc/r.toml", state_dir: None, follow: true };
        let minutes =
            u.daemon().lines().find_map(|l| l.strip_prefix("WatchdogSec=")?.strip_suffix("min")?.parse().ok());
        let watchdog = minutes.map(|m: u64| std::time::Duration::from_secs(60 * m));
        assert!(watchdog.is_some_and(|w| w >= ALONE_WITHIN + std::time::Duration::from_secs(60)));
    }

    #[test]
    fn words_of_a_unit() {
        assert_eq!(word("/etc/a b%.toml"), "\"/etc/a b%%.toml\"");
        assert_eq!(word("/etc/ringwise.toml"), "/etc/ringwise.toml");
    }
}
