//! Reads only the default routes, from tables that may hold a million others.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::host::Result;

/// Two messages: the header and the lines of default routes of `/proc/net/route`, and the lines of default routes of
/// `/proc/net/ipv6_route`. A missing table counts as empty: the kernel does not support that address family.
pub(super) fn default_routes(root: &Path) -> Result<Vec<Vec<u8>>> {
    // The IPv4 table is sorted by address (net/ipv4/fib_trie.c), so the default routes come first.
    let v4 = pick(root, "/proc/net/route", |line, i| match line.split_whitespace().nth(1) {
        _ if i == 0 => Some(true),
        Some("00000000") => Some(true),
        _ => None,
    })?;
    let zero = "0".repeat(32) + " 00 ";
    let v6 = pick(root, "/proc/net/ipv6_route", |line, _| Some(line.starts_with(&zero)))?;
    Ok(vec![v4, v6])
}

/// `keep`: whether the line belongs to the answer; `None`: neither this line nor any later one does.
fn pick(root: &Path, path: &str, keep: impl Fn(&str, usize) -> Option<bool>) -> Result<Vec<u8>> {
    let failed = |e: std::io::Error| super::io_error("read", path, &e);
    let file = match File::open(root.join(&path[1..])) {
        Ok(f) => BufReader::with_capacity(256 * 1024, f),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut out = Vec::new();
    for (i, line) in file.lines().enumerate() {
        let line = line.map_err(failed)?;
        match keep(&line, i) {
            Some(true) => out.extend([line.as_bytes(), b"\n"].concat()),
            Some(false) => {}
            None => break,
        }
    }
    Ok(out)
}
