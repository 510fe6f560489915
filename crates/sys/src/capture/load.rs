//! Opens a capture: finds out what it is (ours or foreign, directory or archive) and where its root lies.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::RwLock;
use std::time::{Duration, UNIX_EPOCH};

use super::archive;
use super::json::{self, Listed};
use super::path::clean;
use super::recording::{Asked, Info, Recording, Reply};
use super::tree::{Node, Tree};
use crate::host::{Error, Result};
use crate::real::io_error;

/// What a root of a host has one of.
const MARKS: [&str; 4] = ["proc/interrupts", "sys/class/net", "sys/devices/system/cpu", "proc/cpuinfo"];
/// Directories that are looked into when the marks are not at the top.
const DEPTH: usize = 4;

pub enum Loaded {
    Ours(Recording),
    Foreign { tree: Tree, kernel: BTreeMap<Asked, Reply>, info: Info },
}

pub fn load(path: &Path) -> Result<Loaded> {
    let name = path.display().to_string();
    let meta = fs::metadata(path).map_err(|e| io_error("open", &name, &e))?;
    let made = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let mut source =
        if meta.is_dir() { Source::Disk(path.to_path_buf()) } else { Source::Memory(archive::unpack(path)?) };
    let fail = |words: String| Error::other(format!("read capture {name}"), words);
    // Ours has its manifest at the top: no need to know any directory.
    let mut found = source.manifest(vec!["/".into()]).map_err(fail)?;
    if found.is_none() {
        source.fill_directories();
        let below = source.directories("/").into_iter().map(|d| join("/", &d)).collect();
        found = source.manifest(below).map_err(fail)?;
    }
    if let Some((root, listed)) = found {
        let kernel = source.kernel(&root).map_err(fail)?;
        return ours(source, &root, listed, kernel).map(Loaded::Ours).map_err(fail);
    }
    let root = source.foreign_root().map_err(fail)?;
    // A hand-made tree may hold kernel.json beside proc/ and sys/, or beside fs/.
    let beside = if root.ends_with("/fs") { root[..root.len() - 3].to_string() } else { root.clone() };
    let kernel = source.kernel(&beside).map_err(fail)?;
    let tree = source.tree(&root);
    let info = foreign_info(&tree, made.as_secs());
    Ok(Loaded::Foreign { tree, kernel, info })
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
            // Through a tree, so that no link leads out of the directory.
            Self::Disk(dir) => Tree::Disk(dir.clone()).read(path).ok(),
        }
    }

    fn exists(&self, path: &str) -> bool {
        match self {
            Self::Memory(nodes) => nodes.contains_key(path),
            Self::Disk(dir) => fs::symlink_metadata(dir.join(path.trim_start_matches('/'))).is_ok(),
        }
    }

    /// Whether anything lies below `folder`, which ends in a slash.
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

    /// Our manifest in one of `roots`, with the root it was found in.
    fn manifest(&self, roots: Vec<String>) -> std::result::Result<Option<(String, Listed)>, String> {
        for root in roots {
            let Some(bytes) = self.read(&join(&root, "manifest.json")) else { continue };
            // Only a capture of ours has fs/ or kernel.json beside it; others' manifests may be any text.
            match json::parse_manifest(&bytes) {
                Ok(Some(listed)) => return Ok(Some((root, listed))),
                Ok(None) => {}
                Err(words) if self.holds(&join(&root, "fs/")) => return Err(words),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    fn kernel(&self, root: &str) -> std::result::Result<BTreeMap<Asked, Reply>, String> {
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

    /// The highest directory that has one of [`MARKS`].
    fn foreign_root(&self) -> std::result::Result<String, String> {
        let mut level = VecDeque::from(["/".to_string()]);
        for _ in 0..=DEPTH {
            let found: Vec<_> =
                level.iter().filter(|r| MARKS.iter().any(|m| self.exists(&join(r, m)))).cloned().collect();
            match found.as_slice() {
                [] => {}
                [root] => return Ok(root.clone()),
                more => return Err(format!("holds more than one host: {}", more.join(", "))),
            }
            level = level
                .iter()
                .flat_map(|r| self.directories(r).into_iter().map(move |d| join(r, &d)))
                .take(10_000)
                .collect();
        }
        Err("neither a ringwise capture nor a tree with proc/ and sys/ in it".into())
    }
}

/// Fills in the contents that the manifest promises.
fn ours(
    source: Source,
    root: &str,
    listed: Listed,
    kernel: BTreeMap<Asked, Reply>,
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
                return Err(format!("{path} has {} bytes where the manifest says {size}: {cut}", bytes.len()));
            }
            None => return Err(format!("the manifest lists {path}, but it is not there: {cut}")),
        }
    }
    // At once and in order, as they were written: much faster than one by one.
    recording.files.append(&mut found.into_iter().collect());
    Ok(recording)
}

/// What a foreign tree tells of itself; its time is that of its `proc`, else that of the file.
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
