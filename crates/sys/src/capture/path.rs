//! Paths of a recorded host: absolute, resolved in memory, never outside their root.

use ringwise_model::Cause;

use crate::host::Error;

/// As on Linux: more links in one path are ELOOP.
const MAX_LINKS: usize = 40;

/// `a//b/./c` → `/a/b/c`; `None` if a component is `..` or contains NUL. For names inside an archive.
pub(super) fn clean(path: &str) -> Option<String> {
    let mut out = String::with_capacity(path.len() + 1);
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part if part.contains('\0') => return None,
            part => {
                out.push('/');
                out.push_str(part);
            }
        }
    }
    if out.is_empty() {
        out.push('/');
    }
    Some(out)
}

/// Resolves `path` component by component. `link(resolved, asked)` returns the target of a link: `resolved` is the path reached
/// so far, `asked` is the requested path up to here without following links. `..` above the root stays at the root and absolute
/// targets start there, so the result is always inside.
pub(super) fn resolve(
    path: &str,
    follow_last: bool,
    link: impl Fn(&str, &str) -> Option<String>,
) -> Result<String, &'static str> {
    let mut todo: Vec<String> = path.split('/').rev().map(str::to_string).collect();
    // Components that come from the requested path, not from a link: while there are any, `asked` is meaningful.
    let mut own = todo.len();
    let mut resolved = String::new();
    let mut asked = String::new();
    let mut links = 0;
    while let Some(part) = todo.pop() {
        let is_own = todo.len() < own;
        own = own.min(todo.len());
        match part.as_str() {
            "" | "." => continue,
            ".." => {
                resolved.truncate(resolved.rfind('/').unwrap_or(0));
                if is_own {
                    asked.truncate(asked.rfind('/').unwrap_or(0));
                }
                continue;
            }
            _ => {}
        }
        let parent = resolved.len();
        resolved.push('/');
        resolved.push_str(&part);
        if is_own {
            asked.push('/');
            asked.push_str(&part);
        }
        if resolved.len() > 64 * 1024 {
            return Err("symbolic links make the path longer than 64 KiB");
        }
        if todo.iter().all(|p| p.is_empty()) && !follow_last {
            break;
        }
        let Some(target) = link(&resolved, if is_own { &asked } else { &resolved }) else { continue };
        links += 1;
        if links > MAX_LINKS {
            return Err("symbolic links form a loop");
        }
        resolved.truncate(if target.starts_with('/') { 0 } else { parent });
        todo.extend(target.split('/').rev().map(str::to_string));
    }
    if resolved.is_empty() {
        resolved.push('/');
    }
    Ok(resolved)
}

/// The error for a path that a capture does not contain.
pub(super) fn not_held(what: String) -> Error {
    Error { cause: Cause::NotRecorded, ..Error::other(what, "not in this capture") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(path: &str, _: &str) -> Option<String> {
        let target = match path {
            "/sys/class/net/eth1" => "../../devices/pci0/0000:03:00.0/net/eth1",
            "/sys/devices/pci0/0000:03:00.0/net/eth1/device" => "../../../0000:03:00.0",
            "/out" => "../../../../etc/shadow",
            "/abs" => "/proc/x",
            "/a" => "b",
            "/b" => "a",
            _ => return None,
        };
        Some(target.to_string())
    }

    #[test]
    fn through_links_and_never_out() {
        let go = |p: &str| resolve(p, true, links);
        assert_eq!(go("/sys/class/net/eth1/device/numa_node").unwrap(), "/sys/devices/pci0/0000:03:00.0/numa_node");
        assert_eq!(go("/out").unwrap(), "/etc/shadow");
        assert_eq!(go("/abs").unwrap(), "/proc/x");
        assert_eq!(go("/../..").unwrap(), "/");
        assert!(go("/a/x").is_err());
        assert_eq!(resolve("/sys/class/net/eth1/", false, links).unwrap(), "/sys/class/net/eth1");
    }

    #[test]
    fn links_recorded_under_the_requested_path() {
        let link = |_: &str, asked: &str| match asked {
            "/sys/class/net/eth1" => Some("../../devices/p/d/net/eth1".to_string()),
            "/sys/class/net/eth1/device" => Some("../../../d".to_string()),
            _ => None,
        };
        assert_eq!(resolve("/sys/class/net/eth1/device/x", true, link).unwrap(), "/sys/devices/p/d/x");
    }

    #[test]
    fn archive_names() {
        assert_eq!(clean("./fs//proc/stat").as_deref(), Some("/fs/proc/stat"));
        assert_eq!(clean("fs/../../x"), None);
        assert_eq!(clean(""), Some("/".into()));
    }
}
