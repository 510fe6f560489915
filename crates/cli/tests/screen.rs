//! `ringwise watch` on a terminal: a pseudo-terminal and a person who presses keys. Whatever ends it, the
//! terminal is restored.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ringwise_sys::pty::{Pty, signal};

/// What a terminal does with the sequences that the program may use; any other fails the test.
#[derive(Default)]
struct Screen {
    cells: Vec<Vec<char>>,
    x: usize,
    y: usize,
    /// The other screen is shown; the cursor is hidden; no wrapping.
    other: bool,
    hidden: bool,
    unwrapped: bool,
    colours: bool,
    /// What came while the first screen was shown.
    first: String,
    rest: Vec<u8>,
    strange: Vec<String>,
}

impl Screen {
    fn feed(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let text = match std::str::from_utf8(&self.rest) {
            Ok(t) => t.to_string(),
            Err(e) => String::from_utf8_lossy(&self.rest[..e.valid_up_to()]).into_owned(),
        };
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            if c != '\x1b' {
                self.put(c);
                at += c.len_utf8();
                continue;
            }
            // The rest of it comes later.
            let Some(end) = text[at..].find(|c: char| c.is_ascii_alphabetic()) else { break };
            self.sequence(&text[at + 1..=at + end]);
            at += end + 1;
        }
        self.rest.drain(..at);
    }

    fn put(&mut self, c: char) {
        if !self.other {
            self.first.push(c);
            return;
        }
        if self.cells.len() <= self.y {
            self.cells.resize(self.y + 1, Vec::new());
        }
        let row = &mut self.cells[self.y];
        if row.len() <= self.x {
            row.resize(self.x + 1, ' ');
        }
        row[self.x] = c;
        self.x += 1;
    }

    fn sequence(&mut self, s: &str) {
        let numbers = |s: &str| s.split(';').map(|n| n.parse::<usize>().unwrap_or(1)).collect::<Vec<_>>();
        match s {
            "[?1049h" => (self.other, self.cells) = (true, Vec::new()),
            "[?1049l" => self.other = false,
            "[?25l" => self.hidden = true,
            "[?25h" => self.hidden = false,
            "[?7l" => self.unwrapped = true,
            "[?7h" => self.unwrapped = false,
            "[2J" => self.cells.clear(),
            _ if s.ends_with('H') => {
                let n = numbers(&s[1..s.len() - 1]);
                (self.y, self.x) = (n[0] - 1, n[1] - 1);
            }
            _ if s.ends_with('m') => {
                let codes = numbers(&s[1..s.len() - 1]);
                self.colours |= codes.iter().any(|c| (30..=47).contains(c));
                if codes.iter().any(|c| ![0, 1, 2, 7, 31, 32, 33].contains(c)) {
                    self.strange.push(s.into());
                }
            }
            _ => self.strange.push(s.into()),
        }
    }

    fn text(&self) -> String {
        self.cells.iter().map(|r| r.iter().collect::<String>().trim_end().to_string() + "\n").collect()
    }

    fn line(&self, y: usize) -> String {
        self.text().lines().nth(y).unwrap_or_default().to_string()
    }
}

struct Person {
    pty: Pty,
    child: Child,
    screen: Arc<Mutex<Screen>>,
    // Keeps the settings when the program is gone.
    _slave: File,
}

fn recording() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/watch/router16.rec")
}

fn watch(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    c.args(["watch", "--utc"]).args(args);
    c
}

fn replay(args: &[&str]) -> Command {
    let mut c = watch(args);
    c.arg("--replay").arg(recording());
    c
}

impl Person {
    fn start(mut c: Command, columns: u16, rows: u16) -> Self {
        let pty = Pty::open(columns, rows).unwrap();
        c.env("TERM", "xterm").env("LANG", "C.UTF-8").env_remove("NO_COLOR").env_remove("LC_ALL");
        Self::with(c, pty)
    }

    fn with(mut c: Command, pty: Pty) -> Self {
        let slave = pty.slave().unwrap();
        assert!(!pty.is_raw().unwrap());
        pty.give(&mut c).unwrap();
        let child = c.spawn().unwrap();
        drop(c);
        let screen = Arc::new(Mutex::new(Screen::default()));
        let (to, mut from) = (screen.clone(), pty.master.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(n) = from.read(&mut block) {
                to.lock().unwrap().feed(&block[..n]);
            }
        });
        Self { pty, child, screen, _slave: slave }
    }

    fn keys(&mut self, keys: &str) {
        self.pty.master.write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn until(&self, what: &str, is: impl Fn(&Screen) -> bool) {
        let end = Instant::now() + Duration::from_secs(120);
        while Instant::now() < end {
            if is(&self.screen.lock().unwrap()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let s = self.screen.lock().unwrap();
        panic!("not seen: {what}\n--- first\n{}\n--- other ({})\n{}", s.first, s.other, s.text());
    }

    #[track_caller]
    fn shown(&self) {
        self.until("the full screen", |s| s.other && s.hidden && s.unwrapped && s.text().contains("LOST"));
        assert!(self.pty.is_raw().unwrap());
        assert_eq!(self.screen.lock().unwrap().strange, [""; 0]);
    }

    #[track_caller]
    fn over(mut self) -> (ExitStatus, String, Screen) {
        let end = Instant::now() + Duration::from_secs(120);
        let status = loop {
            if let Some(s) = self.child.try_wait().unwrap() {
                break s;
            }
            assert!(Instant::now() < end, "it goes on: {}", self.screen.lock().unwrap().text());
            std::thread::sleep(Duration::from_millis(20));
        };
        self.until("the first screen", |s| !s.other && !s.hidden && !s.unwrapped);
        assert!(!self.pty.is_raw().unwrap(), "keys are not read line by line again");
        // What is still on its way.
        std::thread::sleep(Duration::from_millis(200));
        let screen = std::mem::take(&mut *self.screen.lock().unwrap());
        (status, screen.first.clone(), screen)
    }
}

#[test]
fn q_and_signals_give_the_terminal_back() {
    let mut p = Person::start(replay(&[]), 80, 24);
    p.shown();
    p.keys("q");
    assert_eq!(p.over().0.code(), Some(0));
    // Ctrl-C, as the terminal makes it.
    let mut p = Person::start(replay(&[]), 80, 24);
    p.shown();
    p.keys("\x03");
    assert_eq!(p.over().0.signal(), Some(2));
    for number in [15, 1] {
        let p = Person::start(replay(&[]), 80, 24);
        p.shown();
        signal(p.child.id(), number);
        assert_eq!(p.over().0.signal(), Some(number));
    }
}

#[test]
fn an_error_is_shown_on_the_first_screen() {
    let copy = std::env::temp_dir().join(format!("ringwise-screen-{}.rec", std::process::id()));
    std::fs::copy(recording(), &copy).unwrap();
    let mut p = Person::start(watch(&["--replay", copy.to_str().unwrap()]), 80, 24);
    p.shown();
    p.keys(" ");
    p.until("PAUSED", |s| s.line(0).contains("PAUSED"));
    File::options().write(true).open(&copy).unwrap().set_len(100).unwrap();
    p.keys("G");
    let (status, text, _) = p.over();
    std::fs::remove_file(&copy).unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(text.contains("ringwise-screen-"), "{text}");
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_is_shown_on_the_first_screen() {
    let mut c = replay(&[]);
    c.env("RINGWISE_PANIC", "1");
    let mut p = Person::start(c, 80, 24);
    p.shown();
    p.keys("!");
    let (status, text, _) = p.over();
    assert!(!status.success());
    assert!(text.contains("requested by RINGWISE_PANIC"), "{text}");
}

#[test]
fn stopped_and_taken_up_again() {
    let mut c = Command::new("sh");
    let own = env!("CARGO_BIN_EXE_ringwise");
    let script = format!(
        "set -m; {own} watch --utc --replay {}; echo STOPPED; read x; fg >/dev/null; echo STATUS $?",
        recording().display()
    );
    c.arg("-c").arg(script);
    let mut p = Person::start(c, 80, 24);
    p.shown();
    p.keys("\x1a");
    p.until("the shell", |s| !s.other && s.first.contains("STOPPED"));
    assert!(!p.pty.is_raw().unwrap());
    p.screen.lock().unwrap().first.clear();
    p.keys("\n");
    p.shown();
    p.keys("q");
    let (_, text, _) = p.over();
    assert!(text.contains("STATUS 0"), "{text}");
}

#[test]
fn keys_sizes_and_a_recording() {
    let mut p = Person::start(replay(&["--speed", "0.5"]), 80, 24);
    p.shown();
    p.keys(" ");
    p.until("a pause", |s| s.line(0).contains("PAUSED"));
    p.keys("g");
    p.until("the first", |s| s.line(0).contains("replay 1/28"));
    p.keys("\x1b[C\x1b[C");
    p.until("two on", |s| s.line(0).contains("replay 3/28"));
    p.keys("]");
    p.until("ten on", |s| s.line(0).contains("replay 13/28"));
    p.keys("\x1b[D");
    p.until("one back", |s| s.line(0).contains("replay 12/28"));
    p.keys("+");
    p.until("the speed", |s| s.line(0).ends_with("x1"));
    p.keys("?");
    p.until("help", |s| s.text().contains("Ctrl-Z"));
    // An escape that stands for itself.
    p.keys("\x1b");
    p.until("no help", |s| !s.text().contains("Ctrl-Z"));
    p.keys("/3\r");
    p.until("one queue", |s| s.text().contains("filter: 3"));
    p.pty.resize(200, 60).unwrap();
    p.until("the large screen", |s| s.text().contains("REMARKS") && s.text().lines().count() == 60);
    p.pty.resize(80, 24).unwrap();
    p.until("the small screen", |s| !s.text().contains("REMARKS") && s.text().lines().count() <= 24);
    p.keys("G");
    p.until("the last", |s| s.line(0).contains("replay 28/28"));
    p.keys("q");
    let (status, _, screen) = p.over();
    assert_eq!((status.code(), screen.colours), (Some(0), true));
    assert_eq!(screen.strange, [""; 0]);
}

#[test]
fn no_colour_and_ascii() {
    let mut c = replay(&["--ascii"]);
    c.env("TERM", "xterm").env("LANG", "C.UTF-8").env("NO_COLOR", "1");
    let mut p = Person::with(c, Pty::open(200, 60).unwrap());
    p.shown();
    p.keys("q");
    p.until("something", |s| s.text().is_ascii() && s.text().contains("REMARKS"));
    let (_, _, screen) = p.over();
    assert!(!screen.colours);
}

/// This host, read only.
#[test]
fn live() {
    let mut p = Person::start(watch(&["lo", "--interval", "300ms"]), 200, 60);
    p.until("an interval", |s| s.text().contains(">lo ") && s.text().contains("own cost"));
    p.keys("q");
    assert_eq!(p.over().0.code(), Some(0));
    // Lines where that is wanted, and on a terminal that can do no more.
    let (status, text, _) =
        Person::start(watch(&["lo", "--interval", "100ms", "--count", "1", "--plain"]), 80, 24).over();
    assert!(status.success() && text.contains("#time"), "{text}");
    let mut c = watch(&["lo", "--interval", "100ms", "--count", "1"]);
    c.env("TERM", "dumb");
    let (status, text, _) = Person::with(c, Pty::open(80, 24).unwrap()).over();
    assert!(status.success() && text.contains("#time"), "{text}");
}
