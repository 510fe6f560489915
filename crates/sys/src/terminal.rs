//! Takes over a terminal for full-screen output, and restores it however the program ends.
//!
//! Keys are read one by one and are not echoed; the keyboard still generates signals. Signals that end or stop the program are
//! blocked until [`Terminal::wait`], so that no output is interrupted and no signal is missed.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::host::{Error, Result};

const IN: libc::c_int = 0;
const OUT: libc::c_int = 1;
const ENDS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
const OTHERS: [libc::c_int; 3] = [libc::SIGTSTP, libc::SIGCONT, libc::SIGWINCH];

/// Switches to the alternate screen without cursor and line wrapping; and back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Whether the alternate screen is shown.
static SHOWN: AtomicBool = AtomicBool::new(false);
/// The terminal settings before [`enter`].
static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);
/// Signals that arrived, one bit each.
static CAME: AtomicU64 = AtomicU64::new(0);

extern "C" fn note(signal: libc::c_int) {
    CAME.fetch_or(1 << signal, Ordering::SeqCst);
}

/// What ended a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalEvent {
    /// The time to wait is over, and nothing else happened.
    Time,
    /// Bytes of keys.
    Keys(Vec<u8>),
    /// The size changed, or the program was continued after a stop: everything has to be drawn again.
    Redraw,
    /// A signal that ends the program: see [`end_by`].
    End(i32),
    /// The terminal went away.
    Gone,
}

/// Standard input and output are a full screen as long as this value lives.
#[must_use]
pub struct Terminal {
    /// Signals that were blocked before.
    mask: libc::sigset_t,
    _not_send: std::marker::PhantomData<*const ()>,
}

fn failed(what: &str) -> Error {
    Error::errno(what, io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

fn set(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; the signal numbers are valid.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for s in signals {
            libc::sigaddset(set.as_mut_ptr(), *s);
        }
        set.assume_init()
    }
}

fn handle(signal: libc::c_int, handler: libc::sighandler_t) -> Result<()> {
    // SAFETY: all-zero is a valid sigaction: empty mask, no flags. Without SA_RESTART, ppoll is interrupted too.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = if handler == libc::SIG_DFL { 0 } else { libc::SA_RESTART };
    // SAFETY: `note` only changes an atomic, which is async-signal-safe; the old action is not requested.
    if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } < 0 {
        return Err(failed(&format!("handle signal {signal}")));
    }
    Ok(())
}

/// Takes the terminal over. Standard input and output must be a terminal.
pub fn enter() -> Result<Terminal> {
    let mut was = MaybeUninit::uninit();
    // SAFETY: tcgetattr fills one termios when it succeeds, which is checked.
    let was = unsafe {
        if libc::tcgetattr(IN, was.as_mut_ptr()) < 0 {
            return Err(failed("terminal settings of standard input"));
        }
        was.assume_init()
    };
    *BEFORE.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(was);
    CAME.store(0, Ordering::SeqCst);
    let all = [&ENDS[..], &OTHERS[..]].concat();
    for s in &all {
        handle(*s, note as *const () as libc::sighandler_t)?;
    }
    let mut mask = MaybeUninit::uninit();
    let blocked = set(&all);
    // SAFETY: both sets are live; with a valid `how` the call can not fail and fills `mask`.
    let mask = unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, mask.as_mut_ptr());
        mask.assume_init()
    };
    let t = Terminal { mask, _not_send: std::marker::PhantomData };
    show()?;
    Ok(t)
}

/// Sets the terminal to read single keys without echo, and shows the alternate screen.
fn show() -> Result<()> {
    let Some(mut t) = *BEFORE.lock().unwrap_or_else(std::sync::PoisonError::into_inner) else { return Ok(()) };
    t.c_lflag &= !(libc::ICANON | libc::ECHO);
    t.c_cc[libc::VMIN] = 1;
    t.c_cc[libc::VTIME] = 0;
    // First, so that a failure leaves nothing half done. In the background this call stops the process until `fg`.
    put(&t).map_err(|e| Error::errno("terminal settings of standard input", e.raw_os_error().unwrap_or(0)))?;
    SHOWN.store(true, Ordering::SeqCst);
    write(ENTER);
    Ok(())
}

fn put(t: &libc::termios) -> io::Result<()> {
    loop {
        // SAFETY: `t` is a live termios that tcgetattr made. TCSANOW, because a stopped terminal would never drain its output.
        if unsafe { libc::tcsetattr(IN, libc::TCSANOW, t) } == 0 {
            return Ok(());
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
}

fn write(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the pointer and length are of a live slice.
        let n = unsafe { libc::write(OUT, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(n) {
            Ok(n) => bytes = &bytes[n..],
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            // If the terminal is gone, nothing has to be written.
            Err(_) => return,
        }
    }
}

/// Restores the terminal, and returns whether it had been taken over. May be called from any thread, also during a panic.
pub fn leave() -> bool {
    if !SHOWN.swap(false, Ordering::SeqCst) {
        return false;
    }
    write(LEAVE);
    // Other threads hold the lock only while they copy the value.
    let before = BEFORE.try_lock().ok().and_then(|b| *b);
    if let Some(t) = before {
        let _ = put(&t); // there is no way left to report an error
    }
    true
}

/// Ends the program by this signal, so that its parent sees the reason.
pub fn end_by(signal: i32) {
    leave();
    now(signal);
}

/// Applies the signal's default action.
fn now(signal: i32) {
    let one = set(&[signal]);
    if handle(signal, libc::SIG_DFL).is_err() {
        return;
    }
    // SAFETY: sends a signal to this process and delivers it to this thread; the set is live.
    unsafe {
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const one, std::ptr::null_mut());
    }
}

impl Terminal {
    /// Waits for a key, a signal or the end of the time.
    pub fn wait(&self, time: Duration) -> TerminalEvent {
        if let Some(e) = self.signalled() {
            return e;
        }
        let mut fds = [libc::pollfd { fd: IN, events: libc::POLLIN, revents: 0 }];
        let time =
            libc::timespec { tv_sec: time.as_secs().min(86_400) as libc::time_t, tv_nsec: time.subsec_nanos().into() };
        // SAFETY: one live pollfd, a live timespec and a mask that the kernel gave.
        let n = unsafe { libc::ppoll(fds.as_mut_ptr(), 1, &raw const time, &raw const self.mask) };
        if let Some(e) = self.signalled() {
            return e;
        }
        if n <= 0 {
            return TerminalEvent::Time;
        }
        let mut buffer = [0u8; 256];
        // SAFETY: reads at most the length of the live buffer.
        let n = unsafe { libc::read(IN, buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(n) {
            Ok(0) => TerminalEvent::Gone,
            Ok(n) => TerminalEvent::Keys(buffer[..n].to_vec()),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => TerminalEvent::Time,
            Err(_) => TerminalEvent::Gone,
        }
    }

    fn signalled(&self) -> Option<TerminalEvent> {
        let came = CAME.swap(0, Ordering::SeqCst);
        let has = |s: libc::c_int| came >> s & 1 == 1;
        if let Some(s) = ENDS.into_iter().find(|s| has(*s)) {
            return Some(TerminalEvent::End(s));
        }
        if has(libc::SIGTSTP) {
            leave();
            now(libc::SIGTSTP);
            // The user has run `fg`.
            self.again();
            return Some(TerminalEvent::Redraw);
        }
        if has(libc::SIGCONT) {
            self.again();
            return Some(TerminalEvent::Redraw);
        }
        has(libc::SIGWINCH).then_some(TerminalEvent::Redraw)
    }

    /// During a stop the shell may have changed the terminal settings, so they are set again.
    fn again(&self) {
        let held = set(&[libc::SIGTSTP]);
        let _ = handle(libc::SIGTSTP, note as *const () as libc::sighandler_t);
        // SAFETY: the set is live; with a valid `how` the call can not fail.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, std::ptr::null_mut()) };
        CAME.fetch_and(!(1 << libc::SIGCONT), Ordering::SeqCst);
        let _ = show(); // if the terminal is gone, the next wait reports it
    }
}

/// Shows the alternate screen again after a message was written to the normal one.
pub fn reshow() {
    let _ = show();
    CAME.fetch_or(1 << libc::SIGWINCH, Ordering::SeqCst);
}

impl Drop for Terminal {
    fn drop(&mut self) {
        leave();
        for s in [&ENDS[..], &OTHERS[..]].concat() {
            let _ = handle(s, libc::SIG_DFL);
        }
        // SAFETY: the mask is the one that pthread_sigmask gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, std::ptr::null_mut()) };
    }
}
