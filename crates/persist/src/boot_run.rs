//! The parts of `apply --boot` that differ from `apply`, because no user is present.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringwise_sys::Host;

use crate::error::{Error, Result};
use crate::mark::{self, ALONE_WITHIN, Fate};

/// How long to wait for the link: an interface that appears is being set up by another program.
const LINK_WITHIN: Duration = Duration::from_secs(60);
/// After how many consecutive looks without such an interface the wait ends.
const GONE: u32 = 10;
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The lock that allows this process to apply at this boot. It is released when this value is dropped.
#[derive(Debug)]
pub struct BootRun {
    state_dir: PathBuf,
    _alone: File,
    /// This run wrote the mark. Otherwise an earlier run of the same boot did, and its five minutes still count.
    marked: bool,
}

impl BootRun {
    /// Waits for another `--boot`. `command`: the command line of this process, for the message of another one.
    ///
    /// Errors: another one does not end; an earlier boot did not live, or its mark cannot be read.
    pub fn begin(state_dir: &Path, command: &str) -> Result<Self> {
        let alone = mark::alone(state_dir, ALONE_WITHIN, command)?;
        mark::may_apply(state_dir)?;
        Ok(Self { state_dir: state_dir.into(), _alone: alone, marked: false })
    }

    /// Writes the mark; called just before the first write. `unix_time`: the current time.
    ///
    /// Errors: the mark cannot be written; then nothing may be applied.
    pub fn applying(&mut self, unix_time: u64) -> Result<()> {
        let before = mark::read_mark(&self.state_dir).map_err(|e| Error::NoMark(Box::new(e)))?;
        self.marked = before.is_none_or(|m| m.fate != Fate::Applying);
        mark::applying(&self.state_dir, unix_time)
    }

    /// Records that this boot survived, when nothing that this run wrote is in effect any more.
    ///
    /// Errors: the mark cannot be written.
    pub fn mark_nothing_in_effect(&self) -> Result<()> {
        if self.marked { mark::mark_boot_good(&self.state_dir) } else { Ok(()) }
    }
}

/// Waits for the link of an interface. `false`: it disappeared, or it is not up.
pub fn wait_for_link(host: &dyn Host, dev: &str) -> bool {
    let end = Instant::now() + LINK_WITHIN;
    let mut gone = 0;
    loop {
        let carrier = host.read_text(&format!("/sys/class/net/{dev}/carrier"));
        if carrier.as_ref().is_ok_and(|c| c.trim() == "1") {
            return true;
        }
        // The interface was renamed, and its new name has a unit of its own. An interface that is down is another error.
        gone = if carrier.is_err_and(|e| e.is_absent()) { gone + 1 } else { 0 };
        if gone >= GONE || Instant::now() >= end {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
