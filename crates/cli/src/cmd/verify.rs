//! `ringwise verify`

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_apply::{Journals, Store, Verify};
use ringwise_discover::Options;
use ringwise_intent::AppliedRecord;
use ringwise_knob::{Match, Setting, VectorName, irq};
use ringwise_model::{CpuCounter, CpuSet, Dir, Fact, IrqId, Nic, Snapshot};
use ringwise_observe::{
    Counters, Interrupts, Layout, LinkRates, PolledOn, Rates, Sampler, StallDetector, StallKind, polled_on,
};
use ringwise_plan::ProgramReport;

use super::manual_changes;
use super::progress::Countdown;
use super::transaction::{fail, learned, state_dir_missing, store};
use crate::args::{Common, VerifyArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_render::manual_changes::Advice;
use ringwise_render::verify_history::{self, InterruptCount, Observed};
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
        // The state directory has nothing about that host, which does not mean that nothing was applied there.
        return Err(record_missing(&s, &journals, common));
    }
    let mut counted = None;
    if let Some(time) = a.r#for {
        counted = Some((count(&source, &s, &v, time, common)?, time.as_secs_f64()));
        // The state after counting is reported.
        s = source.snapshot(&options, common)?;
        (v, journals) = look(&s)?;
    }
    if let Some((list, _)) = &mut counted {
        still_pending(list, &v);
    }
    let found = counted.as_ref().is_some_and(|(c, _)| c.iter().any(InterruptCount::is_finding));
    let status = if v.exit_status() != 0 || found { Status::Findings } else { Status::Ok };
    // A program on other CPUs than proposed is no finding: the user may have reasons.
    let programs = programs(&source, &s, &v, &store, common);
    let counted = counted.as_ref().map(|(c, seconds)| (c.as_slice(), *seconds));
    let observed = Observed { counted, programs: programs.as_ref() };
    if a.format.json(common) {
        out::json(&verify_history::document(&v, &observed))?;
        return Ok(status);
    }
    let style = crate::style::detect(common).about(&source.recording);
    let list = journals.history(&s.host);
    let last = verify_history::last_in_effect(&list);
    let evidence = manual_changes::evidence(&source, &s, &v, &store);
    let now = (!source.recorded).then(|| source.host.unix_time());
    let again = last.and_then(ringwise_intent::command_again);
    let advice = Advice { again, last: last.map(|e| e.id), evidence, now };
    out::answer(&verify_history::verify(&host_name(&s), &v, &observed, &advice, &style))?;
    Ok(status)
}

/// The CPUs of the programs that listen. `None`: the plan in effect proposes none, or a capture, which has no processes.
fn programs(source: &Source, s: &Snapshot, v: &Verify, store: &Store, common: &Common) -> Option<ProgramReport> {
    if source.recorded || v.settings.is_empty() || v.unfinished.is_some() {
        return None;
    }
    let standing = AppliedRecord::live(s, Some(v), store, learned(common));
    ringwise_intent::compare_programs(source.host.as_ref(), s, &standing)
}

/// Nothing in the state directory is in effect on the recorded host. If the user named the directory, it is the subject.
fn record_missing(s: &Snapshot, journals: &Journals, common: &Common) -> Fail {
    let host = visible(&host_name(s)).into_owned();
    let unknown = format!("what was applied on {host} is unknown");
    let copy = "a copy of the host's /var/lib/ringwise";
    let Some(dir) = &common.state_dir else {
        return Fail::error(format!("{unknown}: the record is on the host itself (below /var/lib/ringwise)"))
            .code("record_missing")
            .next("ringwise verify --from FILE --state-dir DIR, with a copy of its record in DIR");
    };
    let name = visible(&dir.to_string_lossy()).into_owned();
    if let Some(missing) = state_dir_missing(common) {
        return Fail { message: format!("{unknown}: {}", missing.message), ..missing }
            .next(format!("ringwise verify --from FILE --state-dir DIR, where DIR is {copy}"));
    }
    if journals.history(&s.host).is_empty() {
        return Fail::error(format!("{unknown}: {name} contains no record of a transaction"))
            .code("record_missing")
            .file(dir)
            .next(format!("ringwise verify --from FILE --state-dir DIR, where DIR is {copy}"));
    }
    Fail::error(format!("{unknown}: no transaction that is recorded in {name} is in effect on it"))
        .code("record_missing")
        .file(dir)
        .next(format!("ringwise history --state-dir {}", ringwise_model::shell::quote(&dir.to_string_lossy())))
}

struct Watched {
    dev: String,
    of: VectorName,
    irq: IrqId,
    planned: CpuSet,
    /// The next interrupt still comes on the old CPU, and moves the vector to the new one.
    pending: bool,
}

/// Counts the interrupts of every queue that was placed.
fn count(source: &Source, s: &Snapshot, v: &Verify, time: Duration, common: &Common) -> Result<Vec<InterruptCount>> {
    let watched: Vec<Watched> = v
        .settings
        .iter()
        .filter_map(|st| {
            let Setting::IrqCpus { dev, of, cpus, .. } = &st.want else { return None };
            let irq = irq::vector(s.nic(dev)?, *of)?.irq;
            Some(Watched { dev: dev.clone(), of: *of, irq, planned: cpus.clone(), pending: st.how == Match::Pending })
        })
        .collect();
    let (mut left, mut countdown) = (time, Countdown::new("counting interrupts", time, common));
    let mut meanwhile = Meanwhile::begin(source, s, &watched)?;
    while !left.is_zero() {
        countdown.left(left);
        let now = left.min(LOOK);
        source.host.sleep(now);
        left = left.saturating_sub(now);
        meanwhile.look(source)?;
    }
    drop(countdown);
    let rates = Rates::between(&meanwhile.layout, &meanwhile.first, &meanwhile.last)
        .ok_or_else(|| Fail::error("the clock of this host does not advance: no rate can be computed"))?;
    let one = |w: &Watched| {
        let (polled, polled_on) = match polled_elsewhere(&rates, s, &watched, w) {
            PolledOn::Planned => (false, None),
            PolledOn::Elsewhere { cpu } => (true, cpu),
        };
        let (packets, stuck) = (packets(&rates, w, &[Dir::Rx, Dir::Tx]), meanwhile.stuck(w));
        InterruptCount {
            packets,
            stuck,
            polled,
            polled_on,
            ..counted(w, rates.irqs.get(&w.irq).and_then(Option::as_ref))
        }
    };
    Ok(watched.iter().map(one).collect())
}

/// How often queues are looked at while interrupts are counted.
const LOOK: Duration = Duration::from_millis(500);

/// Counters of the devices and vectors, at the beginning and now.
struct Meanwhile {
    layout: Layout,
    sampler: Sampler,
    stalls: StallDetector,
    first: Counters,
    last: Counters,
}

impl Meanwhile {
    fn begin(source: &Source, s: &Snapshot, watched: &[Watched]) -> Result<Self> {
        let mut devs: Vec<String> = Vec::new();
        for w in watched {
            if !devs.contains(&w.dev) {
                devs.push(w.dev.clone());
            }
        }
        let layout = if devs.is_empty() { Layout::default() } else { Layout::of(s, &devs) };
        // This includes vectors that serve no queue.
        let vectors = watched.iter().map(|w| w.irq).collect();
        let sampler = Sampler::new(source.host.as_ref(), &layout, true).with_vectors(vectors);
        let (first, last) = (Counters::default(), Counters::default());
        let mut begin = Self { layout, sampler, stalls: StallDetector::new(), first, last };
        begin.look(source)?;
        begin.first = begin.last.clone();
        Ok(begin)
    }

    /// Takes a sample. Fails if interrupts cannot be counted.
    fn look(&mut self, source: &Source) -> Result<()> {
        self.last = self.sampler.read(source.host.as_ref());
        if let Some(u) = self.last.unread.iter().find(|u| u.what == INTERRUPTS) {
            return Err(Fail::error(format!("{}: {}", u.what, u.why)));
        }
        let up = |d: &&String| source.host.read_text(&format!("/sys/class/net/{d}/carrier")).is_ok_and(|t| t == "1");
        let up = self.layout.links.keys().filter(up).cloned().collect::<BTreeSet<_>>();
        self.stalls.observe(&self.layout, &self.last, &up);
        Ok(())
    }

    /// How a transmit queue of the vector is stalled, if one is.
    fn stuck(&self, w: &Watched) -> Option<StallKind> {
        let tx = &self.layout.links.get(&w.dev)?.tx;
        let mine = |queue: u32| tx.get(&queue) == Some(&Some(w.irq));
        self.stalls.stuck().into_iter().find(|s| s.dev == w.dev && mine(s.queue)).map(|s| s.how)
    }
}

const INTERRUPTS: &str = "/proc/interrupts";

/// Whether the packets of the vector are processed elsewhere than planned. Decided only for devices without RPS and XDP.
fn polled_elsewhere(rates: &Rates, s: &Snapshot, watched: &[Watched], w: &Watched) -> PolledOn {
    let plain = |n: &Nic| {
        matches!(n.users, Fact::Absent) && n.rx_queues.iter().all(|q| q.rps_cpus.known().is_none_or(CpuSet::is_empty))
    };
    let (Some(received), true) = (packets(rates, w, &[Dir::Rx]), s.nic(&w.dev).is_some_and(plain)) else {
        return PolledOn::Planned;
    };
    let others = watched.iter().filter(|o| o.irq != w.irq).fold(CpuSet::new(), |all, o| all.union(&o.planned));
    let processed = rates.cpus.iter().filter_map(|(c, r)| Some((*c, r.counts.get(CpuCounter::SoftnetProcessed)?)));
    polled_on(received, &w.planned, &others, &processed.collect::<BTreeMap<_, _>>())
}

/// Packets of all queues of the vector in these directions. `None`: a queue has no counter.
fn packets(rates: &Rates, w: &Watched, directions: &[Dir]) -> Option<u64> {
    let link: &LinkRates = rates.links.get(&w.dev)?;
    let of = link.queues.iter().filter(|q| q.irq == Some(w.irq) && directions.contains(&q.dir));
    of.map(|q| q.packets).sum()
}

/// Marks vectors whose move is still pending although their queues received packets.
fn still_pending(list: &mut [InterruptCount], now: &Verify) {
    for s in now.settings.iter().filter(|s| s.how == Match::Pending) {
        let Setting::IrqCpus { dev, of, .. } = &s.want else { continue };
        for c in list.iter_mut().filter(|c| c.dev == *dev && c.queue == of.to_string()) {
            c.polled |= c.packets.is_some_and(|n| n > 0) && c.interrupts == Some(0);
        }
    }
}

/// `took`: the interrupts of the vector. `None`: unknown, because the vector is new or its number was reused.
fn counted(w: &Watched, took: Option<&Interrupts>) -> InterruptCount {
    let mut seen_on = took.map(Interrupts::cpus);
    if w.pending
        && let (Some(seen), Some(took)) = (&mut seen_on, took)
    {
        // One interrupt on the old CPU is expected: it moved the vector.
        for (cpu, n) in &took.0 {
            if *n == 1 && !w.planned.contains(*cpu) {
                seen.remove(*cpu);
            }
        }
    }
    InterruptCount {
        dev: w.dev.clone(),
        queue: w.of.to_string(),
        planned: w.planned.clone(),
        seen_on,
        interrupts: took.map(Interrupts::total),
        packets: None,
        stuck: None,
        polled: false,
        polled_on: None,
    }
}
