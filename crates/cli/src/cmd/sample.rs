//! `--sample`: counts the traffic and the CPU time of this host, or takes the counters of a recording.

use std::time::Duration;

use ringwise_model::{NotSampled, Sample, Snapshot};
use ringwise_observe::{Counters, Layout, Rates, Sampler, traffic};
use ringwise_sys::Host;

use super::capture::SAMPLES;
use super::progress;
use crate::args::Common;
use crate::source::Source;

/// Counts for this time. A recording has its own two moments, so the time is not used for it.
pub(super) fn take(source: &Source, s: &Snapshot, time: Duration, common: &Common) -> Sample {
    let devs: Vec<String> = s.nics.iter().filter(|n| n.has_own_queues()).map(|n| n.name().to_string()).collect();
    if devs.is_empty() {
        return Sample::NotTaken(NotSampled::NoInterface);
    }
    let host = source.host.as_ref();
    let rates = match (source.recorded, source.passive) {
        (true, _) => recorded(host).ok_or(NotSampled::NotRecorded),
        (false, true) => Err(NotSampled::Passive),
        (false, false) => live(host, &Layout::of(s, &devs), time, common).ok_or(NotSampled::NoTimePassed),
    };
    match rates {
        Ok(rates) => Sample::Taken(traffic(&rates, &devs)),
        Err(why) => Sample::NotTaken(why),
    }
}

fn live(host: &dyn Host, layout: &Layout, time: Duration, common: &Common) -> Option<Rates> {
    let mut sampler = Sampler::new(host, layout, false);
    let first = sampler.read(host);
    progress::wait(host, time, "counting traffic and CPU time", common);
    Rates::between(layout, &first, &sampler.read(host))
}

/// The two moments in a capture. `None`: it has none.
pub(super) fn recorded(host: &dyn Host) -> Option<Rates> {
    let text = host.read_text(SAMPLES).ok()?;
    let mut lines = text.lines();
    let layout = Layout::from_line(lines.next()?)?;
    let (first, second) = (Counters::from_line(lines.next()?)?, Counters::from_line(lines.next()?)?);
    Rates::between(&layout, &first, &second)
}

#[cfg(test)]
#[path = "sample_tests.rs"]
mod on_a_host;
