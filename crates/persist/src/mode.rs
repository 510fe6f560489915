//! What applies the configuration at boot: units that run once, or the service.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::paths::{DAEMON, DAEMON_WANTS, FILES, SERVICE, WANTS};

/// Where an administrator enables units.
const ENABLED: &str = "etc/systemd/system";
/// Where systemd looks for a unit: the first file counts, and it may be a mask.
const UNITS: [&str; 4] = ["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];
const UNIT: &str = "ringwise-daemon.service";

/// What applies the configuration at boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BootMode {
    /// `ringwise.service`, once, and `ringwise@.service` when an interface appears.
    AtBoot,
    /// `ringwise-daemon.service`, which keeps it as well.
    Service,
}

impl BootMode {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::AtBoot => Self::Service,
            Self::Service => Self::AtBoot,
        }
    }

    /// The unit that is enabled.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::AtBoot => SERVICE,
            Self::Service => DAEMON,
        }
    }

    /// The link that enables it.
    pub(crate) fn link(self) -> &'static str {
        match self {
            Self::AtBoot => WANTS,
            Self::Service => DAEMON_WANTS,
        }
    }

    /// The files that it needs.
    pub(crate) fn files(self) -> impl Iterator<Item = &'static str> {
        FILES.into_iter().filter(move |p| (*p == DAEMON) == (self == Self::Service))
    }
}

/// Whether a boot starts the service, so that `apply --boot` does nothing.
pub fn service_is_enabled(root: &Path) -> bool {
    enabled_service(root).is_some()
}

/// The unit of the service, if a boot starts it: a link in a `.wants` directory enables it, and it is neither masked nor
/// missing.
pub(crate) fn enabled_service(root: &Path) -> Option<PathBuf> {
    let dirs = std::fs::read_dir(root.join(ENABLED)).ok()?.flatten().map(|e| e.path());
    let mut wants = dirs.filter(|d| d.extension().is_some_and(|e| e == "wants"));
    wants.find(|d| d.join(UNIT).symlink_metadata().is_ok())?;
    let unit = UNITS.iter().map(|d| root.join(d).join(UNIT)).find(|p| p.symlink_metadata().is_ok())?;
    unit.is_file().then_some(unit)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use ringwise_testkit::dir::Dir;

    use super::*;

    #[test]
    fn a_boot_starts_the_service() {
        let dir = Dir::new();
        let put = |path: &str| {
            let path = dir.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        assert!(!service_is_enabled(&dir.0), "no systemd");
        let packaged = put("usr/lib/systemd/system/ringwise-daemon.service");
        std::fs::write(&packaged, "").unwrap();
        std::fs::create_dir_all(dir.0.join("etc/systemd/system/multi-user.target.wants")).unwrap();
        assert!(!service_is_enabled(&dir.0), "installed, not enabled");
        // Another target than that of [Install]: systemctl add-wants.
        let link = put("etc/systemd/system/network-online.target.wants/ringwise-daemon.service");
        symlink("/usr/lib/systemd/system/ringwise-daemon.service", &link).unwrap();
        assert_eq!(enabled_service(&dir.0), Some(packaged.clone()));
        let mask = put("run/systemd/system/ringwise-daemon.service");
        symlink("/dev/null", &mask).unwrap();
        assert!(!service_is_enabled(&dir.0), "masked until the next boot");
        let own = put("etc/systemd/system/ringwise-daemon.service");
        std::fs::write(&own, "").unwrap();
        assert_eq!(enabled_service(&dir.0), Some(own.clone()), "a unit in /etc overrides the others");
        std::fs::remove_file(&own).unwrap();
        symlink("/dev/null", &own).unwrap();
        assert!(!service_is_enabled(&dir.0), "masked");
        for gone in [&own, &mask, &packaged] {
            std::fs::remove_file(gone).unwrap();
        }
        assert!(!service_is_enabled(&dir.0), "the package was removed, and its link is left");
    }

    #[test]
    fn every_file_belongs_to_one_mode() {
        let both: Vec<_> = BootMode::AtBoot.files().chain(BootMode::Service.files()).collect();
        assert_eq!(both, FILES);
    }
}
