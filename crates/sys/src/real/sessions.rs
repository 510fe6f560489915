//! The ssh sessions of this machine: the one in which this program was started, else all that an ssh server holds.
//!
//! `SSH_CONNECTION` of this process or of an ancestor (sudo and su remove it from the environment) is trusted if the server is
//! among the ancestors. Under tmux or screen it is not, and the variable may be of a session that ended long ago. In that case
//! every established connection that a server process holds counts, because it is unknown which of them the user works over.

use ringwise_model::errno::EACCES;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use crate::host::{Error, Result};

const WHAT: &str = "ssh sessions";
/// Maximum number of ancestors: a longer chain is a loop in a forged tree.
const DEPTH: usize = 64;
/// TCP_ESTABLISHED (include/net/tcp_states.h).
const ESTABLISHED: &str = "01";
const SSH_PORT: u16 = 22;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Session {
    own: bool,
    /// Peer with its scope, its port, the local address, the local port: the order of `SSH_CONNECTION`.
    connection: String,
}

/// One message per session: `own` or `held`, and the four words of `SSH_CONNECTION`. Errors: it cannot be determined whether
/// there is a session.
pub(super) fn sessions(root: &Path) -> Result<Vec<Vec<u8>>> {
    let own_environment = std::env::var("SSH_CONNECTION").ok().filter(|_| root == Path::new("/"));
    let found = look(root, std::process::id(), own_environment)?;
    Ok(found.iter().map(|s| format!("{} {}", if s.own { "own" } else { "held" }, s.connection).into_bytes()).collect())
}

fn look(root: &Path, pid: u32, own_environment: Option<String>) -> Result<Vec<Session>> {
    let line = descent(root, pid, own_environment);
    let own = |connection: String| Session { own: true, connection };
    if let (Some(c), true) = (&line.connection, line.server) {
        return Ok(vec![own(c.clone())]);
    }
    let table = established(root)?;
    let mut out = BTreeSet::new();
    if let Some(c) = line.connection.filter(|c| is_there(&table, c)) {
        out.insert(own(c));
    }
    let (inodes, hidden) = held_by_servers(root)?;
    let mine = out.iter().map(|s: &Session| words(&s.connection)).collect::<Vec<_>>();
    for row in &table {
        // If sockets of other processes cannot be seen, the port decides.
        let counts = inodes.contains(&row.inode) || hidden && row.local.1 == SSH_PORT;
        let connection = row.text();
        if counts && !mine.contains(&words(&connection)) {
            out.insert(Session { own: false, connection });
        }
    }
    if out.is_empty() && hidden {
        let words = "no session was found on port 22, and sockets of other users are not visible";
        return Err(Error { words: Some(words.into()), ..Error::errno(WHAT, EACCES) });
    }
    Ok(out.into_iter().collect())
}

struct Descent {
    connection: Option<String>,
    /// An ancestor is an ssh server (or mosh's server, which outlives the connection).
    server: bool,
}

fn is_server(comm: &str) -> bool {
    comm.starts_with("sshd") || comm == "dropbear" || comm == "mosh-server"
}

fn descent(root: &Path, pid: u32, own_environment: Option<String>) -> Descent {
    let mut out = Descent { connection: own_environment.and_then(|c| words(&c).map(|_| c)), server: false };
    let mut pid = pid;
    for _ in 0..DEPTH {
        let dir = root.join(format!("proc/{pid}"));
        if out.connection.is_none()
            && let Ok(environ) = std::fs::read(dir.join("environ"))
        {
            out.connection = variable(&environ).filter(|c| words(c).is_some());
        }
        let Ok(stat) = std::fs::read(dir.join("stat")) else { break };
        let Some((comm, parent)) = comm_and_parent(&String::from_utf8_lossy(&stat)) else { break };
        out.server |= is_server(&comm);
        if out.server && out.connection.is_some() || parent <= 1 || parent == pid {
            break;
        }
        pid = parent;
    }
    out
}

fn variable(environ: &[u8]) -> Option<String> {
    let mut all = environ.split(|b| *b == 0);
    all.find_map(|v| v.strip_prefix(b"SSH_CONNECTION=")).map(|v| String::from_utf8_lossy(v).into_owned())
}

/// `12 (a (b) c) S 1 …`: the name may contain any character, including parentheses.
fn comm_and_parent(stat: &str) -> Option<(String, u32)> {
    let (head, tail) = stat.rsplit_once(')')?;
    let comm = head.split_once('(')?.1.to_string();
    Some((comm, tail.split_whitespace().nth(1)?.parse().ok()?))
}

type End = (IpAddr, u16);

/// Peer and local end of an `SSH_CONNECTION`, without scopes.
fn words(connection: &str) -> Option<(End, End)> {
    let mut w = connection.split_whitespace();
    let mut end = || {
        let address: IpAddr = w.next()?.split('%').next()?.parse().ok()?;
        Some((address.to_canonical(), w.next()?.parse().ok()?))
    };
    Some((end()?, end()?))
}

struct Row {
    local: End,
    remote: End,
    inode: u64,
}

impl Row {
    fn text(&self) -> String {
        format!("{} {} {} {}", self.remote.0, self.remote.1, self.local.0, self.local.1)
    }
}

fn is_there(table: &[Row], connection: &str) -> bool {
    words(connection).is_some_and(|w| table.iter().any(|r| (r.remote, r.local) == w))
}

/// Established connections of this network namespace.
fn established(root: &Path) -> Result<Vec<Row>> {
    let mut out = Vec::new();
    for (file, must) in [("tcp", true), ("tcp6", false)] {
        let path = format!("/proc/net/{file}");
        match in_few_reads(&root.join(&path[1..])) {
            Ok(text) => out.extend(text.lines().skip(1).filter_map(row)),
            Err(e) if must => return Err(super::io_error("read", &path, &e)),
            // This host has no IPv6.
            Err(_) => {}
        }
    }
    Ok(out)
}

/// Reads with a large buffer: for each read(2) beyond the first lines the kernel walks its whole table of connections, which
/// takes a millisecond or more.
fn in_few_reads(path: &Path) -> std::io::Result<String> {
    let mut text = String::with_capacity(64 << 10);
    File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

fn row(line: &str) -> Option<Row> {
    let f: Vec<&str> = line.split_whitespace().collect();
    if *f.get(3)? != ESTABLISHED {
        return None;
    }
    Some(Row { local: end(f[1])?, remote: end(f[2])?, inode: f.get(9)?.parse().ok()? })
}

/// `0102000A:0016`: the words of the address, printed as numbers of this machine (net/ipv4/tcp_ipv4.c, `get_tcp4_sock`).
fn end(text: &str) -> Option<End> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |i: usize| u32::from_str_radix(address.get(i * 8..i * 8 + 8)?, 16).ok();
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?.to_ne_bytes())),
        32 => {
            let mut bytes = [0; 16];
            for (i, part) in bytes.chunks_mut(4).enumerate() {
                part.copy_from_slice(&word(i)?.to_ne_bytes());
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((address, port))
}

/// `Uid:` of `/proc/PID/status`: real, effective, saved, file system. The owner of the directory is less useful: it is root for
/// every process that cannot be dumped.
fn effective_uid(process: &Path) -> Option<u32> {
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|l| l.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

/// Inodes of the sockets of ssh servers; `true`: some are not visible to this process.
fn held_by_servers(root: &Path) -> Result<(BTreeSet<u64>, bool)> {
    let mut out = (BTreeSet::new(), false);
    let list = std::fs::read_dir(root.join("proc")).map_err(|e| super::io_error("list", "/proc", &e))?;
    for entry in list.flatten() {
        let dir: PathBuf = entry.path();
        if !entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let Ok(comm) = std::fs::read_to_string(dir.join("comm")) else { continue };
        // The server's own process belongs to root; any user can use its name. If the user is unknown, the process counts.
        if !is_server(comm.trim_end()) || effective_uid(&dir).is_some_and(|uid| uid != 0) {
            continue;
        }
        let Ok(fds) = std::fs::read_dir(dir.join("fd")) else {
            // The process has ended meanwhile, or belongs to another user.
            out.1 |= dir.exists();
            continue;
        };
        let targets = fds.flatten().filter_map(|f| std::fs::read_link(f.path()).ok());
        let sockets = targets
            .filter_map(|t| t.to_string_lossy().strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok());
        out.0.extend(sockets);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Proc(PathBuf);

    impl Proc {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("ringwise-sessions-{}-{name}", std::process::id()));
            let p = Self(dir);
            let head =
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
            // 192.0.2.1:22 with 192.0.2.10:51234 (inode 700) and with 192.0.2.11:40000 (701); a listener.
            p.file(
                "net/tcp",
                &format!(
                    "{head}   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 \
                600\n   \
                 1: 010200C0:0016 0A0200C0:C822 01 00000000:00000000 00:00000000 00000000     0        0 700 1\n   \
                 2: 010200C0:0016 0B0200C0:9C40 01 00000000:00000000 00:00000000 00000000     0        0 701 1\n"
                ),
            );
            p
        }

        fn file(&self, name: &str, text: &str) {
            let path = self.0.join("proc").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn process(&self, pid: u32, comm: &str, parent: u32, environ: &str) {
            self.file(&format!("{pid}/stat"), &format!("{pid} ({comm}) S {parent} 1 1"));
            self.file(&format!("{pid}/comm"), &format!("{comm}\n"));
            self.file(&format!("{pid}/environ"), environ);
            std::fs::create_dir_all(self.0.join(format!("proc/{pid}/fd"))).unwrap();
        }

        fn socket(&self, pid: u32, fd: u32, inode: u32) {
            let at = self.0.join(format!("proc/{pid}/fd/{fd}"));
            std::os::unix::fs::symlink(format!("socket:[{inode}]"), at).unwrap();
        }

        fn look(&self, pid: u32) -> Vec<(bool, String)> {
            look(&self.0, pid, None).unwrap().into_iter().map(|s| (s.own, s.connection)).collect()
        }
    }

    impl Drop for Proc {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const MINE: &str = "192.0.2.10 51234 192.0.2.1 22";
    const OTHER: &str = "192.0.2.11 40000 192.0.2.1 22";

    #[test]
    fn sudo_takes_the_variable_away() {
        let p = Proc::new("sudo");
        p.process(50, "sshd-session", 1, "");
        p.process(51, "bash", 50, &format!("HOME=/root\0SSH_CONNECTION={MINE}\0"));
        p.process(52, "sudo", 51, "HOME=/root\0");
        p.process(53, "ringwise (x) y", 52, "");
        assert_eq!(p.look(53), [(true, MINE.to_string())]);
    }

    #[test]
    fn under_tmux_all_sessions_count_and_one_long_gone_does_not() {
        let p = Proc::new("tmux");
        p.process(40, "sshd", 1, "");
        p.socket(40, 4, 701);
        p.process(60, "tmux: server", 1, "SSH_CONNECTION=192.0.2.99 1 192.0.2.1 22\0");
        p.process(61, "bash", 60, "SSH_CONNECTION=192.0.2.99 1 192.0.2.1 22\0");
        assert_eq!(p.look(61), [(false, OTHER.to_string())]);
        // The same with a variable that is still correct: that session counts, and also any other user before it.
        p.process(61, "bash", 60, &format!("SSH_CONNECTION={MINE}\0"));
        assert_eq!(p.look(61), [(false, OTHER.to_string()), (true, MINE.to_string())]);
    }

    #[test]
    fn a_process_that_only_calls_itself_sshd_is_no_server() {
        let p = Proc::new("called");
        p.process(40, "sshd", 1, "");
        p.socket(40, 4, 701);
        p.process(70, "sshd", 1, "");
        p.file("70/status", "Name:\tsshd\nUid:\t1000\t1000\t1000\t1000\n");
        p.socket(70, 4, 700);
        p.process(61, "cron", 1, "");
        assert_eq!(p.look(61), [(false, OTHER.to_string())]);
        p.file("70/status", "Name:\tsshd\nUid:\t1000\t0\t0\t0\n");
        assert_eq!(p.look(61).len(), 2);
    }

    #[test]
    fn none_where_no_user_is_logged_in() {
        let p = Proc::new("none");
        p.process(40, "sshd", 1, "");
        p.socket(40, 3, 600);
        p.process(61, "cron", 1, "");
        assert_eq!(p.look(61), []);
    }

    #[test]
    fn addresses_of_the_table() {
        assert_eq!(end("0100007F:0016"), Some(("127.0.0.1".parse().unwrap(), 22)));
        let six = "B80D0120000000000000000001000000:0016";
        assert_eq!(end(six), Some(("2001:db8::1".parse().unwrap(), 22)));
        assert_eq!(end("0000000000000000FFFF00000100007F:0016"), Some(("127.0.0.1".parse().unwrap(), 22)));
        assert_eq!(words("fe80::1%eth0 5 fe80::2%eth0 22"), words("fe80::1 5 fe80::2 22"));
        assert_eq!(words("nonsense"), None);
    }
}
