//! `ringwise show DEV --svg FILE`

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use ringwise_discover::Options;
use ringwise_model::Nic;

use super::show::named;
use crate::args::{Common, ShowArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::render::svg;
use crate::source;

pub fn run(file: &Path, a: &ShowArgs, common: &Common) -> Result<Status> {
    if common.json {
        return Err(Fail::usage("--svg and --json are two kinds of answer; ask for one"));
    }
    if a.devs.is_empty() {
        return Err(Fail::usage("--svg draws an interface: name one (ringwise show lists them)")
            .next(format!("ringwise show DEV --svg {}", file.display())));
    }
    let source = source::open(&a.from)?;
    let s = source.snapshot(&Options::only(&a.devs), common)?;
    let nics = named(&s, &a.devs)?;
    if let Some(n) = nics.iter().find(|n| n.rx_queues.is_empty() && n.tx_queues.is_empty()) {
        return Err(Fail::error(format!("{}: no queue is known of it, so there is nothing to draw", n.name())));
    }
    let text = svg::render(&s, &nics);
    if file == Path::new("-") {
        out::answer(&text)?;
        return Ok(Status::Ok);
    }
    write(file, text.as_bytes()).map_err(|e| Fail::error(format!("{}: {e}", file.display())))?;
    let names: Vec<&str> = nics.iter().map(|n| Nic::name(n)).collect();
    out::note(common.quiet, &format!("ringwise: {} drawn into {}", names.join(" "), file.display()));
    Ok(Status::Ok)
}

/// The whole picture or the one before. A picture is for others to see: the mode is the user's, not private.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    // What a link points to is replaced, not the link.
    let file = &fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    match fs::metadata(file) {
        // A pipe or a device is written to; a directory says what it is.
        Ok(m) if !m.is_file() => return OpenOptions::new().write(true).open(file)?.write_all(bytes),
        Ok(_) => {
            // Not ours to replace where it could not be written.
            OpenOptions::new().write(true).open(file)?;
        }
        Err(_) => {}
    }
    let name = file.file_name().ok_or_else(|| io::Error::other("not a file name"))?.to_string_lossy();
    let beside = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let done = fresh(&beside, bytes).and_then(|()| {
        if let Ok(m) = fs::metadata(file) {
            fs::set_permissions(&beside, m.permissions())?;
        }
        fs::rename(&beside, file)
    });
    if done.is_err() {
        let _ = fs::remove_file(&beside); // the first error is the one to tell
    }
    done
}

fn fresh(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut f: File = OpenOptions::new().write(true).create_new(true).open(path)?;
    f.write_all(bytes)?;
    f.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn replaces_whole_files_and_follows_links() {
        let dir = std::env::temp_dir().join(format!("ringwise-svg-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join("a.svg");
        write(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a.svg", dir.join("link.svg")).unwrap();
        write(&dir.join("link.svg"), b"two").unwrap();
        assert!(fs::symlink_metadata(dir.join("link.svg")).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "nothing is left beside it");
        assert!(write(&dir, b"x").is_err());
        assert!(write(&dir.join("none/x.svg"), b"x").is_err());
        write(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        fs::remove_dir_all(&dir).unwrap();
    }
}
