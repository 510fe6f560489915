//! A limit on the wake-up latency of all CPUs for as long as a program runs: `/dev/cpu_dma_latency`
//! (Documentation/power/pm_qos_interface.rst, kernel/power/qos.c). The kernel drops the request when the file is closed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::host::{Error, Result};
use crate::real::io_error;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// The request, which is active while this value lives.
#[derive(Debug)]
pub struct CpuLatency {
    file: File,
}

/// Requests that no CPU takes longer than this to wake up.
pub fn cpu_latency(microseconds: u32) -> Result<CpuLatency> {
    let wish = i32::try_from(microseconds).map_err(|_| Error::other(DEVICE, "at most 2147483647 us"))?;
    let mut file = OpenOptions::new().read(true).write(true).open(DEVICE).map_err(|e| io_error("open", DEVICE, &e))?;
    // The kernel reads four bytes as the number itself, and any other length as hexadecimal text.
    file.write_all(&wish.to_ne_bytes()).map_err(|e| io_error("write", DEVICE, &e))?;
    Ok(CpuLatency { file })
}

impl CpuLatency {
    /// The lowest latency that any program requests now, in microseconds.
    pub fn lowest_latency(&mut self) -> Result<i32> {
        let mut bytes = [0; 4];
        self.file.read_exact(&mut bytes).map_err(|e| io_error("read", DEVICE, &e))?;
        Ok(i32::from_ne_bytes(bytes))
    }
}

const PASSED_ON: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];
/// Write end of the pipe to the thread that forwards signals.
static PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a live siginfo.
    let code = unsafe { (*info).si_code };
    // A terminal signals its whole foreground group, so the program has received the signal as well.
    if code != libc::SI_KERNEL {
        let byte = signal as u8;
        // SAFETY: write(2) is async-signal-safe; one byte of a live variable. If the pipe is full, the signal is dropped, which
        // does not matter: 65,536 signals are waiting by then.
        unsafe { libc::write(PIPE.load(Ordering::SeqCst), (&raw const byte).cast(), 1) };
    }
}

/// Runs the program and waits for it; signals that are sent to this process are forwarded to it. Signals that were ignored from
/// the start (`nohup`) stay ignored, by the program as well.
pub fn run(command: &mut Command) -> io::Result<ExitStatus> {
    let (mut from, to) = io::pipe()?;
    // Open until the process ends: the handler may run at any time.
    let to = std::mem::ManuallyDrop::new(to);
    PIPE.store(std::os::fd::AsRawFd::as_raw_fd(&*to), Ordering::SeqCst);
    set_nonblocking(&*to)?;
    for signal in PASSED_ON {
        handle(signal)?;
    }
    // exec resets handlers: the program starts with the default actions.
    let mut child = command.spawn()?;
    let pid = Arc::new(Mutex::new(Some(child.id())));
    let there = pid.clone();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut byte = [0];
        while from.read_exact(&mut byte).is_ok() {
            let pid = there.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(pid) = *pid {
                // SAFETY: two integers; the child is not reaped while the lock is held, so the PID is still its own.
                unsafe { libc::kill(pid as libc::pid_t, libc::c_int::from(byte[0])) };
            }
        }
    })?;
    ended(&child)?;
    *pid.lock().unwrap_or_else(PoisonError::into_inner) = None;
    child.wait()
}

/// Waits until the child has ended, but does not reap it.
fn ended(child: &Child) -> io::Result<()> {
    loop {
        // SAFETY: all-zero is a valid siginfo_t, which is live during the call.
        let rc = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, child.id(), &raw mut info, libc::WEXITED | libc::WNOWAIT)
        };
        match io::Error::last_os_error() {
            _ if rc == 0 => return Ok(()),
            e if e.kind() == io::ErrorKind::Interrupted => {}
            e => return Err(e),
        }
    }
}

fn handle(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: all-zero is a valid sigaction; both structs are live. The handler loads an atomic and writes to a
    // pipe, both async-signal-safe.
    let rc = unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &raw mut old) == 0 && old.sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = pass_on as *const () as libc::sighandler_t;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &raw const new, std::ptr::null_mut())
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set_nonblocking(fd: &impl std::os::fd::AsRawFd) -> io::Result<()> {
    // SAFETY: integers only, on a descriptor that is open.
    let rc = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn sh(script: &str) -> Command {
        let mut c = Command::new("/bin/sh");
        c.args(["-c", script]);
        c
    }

    /// One test, because handlers and the pipe belong to the whole process.
    #[test]
    fn status_and_signals_pass_through() {
        assert_eq!(run(&mut sh("exit 42")).unwrap().code(), Some(42));
        assert_eq!(run(&mut sh("kill -TERM $$")).unwrap().signal(), Some(libc::SIGTERM));
        assert_eq!(run(&mut Command::new("/no/such")).unwrap_err().kind(), io::ErrorKind::NotFound);
        // The child sends a signal to its parent, which forwards it to the child.
        let asks = "trap 'exit 9' USR1; kill -USR1 $PPID; while :; do sleep 0.05; done";
        assert_eq!(run(&mut sh(asks)).unwrap().code(), Some(9));
        // The program starts with the default actions of signals, not with our handlers.
        assert_eq!(run(&mut sh("kill -USR2 $$")).unwrap().signal(), Some(libc::SIGUSR2));
    }
}
