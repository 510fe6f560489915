//! A host in memory: files, links and replies to requests, with the kernel's resolution of links; and a builder of
//! small machines.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod machine;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringwise_sys::{Clock, Error, Host, Request, Result};

type Content = std::result::Result<Vec<u8>, i32>;
type Reply = std::result::Result<Vec<Vec<u8>>, i32>;

#[derive(Default, Clone)]
pub(crate) struct Tree {
    pub files: BTreeMap<String, Content>,
    pub links: BTreeMap<String, String>,
    pub kernel: HashMap<Request, Reply>,
    /// Directories that contain nothing.
    pub empty: BTreeSet<String>,
    /// Whether missing paths give the error of a capture, or ENOENT as on a live host.
    pub foreign: bool,
    /// Requests about this device never come back.
    pub hangs: Option<String>,
}

pub(crate) struct MapHost {
    tree: Tree,
    dirs: HashMap<String, BTreeSet<String>>,
    pub reads: AtomicUsize,
    /// Requests that never came back.
    pub hanging: AtomicUsize,
}

impl Tree {
    pub(crate) fn file(&mut self, path: impl Into<String>, text: impl AsRef<[u8]>) -> &mut Self {
        self.files.insert(path.into(), Ok(text.as_ref().to_vec()));
        self
    }

    pub(crate) fn error(&mut self, path: impl Into<String>, errno: i32) -> &mut Self {
        self.files.insert(path.into(), Err(errno));
        self
    }

    pub(crate) fn link(&mut self, path: impl Into<String>, target: impl Into<String>) -> &mut Self {
        self.links.insert(path.into(), target.into());
        self
    }

    pub(crate) fn reply(&mut self, request: Request, messages: Vec<Vec<u8>>) -> &mut Self {
        self.kernel.insert(request, Ok(messages));
        self
    }

    pub(crate) fn host(&self) -> MapHost {
        let mut dirs: HashMap<String, BTreeSet<String>> = HashMap::new();
        dirs.extend(self.empty.iter().map(|path| (path.clone(), BTreeSet::new())));
        for path in self.files.keys().chain(self.links.keys()).chain(&self.empty) {
            let mut at = path.as_str();
            while let Some((parent, name)) = at.rsplit_once('/') {
                let fresh = dirs.entry(parent.to_string()).or_default().insert(name.to_string());
                if !fresh {
                    break;
                }
                at = parent;
            }
        }
        MapHost { tree: self.clone(), dirs, reads: AtomicUsize::new(0), hanging: AtomicUsize::new(0) }
    }

    pub(crate) fn shared(&self) -> std::sync::Arc<dyn Host> {
        std::sync::Arc::new(self.host())
    }
}

impl MapHost {
    /// Follows links in every part of the path (and in the last, if requested).
    fn resolve(&self, path: &str, last: bool) -> String {
        let mut todo: Vec<String> = path.split('/').rev().filter(|p| !p.is_empty()).map(str::to_string).collect();
        let mut out = String::new();
        for _ in 0..200 {
            let Some(part) = todo.pop() else { break };
            if part == ".." {
                out.truncate(out.rfind('/').unwrap_or(0));
                continue;
            }
            let full = format!("{out}/{part}");
            match self.tree.links.get(&full) {
                Some(target) if last || !todo.is_empty() => {
                    if target.starts_with('/') {
                        out.clear();
                    }
                    todo.extend(target.split('/').rev().filter(|p| !p.is_empty()).map(str::to_string));
                }
                _ => out = full,
            }
        }
        out
    }

    fn missing(&self, what: String) -> Error {
        if self.tree.foreign { Error::other(what, "not in this capture") } else { Error::errno(what, 2) }
    }
}

impl Clock for MapHost {
    fn since_boot(&self) -> Duration {
        Duration::from_secs(100)
    }

    fn unix_time(&self) -> u64 {
        1_700_000_000
    }

    fn sleep(&self, _: Duration) {}
}

impl Host for MapHost {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let what = || format!("read {path}");
        // Most paths hold no link: looked up as they are first.
        let found = self.tree.files.get(path).or_else(|| self.tree.files.get(&self.resolve(path, true)));
        match found {
            Some(Ok(bytes)) => Ok(bytes.clone()),
            Some(Err(errno)) => Err(Error::errno(what(), *errno)),
            None => Err(self.missing(what())),
        }
    }

    fn write(&self, path: &str, _: &[u8]) -> Result<()> {
        panic!("discovery wrote to {path}");
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        let at = self.resolve(path, true);
        if let Some(Err(errno)) = self.tree.files.get(&at) {
            return Err(Error::errno(format!("list {path}"), *errno));
        }
        match self.dirs.get(&at) {
            Some(names) => Ok(names.iter().cloned().collect()),
            None => Err(self.missing(format!("list {path}"))),
        }
    }

    fn readlink(&self, path: &str) -> Result<String> {
        let at = self.resolve(path, false);
        if let Some(Err(errno)) = self.tree.files.get(&at) {
            return Err(Error::errno(format!("readlink {path}"), *errno));
        }
        self.tree.links.get(&at).cloned().ok_or_else(|| self.missing(format!("readlink {path}")))
    }

    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        assert!(!request.writes(), "discovery sent {request}");
        if self.tree.hangs.is_some() && request.dev() == self.tree.hangs.as_deref() {
            self.hanging.fetch_add(1, Ordering::SeqCst);
            loop {
                std::thread::park();
            }
        }
        match self.tree.kernel.get(request) {
            Some(Ok(reply)) => Ok(reply.clone()),
            Some(Err(errno)) => Err(Error::errno(request.to_string(), *errno)),
            None if self.tree.foreign => Err(Error::other(request.to_string(), "not in this capture")),
            None => Err(Error::errno(request.to_string(), 95)),
        }
    }
}
