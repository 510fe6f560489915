//! The paths of the files of `ringwise persist`.

/// Below the root of the system.
pub(crate) const SERVICE: &str = "etc/systemd/system/ringwise.service";
pub(crate) const LATE: &str = "etc/systemd/system/ringwise@.service";
pub(crate) const LIVED: &str = "etc/systemd/system/ringwise-lived.service";
pub(crate) const TIMER: &str = "etc/systemd/system/ringwise-lived.timer";
pub(crate) const RULES: &str = "etc/udev/rules.d/81-ringwise.rules";
pub(crate) const WANTS: &str = "etc/systemd/system/multi-user.target.wants/ringwise.service";
pub(crate) const DAEMON: &str = "etc/systemd/system/ringwise-daemon.service";
pub(crate) const DAEMON_WANTS: &str = "etc/systemd/system/multi-user.target.wants/ringwise-daemon.service";
/// Beginning of the line in a unit that names the configuration.
pub(crate) const APPLIES: &str = "Environment=RINGWISE_CONFIG=";
/// All files except the links.
pub(crate) const FILES: [&str; 6] = [SERVICE, LATE, LIVED, TIMER, RULES, DAEMON];
/// The links that enable units.
pub(crate) const LINKS: [&str; 2] = [WANTS, DAEMON_WANTS];

/// The path in a package: files below /etc belong to the administrator.
pub(crate) fn packaged(path: &str) -> String {
    path.replacen("etc/", "usr/lib/", 1)
}

/// The line `Environment=` of a unit, which names the configuration.
pub(crate) fn names(config: &str) -> String {
    format!("{APPLIES}{config}")
}
