//! Writes a recording: `manifest.json`, `kernel.json` and `fs/` in an archive or a directory. The same recording always gives the
//! same bytes.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::json;
use super::path::clean;
use super::recording::Recording;
use crate::host::{Error, Result};
use crate::real::io_error;
use crate::trust::{self, ReplacementFile};

impl Recording {
    /// Members by name, in the order in which they are written.
    fn members(&self) -> impl Iterator<Item = (String, std::borrow::Cow<'_, [u8]>)> {
        let heads = [("manifest.json", json::manifest(self)), ("kernel.json", json::kernel(self))];
        let heads = heads.into_iter().map(|(n, t)| (n.to_string(), t.into_bytes().into()));
        let files = self.files.iter().filter_map(|(path, answer)| {
            let bytes = answer.as_ref().ok()?;
            Some((format!("fs{}", clean(path)?), bytes.into()))
        });
        heads.chain(files)
    }

    /// Writes the archive as a stream; `gzip` compresses it.
    pub fn write_to(&self, out: impl Write, gzip: bool) -> io::Result<()> {
        let body = |out: &mut dyn Write| {
            let mut tar = tar::Builder::new(out);
            for (name, bytes) in self.members() {
                let mut header = tar::Header::new_gnu();
                header.set_size(bytes.len() as u64);
                header.set_mode(0o644);
                header.set_mtime(self.info.unix_time);
                tar.append_data(&mut header, name, &bytes[..])?;
            }
            tar.finish()
        };
        if gzip {
            let mut packed = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            body(&mut packed)?;
            packed.finish()?.flush()
        } else {
            let mut out = io::BufWriter::new(out);
            body(&mut out)?;
            out.flush()
        }
    }

    /// Writes a `.tar`, or a `.tar.gz` if the name ends in `gz` (`.tgz`). An existing file is replaced only at the end.
    pub fn write_tar(&self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        let failed = |e: io::Error| io_error("write", &name, &e);
        let gzip = path.extension().is_some_and(|e| e.to_string_lossy().to_lowercase().ends_with("gz"));
        let path = &crate::store::target(path).map_err(failed)?;
        if fs::symlink_metadata(path).is_ok_and(|m| !m.is_file() && !m.is_symlink()) {
            // /dev/stdout and similar files are written in place.
            let file = fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
            return self.write_to(file, gzip).map_err(failed);
        }
        let new = ReplacementFile::create(path, 0o600).map_err(failed)?;
        self.write_to(&new.file, gzip).and_then(|()| new.finish()).map_err(failed)
    }

    /// The same as plain files below `dir`, which is created.
    ///
    /// Errors: file errors; other users can write to the directory, and could have created links there.
    pub fn write_dir(&self, dir: &Path) -> Result<()> {
        if let Some(why) = fs::canonicalize(dir).ok().and_then(|d| trust::others_write(&d)) {
            return Err(Error::other(format!("write {}", dir.display()), why));
        }
        for (name, bytes) in self.members() {
            let path = dir.join(name);
            let failed = |e: io::Error| io_error("write", &path.display().to_string(), &e);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            let mut new = ReplacementFile::create(&path, 0o600).map_err(failed)?;
            new.file.write_all(&bytes).and_then(|()| new.place()).map_err(failed)?;
        }
        Ok(())
    }
}
