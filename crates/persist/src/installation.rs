//! The files of `ringwise persist`: where they are, how they are written and removed, and what the next boot applies.

use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ringwise_model::Boot;
use ringwise_sys::io_text;

use crate::error::{Error, Result, file};
use crate::mark::{Fate, Mark, read_mark};
use crate::paths::{APPLIES, FILES, SERVICE, WANTS, packaged};
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
    pub fn files(&self, units: &Units, config: Option<(PathBuf, String)>) -> Result<Vec<(PathBuf, String)>> {
        let own = if self.has_packaged(units) { Vec::new() } else { units.files() };
        let own = own.into_iter().map(|(p, t)| (self.root.join(p), t));
        let files: Vec<(PathBuf, String)> = config.into_iter().chain(own).collect();
        // A masked unit is a link to /dev/null. The administrator does not want it to run, so it is not replaced.
        match files.iter().find(|(p, _)| std::fs::metadata(p).is_ok_and(|m| !m.is_file())) {
            Some((path, _)) => Err(Error::Masked(path.clone())),
            None => Ok(files),
        }
    }

    /// Writes all files or none, and enables the service with the link that `systemctl enable` would make. Units of an
    /// earlier `persist` would override those of a package, so they are removed if the package's are enabled.
    ///
    /// Errors: a file that cannot be written; those before it are as they were.
    pub fn write(&self, units: &Units, files: &[(PathBuf, String)]) -> Result<()> {
        place::write_all(files, put)?;
        let link = self.root.join(WANTS);
        if let Some(dir) = link.parent() {
            std::fs::create_dir_all(dir).map_err(file(&link))?;
        }
        let service = match self.has_packaged(units) {
            true => format!("/{}", packaged(SERVICE)),
            false => format!("/{SERVICE}"),
        };
        if std::fs::read_link(&link).is_ok_and(|to| to != Path::new(&service)) {
            std::fs::remove_file(&link).map_err(file(&link))?;
        }
        match symlink(&service, &link) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            other => other.map_err(file(&link))?,
        }
        remove(&self.overriding(units))
    }

    /// Units of an earlier `persist` that would override those of a package.
    pub fn overriding(&self, units: &Units) -> Vec<PathBuf> {
        if !self.has_packaged(units) {
            return Vec::new();
        }
        let all = FILES.into_iter().map(|p| self.root.join(p));
        all.filter(|p| p.symlink_metadata().is_ok() && !place::foreign(p)).collect()
    }

    /// Existing files that `--remove` removes, and files of the same names that `persist` did not write.
    pub fn installed(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let all = [WANTS].into_iter().chain(FILES).map(|p| self.root.join(p));
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
pub fn kept(root: &Path, state_dir: &Path) -> Boot {
    let wants = root.join(WANTS);
    match std::fs::symlink_metadata(&wants) {
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => return Boot::Nothing,
        Err(e) => return Boot::Unknown { why: format!("{}: {}", wants.display(), io_text(&e)) },
    }
    let own = root.join(SERVICE);
    let service = if own.symlink_metadata().is_ok() { own } else { root.join(packaged(SERVICE)) };
    let text = match std::fs::read_to_string(&service) {
        Ok(t) => t,
        Err(e) => return Boot::Unknown { why: format!("{}: {}", service.display(), io_text(&e)) },
    };
    let Some(config) = text.lines().find_map(|l| l.strip_prefix(APPLIES)) else {
        return Boot::Unknown { why: format!("{} was not written by ringwise persist", service.display()) };
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
    use crate::paths::names;

    const UNITS: Units =
        Units { program: "/usr/sbin/ringwise", config: "/etc/ringwise/ringwise.toml", state_dir: None };

    #[test]
    fn units_of_a_package_are_enabled_and_not_written() {
        let dir = Dir::new();
        let installation = Installation::below(&dir.0);
        let own = installation.files(&UNITS, None).unwrap();
        installation.write(&UNITS, &own).unwrap();
        let link = dir.0.join(WANTS);
        assert_eq!((own.len(), std::fs::read_link(&link).unwrap()), (5, Path::new("/").join(SERVICE)));
        assert!(installation.overriding(&UNITS).is_empty(), "without a package they are needed");
        for (path, text) in UNITS.packaged() {
            put(&dir.0.join(path), &text).unwrap();
        }
        assert_eq!(installation.overriding(&UNITS).len(), 5);
        assert!(installation.files(&UNITS, None).unwrap().is_empty());
        installation.write(&UNITS, &[]).unwrap();
        assert_eq!(std::fs::read_link(&link).unwrap(), Path::new("/usr/lib/systemd/system/ringwise.service"));
        assert!(own.iter().all(|(p, _)| !p.exists()), "they would override the package's");
        assert_eq!(installation.installed(), (vec![link.clone()], Vec::new()), "persist --remove disables them");
        // Another configuration needs units of its own, which override those of the package.
        let other = Units { config: "/etc/other.toml", ..UNITS };
        assert_eq!(installation.files(&other, None).unwrap().len(), 5);
        put(&dir.0.join("etc/ringwise/ringwise.toml"), "").unwrap();
        let config = "/etc/ringwise/ringwise.toml".to_string();
        assert_eq!(kept(&dir.0, &dir.0.join("state")), Boot::Applies { config });
    }

    #[test]
    fn what_is_kept_is_read_from_the_files() {
        let dir = Dir::new();
        let root = dir.0.clone();
        let state = root.join("var/lib/ringwise");
        assert_eq!(kept(&root, &state), Boot::Nothing);
        for f in [SERVICE, WANTS, "etc/x.toml"] {
            std::fs::create_dir_all(root.join(f).parent().unwrap()).unwrap();
            std::fs::write(root.join(f), format!("[Service]\n{}\n", names("/etc/x.toml"))).unwrap();
        }
        let config = "/etc/x.toml".to_string();
        assert_eq!(kept(&root, &state), Boot::Applies { config: config.clone() });
        write_mark(&state, &Mark { format: 1, boot_id: "a".into(), unix_time: 7, fate: Fate::Skipped }).unwrap();
        assert_eq!(kept(&root, &state), Boot::Skipped { unix_time: 7 });
        forget(&state).unwrap();
        std::fs::remove_file(root.join("etc/x.toml")).unwrap();
        assert_eq!(kept(&root, &state), Boot::Missing { config });
        std::fs::write(root.join(SERVICE), "[Service]\n").unwrap();
        assert!(matches!(kept(&root, &state), Boot::Unknown { .. }));
    }
}
