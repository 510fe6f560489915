//! `apply --boot`: what is different when nobody is there.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::state_dir;
use crate::args::{ApplyArgs, Common};
use crate::boot;
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::{self, Source};

/// An interface that appears is set up by somebody else meanwhile.
const LINK_WITHIN: Duration = Duration::from_secs(60);
/// Looks in a row that find no such interface.
const GONE: u32 = 10;
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The right to begin, held until it is dropped. None: there is nothing to do.
pub(crate) fn may_begin(a: &ApplyArgs, common: &Common) -> Result<Option<File>> {
    if let Some(dev) = &a.late
        && !link_comes(dev)?
    {
        out::note(common.quiet, &format!("ringwise: {dev} has no link; nothing was done"));
        return Ok(None);
    }
    let dir = state_dir(common);
    let alone = boot::alone(&dir, boot::ALONE_WITHIN).map_err(Fail::refused)?;
    match boot::may_apply(&dir) {
        Ok(()) => Ok(Some(alone)),
        Err(why) => Err(Fail::new(Status::Findings, format!("skipped: {why}; nothing was touched"))
            .next("ringwise history and the log of that boot say what was done; ringwise persist, when that is understood: the next boot tries again")),
    }
}

/// This run made the mark: an earlier one of the same boot has something to outlive still.
static MARKED: AtomicBool = AtomicBool::new(false);

/// Just before the first write.
pub(crate) fn begins(source: &Source, common: &Common) -> Result<()> {
    let before = boot::read_mark(&state_dir(common)).map_err(Fail::refused)?;
    MARKED.store(before.is_none_or(|m| m.fate != boot::Fate::Applying), Ordering::Relaxed);
    boot::applying(&state_dir(common), source.host.unix_time())
        .map_err(|why| Fail::refused(format!("the next boot could not know that this one applied: {why}")))
}

/// What was put back has nothing to outlive.
pub(crate) fn ended(ended: &Result<Status>, common: &Common) -> Result<()> {
    let nothing_stays = match ended {
        Ok(s) => *s == Status::PutBack,
        Err(f) => matches!(f.status, Status::PutBack | Status::Refused),
    };
    if nothing_stays && MARKED.load(Ordering::Relaxed) {
        boot::lived(&state_dir(common)).map_err(Fail::error)
    } else {
        Ok(())
    }
}

/// Waits for it. An interface that went away again, or is not up, has none.
fn link_comes(dev: &str) -> Result<bool> {
    if dev.contains('/') || dev.is_empty() {
        return Err(Fail::usage(format!("\"{dev}\" is no interface")));
    }
    let host = source::live()?.host;
    let end = Instant::now() + LINK_WITHIN;
    let mut gone = 0;
    loop {
        let carrier = host.read_text(&format!("/sys/class/net/{dev}/carrier"));
        if carrier.as_ref().is_ok_and(|c| c.trim() == "1") {
            return Ok(true);
        }
        // Renamed: its new name has a unit of its own. Down is another error.
        gone = if carrier.is_err_and(|e| e.is_absent()) { gone + 1 } else { 0 };
        if gone >= GONE || Instant::now() >= end {
            return Ok(false);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
