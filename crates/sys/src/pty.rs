//! A pseudo-terminal, for tests of what the user sees.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The user's side: writes are typed keys, reads are the screen.
pub struct Pty {
    /// Bytes written are typed keys; bytes read are what the program prints, escape sequences included.
    pub master: File,
}

impl Pty {
    /// Opens `/dev/ptmx` with a window of this size, in characters. Errors: no pseudo-terminal left, or `/dev/pts` is
    /// not mounted.
    pub fn open(columns: u16, rows: u16) -> io::Result<Self> {
        // SAFETY: a new descriptor, which nothing else owns; the calls on it have no other conditions.
        let master = unsafe {
            let fd = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let master = OwnedFd::from_raw_fd(fd);
            if libc::grantpt(fd) < 0 || libc::unlockpt(fd) < 0 {
                return Err(io::Error::last_os_error());
            }
            master
        };
        let pty = Self { master: File::from(master) };
        pty.resize(columns, rows)?;
        Ok(pty)
    }

    /// Sets the window in characters; the kernel sends SIGWINCH to the foreground group.
    pub fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: TIOCSWINSZ reads one winsize, which `size` is.
        let rc = unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The program's side.
    pub fn slave(&self) -> io::Result<File> {
        // SAFETY: TIOCGPTPEER takes flags and gives a new descriptor, which nothing else owns.
        unsafe {
            let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
            let fd = libc::ioctl(self.master.as_raw_fd(), libc::TIOCGPTPEER, flags);
            if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(fd)) }
        }
    }

    /// Makes the pseudo-terminal the command's controlling terminal, in a new session.
    pub fn give(&self, command: &mut Command) -> io::Result<()> {
        let slave = self.slave()?;
        command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
        // SAFETY: setsid and ioctl are async-signal-safe, and nothing else is called between fork and exec.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        Ok(())
    }

    /// Whether keys are read one by one (not `ICANON`) and not echoed (not `ECHO`).
    pub fn is_raw(&self) -> io::Result<bool> {
        let mut t = std::mem::MaybeUninit::uninit();
        // SAFETY: tcgetattr fills one termios when it succeeds, which is checked.
        unsafe {
            if libc::tcgetattr(self.master.as_raw_fd(), t.as_mut_ptr()) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(t.assume_init().c_lflag & (libc::ICANON | libc::ECHO) == 0)
        }
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: i32) {
    if let Ok(pid) = libc::pid_t::try_from(pid)
        && pid > 1
    {
        // SAFETY: no memory is involved.
        unsafe { libc::kill(pid, signal) };
    }
}
