//! Counters read again and again while interfaces, queues and vectors come and go: for `export` and `--measure`.

use ringwise_discover::{Options, Parts};
use ringwise_observe::{Counters, Layout, Sampler};
use ringwise_sys::Host;

use super::named;
use super::watch::{interfaces, stale};
use crate::args::Common;
use crate::exit::Result;
use crate::source::Source;
use ringwise_text::host_name;

pub(super) struct Counting<'a> {
    source: &'a Source,
    devs: Vec<String>,
    common: Common,
    pub layout: Layout,
    pub host: String,
    /// Taken out only while it is made anew.
    sampler: Option<Sampler>,
    names: Vec<String>,
    before: Option<Counters>,
}

impl<'a> Counting<'a> {
    /// Those that are named, which must be there now; nobody named: all with queues of their own.
    pub(super) fn new(source: &'a Source, devs: &[String], common: &Common, detail: bool) -> Result<Self> {
        let (layout, host) = look(source, devs, true, common)?;
        let real = source.host.as_ref();
        let sampler = Some(Sampler::new(real, &layout, detail));
        // Said once, by what looked first.
        let common = Common { quiet: true, ..common.clone() };
        let names = interfaces(real);
        Ok(Self { source, devs: devs.to_vec(), common, layout, host, sampler, names, before: None })
    }

    /// The layout is that of the counters when this returns.
    pub(super) fn read(&mut self) -> Counters {
        let real: &dyn Host = self.source.host.as_ref();
        let mut now = self.sampled(real);
        let there = interfaces(real);
        let changed = there != self.names || self.before.as_ref().is_some_and(|b| stale(b, &now));
        self.names = there;
        // Devices that are busy with a change may not answer; what was known stays.
        if changed
            && let Some(layout) = self.again()
            && layout != self.layout
        {
            self.layout = layout;
            if let Some(s) = &mut self.sampler {
                s.follow(&self.layout);
            }
            now = self.sampled(real);
        }
        self.before = Some(now.clone());
        now
    }

    fn sampled(&mut self, host: &dyn Host) -> Counters {
        self.sampler.as_mut().map(|s| s.read(host)).unwrap_or_default()
    }

    /// Of those that were named what is there now.
    fn again(&self) -> Option<Layout> {
        let there: Vec<String> = self.devs.iter().filter(|d| self.names.contains(d)).cloned().collect();
        if there.is_empty() && !self.devs.is_empty() {
            return None;
        }
        look(self.source, &there, false, &self.common).ok().map(|l| l.0)
    }
}

/// Interfaces, queues, vectors and nodes as they are, and the host's name. `strict`: each that is named is there.
pub(super) fn look(source: &Source, devs: &[String], strict: bool, common: &Common) -> Result<(Layout, String)> {
    let options = Options { skip_rivals: true, skip_control: true, parts: Parts::LEAST, ..Options::only(devs) };
    let s = source.snapshot(&options, common)?;
    if strict {
        named::named(&s, devs)?;
    }
    Ok((Layout::of(&s, devs), host_name(&s)))
}
