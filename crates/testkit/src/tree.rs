//! Hand-written hosts: a short description (`host.toml`) becomes the plain `proc/` and `sys/` tree that the
//! kernel of such a machine shows, in an archive as other programs make them.
//!
//! It shares no code with the model and the parsers, so that reading such a tree tests them.

mod cpu;
mod desc;
mod interrupts;
mod nic;
mod proc;
mod software;
mod text;

use std::collections::BTreeMap;
use std::io::{self, Write};

use cpu::Cpus;
pub use desc::Host;

/// Files and symbolic links by absolute path; a directory exists if it contains something, or has an entry of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    entries: BTreeMap<String, TreeEntry>,
}

/// The entry at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEntry {
    /// Content of a regular file.
    File(String),
    /// The relative target, as written in the link.
    Link(String),
    /// A directory that may be empty.
    Dir,
}

impl Tree {
    /// The tree of the described host. Errors name the member of the description.
    pub fn build(host: &Host) -> Result<Self, String> {
        let cpus = Cpus::new(&host.cpu)?;
        let mut tree = Self::default();
        cpu::write(&mut tree, host, &cpus);
        let vectors = nic::write(&mut tree, host, &cpus)?;
        software::write(&mut tree, host, &cpus)?;
        interrupts::write(&mut tree, host, &cpus, &vectors)?;
        proc::write(&mut tree, host, &cpus);
        for prefix in &host.missing {
            let count = tree.entries.len();
            tree.entries.retain(|path, _| !text::matches(prefix, path));
            if tree.entries.len() == count {
                return Err(format!("missing: the tree has nothing below {prefix}"));
            }
        }
        Ok(tree)
    }

    /// By absolute path, sorted.
    pub fn entries(&self) -> &BTreeMap<String, TreeEntry> {
        &self.entries
    }

    fn file(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.entries.insert(path.into(), TreeEntry::File(text.into()));
    }

    /// One value with the newline that the kernel ends it with.
    fn line(&mut self, path: impl Into<String>, value: impl std::fmt::Display) {
        self.file(path, format!("{value}\n"));
    }

    /// `to` is absolute; the link contains the relative path, as in sysfs.
    fn link(&mut self, path: impl Into<String>, to: &str) {
        let path = path.into();
        let target = text::relative(&path, to);
        self.entries.insert(path, TreeEntry::Link(target));
    }

    fn dir(&mut self, path: impl Into<String>) {
        self.entries.insert(path.into(), TreeEntry::Dir);
    }

    /// A tar with names in order and no times, so that the same description gives the same bytes.
    pub fn tar(&self) -> io::Result<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            let name = path.trim_start_matches('/');
            let mut header = tar::Header::new_gnu();
            header.set_mtime(0);
            match entry {
                TreeEntry::File(text) => {
                    header.set_mode(0o644);
                    header.set_size(text.len() as u64);
                    tar.append_data(&mut header, name, text.as_bytes())?;
                }
                TreeEntry::Link(target) => {
                    header.set_mode(0o777);
                    header.set_size(0);
                    header.set_entry_type(tar::EntryType::Symlink);
                    tar.append_link(&mut header, name, target)?;
                }
                TreeEntry::Dir => {
                    header.set_mode(0o755);
                    header.set_size(0);
                    header.set_entry_type(tar::EntryType::Directory);
                    tar.append_data(&mut header, name, &[][..])?;
                }
            }
        }
        tar.into_inner()
    }

    /// The same, compressed; the bytes are the same for the same description.
    pub fn tar_gz(&self) -> io::Result<Vec<u8>> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        out.write_all(&self.tar()?)?;
        out.finish()
    }
}
