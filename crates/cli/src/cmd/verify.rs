//! `ringwise verify`

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_apply::{Journals, Verify};
use ringwise_discover::Options;
use ringwise_knob::{Match, Of, Setting, irq};
use ringwise_model::{CpuId, CpuSet, Fact, IrqId, Nic, Snapshot};
use ringwise_observe::{Counted as Count, Counters, Counts, Delta, How, IrqDelta, Layout, PolledOn, Sampler, Stalls};
use ringwise_observe::{more, polled_on, sample};

use super::hands;
use super::standing as applied;
use super::transaction::{fail, store};
use crate::args::{Common, VerifyArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::render::hands::Advice;
use crate::render::standing::{self, Counted};
use crate::source::{self, Source};
use ringwise_text::{host_name, visible};

pub(super) fn run(a: &VerifyArgs, common: &Common) -> Result<Status> {
    let source = source::open(&a.from)?;
    let store = store(common);
    let options = Options { skip_rivals: true, ..Options::all() };
    let mut s = source.snapshot(&options, common)?;
    let look = |s: &Snapshot| {
        let journals = Journals::read(&store).map_err(|e| fail(&e))?;
        let mut v = journals.verify(s);
        if !source.recorded {
            ringwise_apply::note_seen(&store, s, &mut v, source.host.unix_time());
        }
        Ok::<_, Fail>((v, journals))
    };
    let (mut v, mut journals) = look(&s)?;
    if source.recorded && v.settings.is_empty() && v.unfinished.is_none() {
        // Nothing in this directory is about that host: that is no word on what was applied there.
        return Err(Fail::error(format!(
            "what was applied on {} is not known here: its record is kept on the host itself (below /var/lib/ringwise)",
            visible(&host_name(&s))
        ))
        .next("ringwise verify --from FILE --state-dir COPY-OF-ITS-RECORD"));
    }
    let mut counted = None;
    if let Some(time) = a.r#for {
        counted = Some((count(&source, &s, &v, time, common)?, time.as_secs_f64()));
        // The state after the counting is the one to tell.
        s = source.snapshot(&options, common)?;
        (v, journals) = look(&s)?;
    }
    if let Some((list, _)) = &mut counted {
        still_pending(list, &v);
    }
    let found = counted.as_ref().is_some_and(|(c, _)| c.iter().any(Counted::is_finding));
    let status = if v.exit_status() != 0 || found { Status::Findings } else { Status::Ok };
    if a.format.json(common) {
        let mut doc = serde_json::to_value(&v).map_err(|e| Fail::error(e.to_string()))?;
        if let Some((list, seconds)) = &counted {
            doc["counted"] = serde_json::json!({ "seconds": seconds, "queues": list });
        }
        out::json(&doc)?;
        return Ok(status);
    }
    let style = crate::style::detect(common).about(&source.recording);
    let counted = counted.as_ref().map(|(c, seconds)| (c.as_slice(), *seconds));
    let list = journals.history(&s.host);
    let last = standing::last_in_force(&list);
    let evidence = hands::evidence(&source, &s, &v, &store);
    let now = (!source.recorded).then(|| source.host.unix_time());
    let again = last.and_then(applied::again);
    let advice = Advice { again, last: last.map(|e| e.id), evidence, now };
    out::answer(&standing::verify(&host_name(&s), &v, counted, &advice, &style))?;
    Ok(status)
}

struct Watched {
    dev: String,
    of: Of,
    irq: IrqId,
    planned: CpuSet,
    /// Its next interrupt still comes on the old CPU, and moves it.
    pending: bool,
}

/// Counts the interrupts of every queue that was placed.
fn count(source: &Source, s: &Snapshot, v: &Verify, time: Duration, common: &Common) -> Result<Vec<Counted>> {
    let watched: Vec<Watched> = v
        .settings
        .iter()
        .filter_map(|st| {
            let Setting::IrqCpus { dev, of, cpus, .. } = &st.want else { return None };
            let irq = irq::vector(s.nic(dev)?, *of)?.irq;
            Some(Watched { dev: dev.clone(), of: *of, irq, planned: cpus.clone(), pending: st.how == Match::Pending })
        })
        .collect();
    let irqs: Vec<IrqId> = watched.iter().map(|w| w.irq).collect();
    let read = || sample(source.host.as_ref(), &irqs).map_err(|e| Fail::error(e.to_string()));
    let first = read()?;
    let step = Duration::from_secs(10);
    let (mut left, mut told) = (time, None);
    let mut sends = Sends::begin(source, s, &watched);
    while !left.is_zero() {
        if told.is_none_or(|at: Duration| at.saturating_sub(left) >= step) {
            out::note(common.quiet, &format!("ringwise: counting interrupts, {:.0} s left", left.as_secs_f64().ceil()));
            told = Some(left);
        }
        let now = left.min(LOOK);
        source.host.sleep(now);
        left = left.saturating_sub(now);
        sends.look(source);
    }
    let delta = Delta::between(&first, &read()?);
    let one = |w: &Watched| {
        let (packets, stuck) = sends.of(w);
        let (polled, polled_on) = match sends.polled_on(s, &watched, w) {
            PolledOn::Planned => (false, None),
            PolledOn::Elsewhere { cpu } => (true, cpu),
        };
        Counted { packets, stuck, polled, polled_on, ..counted(w, delta.irqs.get(&w.irq)) }
    };
    Ok(watched.iter().map(one).collect())
}

/// How often queues are looked at while interrupts are counted.
const LOOK: Duration = Duration::from_millis(500);

/// What the queues of the vectors did meanwhile.
struct Sends {
    layout: Layout,
    sampler: Sampler,
    stalls: Stalls,
    first: Counters,
    last: Counters,
}

impl Sends {
    fn begin(source: &Source, s: &Snapshot, watched: &[Watched]) -> Self {
        let mut devs: Vec<String> = Vec::new();
        for w in watched {
            if !devs.contains(&w.dev) {
                devs.push(w.dev.clone());
            }
        }
        let layout = if devs.is_empty() { Layout::default() } else { Layout::of(s, &devs) };
        let sampler = Sampler::new(source.host.as_ref(), &layout, true);
        let (first, last) = (Counters::default(), Counters::default());
        let mut sends = Self { layout, sampler, stalls: Stalls::new(), first, last };
        sends.look(source);
        sends.first = sends.last.clone();
        sends
    }

    fn look(&mut self, source: &Source) {
        self.last = self.sampler.read(source.host.as_ref());
        let up = |d: &&String| source.host.read_text(&format!("/sys/class/net/{d}/carrier")).is_ok_and(|t| t == "1");
        let up = self.layout.links.keys().filter(up).cloned().collect::<BTreeSet<_>>();
        self.stalls.look(&self.layout, &self.last, &up);
    }

    /// Increase of what each CPU has taken from the queues.
    fn processed(&self) -> BTreeMap<CpuId, u64> {
        const NAME: &str = "softnet_processed";
        let of = |(cpu, now): (&CpuId, &Counts)| {
            let before = self.first.cpus.get(cpu)?.get(NAME)?;
            Some((*cpu, more(NAME, *before, *now.get(NAME)?)?))
        };
        self.last.cpus.iter().filter_map(of).collect::<BTreeMap<_, _>>()
    }

    /// Of the vectors of these devices, without RPS and XDP: those whose packets are not processed where planned.
    fn polled_on(&self, s: &Snapshot, watched: &[Watched], w: &Watched) -> PolledOn {
        let plain = |n: &Nic| {
            matches!(n.users, Fact::Absent)
                && n.rx_queues.iter().all(|q| q.rps_cpus.known().is_none_or(CpuSet::is_empty))
        };
        let (Some(packets), true) = (self.received(w), s.nic(&w.dev).is_some_and(plain)) else {
            return PolledOn::Planned;
        };
        let others = watched.iter().filter(|o| o.irq != w.irq).fold(CpuSet::new(), |all, o| all.union(&o.planned));
        polled_on(packets, &w.planned, &others, &self.processed())
    }

    /// Packets of the receive queues of the vector.
    fn received(&self, w: &Watched) -> Option<u64> {
        let rx = &self.layout.links.get(&w.dev)?.rx;
        let (a, b) = (self.first.links.get(&w.dev)?, self.last.links.get(&w.dev)?);
        let ids = rx.iter().filter(|(_, irq)| **irq == Some(w.irq)).map(|(id, _)| id);
        let of = |id: &u32| more("packets", *a.rx.get(id)?.get("packets")?, *b.rx.get(id)?.get("packets")?);
        ids.map(of).sum()
    }

    /// Packets of all queues of the vector, where they are counted; what stands still there.
    fn of(&self, w: &Watched) -> (Option<u64>, Option<How>) {
        let Some(wiring) = self.layout.links.get(&w.dev) else { return (None, None) };
        let queues = |all: &std::collections::BTreeMap<u32, Option<IrqId>>| -> Vec<u32> {
            all.iter().filter(|(_, irq)| **irq == Some(w.irq)).map(|(id, _)| *id).collect()
        };
        let (rx, tx) = (queues(&wiring.rx), queues(&wiring.tx));
        let packets = || {
            let (a, b) = (self.first.links.get(&w.dev)?, self.last.links.get(&w.dev)?);
            let mut sum = 0;
            for (ids, a, b) in [(&rx, &a.rx, &b.rx), (&tx, &a.tx, &b.tx)] {
                for id in ids {
                    sum += more("packets", *a.get(id)?.get("packets")?, *b.get(id)?.get("packets")?)?;
                }
            }
            Some(sum)
        };
        let stuck = self.stalls.stuck().into_iter().find(|s| s.dev == w.dev && tx.contains(&s.queue));
        (packets(), stuck.map(|s| s.how))
    }
}

/// Those that are on their way still, and have had packets enough to arrive.
fn still_pending(list: &mut [Counted], now: &Verify) {
    for s in now.settings.iter().filter(|s| s.how == Match::Pending) {
        let Setting::IrqCpus { dev, of, .. } = &s.want else { continue };
        for c in list.iter_mut().filter(|c| c.dev == *dev && c.queue == of.to_string()) {
            c.polled |= c.packets.is_some_and(|n| n > 0) && c.interrupts == Some(0);
        }
    }
}

fn counted(w: &Watched, d: Option<&IrqDelta>) -> Counted {
    let mut seen_on = d.and_then(IrqDelta::cpus);
    if w.pending
        && let (Some(seen), Some(IrqDelta::Counted(map))) = (&mut seen_on, d)
    {
        // The one interrupt that moved it is no mistake.
        for (cpu, c) in map {
            if *c == Count::More(1) && !w.planned.contains(*cpu) {
                seen.remove(*cpu);
            }
        }
    }
    Counted {
        dev: w.dev.clone(),
        queue: w.of.to_string(),
        planned: w.planned.clone(),
        seen_on,
        interrupts: d.and_then(IrqDelta::total),
        packets: None,
        stuck: None,
        polled: false,
        polled_on: None,
    }
}
