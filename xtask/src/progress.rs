//! Shows the progress of long work: one line that is redrawn on a terminal, otherwise a line now and then. Also ends or
//! removes children and temporary files when the work is interrupted.

use anyhow::Result;
use std::collections::BTreeMap;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Parts of the work that go on at one time, with what each is doing.
static PARTS: Mutex<BTreeMap<&'static str, String>> = Mutex::new(BTreeMap::new());
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static CHILDREN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Shows what a part of the work is doing, until `end`.
pub(crate) fn set(part: &'static str, text: impl Into<String>) {
    if let Ok(mut p) = PARTS.lock() {
        p.insert(part, text.into());
    }
}

pub(crate) fn end(part: &'static str) {
    if let Ok(mut p) = PARTS.lock() {
        p.remove(part);
    }
}

/// Removes its path when it is dropped.
pub(crate) struct Temporary(PathBuf);

/// A file or directory that exists as long as the returned value, also if a signal ends the program.
pub(crate) fn temporary(path: &Path) -> Temporary {
    if let Ok(mut all) = TEMPORARY.lock() {
        all.push(path.to_path_buf());
    }
    Temporary(path.to_path_buf())
}

impl Drop for Temporary {
    fn drop(&mut self) {
        remove(&self.0);
        if let Ok(mut all) = TEMPORARY.lock() {
            all.retain(|p| *p != self.0);
        }
    }
}

fn remove(path: &Path) {
    let _ = fs::remove_dir_all(path).or_else(|_| fs::remove_file(path));
}

/// A process that is killed when a signal ends the program.
pub(crate) struct Child(u32);

pub(crate) fn child(pid: u32) -> Child {
    if let Ok(mut all) = CHILDREN.lock() {
        all.push(pid);
    }
    Child(pid)
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Ok(mut all) = CHILDREN.lock() {
            all.retain(|p| *p != self.0);
        }
    }
}

/// Kills all children that `child` has registered.
pub(crate) fn end_children() {
    let children = CHILDREN.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default();
    for pid in children {
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP end the children, remove what is temporary, and end the program.
pub(crate) fn catch_signals() -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            end_children();
            let paths = TEMPORARY.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default();
            paths.iter().for_each(|p| remove(p));
            eprintln!("\ninterrupted: the guest has ended, and temporary files are removed");
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// The parts and the time since `start`, none while there is no part.
fn line(start: Instant) -> Option<String> {
    let parts = PARTS.lock().ok()?;
    let all: Vec<String> = parts.iter().map(|(k, v)| format!("{k}: {v}")).collect();
    let seconds = start.elapsed().as_secs();
    (!all.is_empty()).then(|| format!("{}:{:02}  {}", seconds / 60, seconds % 60, all.join(" · ")))
}

/// Does the work, and shows its parts while it runs.
pub(crate) fn shown<T>(work: impl FnOnce() -> T) -> T {
    let terminal = std::io::stdout().is_terminal();
    let (every, start) = (Duration::from_secs(if terminal { 1 } else { 20 }), Instant::now());
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut last = Instant::now();
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                if last.elapsed() < every {
                    continue;
                }
                last = Instant::now();
                match line(start) {
                    Some(l) if terminal => {
                        let short: String = l.chars().take(78).collect();
                        print!("\r\x1b[K{short}");
                        let _ = std::io::stdout().flush();
                    }
                    Some(l) => println!("{l}"),
                    None => {}
                }
            }
            if terminal {
                print!("\r\x1b[K");
                let _ = std::io::stdout().flush();
            }
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_shown_until_they_end() {
        assert_eq!(line(Instant::now()), None);
        set("a", "1 of 38 MB");
        set("b", "3 of 90 crates");
        assert_eq!(line(Instant::now()).unwrap(), "0:00  a: 1 of 38 MB · b: 3 of 90 crates");
        end("a");
        assert_eq!(line(Instant::now()).unwrap(), "0:00  b: 3 of 90 crates");
        end("b");
    }

    #[test]
    fn what_is_temporary_is_removed_with_its_guard() {
        let dir = std::env::temp_dir().join(format!("xtask-progress-{}", std::process::id()));
        fs::create_dir_all(dir.join("x")).unwrap();
        drop(temporary(&dir));
        assert!(!dir.exists());
    }
}
