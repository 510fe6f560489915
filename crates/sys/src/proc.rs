//! This process and its environment: user, terminal, signals, other processes. Names come from `/etc/passwd` only: a static
//! binary cannot use a name service.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::host::{Error, Result};

/// Effective user id.
pub fn euid() -> u32 {
    // SAFETY: no arguments, can not fail.
    unsafe { libc::geteuid() }
}

/// The address at which the program was loaded. `addr2line` expects an address of a backtrace minus this one.
pub fn load_address() -> usize {
    unsafe extern "C" {
        /// The ELF header; the linker defines this symbol.
        static __ehdr_start: u8;
    }
    (&raw const __ehdr_start).addr()
}

/// User and system time of this process so far, including its threads.
pub fn cpu_time() -> std::time::Duration {
    // SAFETY: all-zero is a valid timespec (plain integers).
    let mut now: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `now` is a live timespec. The clock exists on every kernel; if the call fails, the time stays 0.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    std::time::Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Whether this process can write root's files: CAP_DAC_OVERRIDE is effective. `None`: `/proc/self/status` cannot be read.
pub fn may_override() -> Option<bool> {
    const CAP_DAC_OVERRIDE: u32 = 1;
    has_capability(CAP_DAC_OVERRIDE)
}

/// Whether this capability (number in linux/capability.h) is effective in this process, in its own user namespace. `None`:
/// `/proc/self/status` cannot be read.
pub(crate) fn has_capability(number: u32) -> Option<bool> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = text.lines().find_map(|l| l.strip_prefix("CapEff:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask >> number & 1 == 1)
}

/// Real user id.
pub fn uid() -> u32 {
    // SAFETY: no arguments, can not fail.
    unsafe { libc::getuid() }
}

/// Who runs the program: the user before `sudo`, else the real user by `/etc/passwd`, else `uid N`.
pub fn user_name() -> String {
    if let Some(name) = std::env::var("SUDO_USER").ok().filter(|n| !n.is_empty()) {
        return name;
    }
    let uid = uid();
    std::fs::read_to_string("/etc/passwd")
        .ok()
        .and_then(|text| passwd_name(&text, uid))
        .unwrap_or_else(|| format!("uid {uid}"))
}

fn passwd_name(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_string())
    })
}

/// Whether a process with this ID exists, even one of another user. A zombie counts as alive.
pub fn pid_alive(pid: u32) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
    if pid <= 0 {
        return false;
    }
    // SAFETY: signal 0 sends nothing; only existence and permission are checked.
    let rc = unsafe { libc::kill(pid, 0) };
    rc == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// Whether the descriptor is a terminal.
pub fn is_tty(fd: &impl AsFd) -> bool {
    // SAFETY: the descriptor is open for as long as `fd` is borrowed.
    unsafe { libc::isatty(fd.as_fd().as_raw_fd()) == 1 }
}

/// (columns, rows) of the terminal behind `fd`; `None` if `fd` is not a terminal or the size is unknown.
pub fn terminal_size(fd: &impl AsFd) -> Option<(u16, u16)> {
    // SAFETY: all-zero is a valid winsize (plain integers).
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ writes one winsize, which `size` is.
    let rc = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (rc == 0 && size.ws_col > 0).then_some((size.ws_col, size.ws_row))
}

static RAISED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note_signal(signal: libc::c_int) {
    RAISED.store(signal, Ordering::SeqCst);
}

/// Records SIGINT, SIGTERM and SIGHUP from now on, so that they do not end the process. Blocking calls that a signal interrupts
/// are restarted, so check [`SignalFlag::raised`] between steps.
pub fn install_signal_flag() -> Result<SignalFlag> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: all-zero is a valid sigaction: empty mask, no flags; the handler is set below.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = note_signal as *const () as libc::sighandler_t;
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe; the old action is not requested.
        let rc = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        if rc < 0 {
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            return Err(Error::errno(format!("handle signal {signal}"), errno));
        }
    }
    Ok(SignalFlag(()))
}

/// The signals that [`install_signal_flag`] has recorded.
#[derive(Debug, Clone, Copy)]
pub struct SignalFlag(());

impl SignalFlag {
    /// Number of the last signal that arrived, if any.
    pub fn raised(&self) -> Option<i32> {
        Some(RAISED.load(Ordering::SeqCst)).filter(|s| *s != 0)
    }

    /// Forgets the recorded signal.
    pub fn clear(&self) {
        RAISED.store(0, Ordering::SeqCst);
    }
}

/// While it lives, SIGINT, SIGTERM and SIGHUP are blocked for this thread (and threads that it starts).
#[must_use]
pub struct BlockedSignals {
    old: libc::sigset_t,
    // The mask belongs to one thread: the guard must not be dropped in another.
    _not_send: std::marker::PhantomData<*const ()>,
}

/// Blocks SIGINT, SIGTERM and SIGHUP until the guard is dropped, for the few calls that must not be interrupted.
pub fn block_signals() -> BlockedSignals {
    // SAFETY: all-zero memory is then initialised by sigemptyset; all pointers are to live sets;
    // with a valid `how` and sets these calls can not fail.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut old);
        BlockedSignals { old, _not_send: std::marker::PhantomData }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled by pthread_sigmask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.old, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_where_the_kernel_has_mapped_it() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let own = std::env::current_exe().unwrap().display().to_string();
        let first = maps.lines().find(|l| l.ends_with(&own)).unwrap();
        let (begin, _) = first.split_once('-').unwrap();
        assert_eq!(load_address(), usize::from_str_radix(begin, 16).unwrap(), "{first}");
    }

    #[test]
    fn names_come_from_passwd() {
        let text = "root:x:0:0::/root:/bin/sh\nbroken\nanna:x:1000:1000::/:/bin/sh\n";
        assert_eq!(passwd_name(text, 1000).as_deref(), Some("anna"));
        assert_eq!(passwd_name(text, 7), None);
    }

    #[test]
    fn processes() {
        assert!(pid_alive(std::process::id()));
        assert!(!pid_alive(0) && !pid_alive(u32::MAX) && !pid_alive(0x7fff_fff0));
    }

    #[test]
    fn a_file_is_no_terminal() {
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        assert!(!is_tty(&file));
        assert_eq!(terminal_size(&file), None);
    }

    #[test]
    fn a_signal_is_noted_after_it_was_held_back() {
        let flag = install_signal_flag().unwrap();
        {
            let _held = block_signals();
            // SAFETY: sends a signal to this very thread, whose handler only stores to an atomic.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGHUP) };
            assert_eq!(flag.raised(), None);
        }
        assert_eq!(flag.raised(), Some(libc::SIGHUP));
        flag.clear();
        assert_eq!(flag.raised(), None);
    }
}
