//! Counters of the named interfaces, for `export` and `--measure`. They follow interfaces that change meanwhile.

use ringwise_discover::Options;
use ringwise_observe::{Layout, LiveCounters};

use super::named;
use crate::args::Common;
use crate::exit::Result;
use crate::source::Source;
use ringwise_text::host_name;

/// Counters of the named interfaces, which must exist now, or of all interfaces with their own queues. Also returns the
/// host's name.
pub(super) fn follow<'a>(
    source: &'a Source,
    devs: &[String],
    common: &Common,
    detail: bool,
) -> Result<(LiveCounters<'a>, String)> {
    let (layout, host) = look(source, devs, true, common)?;
    // The first look has printed the notes already.
    let quiet = Common { quiet: true, ..common.clone() };
    let again = move |there: &[String]| look(source, there, false, &quiet).ok().map(|l| l.0);
    Ok((LiveCounters::new(source.host.as_ref(), devs, layout, detail, again), host))
}

/// Reads interfaces, queues, vectors and nodes, and the host's name. `strict`: every named interface must exist.
fn look(source: &Source, devs: &[String], strict: bool, common: &Common) -> Result<(Layout, String)> {
    let options = Options::layout(devs);
    let s = source.snapshot(&options, common)?;
    if strict {
        named::named(&s, devs)?;
    }
    Ok((Layout::of(&s, devs), host_name(&s)))
}
