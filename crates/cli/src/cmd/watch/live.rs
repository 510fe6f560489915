//! Takes samples of this host, records them on request, and reads the layout again when it is outdated.

use ringwise_discover::Options;
use ringwise_observe::{Counters, Layout, Rates, Sampler, interfaces, stale};

use crate::args::{Common, WatchArgs};
use crate::cmd::named;
use crate::exit::{Fail, Result};
use crate::source::Source;
use ringwise_recording::{Recorder, RecordingLine};
use ringwise_text::host_name;

pub(super) struct Live<'a> {
    source: &'a Source,
    args: &'a WatchArgs,
    common: &'a Common,
    pub host: String,
    layout: Layout,
    sampler: Sampler,
    recorder: Option<Recorder>,
    /// Interfaces of the host when the last sample was taken.
    names: Vec<String>,
    /// The last two samples.
    pub before: Counters,
    pub now: Counters,
}

impl<'a> Live<'a> {
    /// `detail`: also read the small files of each queue.
    pub(super) fn begin(source: &'a Source, args: &'a WatchArgs, common: &'a Common, detail: bool) -> Result<Self> {
        let (layout, host) = look(source, args, common)?;
        if layout.links.is_empty() {
            let next = "ringwise show --all";
            return Err(Fail::error("no interface has queues of its own: name one, e.g. ringwise watch lo").next(next));
        }
        let real = source.host.as_ref();
        let deadline = Options::default().deadline;
        let sampler = Sampler::new(real, &layout, detail).with_deadline(&source.host, deadline);
        let mut recorder = args.record.as_ref().map(|f| Recorder::open(f, &host, real.unix_time())).transpose()?;
        if let Some(r) = &mut recorder {
            r.write(&RecordingLine::Layout(layout.clone()))?;
        }
        let names = interfaces(real);
        let (before, now) = Default::default();
        Ok(Self { source, args, common, host, layout, sampler, recorder, names, before, now })
    }

    pub(super) fn sample(&mut self) -> Counters {
        self.sampler.read(self.source.host.as_ref())
    }

    /// Stores the first sample, which has no earlier one to be compared with.
    pub(super) fn first(&mut self, now: Counters) -> Result<()> {
        if let Some(r) = &mut self.recorder {
            r.write(&RecordingLine::Sample(now.clone()))?;
        }
        self.now = now;
        Ok(())
    }

    /// Stores a sample. Returns the rates since the previous one.
    pub(super) fn take(&mut self, now: Counters) -> Result<Option<Rates>> {
        let there = interfaces(self.source.host.as_ref());
        if there != self.names || stale(&self.now, &now) {
            self.names = there;
            // A device that is being changed may not answer; then the old layout stays.
            if let Ok((l, _)) = look(self.source, self.args, &Common { quiet: true, ..self.common.clone() })
                && l != self.layout
            {
                self.layout = l;
                self.sampler.follow(&self.layout);
                if let Some(r) = &mut self.recorder {
                    r.write(&RecordingLine::Layout(self.layout.clone()))?;
                }
            }
        }
        let now = std::mem::replace(&mut self.now, now);
        self.before = now;
        if let Some(r) = &mut self.recorder {
            r.write(&RecordingLine::Sample(self.now.clone()))?;
        }
        Ok(Rates::between(&self.layout, &self.before, &self.now))
    }
}

/// Reads interfaces, queues, vectors and nodes, and the host's name.
fn look(source: &Source, a: &WatchArgs, common: &Common) -> Result<(Layout, String)> {
    let options = Options::layout(&a.devs);
    let s = source.snapshot(&options, common)?;
    let named: Vec<String> = named::named(&s, &a.devs)?.iter().map(|n| n.name().to_string()).collect();
    Ok((Layout::of(&s, &named), host_name(&s)))
}
