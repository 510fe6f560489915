//! Counters of the interfaces that a command names, followed while they change: for `export` and `--measure`.

use ringwise_discover::{Options, Parts};
use ringwise_observe::{Layout, LiveCounters};

use super::named;
use crate::args::Common;
use crate::exit::Result;
use crate::source::Source;
use ringwise_text::host_name;

/// Of those that are named, which must be there now; nobody named: all with queues of their own. And the host's name.
pub(super) fn follow<'a>(
    source: &'a Source,
    devs: &[String],
    common: &Common,
    detail: bool,
) -> Result<(LiveCounters<'a>, String)> {
    let (layout, host) = look(source, devs, true, common)?;
    // Said once, by what looked first.
    let quiet = Common { quiet: true, ..common.clone() };
    let again = move |there: &[String]| look(source, there, false, &quiet).ok().map(|l| l.0);
    Ok((LiveCounters::new(source.host.as_ref(), devs, layout, detail, again), host))
}

/// Interfaces, queues, vectors and nodes as they are, and the host's name. `strict`: each that is named is there.
fn look(source: &Source, devs: &[String], strict: bool, common: &Common) -> Result<(Layout, String)> {
    let options = Options { skip_rivals: true, skip_control: true, parts: Parts::LEAST, ..Options::only(devs) };
    let s = source.snapshot(&options, common)?;
    if strict {
        named::named(&s, devs)?;
    }
    Ok((Layout::of(&s, devs), host_name(&s)))
}
