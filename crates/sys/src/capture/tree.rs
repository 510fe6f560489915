//! A tree of files that another program made: on disk, or unpacked in memory. It is untrusted input: links are followed only
//! inside the tree, and only regular files are opened.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use super::path::{not_held, resolve};
use crate::host::{Error, Result};

/// Larger files are refused.
pub(super) const FILE_LIMIT: u64 = 64 << 20;

#[derive(Debug, Clone)]
pub(super) enum Node {
    File(Arc<Vec<u8>>),
    Link(String),
    Dir(Vec<String>),
}

#[derive(Debug)]
pub(super) enum Tree {
    /// Cleaned absolute path → node; every parent directory exists as a Dir.
    Memory {
        nodes: HashMap<String, Node>,
        root: String,
        /// Directory as requested → the path to which it resolves. Thousands of files of one interface are read through the same
        /// links.
        places: RwLock<HashMap<String, Arc<str>>>,
    },
    Disk(PathBuf),
}

enum Kind {
    File,
    Dir,
    Link(String),
}

impl Tree {
    fn disk_path(root: &std::path::Path, path: &str) -> PathBuf {
        root.join(path.trim_start_matches('/'))
    }

    fn memory_path(root: &str, path: &str) -> String {
        match (root, path) {
            ("/", path) => path.to_string(),
            (root, "/") => root.to_string(),
            (root, path) => format!("{root}{path}"),
        }
    }

    fn kind(&self, path: &str) -> Option<Kind> {
        match self {
            Self::Memory { nodes, root, .. } => Some(match nodes.get(&Self::memory_path(root, path))? {
                Node::File(_) => Kind::File,
                Node::Link(target) => Kind::Link(target.clone()),
                Node::Dir(_) => Kind::Dir,
            }),
            Self::Disk(root) => {
                let path = Self::disk_path(root, path);
                let kind = fs::symlink_metadata(&path).ok()?.file_type();
                if kind.is_symlink() {
                    Some(Kind::Link(fs::read_link(&path).ok()?.to_string_lossy().into_owned()))
                } else if kind.is_dir() {
                    Some(Kind::Dir)
                } else {
                    kind.is_file().then_some(Kind::File)
                }
            }
        }
    }

    fn resolve(&self, what: &str, path: &str, follow_last: bool) -> Result<String> {
        if let Some(at) = self.beside(path) {
            return match self.kind(&at) {
                Some(Kind::Link(_)) if follow_last => self.walk(what, path, true),
                _ => Ok(at),
            };
        }
        self.walk(what, path, follow_last)
    }

    fn walk(&self, what: &str, path: &str, follow_last: bool) -> Result<String> {
        resolve(path, follow_last, |resolved, _| match self.kind(resolved) {
            Some(Kind::Link(target)) => Some(target),
            _ => None,
        })
        .map_err(|words| Error::other(what, words))
    }

    /// Joins the last component of `path` to the resolved path of its directory; the last component is not followed. `None`: the
    /// path has to be resolved component by component.
    fn beside(&self, path: &str) -> Option<String> {
        let Self::Memory { places, .. } = self else { return None };
        let (dir, name) = path.rsplit_once('/')?;
        if dir.is_empty() || matches!(name, "" | "." | "..") {
            return None;
        }
        let join = |place: &str| if place == "/" { format!("/{name}") } else { format!("{place}/{name}") };
        if let Some(place) = places.read().unwrap_or_else(PoisonError::into_inner).get(dir) {
            return Some(join(place));
        }
        let place: Arc<str> = self.walk("", dir, true).ok()?.into();
        let at = join(&place);
        places.write().unwrap_or_else(PoisonError::into_inner).insert(dir.to_string(), place);
        Some(at)
    }

    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>> {
        let what = format!("read {path}");
        let at = self.resolve(&what, path, true)?;
        match self.kind(&at) {
            Some(Kind::Dir) => return Err(Error::errno(what, libc::EISDIR)),
            Some(Kind::File) => {}
            _ => return Err(not_held(what)),
        }
        match self {
            Self::Memory { nodes, root, .. } => match nodes.get(&Self::memory_path(root, &at)) {
                Some(Node::File(bytes)) => Ok(bytes.as_ref().clone()),
                _ => Err(not_held(what)),
            },
            Self::Disk(root) => {
                let mut bytes = Vec::new();
                let read =
                    File::open(Self::disk_path(root, &at)).and_then(|f| f.take(FILE_LIMIT + 1).read_to_end(&mut bytes));
                match read {
                    Ok(n) if n as u64 > FILE_LIMIT => {
                        Err(Error::other(what, format!("larger than {} MB", FILE_LIMIT >> 20)))
                    }
                    Ok(_) => Ok(bytes),
                    // The errno belongs to the disk that holds the tree, not to the recorded host.
                    Err(e) => Err(Error::other(what, format!("not readable in this capture: {e}"))),
                }
            }
        }
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<String>> {
        let what = format!("list {path}");
        let at = self.resolve(&what, path, true)?;
        match self.kind(&at) {
            Some(Kind::Dir) => {}
            Some(Kind::File) => return Err(Error::errno(what, libc::ENOTDIR)),
            _ => return Err(not_held(what)),
        }
        match self {
            Self::Memory { nodes, root, .. } => match nodes.get(&Self::memory_path(root, &at)) {
                Some(Node::Dir(names)) => Ok(names.clone()),
                _ => Err(not_held(what)),
            },
            Self::Disk(root) => fs::read_dir(Self::disk_path(root, &at))
                .and_then(|d| d.map(|e| Ok(e?.file_name().to_string_lossy().into_owned())).collect())
                .map_err(|e| Error::other(what, format!("not readable in this capture: {e}"))),
        }
    }

    pub(super) fn readlink(&self, path: &str) -> Result<String> {
        let what = format!("readlink {path}");
        let at = self.resolve(&what, path, false)?;
        match self.kind(&at) {
            Some(Kind::Link(target)) => Ok(target),
            Some(_) => Err(Error::errno(what, libc::EINVAL)),
            None => Err(not_held(what)),
        }
    }
}
