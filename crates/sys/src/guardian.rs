//! System calls for a process that has to outlive the one it watches: sockets that pass descriptors, pidfds, a session and a
//! control group of its own. `apply` makes the decisions.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::call::{check, own};

/// The process at the other end, as the kernel recorded it when the connection was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// `None`: the process is in another PID namespace, so its number has no meaning here.
    pub pid: Option<u32>,
    /// Effective user ID, as the user namespace of this process sees it; 65534 if it is not mapped (user_namespaces(7)).
    pub uid: u32,
}

/// Reads `SO_PEERCRED` of a connected socket (unix(7)).
pub fn peer(stream: &UnixStream) -> io::Result<Peer> {
    // SAFETY: all-zero is a valid ucred (plain integers).
    let mut cred: libc::ucred = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open; `cred` and `len` are live and of the sizes given.
    check(unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut cred).cast(), &raw mut len)
    })?;
    Ok(Peer { pid: u32::try_from(cred.pid).ok().filter(|p| *p > 0), uid: cred.uid })
}

/// How many descriptors a message may carry.
const DESCRIPTORS: usize = 4;
const EACH: usize = size_of::<libc::c_int>();

/// Space for them in a control message, aligned as the kernel requires.
#[repr(C)]
union Control {
    _align: libc::cmsghdr,
    bytes: [u8; 64],
}

/// Sends `text` with copies of the descriptors: both ends then share the open files, and with them their locks.
pub fn send_fds(stream: &UnixStream, text: &[u8], fds: &[BorrowedFd]) -> io::Result<()> {
    if fds.is_empty() || fds.len() > DESCRIPTORS {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut io = [IoSlice::new(text)];
    let mut control = Control { bytes: [0; 64] };
    let length = (fds.len() * EACH) as u32;
    // SAFETY: all-zero is a valid msghdr; the pointers set below are to live buffers with their lengths, and
    // CMSG_SPACE of four ints (32 bytes) fits the 64 of `control`, so CMSG_FIRSTHDR is not null.
    unsafe {
        let mut msg: libc::msghdr = std::mem::zeroed();
        msg.msg_iov = io.as_mut_ptr().cast();
        msg.msg_iovlen = 1;
        msg.msg_control = (&raw mut control).cast();
        msg.msg_controllen = libc::CMSG_SPACE(length) as _;
        let head = libc::CMSG_FIRSTHDR(&raw const msg);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(length) as _;
        for (n, fd) in fds.iter().enumerate() {
            libc::CMSG_DATA(head).cast::<libc::c_int>().add(n).write_unaligned(fd.as_raw_fd());
        }
        let sent = libc::sendmsg(stream.as_raw_fd(), &raw const msg, libc::MSG_NOSIGNAL);
        match usize::try_from(sent) {
            Err(_) => Err(io::Error::last_os_error()),
            Ok(n) if n == text.len() => Ok(()),
            Ok(n) => Err(io::Error::other(format!("{n} of {} bytes sent", text.len()))),
        }
    }
}

/// Receives one message and the descriptors that came with it. Length 0: the other end is closed.
pub fn recv_fds(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut io = [IoSliceMut::new(buffer)];
    let mut control = Control { bytes: [0; 64] };
    // SAFETY: as in `send_fds`; the kernel writes at most the lengths given, and `cmsg_len` covers what it has written. The
    // received descriptors are new and belong to this process alone, so they may be owned.
    unsafe {
        let mut msg: libc::msghdr = std::mem::zeroed();
        msg.msg_iov = io.as_mut_ptr().cast();
        msg.msg_iovlen = 1;
        msg.msg_control = (&raw mut control).cast();
        msg.msg_controllen = size_of::<Control>() as _;
        let n = libc::recvmsg(stream.as_raw_fd(), &raw mut msg, libc::MSG_CMSG_CLOEXEC);
        let Ok(n) = usize::try_from(n) else { return Err(io::Error::last_os_error()) };
        let head = libc::CMSG_FIRSTHDR(&raw const msg);
        let mut fds = Vec::new();
        if !head.is_null() && (*head).cmsg_level == libc::SOL_SOCKET && (*head).cmsg_type == libc::SCM_RIGHTS {
            let data = ((*head).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            for i in 0..data / EACH {
                let raw = libc::CMSG_DATA(head).cast::<libc::c_int>().add(i).read_unaligned();
                fds.push(OwnedFd::from_raw_fd(raw));
            }
        }
        Ok((n, fds))
    }
}

/// A descriptor that becomes readable when the process ends (since 5.3).
pub fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: two integer arguments.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    own(libc::c_int::try_from(fd).unwrap_or(-1))
}

/// Which of the descriptors become readable, or are closed by the other end, within `wait`.
pub fn readable(fds: &[BorrowedFd], wait: Duration) -> io::Result<Vec<bool>> {
    let entry = |fd: &BorrowedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut list: Vec<libc::pollfd> = fds.iter().map(entry).collect();
    let ms = libc::c_int::try_from(wait.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the pointer and count are of one live vector; the descriptors are borrowed.
    let rc = unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, ms) };
    match check(rc) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(vec![false; fds.len()]),
        Err(e) => Err(e),
        Ok(_) => Ok(list.iter().map(|p| p.revents != 0).collect()),
    }
}

/// Whether the process has ended, or its first thread has: other threads may hang in the kernel, where no signal ends them.
pub fn ended(pid: u32) -> bool {
    match state(pid) {
        Ok(state) => matches!(state, Some('Z' | 'X')),
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}

/// The state of its first thread, as a letter of proc(5): `T` stopped, `t` stopped by a debugger, `D` in an uninterruptible wait
/// in the kernel.
pub fn state(pid: u32) -> io::Result<Option<char>> {
    // `PID (NAME) STATE`; the name may contain any character.
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    Ok(text.rsplit(") ").next().and_then(|t| t.chars().next()))
}

/// A file without a name that can be executed as `/proc/self/fd/N`.
pub fn memory_file(name: &str) -> io::Result<File> {
    let name = std::ffi::CString::new(name)?;
    // The kernel accepts MFD_EXEC since 6.3, and requires it if vm.memfd_noexec is 1. No CLOEXEC: the program that executes the
    // file opens it by its number.
    // SAFETY: a string that ends in 0, and flags.
    let make = |flags: libc::c_uint| check(unsafe { libc::memfd_create(name.as_ptr(), flags) });
    let fd = match make(libc::MFD_EXEC) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => make(0)?,
        other => other?,
    };
    // SAFETY: the kernel has just created it, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Whether the file system of this directory is mounted with `noexec`.
pub fn no_exec(dir: &Path) -> io::Result<bool> {
    let path = std::ffi::CString::new(dir.as_os_str().as_bytes())?;
    // SAFETY: all-zero is a valid statvfs; the path ends in 0 and the struct is live.
    let (rc, info) = unsafe {
        let mut info: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &raw mut info), info)
    };
    check(rc)?;
    Ok(info.f_flag & libc::ST_NOEXEC != 0)
}

/// Locks everything that is mapped now in memory: the program continues even if its file, or the network file system that holds
/// it, is gone. Needs CAP_IPC_LOCK or a limit (RLIMIT_MEMLOCK) of that size.
pub fn stay_in_memory() -> io::Result<()> {
    // SAFETY: flags only; what is mapped later is not touched.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT) }).map(|_| ())
}

/// Starts a session of its own, without a terminal and its signals.
pub fn new_session() -> io::Result<()> {
    // SAFETY: no arguments.
    check(unsafe { libc::setsid() }).map(|_| ())
}

/// Closes descriptors from 3 on: what a shell or a caller left open must not stay open for minutes.
pub fn close_others() -> io::Result<()> {
    // SAFETY: closes descriptors that no code of this process owns, because it has just started.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0) } as libc::c_int).map(|_| ())
}

/// Ignores the signals that a session, a terminal or a `pkill` by the user may send.
pub fn ignore_signals() {
    use libc::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2] {
        // SAFETY: SIG_IGN runs no code of ringwise; the numbers are valid, so it cannot fail.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Kills every process of the group.
pub fn kill_group(leader: u32) {
    if let Ok(pid) = libc::pid_t::try_from(leader)
        && pid > 1
    {
        // SAFETY: two integers; it is fine if the group is gone.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
}

/// Makes this process the last choice of the OOM killer. Needs root.
pub fn spared_by_oom() -> io::Result<()> {
    std::fs::write("/proc/self/oom_score_adj", "-1000")
}

/// Whether this process and the first process share interfaces, processes, the time since boot and the content of `dir`. A
/// systemd service with a mount namespace of its own shares them; a container does not.
pub fn shared_with_init(dir: &Path) -> bool {
    shared_below(Path::new("/proc"), dir)
}

fn shared_below(proc: &Path, dir: &Path) -> bool {
    let of = |who: &str, kind: &str| std::fs::read_link(proc.join(who).join("ns").join(kind));
    let same = |kind: &str| matches!((of("1", kind), of("self", kind)), (Ok(a), Ok(b)) if a == b);
    // Kernels before 5.6 have no time namespaces.
    let without_time = matches!(of("self", "time"), Err(e) if e.kind() == io::ErrorKind::NotFound);
    let place = || same("mnt") || same_place(&proc.join("1/root"), dir);
    same("net") && same("pid") && (without_time || same("time")) && place()
}

/// Whether `dir` (absolute, without symbolic links) is the same directory below another root.
fn same_place(root: &Path, dir: &Path) -> bool {
    let Ok(below) = dir.strip_prefix("/") else { return false };
    let place = |p: &Path| std::fs::metadata(p).map(|m| (m.dev(), m.ino()));
    matches!((place(&root.join(below)), place(dir)), (Ok(a), Ok(b)) if a == b)
}

/// A control group of this process, outside that of the session, which may be killed as a whole.
#[derive(Debug)]
pub struct OwnGroup {
    root: PathBuf,
    dir: PathBuf,
}

impl OwnGroup {
    /// Moves this process into it. `None`: there are no control groups here, or the process is in the root group.
    pub fn enter(name: &str) -> io::Result<Option<Self>> {
        let mounts = std::fs::read_to_string("/proc/self/mounts")?;
        let mine = std::fs::read_to_string("/proc/self/cgroup")?;
        let Some((root, path)) = group_of(&mounts, &mine) else { return Ok(None) };
        if path == "/" {
            return Ok(None);
        }
        let dir = root.join(name);
        match std::fs::create_dir(&dir) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        enter(&dir)?;
        Ok(Some(Self { root, dir }))
    }

    /// Removes it again.
    pub fn leave(self) -> io::Result<()> {
        enter(&self.root)?;
        std::fs::remove_dir(&self.dir)
    }
}

fn enter(dir: &Path) -> io::Result<()> {
    File::options().write(true).open(dir.join("cgroup.procs"))?.write_all(b"0")
}

/// The mount point of the control group tree by which sessions are killed, and the path of this process in it: the unified tree,
/// else the named one of systemd.
fn group_of<'a>(mounts: &str, mine: &'a str) -> Option<(PathBuf, &'a str)> {
    let mount = |wanted: &dyn Fn(&[&str]) -> bool| {
        mounts.lines().map(|l| l.split(' ').collect::<Vec<_>>()).find(|f| f.len() > 3 && wanted(f)).map(|f| f[1].into())
    };
    let place = |start: &str| mine.lines().find_map(|l| l.strip_prefix(start));
    let named = mine.lines().find_map(|l| l.split_once(":name=systemd:").map(|(_, p)| p));
    if let Some(p) = named
        && let Some(root) = mount(&|f| f[2] == "cgroup" && f[3].split(',').any(|o| o == "name=systemd"))
    {
        return Some((root, p));
    }
    Some((mount(&|f| f[2] == "cgroup2")?, place("0::")?))
}

/// Duplicates a descriptor; both share the open file.
pub fn same_file(fd: &impl AsFd) -> io::Result<OwnedFd> {
    fd.as_fd().try_clone_to_owned()
}

#[cfg(test)]
#[path = "guardian_tests.rs"]
mod tests;
