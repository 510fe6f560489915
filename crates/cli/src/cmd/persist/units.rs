//! The files of `ringwise persist`: a service at boot, one for an interface that comes late, and who starts them.

use crate::boot;

/// What they say in common.
pub struct Units<'a> {
    pub program: &'a str,
    pub config: &'a str,
    pub state_dir: Option<&'a str>,
}

/// By it a file of ours is known.
pub const HEAD: &str = "# Written by ringwise persist; ringwise persist --remove takes it away.\n";

impl Units<'_> {
    /// Path below the root, and text.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        vec![
            (boot::SERVICE, self.service()),
            (boot::LATE, self.late()),
            (boot::LIVED, self.lived()),
            (boot::TIMER, timer()),
            (boot::RULES, rules()),
        ]
    }

    fn program(&self) -> String {
        let dir = self.state_dir.map(|d| format!(" --state-dir {}", word(d))).unwrap_or_default();
        format!("{}{dir}", word(self.program))
    }

    fn apply(&self) -> String {
        format!("{} apply --config {} --yes --boot", self.program(), word(self.config))
    }

    /// Ordered before nothing: nobody waits for it but the end of multi-user.target, and that no longer than the
    /// time of its start.
    fn service(&self) -> String {
        format!(
            "{HEAD}[Unit]
Description=Tunes network interfaces as {config} says
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

[Install]
WantedBy=multi-user.target
",
            config = percent(self.config),
            names = boot::names(self.config),
            apply = self.apply(),
            program = self.program(),
        )
    }

    fn late(&self) -> String {
        format!(
            "{HEAD}[Unit]
Description=Tunes network interfaces now that %i is there
Documentation=man:ringwise-persist(8)
After=ringwise.service network-pre.target
Before=ringwise-lived.timer
Wants=ringwise-lived.timer

[Service]
Type=oneshot
ExecStart={apply} --late %i
TimeoutStartSec=5min
",
            apply = self.apply()
        )
    }

    fn lived(&self) -> String {
        format!(
            "{HEAD}[Unit]
Description=Remembers that this boot outlived the tuning of its network interfaces

[Service]
Type=oneshot
ExecStart={program} persist --lived
",
            program = self.program()
        )
    }
}

fn timer() -> String {
    format!(
        "{HEAD}[Unit]
Description=Five minutes after network interfaces were tuned
After=ringwise.service

[Timer]
OnActiveSec=5min
AccuracySec=1s
RemainAfterElapse=no
"
    )
}

/// After 80-net-setup-link.rules, which names it. `move`: somebody renamed it.
fn rules() -> String {
    format!(
        "{HEAD}ACTION==\"add|move\", SUBSYSTEM==\"net\", TEST==\"device/driver\", TAG+=\"systemd\", ENV{{SYSTEMD_WANTS}}+=\"ringwise@$name.service\"\n"
    )
}

fn percent(text: &str) -> String {
    text.replace('%', "%%")
}

/// One word of a command line in a unit.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@+=".contains(c);
    if text.chars().all(plain) {
        return text.to_string();
    }
    format!("\"{}\"", percent(text).replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_unit_is_ordered_before_the_network() {
        let u = Units { program: "/usr/sbin/ringwise", config: "/etc/ringwise/ringwise.toml", state_dir: None };
        for (path, text) in u.files() {
            let before = text.lines().filter(|l| l.starts_with("Before=")).collect::<Vec<_>>();
            assert!(before.iter().all(|l| *l == "Before=ringwise-lived.timer"), "{path}: {before:?}");
            assert!(!text.contains("RequiredBy") && !text.contains("network-online"), "{path}");
        }
    }

    #[test]
    fn words_of_a_unit() {
        assert_eq!(word("/etc/a b%.toml"), "\"/etc/a b%%.toml\"");
        assert_eq!(word("/etc/ringwise.toml"), "/etc/ringwise.toml");
    }
}
