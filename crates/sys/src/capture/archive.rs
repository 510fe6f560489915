//! Unpacks a `.tar`, `.tar.gz` or `.tar.xz` into memory, within limits, and reports what is wrong with a damaged one.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use xz4rust::{XzDecoder, XzReader};

use super::path::clean;
use super::tree::{FILE_LIMIT, Node};
use crate::host::{Error, Result};

/// Limits for the size of an archive.
#[derive(Clone, Copy)]
struct Limits {
    /// Bytes of files that are kept, including their names.
    kept: u64,
    /// Bytes that are unpacked, kept or not.
    stream: u64,
    entries: usize,
}

const LIMITS: Limits = Limits { kept: 512 << 20, stream: 4 << 30, entries: 2_000_000 };
const NAME_LIMIT: usize = 4096;
/// `xz -9` needs 64 MB.
const XZ_WINDOW: usize = 128 << 20;

/// Counts the bytes that pass and the zero bytes at the end: a complete tar ends with blocks of zeros.
struct Meter<R> {
    inner: R,
    limit: u64,
    total: u64,
    zeros: u64,
}

impl<R: Read> Read for Meter<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.total += n as u64;
        if self.total > self.limit {
            return Err(std::io::Error::other(format!("unpacks to more than {} MB", self.limit >> 20)));
        }
        // The last block is sufficient.
        let look = n.min(512);
        let zero = buf[n - look..n].iter().rev().take_while(|b| **b == 0).count();
        self.zeros = if zero == n { self.zeros + n as u64 } else { zero as u64 };
        Ok(n)
    }
}

const COMMANDS: [&str; 5] = ["/networking/", "/kernel/sysctl_", "/kernel/uname_", "/pci/lspci", "/processor/lscpu"];

/// Files that SUSE's supportconfig always writes (`CSFILE` and `BASIC_ENVF` of supportconfig.rc).
pub(super) const SUPPORTCONFIG: [&str; 2] = ["supportconfig.txt", "basic-environment.txt"];

/// Only these parts of a foreign archive are used; logs and the rest are skipped.
fn wanted(path: &str) -> bool {
    path.split('/').any(|p| matches!(p, "proc" | "sys" | "fs" | "etc" | "kernel"))
        // From a sos report, the output of some commands.
        || (path.contains("/sos_commands/") && COMMANDS.iter().any(|c| path.contains(c)))
        || path.ends_with("/version.txt")
        || path.ends_with("/manifest.json")
        || path.ends_with("/kernel.json")
        // They show that it is a report of supportconfig.
        || SUPPORTCONFIG.iter().any(|name| path.rsplit('/').next() == Some(name))
}

/// Path (cleaned, absolute within the archive) → node. The entries of directories are filled in later: [`add_directories`].
pub(super) fn unpack(path: &Path) -> Result<HashMap<String, Node>> {
    let name = path.display().to_string();
    let what = format!("read capture {name}");
    let open = |e: std::io::Error| crate::real::io_error("open", &name, &e);
    let mut file = File::open(path).map_err(open)?;
    let mut magic = [0u8; 6];
    let mut have = 0;
    while have < magic.len() {
        match file.read(&mut magic[have..]).map_err(open)? {
            0 => break,
            n => have += n,
        }
    }
    let known = |m: &[u8]| have >= m.len() && magic.starts_with(m);
    let packer = [(&b"\x28\xb5\x2f\xfd"[..], "zstd"), (b"BZh", "bzip2"), (b"PK\x03\x04", "zip")];
    if let Some((_, packer)) = packer.iter().find(|(m, _)| known(m)) {
        return Err(Error::other(
            what,
            format!("it is packed with {packer}; only .tar, .tar.gz and .tar.xz are read: unpack it first"),
        ));
    }
    let (gzip, xz) = (known(b"\x1f\x8b"), known(b"\xfd7zXZ"));
    let whole = std::io::Cursor::new(magic[..have].to_vec()).chain(BufReader::with_capacity(128 * 1024, file));
    let stream: Box<dyn Read> = match (gzip, xz) {
        (true, _) => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(whole))),
        (_, true) => Box::new(unxz(whole)),
        _ => Box::new(whole),
    };
    read_tar(stream, LIMITS).map_err(|words| Error::other(what, words))
}

/// Sos reports are compressed with xz.
fn unxz(packed: impl Read + 'static) -> impl Read {
    let decoder = XzDecoder::in_heap_with_alloc_dict_size(1 << 20, XZ_WINDOW);
    XzReader::new_with_buffer_size_and_decoder(
        packed,
        NonZeroUsize::new(64 * 1024).unwrap_or(NonZeroUsize::MIN),
        decoder,
    )
}

/// Removes what the tar reader quotes, after a colon, in place of a number. The file may be of any kind, and its content may be
/// private.
fn without_content(words: &str) -> &str {
    words.split(':').next().unwrap_or_default()
}

fn read_tar(stream: impl Read, limits: Limits) -> std::result::Result<HashMap<String, Node>, String> {
    let mut archive = tar::Archive::new(Meter { inner: stream, limit: limits.stream, total: 0, zeros: 0 });
    let mut nodes = HashMap::new();
    let mut kept = 0u64;
    let bad = |count: usize, e: &dyn std::fmt::Display| match (count, without_content(&e.to_string())) {
        // The words of the tar reader describe a header that the file does not have.
        (0, _) => "not a tar archive, or damaged at its beginning".to_string(),
        (1, e) => format!("damaged or cut short after 1 entry: {e}"),
        (n, e) => format!("damaged or cut short after {n} entries: {e}"),
    };
    let mut count = 0;
    for entry in archive.entries().map_err(|e| bad(0, &e))? {
        let mut entry = entry.map_err(|e| bad(count, &e))?;
        count += 1;
        if count > limits.entries {
            return Err(format!("more than {} entries", limits.entries));
        }
        let raw = entry.path_bytes();
        if raw.len() > NAME_LIMIT {
            continue;
        }
        // A name with `..` is outside the archive and is skipped.
        let Some(path) = clean(&String::from_utf8_lossy(&raw)) else { continue };
        drop(raw);
        if !wanted(&path) {
            continue;
        }
        let kind = entry.header().entry_type();
        let size = entry.size();
        if kind.is_dir() {
            nodes.entry(path).or_insert_with(|| Node::Dir(Vec::new()));
        } else if kind.is_symlink() || kind.is_hard_link() {
            let Some(target) = entry.link_name_bytes().filter(|t| t.len() <= NAME_LIMIT) else { continue };
            let target = String::from_utf8_lossy(&target).into_owned();
            if kind.is_symlink() {
                nodes.insert(path, Node::Link(target));
            } else if let Some(Node::File(same)) = clean(&target).and_then(|t| nodes.get(&t)).cloned() {
                nodes.insert(path, Node::File(same));
            }
        } else if kind.is_file() || kind.is_gnu_sparse() || kind.is_contiguous() {
            if size > FILE_LIMIT {
                continue; // no file of proc or sys that ringwise reads is that large
            }
            kept += size + path.len() as u64;
            if kept > limits.kept {
                return Err(format!("contains more than {} MB of proc and sys", limits.kept >> 20));
            }
            let mut bytes = vec![0; size as usize];
            entry.read_exact(&mut bytes).map_err(|e| format!("cut short inside {path} ({size} bytes): {e}"))?;
            nodes.insert(path, Node::File(Arc::new(bytes)));
        }
    }
    let mut meter = archive.into_inner();
    // Reads to the end of the stream, where gzip has its checksum.
    std::io::copy(&mut meter, &mut std::io::sink()).map_err(|e| bad(count, &e))?;
    if meter.total == 0 {
        return Err("the file is empty".into());
    }
    if meter.zeros < 512 {
        return Err(bad(count, &"the end mark of the archive is missing"));
    }
    Ok(nodes)
}

/// Creates parent directories that the archive does not list, and fills in the entries of each directory.
pub(super) fn add_directories(nodes: &mut HashMap<String, Node>) {
    let mut paths: Vec<String> = nodes.keys().filter(|p| *p != "/").cloned().collect();
    let mut i = 0;
    while i < paths.len() {
        let (parent, name) = paths[i].rsplit_once('/').unwrap_or(("", &paths[i]));
        let parent = if parent.is_empty() { "/".to_string() } else { parent.to_string() };
        let name = name.to_string();
        match nodes.get_mut(&parent) {
            Some(Node::Dir(names)) => names.push(name),
            Some(_) => {} // something below a file or link: unreachable
            None => {
                if parent != "/" {
                    paths.push(parent.clone());
                }
                nodes.insert(parent, Node::Dir(vec![name]));
            }
        }
        i += 1;
    }
    for node in nodes.values_mut() {
        if let Node::Dir(names) = node {
            names.sort_unstable();
        }
    }
}

/// Bytes of a node, if it is a file.
pub(super) fn file<'a>(nodes: &'a HashMap<String, Node>, path: &str) -> Option<&'a Vec<u8>> {
    match nodes.get(path) {
        Some(Node::File(bytes)) => Some(bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold() {
        let mut tar = tar::Builder::new(Vec::new());
        for i in 0..4 {
            let mut header = tar::Header::new_gnu();
            header.set_size(1 << 20);
            let name = if i < 3 { format!("proc/{i}") } else { "log".to_string() };
            tar.append_data(&mut header, name, &vec![1u8; 1 << 20][..]).unwrap();
        }
        let bytes = tar.into_inner().unwrap();
        let read = |limits| read_tar(&bytes[..], limits).map(|n| n.len());
        let free = Limits { kept: 4 << 20, stream: 8 << 20, entries: 4 };
        assert_eq!(read(free), Ok(3));
        let fails = |limits, words: &str| assert!(read(limits).unwrap_err().contains(words));
        fails(Limits { kept: 2 << 20, ..free }, "more than 2 MB of proc and sys");
        fails(Limits { stream: 3 << 20, ..free }, "unpacks to more than 3 MB");
        fails(Limits { entries: 3, ..free }, "more than 3 entries");
    }
}
