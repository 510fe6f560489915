//! The files of `ringwise persist`: where they are, how they are written and removed, and what the next boot applies.

use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ringwise_model::{Boot, DEFAULT_CONFIG};
use ringwise_sys::io_text;

use crate::error::{Error, Result, file};
use crate::mark::{Fate, Mark, read_mark};
use crate::mode::{BootMode, enabled_service};
use crate::paths::{APPLIES, FILES, LINKS, SERVICE, WANTS, packaged};
use crate::place;
use crate::units::Units;

/// The files of `ringwise persist` below a root: of this host, or of an image that is being built.
#[derive(Debug, Clone)]
pub struct Installation {
    root: PathBuf,
}

impl Installation {
    /// Files below this directory: `/`, or the root of an image.
    pub fn below(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// Whether the files can be written and a boot can use them; called before any question and any write. `program`:
    /// `None` while an image is built, since nothing of this host matters then.
    ///
    /// Errors: a program, configuration or state directory that a boot could not use, or that others can change; files
    /// that `persist` did not write.
    pub fn check(&self, program: Option<&Path>, config: &Path, state_dir: &Path) -> Result<()> {
        place::check(&self.root, program, config, state_dir)
    }

    /// Whether a package has installed the units that `units` describes.
    pub fn has_packaged(&self, units: &Units) -> bool {
        let same =
            |(path, text): (String, String)| std::fs::read_to_string(self.root.join(path)).is_ok_and(|t| t == text);
        units.packaged().into_iter().all(same)
    }

    /// The files to write: paths with their texts. `config`: path and text of the configuration, if it is written too.
    /// Units that a package has installed are enabled, not written.
    ///
    /// Errors: a masked unit.
    pub fn files(
        &self,
        mode: BootMode,
        units: &Units,
        config: Option<(PathBuf, String)>,
    ) -> Result<Vec<(PathBuf, String)>> {
        // A masked unit is a link to /dev/null. The administrator does not want it to run, so it is not replaced.
        let masked = |p: &PathBuf| std::fs::metadata(p).is_ok_and(|m| !m.is_file());
        let places = config.iter().map(|(p, _)| p.clone()).chain(mode.files().map(|p| self.root.join(p)));
        if let Some(path) = places.into_iter().find(masked) {
            return Err(Error::Masked(path));
        }
        let own = if self.has_packaged(units) { Vec::new() } else { units.files() };
        let own = own.into_iter().filter(|(p, _)| mode.files().any(|f| f == *p)).map(|(p, t)| (self.root.join(p), t));
        Ok(config.into_iter().chain(own).collect())
    }

    /// Writes all files or none, and enables the unit with the link that `systemctl enable` would make. Removes the units
    /// that would override those of a package, and what belongs to the other mode.
    ///
    /// Errors: a file that cannot be written; those before it are as they were.
    pub fn write(&self, mode: BootMode, units: &Units, files: &[(PathBuf, String)]) -> Result<()> {
        place::write_all(files, put)?;
        let link = self.root.join(mode.link());
        if let Some(dir) = link.parent() {
            std::fs::create_dir_all(dir).map_err(file(&link))?;
        }
        let service = self.service(mode, units);
        if std::fs::read_link(&link).is_ok_and(|to| to != service) {
            std::fs::remove_file(&link).map_err(file(&link))?;
        }
        match symlink(&service, &link) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            other => other.map_err(file(&link))?,
        }
        remove(&self.overriding(mode, units))?;
        remove(&self.replaced(mode))
    }

    /// Whether [`Installation::write`] would change anything.
    pub fn differs(&self, mode: BootMode, units: &Units, files: &[(PathBuf, String)]) -> bool {
        let same = |(path, text): &(PathBuf, String)| std::fs::read_to_string(path).is_ok_and(|t| t == *text);
        !files.iter().all(same)
            || std::fs::read_link(self.root.join(mode.link())).ok() != Some(self.service(mode, units))
            || !self.overriding(mode, units).is_empty()
            || !self.replaced(mode).is_empty()
    }

    /// Where the link that enables the unit points to.
    fn service(&self, mode: BootMode, units: &Units) -> PathBuf {
        match self.has_packaged(units) {
            true => format!("/{}", packaged(mode.unit())).into(),
            false => format!("/{}", mode.unit()).into(),
        }
    }

    /// Units of an earlier `persist` that would override those of a package.
    pub fn overriding(&self, mode: BootMode, units: &Units) -> Vec<PathBuf> {
        if self.has_packaged(units) { self.own(mode).collect() } else { Vec::new() }
    }

    /// What an earlier `persist` left for the other mode: its link and its units.
    pub fn replaced(&self, mode: BootMode) -> Vec<PathBuf> {
        let link = self.root.join(mode.other().link());
        place::enables(&link).then_some(link).into_iter().chain(self.own(mode.other())).collect()
    }

    /// Whether [`Installation::write`] disables the service, which a boot starts until then.
    pub fn disables_service(&self, mode: BootMode) -> bool {
        mode == BootMode::AtBoot && place::enables(&self.root.join(BootMode::Service.link()))
    }

    /// Files that `persist` wrote.
    fn own(&self, mode: BootMode) -> impl Iterator<Item = PathBuf> {
        mode.files().map(|p| self.root.join(p)).filter(|p| p.is_file() && !place::foreign(p))
    }

    /// Existing files that `--remove` removes, and files of the same names that `persist` did not write.
    pub fn installed(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let all = LINKS.into_iter().chain(FILES).map(|p| self.root.join(p));
        all.filter(|p| p.symlink_metadata().is_ok()).partition(|p| place::enables(p) || !place::foreign(p))
    }
}

/// Writes a file that everybody can read. A missing directory is created.
fn put(path: &Path, text: &str) -> ringwise_sys::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(|e| ringwise_sys::io_error("mkdir", &dir.display().to_string(), &e))?;
    }
    ringwise_sys::store::write_atomic(path, text.as_bytes())?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
        .map_err(|e| ringwise_sys::io_error("chmod", &path.display().to_string(), &e))
}

/// Removes files one by one.
///
/// Errors: a file cannot be removed; the files before it are removed already.
pub fn remove(files: &[PathBuf]) -> Result<()> {
    files.iter().try_for_each(|p| std::fs::remove_file(p).map_err(file(p)))
}

/// What the next boot applies, by the files below `root`.
pub fn next_boot(root: &Path, state_dir: &Path) -> Boot {
    if let Some(unit) = enabled_service(root) {
        return match applied_by(&unit, root, state_dir) {
            Boot::Applies { config } => Boot::Service { config: Some(config) },
            // The service looks for the default file, and needs none.
            Boot::Missing { config } if config == DEFAULT_CONFIG => Boot::Service { config: None },
            other => other,
        };
    }
    let wants = root.join(WANTS);
    match std::fs::symlink_metadata(&wants) {
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => return Boot::Nothing,
        Err(e) => return Boot::Unknown { why: format!("{}: {}", wants.display(), io_text(&e)) },
    }
    let own = root.join(SERVICE);
    let service = if own.symlink_metadata().is_ok() { own } else { root.join(packaged(SERVICE)) };
    applied_by(&service, root, state_dir)
}

/// What the unit in this file applies.
fn applied_by(unit: &Path, root: &Path, state_dir: &Path) -> Boot {
    let text = match std::fs::read_to_string(unit) {
        Ok(t) => t,
        Err(e) => return Boot::Unknown { why: format!("{}: {}", unit.display(), io_text(&e)) },
    };
    let Some(config) = text.lines().find_map(|l| l.strip_prefix(APPLIES)) else {
        return Boot::Unknown { why: format!("{} was not written by ringwise persist", unit.display()) };
    };
    let config = config.to_string();
    match read_mark(state_dir) {
        Ok(Some(Mark { fate: Fate::Skipped, unix_time, .. })) => return Boot::Skipped { unix_time },
        Err(e) => return Boot::Unknown { why: e.to_string() },
        Ok(_) => {}
    }
    let there = root.join(config.trim_start_matches('/')).exists();
    if there { Boot::Applies { config } } else { Boot::Missing { config } }
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::dir::Dir;

    use super::*;
    use crate::mark::{forget, write_mark};
    use crate::paths::{DAEMON, DAEMON_WANTS, names};

    const UNITS: Units = Units { program: "/usr/sbin/ringwise", config: DEFAULT_CONFIG, state_dir: None, follow: true };

    #[test]
    fn units_of_a_package_are_enabled_and_not_written() {
        let dir = Dir::new();
        let installation = Installation::below(&dir.0);
        let own = installation.files(BootMode::AtBoot, &UNITS, None).unwrap();
        assert!(installation.differs(BootMode::AtBoot, &UNITS, &own));
        installation.write(BootMode::AtBoot, &UNITS, &own).unwrap();
        assert!(!installation.differs(BootMode::AtBoot, &UNITS, &own), "a second run changes nothing");
        assert!(installation.differs(BootMode::Service, &UNITS, &[]), "the other mode does");
        let link = dir.0.join(WANTS);
        assert_eq!((own.len(), std::fs::read_link(&link).unwrap()), (5, Path::new("/").join(SERVICE)));
        assert!(installation.overriding(BootMode::AtBoot, &UNITS).is_empty(), "without a package they are needed");
        for (path, text) in UNITS.packaged() {
            put(&dir.0.join(path), &text).unwrap();
        }
        assert_eq!(installation.overriding(BootMode::AtBoot, &UNITS).len(), 5);
        assert!(installation.files(BootMode::AtBoot, &UNITS, None).unwrap().is_empty());
        installation.write(BootMode::AtBoot, &UNITS, &[]).unwrap();
        assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("/usr/lib/systemd/system/ringwise.service"));
        assert!(own.iter().all(|(p, _)| !p.exists()), "they would override the package's");
        assert_eq!(installation.installed(), (vec![link.clone()], Vec::new()), "persist --remove disables them");
        // Another configuration needs units of its own, which override those of the package.
        let other = Units { config: "/etc/other.toml", ..UNITS };
        assert_eq!(installation.files(BootMode::AtBoot, &other, None).unwrap().len(), 5);
        // So does a service that does not follow the load.
        let still = Units { follow: false, ..UNITS };
        let files = installation.files(BootMode::Service, &still, None).unwrap();
        assert!(
            matches!(files.as_slice(), [(path, text)] if *path == dir.0.join(DAEMON) && text.contains(" daemon --follow off\n"))
        );
        put(&dir.0.join("etc/ringwise/ringwise.toml"), "").unwrap();
        let config = DEFAULT_CONFIG.to_string();
        assert_eq!(next_boot(&dir.0, &dir.0.join("state")), Boot::Applies { config });
    }

    #[test]
    fn what_is_kept_is_read_from_the_files() {
        let dir = Dir::new();
        let root = dir.0.clone();
        let state = root.join("var/lib/ringwise");
        assert_eq!(next_boot(&root, &state), Boot::Nothing);
        for f in [SERVICE, WANTS, "etc/x.toml"] {
            std::fs::create_dir_all(root.join(f).parent().unwrap()).unwrap();
            std::fs::write(root.join(f), format!("[Service]\n{}\n", names("/etc/x.toml"))).unwrap();
        }
        let config = "/etc/x.toml".to_string();
        assert_eq!(next_boot(&root, &state), Boot::Applies { config: config.clone() });
        write_mark(&state, &Mark { format: 1, boot_id: "a".into(), unix_time: 7, fate: Fate::Skipped }).unwrap();
        assert_eq!(next_boot(&root, &state), Boot::Skipped { unix_time: 7 });
        forget(&state).unwrap();
        std::fs::remove_file(root.join("etc/x.toml")).unwrap();
        assert_eq!(next_boot(&root, &state), Boot::Missing { config });
        std::fs::write(root.join(SERVICE), "[Service]\n").unwrap();
        assert!(matches!(next_boot(&root, &state), Boot::Unknown { .. }));
    }

    #[test]
    fn the_service_replaces_the_units_and_the_other_way_round() {
        let dir = Dir::new();
        let (installation, state) = (Installation::below(&dir.0), dir.0.join("state"));
        let at_boot = installation.files(BootMode::AtBoot, &UNITS, None).unwrap();
        installation.write(BootMode::AtBoot, &UNITS, &at_boot).unwrap();
        let service = installation.files(BootMode::Service, &UNITS, None).unwrap();
        assert_eq!(service.iter().map(|(p, _)| p.clone()).collect::<Vec<_>>(), [dir.0.join(DAEMON)]);
        assert_eq!(installation.replaced(BootMode::Service).len(), 6, "five files and their link");
        installation.write(BootMode::Service, &UNITS, &service).unwrap();
        assert_eq!(std::fs::read_link(dir.0.join(DAEMON_WANTS)).unwrap(), Path::new("/").join(DAEMON));
        assert_eq!(installation.installed(), (vec![dir.0.join(DAEMON_WANTS), dir.0.join(DAEMON)], Vec::new()));
        assert!(installation.replaced(BootMode::Service).is_empty());
        assert_eq!(next_boot(&dir.0, &state), Boot::Service { config: None }, "the default file is not needed");
        put(&dir.0.join("etc/ringwise/ringwise.toml"), "").unwrap();
        assert_eq!(next_boot(&dir.0, &state), Boot::Service { config: Some(DEFAULT_CONFIG.into()) });
        write_mark(&state, &Mark { format: 1, boot_id: "a".into(), unix_time: 7, fate: Fate::Skipped }).unwrap();
        assert_eq!(
            next_boot(&dir.0, &state),
            Boot::Skipped { unix_time: 7 },
            "the service applies the file no more either"
        );
        forget(&state).unwrap();
        // Units of 0.1 that stay enabled beside the service apply nothing.
        let link = dir.0.join(WANTS);
        at_boot.iter().for_each(|(p, t)| put(p, t).unwrap());
        symlink(Path::new("/").join(SERVICE), &link).unwrap();
        assert_eq!(next_boot(&dir.0, &state), Boot::Service { config: Some(DEFAULT_CONFIG.into()) });
        // A masked unit stays masked, in both modes.
        std::fs::remove_file(dir.0.join(SERVICE)).unwrap();
        symlink("/dev/null", dir.0.join(SERVICE)).unwrap();
        assert!(matches!(installation.files(BootMode::AtBoot, &UNITS, None), Err(Error::Masked(_))));
        assert!(!installation.replaced(BootMode::Service).contains(&dir.0.join(SERVICE)));
        std::fs::remove_file(dir.0.join(SERVICE)).unwrap();
        let at_boot = installation.files(BootMode::AtBoot, &UNITS, None).unwrap();
        installation.write(BootMode::AtBoot, &UNITS, &at_boot).unwrap();
        assert_eq!(next_boot(&dir.0, &state), Boot::Applies { config: DEFAULT_CONFIG.into() });
        assert!(!dir.0.join(DAEMON).exists() && dir.0.join(DAEMON_WANTS).symlink_metadata().is_err());
        let other = Units { config: "/etc/other.toml", ..UNITS };
        let files = installation.files(BootMode::Service, &other, None).unwrap();
        installation.write(BootMode::Service, &other, &files).unwrap();
        assert_eq!(
            next_boot(&dir.0, &state),
            Boot::Missing { config: "/etc/other.toml".into() },
            "a named file is needed"
        );
    }
}
