//! Several captures at once: which ones, and reading them with as many threads as there are CPUs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ringwise_render::fleet::FailedCapture;
use ringwise_text::{plural, thousands};

use crate::args::Common;
use crate::args::usage_error::SEVERAL;
use crate::exit::{Fail, Result};
use crate::out::{self, Progress};
use crate::source::{self, Source};

/// Results that wait for an earlier one, for each thread. They limit the memory.
const AHEAD: usize = 4;
/// How often the line of progress changes.
const LINE_EVERY: Duration = Duration::from_millis(200);
/// Interface names have at most this many bytes (IFNAMSIZ).
const NAME_BYTES: usize = 15;

/// The captures of `--from`, and the interfaces. Words behind a file may be both: `--from host.tar.gz eth0`. A directory of
/// captures stands for the captures in it.
pub(super) fn captures(from: &[PathBuf], devs: &[String]) -> (Vec<PathBuf>, Vec<String>) {
    let (mut files, mut devs) = (Vec::new(), devs.to_vec());
    for (at, word) in from.iter().enumerate() {
        match word.to_str().filter(|w| at > 0 && is_interface_name(w) && !word.exists()) {
            Some(dev) => devs.push(dev.to_string()),
            None => files.extend(ringwise_sys::captures(word)),
        }
    }
    (files, devs)
}

fn is_interface_name(word: &str) -> bool {
    word.len() <= NAME_BYTES && !word.contains('/') && !ringwise_sys::has_capture_name(Path::new(word))
}

/// Refuses further captures among the other words of a command that reads one.
pub(super) fn refuse_several(command: &str, from: Option<&Path>, words: &[String]) -> Result<()> {
    let is_capture =
        |w: &&String| ringwise_sys::has_capture_name(Path::new(w)) || (w.contains('/') && Path::new(w).is_dir());
    match (from, words.iter().find(is_capture)) {
        (Some(first), Some(second)) => {
            Err(Fail::usage(format!("ringwise {command} reads one capture; found a second one, {second}. {SEVERAL}"))
                .next(ringwise_text::RecordingName::of(Some(first)).reads(format!("ringwise {command}"))))
        }
        _ => Ok(()),
    }
}

/// Opens a capture and evaluates it. An error becomes a value: it does not prevent results about other captures.
pub(super) fn evaluate<T>(file: &Path, f: impl FnOnce(&Source) -> Result<T>) -> std::result::Result<T, FailedCapture> {
    let name = || file.display().to_string();
    let source = source::recording(file).map_err(|e| FailedCapture {
        file: name(),
        why: e.to_string(),
        expected: Some(source::EXPECTED),
    })?;
    f(&source).map_err(|e| FailedCapture { file: name(), why: e.message, expected: None })
}

/// The options for reading one of several captures: notes about each would bury the result.
pub(super) fn quietly(common: &Common) -> Common {
    Common { quiet: true, ..common.clone() }
}

/// The error for `-o html` without a capture.
pub(super) fn no_captures(command: &str) -> Fail {
    Fail::usage("-o html is a page about captures; expected --from FILE...").next(format!("ringwise {command} --help"))
}

/// Reports on stderr, if captures could not be used, how many.
pub(super) fn report_failed(failed: usize, of: usize) {
    if failed > 0 {
        out::error(&format!("error: {} of {} could not be used", thousands(failed as u64), plural(of, "capture")));
    }
}

struct Queue {
    /// The next file to read.
    next: usize,
    /// Results that were taken.
    taken: usize,
    stopped: bool,
}

/// Where the threads get their files from.
struct Work {
    queue: Mutex<Queue>,
    changed: Condvar,
    ahead: usize,
    files: usize,
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next file, as soon as its result may be kept. `None`: every file has been handed out, or the run was stopped.
    fn next(&self) -> Option<usize> {
        let mut q = self.lock();
        while !q.stopped && q.next < self.files && q.next >= q.taken + self.ahead {
            q = self.changed.wait(q).unwrap_or_else(PoisonError::into_inner);
        }
        let at = q.next;
        q.next += 1;
        (!q.stopped && at < self.files).then_some(at)
    }

    fn taken(&self, n: usize) {
        self.lock().taken = n;
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }
}

/// Lets the other threads end if this one panics: its result never comes.
struct StopOnPanic<'a>(&'a Work);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// Calls `read` for each file, in as many threads as this process may use CPUs, and `take` with the results in the order of
/// the files. A bounded number of results is kept. `streams`: `take` writes to stdout, so a line of progress on the same
/// terminal would get in between.
pub(super) fn in_order<T: Send>(
    files: &[PathBuf],
    streams: bool,
    common: &Common,
    read: impl Fn(&Path) -> T + Sync,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
    let queue = Mutex::new(Queue { next: 0, taken: 0, stopped: false });
    let work = Work { queue, changed: Condvar::new(), ahead: threads * AHEAD, files: files.len() };
    let (send, results) = channel();
    // Progress appears after a second, and then changes a few times a second.
    let mut next_line = Instant::now() + Duration::from_secs(1);
    let quiet = common.quiet || (streams && ringwise_sys::proc::is_tty(&std::io::stdout()));
    let mut line = Progress::new(quiet);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (send, work, read) = (send.clone(), &work, &read);
            scope.spawn(move || {
                let _stop = StopOnPanic(work);
                while let Some((at, file)) = work.next().and_then(|at| Some((at, files.get(at)?))) {
                    // The receiver is gone after an error.
                    if send.send((at, read(file))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let (mut waiting, mut taken) = (BTreeMap::new(), 0);
        loop {
            match results.recv_timeout(LINE_EVERY) {
                Ok((at, result)) => drop(waiting.insert(at, result)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            while let Some(result) = waiting.remove(&taken) {
                taken += 1;
                work.taken(taken);
                if let Err(e) = take(result) {
                    work.stop();
                    return Err(e);
                }
            }
            if let Some(line) = line.as_mut().filter(|_| Instant::now() >= next_line) {
                next_line = Instant::now() + LINE_EVERY;
                let of = plural(files.len(), "capture");
                line.show(&format!("ringwise: {} of {of} read", thousands(taken as u64)));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn paths(n: usize) -> Vec<PathBuf> {
        (0..n).map(|i| PathBuf::from(i.to_string())).collect()
    }

    #[test]
    fn results_come_in_order_and_few_are_kept() {
        let (files, read, taken) = (paths(300), AtomicUsize::new(0), AtomicUsize::new(0));
        let most = AtomicUsize::new(0);
        let one = |f: &Path| {
            let ahead = (read.fetch_add(1, Ordering::SeqCst) + 1).saturating_sub(taken.load(Ordering::SeqCst));
            most.fetch_max(ahead, Ordering::SeqCst);
            f.display().to_string().parse::<usize>().unwrap()
        };
        let mut all = Vec::new();
        let common = Common { quiet: true, ..Common::default() };
        in_order(&files, false, &common, one, |n| {
            taken.fetch_add(1, Ordering::SeqCst);
            all.push(n);
            Ok(())
        })
        .unwrap();
        assert_eq!(all, (0..300).collect::<Vec<_>>());
        let threads = std::thread::available_parallelism().unwrap().get();
        // The result that is being taken counts as taken for the threads, and not yet for this test.
        assert!(most.into_inner() <= threads * AHEAD + 1);
    }

    #[test]
    fn an_error_ends_all_threads() {
        let common = Common { quiet: true, ..Common::default() };
        let mut n = 0;
        let end = in_order(
            &paths(300),
            false,
            &common,
            |_| (),
            |()| {
                n += 1;
                if n == 3 { Err(Fail::error("standard output: ENOSPC")) } else { Ok(()) }
            },
        );
        assert_eq!((end.unwrap_err().message.as_str(), n), ("standard output: ENOSPC", 3));
    }

    #[test]
    fn words_behind_a_file_are_interfaces_unless_they_name_a_capture() {
        let from = ["nosuch", "eth0", "b.tar.gz", "caps/c"].map(PathBuf::from);
        let (files, devs) = captures(&from, &["eth1".into()]);
        assert_eq!(files, ["nosuch", "b.tar.gz", "caps/c"].map(PathBuf::from));
        assert_eq!(devs, ["eth1", "eth0"]);
    }

    #[test]
    fn a_command_that_reads_one_capture_names_those_that_read_several() {
        let words = ["eth0".to_string(), "b.tar.gz".to_string()];
        assert!(refuse_several("show", None, &words).is_ok());
        assert!(refuse_several("show", Some(Path::new("a")), &words[..1]).is_ok());
        let e = refuse_several("show", Some(Path::new("a")), &words).unwrap_err();
        assert!(e.message.contains("b.tar.gz") && e.message.contains("ringwise check, plan and config check"), "{e}");
    }
}
