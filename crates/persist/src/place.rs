//! What prevents an application at boot: a program or a file that is missing then, units of other origin, no systemd.

use std::path::{Path, PathBuf};

use ringwise_sys::trust;

use crate::error::{Error, Result};
use crate::paths::{FILES, LINKS};
use crate::units::{MARK, OLD_MARK};

/// Directories that are emptied at boot, or that belong to a session.
const PASSING: [&str; 6] = ["/tmp", "/var/tmp", "/run", "/dev", "/home", "/media"];
/// File systems in memory, and those that are mounted from elsewhere after the boot.
const ABSENT: [&str; 10] = ["tmpfs", "ramfs", "devtmpfs", "9p", "nfs", "nfs4", "cifs", "smb3", "sshfs", "autofs"];
/// Where the link that enables a unit may point to.
const TARGETS: [&str; 4] = ["/etc/systemd/system", "..", "/usr/lib/systemd/system", "/lib/systemd/system"];

/// See [`Installation::check`](crate::Installation::check). `program`: `None` while an image is built.
pub(crate) fn check(root: &Path, program: Option<&Path>, config: &Path, state_dir: &Path) -> Result<()> {
    if let Some(program) = program {
        systemd(program, config)?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        if let Some(why) = absent_at_boot(program, &mounts) {
            return Err(Error::ProgramAbsent { program: program.into(), why });
        }
        if let Some(why) = trust::others_write(program) {
            return Err(Error::ProgramOfOthers { program: program.into(), why });
        }
        if let Some(why) = absent_at_boot(config, &mounts) {
            return Err(Error::ConfigAbsent { config: config.into(), why });
        }
        for (what, path) in [("the configuration", config), ("the state directory", state_dir)] {
            if let Some(why) = trust::others_write(path) {
                return Err(Error::OfOthers { what, path: path.into(), why });
            }
        }
    }
    if let Some(path) = FILES.iter().map(|p| root.join(p)).find(|p| foreign(p)) {
        return Err(Error::Foreign(path));
    }
    let wrong = |link: PathBuf| match std::fs::read_link(&link) {
        _ if enables(&link) || link.symlink_metadata().is_err() => None,
        Ok(to) => Some(Error::LinkElsewhere { link, to }),
        Err(_) => Some(Error::NoLink(link)),
    };
    LINKS.iter().find_map(|p| wrong(root.join(p))).map_or(Ok(()), Err)
}

/// Why `persist` would refuse a configuration file because of its place or of who can write it; `None`: it would not.
/// `config`: an absolute path. `here`: the file is for this host. Otherwise only the directories matter that no host keeps
/// over a reboot.
pub fn config_refused(config: &Path, here: bool) -> Option<String> {
    if !here {
        return absent_at_boot(config, "");
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    absent_at_boot(config, &mounts).or_else(|| trust::others_write(config))
}

fn systemd(program: &Path, config: &Path) -> Result<()> {
    if Path::new("/run/systemd/system").exists() {
        return Ok(());
    }
    Err(Error::NoSystemd { program: program.into(), config: config.into() })
}

/// Why `path` is missing at boot; `None`: it is there. `mounts`: the text of /proc/self/mountinfo.
fn absent_at_boot(path: &Path, mounts: &str) -> Option<String> {
    if let Some(dir) = PASSING.iter().find(|d| path.starts_with(d)) {
        return Some(match *dir {
            "/home" => "home directories may be mounted later, or be encrypted".to_string(),
            dir => format!("files in {dir} do not survive a reboot"),
        });
    }
    let (at, kind) = mount_of(path, mounts)?;
    let passing = ABSENT.contains(&kind.as_str()) || kind.starts_with("fuse");
    passing
        .then(|| format!("{} is a file system of type {kind}, which is empty or not mounted yet at boot", at.display()))
}

/// The mount point that holds a path, and the type of its file system.
fn mount_of(path: &Path, mounts: &str) -> Option<(PathBuf, String)> {
    let of = |line: &str| {
        let (head, tail) = line.split_once(" - ")?;
        let at = head.split(' ').nth(4)?.replace("\\040", " ");
        Some((PathBuf::from(at), tail.split(' ').next()?.to_string()))
    };
    let all = mounts.lines().filter_map(of).filter(|(at, _)| path.starts_with(at));
    // Where two file systems are mounted at one place, the later one is visible.
    all.enumerate().max_by_key(|(i, (at, _))| (at.components().count(), *i)).map(|(_, m)| m)
}

/// Whether this is a link that enables a unit of this name: of an earlier `persist`, or to the unit of a package.
pub(crate) fn enables(link: &Path) -> bool {
    let name = link.file_name().unwrap_or_default();
    std::fs::read_link(link).is_ok_and(|to| TARGETS.iter().any(|dir| Path::new(dir).join(name) == to))
}

/// Whether this is a regular file that `persist` did not write. Masked units and directories are reported by the write.
pub(crate) fn foreign(path: &Path) -> bool {
    let ours = |text: Vec<u8>| [MARK, OLD_MARK].iter().any(|m| text.starts_with(m.as_bytes()));
    path.metadata().is_ok_and(|m| m.is_file()) && !std::fs::read(path).is_ok_and(ours)
}

/// Writes all files or none: when one cannot be written, those before it are restored.
pub(crate) fn write_all(
    files: &[(PathBuf, String)],
    put: impl Fn(&Path, &str) -> ringwise_sys::Result<()>,
) -> Result<()> {
    let mut before: Vec<(&Path, Option<Vec<u8>>)> = Vec::new();
    for (path, text) in files {
        before.push((path, std::fs::read(path).ok()));
        if let Err(error) = put(path, text) {
            let mut stays = Vec::new();
            // The file that failed is unchanged, because a write is atomic.
            before.pop();
            for (path, text) in before {
                let undone = match text {
                    Some(t) => ringwise_sys::store::write_atomic(path, &t).map_err(|e| e.to_string()),
                    None => std::fs::remove_file(path).map_err(|e| ringwise_sys::io_text(&e)),
                };
                if let Err(e) = undone {
                    stays.push(format!("{} could not be restored ({e})", path.display()));
                }
            }
            return Err(Error::NotWritten { error, stays });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ringwise_model::errno::EROFS;

    use super::*;
    use crate::error::Next;

    const MOUNTS: &str = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        22 21 0:20 / /srv/my\\040disk rw - nfs4 server:/x rw\n\
        23 21 0:21 / /opt rw - tmpfs tmpfs rw\n\
        24 21 8:2 / /opt/keep rw - xfs /dev/sda2 rw\n\
        25 21 0:22 / /mnt/f rw - fuse.sshfs x rw\n";

    #[test]
    fn what_is_not_there_at_boot() {
        let why = |p: &str| absent_at_boot(Path::new(p), MOUNTS);
        for fine in ["/usr/local/sbin/ringwise", "/opt/keep/ringwise", "/tmpfiles/ringwise", "/root/ringwise"] {
            assert_eq!(why(fine), None, "{fine}");
        }
        for (p, words) in [
            ("/tmp/x/ringwise", "/tmp do not survive"),
            ("/run/lab/ringwise", "/run do not survive"),
            ("/home/me/ringwise", "home directories may be mounted later"),
            ("/srv/my disk/ringwise", "/srv/my disk is a file system of type nfs4"),
            ("/opt/ringwise", "/opt is a file system of type tmpfs"),
            ("/mnt/f/ringwise", "/mnt/f is a file system of type fuse.sshfs"),
        ] {
            assert!(why(p).is_some_and(|w| w.contains(words)), "{p}: {:?}", why(p));
        }
    }

    #[test]
    fn the_place_of_a_file_for_another_host() {
        let why = config_refused(Path::new("/tmp/x.toml"), false);
        assert_eq!(why.as_deref(), Some("files in /tmp do not survive a reboot"));
        assert_eq!(config_refused(Path::new("/tmp/x.toml"), true), why);
        assert_eq!(config_refused(Path::new("/no/such/place/x.toml"), false), None);
    }

    #[test]
    fn all_files_or_none() {
        let dir = std::env::temp_dir().join(format!("ringwise-place-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (old, new, bad) = (dir.join("old"), dir.join("new"), dir.join("bad"));
        std::fs::write(&old, "before").unwrap();
        let files = [(old.clone(), "a".into()), (new.clone(), "b".into()), (bad.clone(), "c".into())];
        let put = |p: &Path, t: &str| match p.ends_with("bad") {
            true => Err(ringwise_sys::Error::errno("write bad", EROFS)),
            false => std::fs::write(p, t).map_err(|e| ringwise_sys::Error::other("write", e.to_string())),
        };
        let why = write_all(&files, put).unwrap_err();
        let text = why.to_string();
        assert!(text.contains("EROFS") && text.ends_with("; nothing was changed"), "{text}");
        assert_eq!(why.next(), Some(Next::Image));
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "before");
        assert!(!new.exists() && !bad.exists());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
