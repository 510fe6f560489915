//! The paths of the files of `ringwise persist`.

/// Below the root of the system.
pub(crate) const SERVICE: &str = "etc/systemd/system/ringwise.service";
pub(crate) const LATE: &str = "etc/systemd/system/ringwise@.service";
pub(crate) const LIVED: &str = "etc/systemd/system/ringwise-lived.service";
pub(crate) const TIMER: &str = "etc/systemd/system/ringwise-lived.timer";
pub(crate) const RULES: &str = "etc/udev/rules.d/81-ringwise.rules";
pub(crate) const WANTS: &str = "etc/systemd/system/multi-user.target.wants/ringwise.service";
/// Beginning of the line in the service that names the configuration.
pub(crate) const APPLIES: &str = "Environment=RINGWISE_CONFIG=";
/// All files except the link.
pub(crate) const FILES: [&str; 5] = [SERVICE, LATE, LIVED, TIMER, RULES];

/// The path in a package: files below /etc belong to the administrator.
pub(crate) fn packaged(path: &str) -> String {
    path.replacen("etc/", "usr/lib/", 1)
}

/// The line `Environment=` of the service, which names the configuration.
pub(crate) fn names(config: &str) -> String {
    format!("{APPLIES}{config}")
}
