//! Kernel interfaces that load generation and measurement need: a thread's CPU, timer slack and CPU time, sockets with their
//! buffers and drops, epoll, network namespaces, hardware counters.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::host::{Error, Result};
use crate::isolation;
pub use crate::many::{AT_ONCE, receive_many, send_many};
use crate::real::io_error;

fn last(what: &str) -> Error {
    Error::errno(what, io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Pins the calling thread to this CPU.
///
/// Errors: EINVAL: the CPU does not exist, is offline, or a cpuset forbids it.
pub fn pin(cpu: u32) -> Result<()> {
    let what = format!("sched_setaffinity to CPU {cpu}");
    if cpu > isolation::MAX_CPU {
        return Err(Error::other(what, format!("the highest CPU number is {}", isolation::MAX_CPU)));
    }
    isolation::allow(&[cpu].into()).map_err(|e| Error::errno(what, e.raw_os_error().unwrap_or(0)))
}

/// How late the kernel may deliberately fire the timers of the calling thread; the kernel's default is 50,000 ns.
pub fn timer_slack(ns: u32) -> Result<()> {
    // SAFETY: integers only.
    let rc = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(ns), 0, 0, 0) };
    if rc < 0 { Err(last("PR_SET_TIMERSLACK")) } else { Ok(()) }
}

/// User and system time of the calling thread so far.
pub fn thread_cpu_time() -> Duration {
    // SAFETY: all-zero is a valid timespec (plain integers).
    let mut now: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `now` is a live timespec; the clock exists on every kernel.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Moves the calling thread into this network namespace (`ip netns add NAME`: `/run/netns/NAME`), and with it the threads and
/// processes that it starts from now on. Needs CAP_SYS_ADMIN.
pub fn enter_netns(name: &str) -> Result<()> {
    let what = format!("network namespace {name}");
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(Error::other(what, "expected the name of a file in /run/netns"));
    }
    let path = Path::new("/run/netns").join(name);
    let file = File::open(&path).map_err(|e| io_error("open", &path.to_string_lossy(), &e))?;
    // SAFETY: an open descriptor and a flag.
    let rc = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
    if rc < 0 { Err(last(&what)) } else { Ok(()) }
}

/// Raises the limit of this process so that it can open this many files, as far as permitted.
///
/// Errors: the hard limit is lower and may not be raised; `words` name it.
pub fn room_for_files(wanted: u64) -> Result<()> {
    let what = format!("a limit of {wanted} open files");
    // SAFETY: all-zero is a valid rlimit (plain integers).
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: `limit` is a live rlimit.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } < 0 {
        return Err(last(&what));
    }
    if limit.rlim_cur >= wanted {
        return Ok(());
    }
    let hard = limit.rlim_max;
    limit = libc::rlimit { rlim_cur: wanted, rlim_max: hard.max(wanted) };
    // SAFETY: as above; it is only read.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } < 0 {
        let words = format!("the hard limit of open files is {hard} (ulimit -Hn)");
        return Err(Error { words: Some(words), ..last(&what) });
    }
    Ok(())
}

/// The program is killed when the thread that starts it ends, so that no program continues to send without ringwise. That thread
/// must live as long as the program should run.
pub fn dies_with_us(command: &mut Command) {
    // SAFETY: one prctl(2) with integers, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

fn set(fd: &impl AsRawFd, name: libc::c_int, value: libc::c_int) -> libc::c_int {
    // SAFETY: pointer and length are of a live integer.
    unsafe {
        let size = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, name, (&raw const value).cast(), size)
    }
}

/// Sets the size of the receive buffer, beyond `net.core.rmem_max` if CAP_NET_ADMIN allows it. Returns the effective size: the
/// kernel includes its own structures, and doubles the requested value.
pub fn receive_buffer(fd: &impl AsRawFd, bytes: u32) -> Result<u32> {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    if set(fd, libc::SO_RCVBUFFORCE, value) < 0 && set(fd, libc::SO_RCVBUF, value) < 0 {
        return Err(last("SO_RCVBUF"));
    }
    let (mut now, mut size) = (0 as libc::c_int, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: pointer and size are of a live integer.
    let rc = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, (&raw mut now).cast(), &raw mut size)
    };
    if rc < 0 { Err(last("SO_RCVBUF")) } else { Ok(now as u32) }
}

/// Number of datagrams that this socket has dropped, mostly because the receive buffer was full: the number that `SO_RXQ_OVFL`
/// reports, but without a datagram. 32 bits in the kernel. (`SO_MEMINFO`, `SK_MEMINFO_DROPS`: linux/sock_diag.h, since 4.12.)
pub fn socket_drops(fd: &impl AsRawFd) -> Result<u32> {
    const SO_MEMINFO: libc::c_int = 55;
    const DROPS: usize = 8;
    let mut info = [0u32; 16];
    let mut size = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes of a live array.
    let rc = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, SO_MEMINFO, info.as_mut_ptr().cast(), &raw mut size)
    };
    if rc < 0 {
        return Err(last("SO_MEMINFO"));
    }
    if (size as usize) < (DROPS + 1) * 4 {
        return Err(Error::other("SO_MEMINFO", format!("{size} bytes: this kernel does not report drops")));
    }
    Ok(info[DROPS])
}

/// Waits for many descriptors at once (epoll(7)).
pub struct Poll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poll {
    /// An empty set. Errors: no descriptor left (EMFILE, ENFILE), or no memory.
    pub fn new() -> Result<Self> {
        // SAFETY: a flag; the result is checked before use.
        let raw = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if raw < 0 {
            return Err(last("epoll_create1"));
        }
        // SAFETY: the kernel has just created it, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Self { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; 256] })
    }

    /// Adds a descriptor. `wait` returns `key` as long as it can be read; with `edges`, once whenever it becomes readable or
    /// writable. Closing the descriptor removes it.
    pub fn add(&self, fd: &impl AsRawFd, key: u64, edges: bool) -> Result<()> {
        let more = if edges { libc::EPOLLOUT | libc::EPOLLET } else { 0 };
        let mut event = libc::epoll_event { events: (libc::EPOLLIN | more) as u32, u64: key };
        // SAFETY: open descriptors and a live event.
        let rc = unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event) };
        if rc < 0 { Err(last("EPOLL_CTL_ADD")) } else { Ok(()) }
    }

    /// Writes the keys of descriptors that are ready into `out` (at most 256). Waits up to `wait`, with the precision of the
    /// thread's timer slack. `out` is empty after a timeout or a signal.
    pub fn wait(&mut self, wait: Duration, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        if self.take(out)? > 0 || wait.is_zero() {
            return Ok(());
        }
        let time = libc::timespec { tv_sec: wait.as_secs() as libc::time_t, tv_nsec: wait.subsec_nanos() as _ };
        let mut one = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd and a live timespec; no signal mask. (epoll_wait takes only milliseconds.)
        let rc = unsafe { libc::ppoll(&raw mut one, 1, &raw const time, std::ptr::null()) };
        match rc {
            0 => Ok(()),
            1.. => self.take(out).map(drop),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(()),
            _ => Err(last("ppoll")),
        }
    }

    fn take(&mut self, out: &mut Vec<u64>) -> Result<usize> {
        let room = self.events.len() as libc::c_int;
        // SAFETY: pointer and count are of a live vector.
        let n = unsafe { libc::epoll_wait(self.fd.as_raw_fd(), self.events.as_mut_ptr(), room, 0) };
        match usize::try_from(n) {
            Ok(n) => {
                out.extend(self.events[..n].iter().map(|e| e.u64));
                Ok(n)
            }
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(_) => Err(last("epoll_wait")),
        }
    }
}

/// Counts the cycles of one CPU since it was opened, for all tasks on it (perf_event_open(2)).
#[derive(Debug)]
pub struct Cycles {
    file: File,
}

impl Cycles {
    /// Needs CAP_PERFMON, or `kernel.perf_event_paranoid` at 0 or below.
    ///
    /// Errors: ENOENT or EOPNOTSUPP where there is no such counter, as in most virtual machines; EACCES.
    pub fn open(cpu: u32) -> Result<Self> {
        const TYPE_HARDWARE: u32 = 0;
        const CPU_CYCLES: u64 = 0;
        /// `PERF_ATTR_SIZE_VER0`; every kernel accepts it.
        const SIZE: u32 = 64;
        const CLOEXEC: libc::c_ulong = 8;
        // struct perf_event_attr: type, size, config, period, sample_type, read_format, flags, wakeup, bp.
        let mut attr = [0u64; SIZE as usize / 8];
        attr[0] = u64::from_ne_bytes({
            let (a, b) = (TYPE_HARDWARE.to_ne_bytes(), SIZE.to_ne_bytes());
            [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]]
        });
        attr[1] = CPU_CYCLES;
        let cpu_id = libc::c_int::try_from(cpu).unwrap_or(libc::c_int::MAX);
        // SAFETY: the attributes are live and of the size that they name; the rest are integers.
        let raw = unsafe { libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), -1, cpu_id, -1, CLOEXEC) };
        match libc::c_int::try_from(raw) {
            // SAFETY: the kernel has just created it, and nothing else owns it.
            Ok(fd) if fd >= 0 => Ok(Self { file: unsafe { File::from_raw_fd(fd) } }),
            _ => Err(last(&format!("perf_event_open: cycles of CPU {cpu}"))),
        }
    }

    /// Cycles since [`Cycles::open`], of all tasks that ran on the CPU.
    pub fn read(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact(&mut bytes).map_err(|e| io_error("read", "cycles", &e))?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

/// Whether an executable program of this name is in one of the directories of PATH.
pub fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| {
        let Ok(path) = CString::new(dir.join(name).as_os_str().as_bytes()) else { return false };
        // SAFETY: a string that ends in 0, and a flag.
        unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_thread_is_pinned_and_its_time_counted() {
        std::thread::spawn(|| {
            let allowed = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let list = |t: &str| t.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:\t")).unwrap().to_string();
            let first: u32 = list(&allowed).split([',', '-']).next().unwrap().parse().unwrap();
            pin(first).unwrap();
            assert_eq!(list(&std::fs::read_to_string("/proc/thread-self/status").unwrap()), first.to_string());
            timer_slack(1).unwrap();
            let before = thread_cpu_time();
            while thread_cpu_time() < before + Duration::from_millis(1) {}
        })
        .join()
        .unwrap();
        assert_eq!(pin(8190).unwrap_err().errno, Some(libc::EINVAL));
        assert_eq!(pin(u32::MAX).unwrap_err().errno, None);
    }

    #[test]
    fn names_of_namespaces_are_no_paths() {
        for bad in ["", "../1/ns/net", ".."] {
            assert_eq!(enter_netns(bad).unwrap_err().errno, None, "{bad}");
        }
        let gone = enter_netns("no-such-name-here").unwrap_err();
        assert_eq!(gone.errno, Some(libc::ENOENT), "{gone}");
    }

    #[test]
    fn datagrams_in_batches_and_what_was_lost() {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        from.connect(to.local_addr().unwrap()).unwrap();
        let in_force = receive_buffer(&to, 4096).unwrap();
        assert!((1024..100_000).contains(&in_force), "{in_force}");
        let mut poll = Poll::new().unwrap();
        poll.add(&to, 7, false).unwrap();
        let mut ready = Vec::new();
        poll.wait(Duration::ZERO, &mut ready).unwrap();
        assert!(ready.is_empty());
        let mut out = vec![1u8; 100 * AT_ONCE];
        out[100] = 2;
        assert_eq!(send_many(&from, &mut out, 100, 3).unwrap(), 3);
        poll.wait(Duration::from_secs(5), &mut ready).unwrap();
        assert_eq!(ready, [7]);
        let (mut heads, mut lengths) = (vec![0u8; 4 * AT_ONCE], [0; AT_ONCE]);
        assert_eq!(receive_many(&to, &mut heads, 4, &mut lengths).unwrap(), 3);
        assert_eq!((&lengths[..3], heads[0], heads[4], heads[8]), (&[100, 100, 100][..], 1, 2, 1));
        let none = receive_many(&to, &mut heads, 4, &mut lengths).unwrap_err();
        assert_eq!(none.raw_os_error(), Some(libc::EAGAIN));
        assert_eq!(socket_drops(&to).unwrap(), 0);
        let mut sent = 0;
        for _ in 0..20 {
            sent += send_many(&from, &mut out, 100, AT_ONCE).unwrap();
        }
        let mut got = 0;
        while let Ok(n) = receive_many(&to, &mut heads, 4, &mut lengths) {
            got += n;
        }
        assert_eq!((sent, got + socket_drops(&to).unwrap() as usize), (20 * AT_ONCE, 20 * AT_ONCE));
        assert!(got < sent, "4 KiB do not hold them all");
    }

    /// If there is no counter, the errno shows that.
    #[test]
    fn cycles_or_an_errno() {
        match Cycles::open(0) {
            Ok(mut c) => {
                let a = c.read().unwrap();
                std::hint::black_box((0..100_000u64).map(std::hint::black_box).sum::<u64>());
                assert!(c.read().unwrap() >= a);
            }
            Err(e) => assert!(matches!(e.errno, Some(1 | 2 | 13 | 19 | 38 | 95)), "{e}"),
        }
        assert!(Cycles::open(u32::MAX).unwrap_err().errno.is_some());
    }

    #[test]
    fn open_files_and_programs() {
        room_for_files(16).unwrap();
        let far = room_for_files(1 << 40).unwrap_err();
        assert!(far.to_string().contains("hard limit"), "{far}");
        assert!(in_path("sh") && !in_path("no-such-program"));
    }
}
