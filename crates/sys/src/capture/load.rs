//! Opens a capture: determines its kind (made by ringwise or foreign, directory or archive) and where its root is.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::RwLock;
use std::time::{Duration, UNIX_EPOCH};

use super::archive;
use super::json::{self, Listed};
use super::path::clean;
use super::recording::{Info, RecordedReply, Recording, RequestKey};
use super::tree::{Node, Tree};
use crate::host::{Error, Result};
use crate::real::io_error;
use ringwise_model::natural;

/// Paths that the root of a host has.
const MARKS: [&str; 4] = ["proc/interrupts", "sys/class/net", "sys/devices/system/cpu", "proc/cpuinfo"];
/// How deep to search directories if these paths are not at the top.
const DEPTH: usize = 4;

pub(super) enum Loaded {
    Ours(Recording),
    Foreign { tree: Tree, kernel: BTreeMap<RequestKey, RecordedReply>, info: Info },
}

/// The host, and the subdirectory in which it was found.
pub(super) fn load(path: &Path) -> Result<(Loaded, Option<String>)> {
    let name = path.display().to_string();
    let meta = fs::metadata(path).map_err(|e| io_error("open", &name, &e))?;
    if let Some(kind) = unreadable_kind(path, &meta) {
        let words = format!("found {kind}, expected a file or a directory");
        return Err(Error::other(format!("read capture {name}"), words));
    }
    let made = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let mut source =
        if meta.is_dir() { Source::Disk(path.to_path_buf()) } else { Source::Memory(archive::unpack(path)?) };
    let fail = |words: String| Error::other(format!("read capture {name}"), words);
    // A capture made by ringwise has its manifest at the top, so no directory has to be searched.
    let found = match source.manifest("/").map_err(fail)? {
        Some(listed) => Root::Ours("/".into(), Box::new(listed)),
        None => {
            source.fill_directories();
            source.only_root().map_err(fail)?
        }
    };
    // A report in an archive usually has a directory around it, so that is not reported.
    let nested = |root: &str| {
        let below = root.trim_matches('/');
        (meta.is_dir() && !below.is_empty() && below != "fs").then(|| below.to_string())
    };
    match found {
        Root::Ours(root, listed) => {
            let kernel = source.kernel(&root).map_err(fail)?;
            let nested = nested(&root);
            ours(source, &root, *listed, kernel).map(|r| (Loaded::Ours(r), nested)).map_err(fail)
        }
        Root::Foreign(root) => {
            // A hand-made tree may have kernel.json beside proc/ and sys/, or beside fs/.
            let beside = if root.ends_with("/fs") { root[..root.len() - 3].to_string() } else { root.clone() };
            let kernel = source.kernel(&beside).map_err(fail)?;
            let tree = source.tree(&root);
            let info = foreign_info(&tree, made.as_secs());
            Ok((Loaded::Foreign { tree, kernel, info }, nested(&root)))
        }
    }
}

/// The kind of a file that would block, or has no end. An anonymous pipe (`<(zcat …)`, standard input) has a writer and is read.
fn unreadable_kind(path: &Path, meta: &fs::Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    if kind.is_fifo() && fs::canonicalize(path).is_ok() {
        return Some("a named pipe");
    }
    let special = [
        (kind.is_char_device(), "a character device"),
        (kind.is_block_device(), "a block device"),
        (kind.is_socket(), "a socket"),
    ];
    special.into_iter().find(|(is, _)| *is).map(|(_, name)| name)
}

/// Where a host was found.
enum Root {
    Ours(String, Box<Listed>),
    Foreign(String),
}

impl Root {
    fn path(&self) -> &str {
        match self {
            Self::Ours(path, _) | Self::Foreign(path) => path.trim_matches('/'),
        }
    }
}

enum Source {
    Disk(PathBuf),
    Memory(HashMap<String, Node>),
}

fn join(root: &str, rest: &str) -> String {
    format!("{}/{rest}", root.trim_end_matches('/'))
}

impl Source {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        match self {
            Self::Memory(nodes) => archive::file(nodes, path).cloned(),
            // Through a tree, so that no link points outside the directory.
            Self::Disk(dir) => Tree::Disk(dir.clone()).read(path).ok(),
        }
    }

    fn exists(&self, path: &str) -> bool {
        match self {
            Self::Memory(nodes) => nodes.contains_key(path),
            Self::Disk(dir) => fs::symlink_metadata(dir.join(path.trim_start_matches('/'))).is_ok(),
        }
    }

    /// Whether anything is below `folder`, which ends with a slash.
    fn holds(&self, folder: &str) -> bool {
        match self {
            Self::Memory(nodes) => nodes.keys().any(|p| p.starts_with(folder)),
            Self::Disk(_) => self.exists(folder),
        }
    }

    fn fill_directories(&mut self) {
        if let Self::Memory(nodes) = self {
            archive::add_directories(nodes);
        }
    }

    fn directories(&self, path: &str) -> Vec<String> {
        match self {
            Self::Memory(nodes) => match nodes.get(path) {
                Some(Node::Dir(names)) => {
                    names.iter().filter(|n| matches!(nodes.get(&join(path, n)), Some(Node::Dir(_)))).cloned().collect()
                }
                _ => Vec::new(),
            },
            Self::Disk(dir) => fs::read_dir(dir.join(path.trim_start_matches('/')))
                .map(|entries| {
                    let real = entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
                    real.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
                })
                .unwrap_or_default(),
        }
    }

    fn tree(self, root: &str) -> Tree {
        match self {
            Self::Memory(nodes) => Tree::Memory { nodes, root: root.to_string(), places: RwLock::default() },
            Self::Disk(dir) => Tree::Disk(dir.join(root.trim_start_matches('/'))),
        }
    }

    /// The manifest of ringwise in `root`.
    fn manifest(&self, root: &str) -> std::result::Result<Option<Listed>, String> {
        let Some(bytes) = self.read(&join(root, "manifest.json")) else { return Ok(None) };
        // Only a capture made by ringwise has fs/ or kernel.json beside it; other manifests may have any content.
        match json::parse_manifest(&bytes) {
            Ok(listed) => Ok(listed),
            Err(words) if self.holds(&join(root, "fs/")) => Err(words),
            Err(_) => Ok(None),
        }
    }

    fn kernel(&self, root: &str) -> std::result::Result<BTreeMap<RequestKey, RecordedReply>, String> {
        let mut replies = BTreeMap::new();
        let mut names = vec!["kernel.json".to_string()];
        let folder = join(root, "kernel");
        let listed = match self {
            Self::Memory(nodes) => {
                let inside = nodes.keys().filter_map(|p| p.strip_prefix(&folder)?.strip_prefix('/'));
                inside.map(str::to_string).collect()
            }
            Self::Disk(dir) => Tree::Disk(dir.clone()).list(&folder).unwrap_or_default(),
        };
        names.extend(listed.iter().filter(|n| n.ends_with(".json")).map(|n| format!("kernel/{n}")));
        names.sort();
        for name in names {
            if let Some(bytes) = self.read(&join(root, &name)) {
                json::parse_kernel(&bytes, &mut replies).map_err(|e| format!("{name}: {e}"))?;
            }
        }
        Ok(replies)
    }

    /// The only directory that contains a host. Whatever is below such a directory belongs to it.
    fn only_root(&self) -> std::result::Result<Root, String> {
        let mut found = self.roots(Err)?;
        if found.len() > 1 {
            let names: Vec<&str> = found.iter().map(Root::path).collect();
            return Err(format!("contains more than one host: {}; name one of them", names.join(", ")));
        }
        found.pop().ok_or_else(|| {
            let words = match self.is_supportconfig() {
                true => {
                    "a report of supportconfig, which has the output of commands but no proc/ and sys/: ringwise cannot read it; \
                     run sos report, or ringwise capture FILE, on the host"
                }
                false => "neither a ringwise capture nor a tree with proc/ and sys/ in it",
            };
            words.into()
        })
    }

    /// Whether it has the files that supportconfig always writes, in the root or in the directory that its archives contain.
    fn is_supportconfig(&self) -> bool {
        let written = |dir: &str| archive::SUPPORTCONFIG.iter().all(|name| self.exists(&join(dir, name)));
        written("/") || self.directories("/").iter().any(|dir| written(&join("/", dir)))
    }

    /// The directories that contain a host: captures made by ringwise, and trees with one of [`MARKS`]. `damaged` decides
    /// about a directory whose manifest cannot be read.
    fn roots<E>(&self, damaged: impl Fn(String) -> std::result::Result<(), E>) -> std::result::Result<Vec<Root>, E> {
        let mut found = Vec::new();
        let mut level = VecDeque::from(["/".to_string()]);
        for _ in 0..=DEPTH {
            let mut below = VecDeque::new();
            for dir in level {
                match self.manifest(&dir) {
                    Ok(Some(listed)) => found.push(Root::Ours(dir, Box::new(listed))),
                    Ok(None) if MARKS.iter().any(|m| self.exists(&join(&dir, m))) => found.push(Root::Foreign(dir)),
                    Ok(None) if below.len() < 10_000 => {
                        let mut names = self.directories(&dir);
                        names.sort_unstable();
                        below.extend(names.iter().map(|d| join(&dir, d)));
                    }
                    Ok(None) => {}
                    Err(why) => {
                        damaged(why)?;
                        found.push(Root::Foreign(dir));
                    }
                }
            }
            level = below;
        }
        Ok(found)
    }
}

/// Ends of the names of archives that [`Captured::open`](super::Captured::open) reads.
const ENDS: [&str; 5] = [".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz"];

/// Whether a file of this name is probably a capture. [`Captured::open`](super::Captured::open) goes by the content.
pub fn has_capture_name(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
    !name.starts_with('.') && ENDS.iter().any(|end| name.ends_with(end))
}

/// The captures that `path` names. A directory that holds no host, or several ones, stands for the archives in it and for the
/// directories with a host below it, in natural order. Everything else, also what does not exist, stands for itself.
pub fn captures(path: &Path) -> Vec<PathBuf> {
    let itself = vec![path.to_path_buf()];
    if !path.is_dir() {
        return itself;
    }
    let keep = |_: String| Ok::<(), std::convert::Infallible>(());
    let Ok(roots) = Source::Disk(path.to_path_buf()).roots(keep);
    let mut found: Vec<PathBuf> = match roots.as_slice() {
        [_] => return itself,
        roots => roots.iter().map(|r| path.join(r.path())).collect(),
    };
    let files = fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path());
    found.extend(files.filter(|f| has_capture_name(f) && f.is_file()));
    found.sort_by(|a, b| natural::compare(&a.to_string_lossy(), &b.to_string_lossy()));
    if found.is_empty() { itself } else { found }
}

/// The directories in `dir` that have captures directly in them: the first capture of each.
pub fn directories_of_captures(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).filter(|d| d.is_dir());
    let mut first: Vec<PathBuf> = entries.filter_map(|d| captures(&d).into_iter().find(|c| c.is_file())).collect();
    first.sort_by(|a, b| natural::compare(&a.to_string_lossy(), &b.to_string_lossy()));
    first
}

/// Reads the contents that the manifest lists.
fn ours(
    source: Source,
    root: &str,
    listed: Listed,
    kernel: BTreeMap<RequestKey, RecordedReply>,
) -> std::result::Result<Recording, String> {
    let mut recording = Recording { kernel, ..listed.recording };
    let mut tree = match source {
        Source::Memory(nodes) => Ok(nodes),
        Source::Disk(dir) => Err(Tree::Disk(dir.join(root.trim_start_matches('/')).join("fs"))),
    };
    let mut found = Vec::with_capacity(listed.files.len());
    let cut = "the capture was cut short or changed";
    for (path, size) in listed.files {
        let Some(clean) = clean(&path) else { return Err(format!("manifest.json: not an absolute path: {path}")) };
        let bytes = match &mut tree {
            Ok(nodes) => match nodes.remove(&join(root, &format!("fs{clean}"))) {
                Some(Node::File(bytes)) => Some(Arc::unwrap_or_clone(bytes)),
                _ => None,
            },
            Err(tree) => tree.read(&clean).ok(),
        };
        match bytes {
            Some(bytes) if size.is_none_or(|s| s == bytes.len() as u64) => {
                found.push((path, Ok(bytes)));
            }
            Some(bytes) => {
                let size = size.unwrap_or_default();
                return Err(format!("{path} has {} bytes, but {size} in the manifest: {cut}", bytes.len()));
            }
            None => return Err(format!("the manifest lists {path}, but it does not exist: {cut}")),
        }
    }
    // Added all at once and in order, as they were written: much faster than one by one.
    recording.files.append(&mut found.into_iter().collect());
    Ok(recording)
}

/// Information that a foreign tree contains about itself; its time is that of its `proc`, else that of the file.
fn foreign_info(tree: &Tree, made: u64) -> Info {
    let text = |path: &str| tree.read(path).ok().map(|b| String::from_utf8_lossy(&b).trim().to_string());
    let uptime = text("/proc/uptime").and_then(|t| t.split_whitespace().next()?.parse::<f64>().ok());
    let uptime = uptime.filter(|u| u.is_finite() && (0.0..1e10).contains(u));
    let booted = text("/proc/stat")
        .and_then(|t| t.lines().find_map(|l| l.strip_prefix("btime ")?.trim().parse::<u64>().ok()))
        .filter(|b| *b < 1 << 40);
    let unix_time = match (booted, uptime) {
        (Some(b), Some(u)) => b + u as u64,
        _ => made,
    };
    let kernel = text("/proc/sys/kernel/osrelease").or_else(|| {
        text("/proc/version")?.split_whitespace().nth(2).map(str::to_string) // "Linux version 6.12.0 …"
    });
    Info {
        unix_time,
        since_boot: Duration::from_secs_f64(uptime.unwrap_or_default()),
        kernel: kernel.filter(|k| !k.is_empty()),
        ..Info::default()
    }
}
