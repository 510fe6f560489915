//! Checks whether every transmit queue still sends after a change: a queue whose interrupt goes to a CPU that does not serve it
//! is stuck, and the kernel reports nothing for five seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_knob::{Setting, Step, VectorName, irq};
use ringwise_model::{CpuSet, Dir, Fact, IrqId, Snapshot};
use ringwise_observe::{Layout, STUCK_MS, Sampler, StallDetector, StallKind, Stuck};

use crate::Failure;
use crate::cpu_timers::cpus_text;
use crate::host_access::HostAccess;

const EACH: Duration = Duration::from_millis(250);
/// The watch ends after this time if nothing is suspicious.
const AT_LEAST: Duration = Duration::from_secs(1);
/// Time between the two looks before the first write.
const BEFORE: Duration = Duration::from_millis(200);

pub(crate) struct Watch {
    devs: Vec<String>,
    layout: Layout,
    sampler: Sampler,
    stalls: StallDetector,
}

impl Watch {
    /// `None`: none of these devices has a transmit queue, so there is nothing to watch.
    pub(crate) fn new(cx: &HostAccess, now: &Snapshot, devs: &[String]) -> Option<Self> {
        let has_queues = |d: &&String| now.nic(d).is_some_and(|n| !n.tx_queues.is_empty());
        let devs: Vec<String> = devs.iter().filter(has_queues).cloned().collect();
        if devs.is_empty() {
            return None;
        }
        let layout = Layout::of(now, &devs);
        let sampler = Sampler::new(cx.host.as_ref(), &layout, true).with_deadline(cx.host, cx.policy.deadline);
        let mut watch = Self { devs, layout, sampler, stalls: StallDetector::new() };
        watch.look(cx);
        Some(watch)
    }

    /// After the steps: adopts the present queues and vectors. What was seen before still counts.
    pub(crate) fn follow(&mut self, cx: &HostAccess, now: &Snapshot, devs: Vec<String>) {
        self.devs = devs;
        self.layout = Layout::of(now, &self.devs);
        self.sampler.follow(&self.layout);
        self.look(cx);
    }

    pub(crate) fn look(&mut self, cx: &HostAccess) {
        let counters = self.sampler.read(cx.host.as_ref());
        let carrier = |d: &&String| {
            let dev = d.to_string();
            cx.reading(move |h| ringwise_discover::carrier(h, &dev)) == Some(Fact::Known(true))
        };
        let up: BTreeSet<String> = self.devs.iter().filter(carrier).cloned().collect();
        self.stalls.observe(&self.layout, &counters, &up);
    }

    /// Looks until `time` is over, or until `enough` returns true after a look.
    fn until(
        &mut self,
        cx: &HostAccess,
        time: Duration,
        each: Duration,
        enough: impl Fn(&StallDetector, Duration) -> bool,
    ) {
        let begin = cx.now();
        loop {
            let took = cx.now().saturating_sub(begin);
            if took >= time || cx.policy.stopped() {
                return;
            }
            cx.host.sleep(each.min(time - took));
            self.look(cx);
            if enough(&self.stalls, cx.now().saturating_sub(begin)) {
                return;
            }
        }
    }

    /// Queues that are stuck already. If bytes are in flight on all queues and none makes progress, it takes three seconds to be
    /// sure; with progress it takes one more look.
    pub(crate) fn already(&mut self, cx: &HostAccess) -> Vec<Stuck> {
        let bound = Duration::from_millis(STUCK_MS) + EACH;
        if self.stalls.in_flight() {
            self.until(cx, bound, BEFORE, |s, _| !s.suspects() || !s.stuck().is_empty());
        }
        self.stalls.stuck()
    }

    /// Queues that are stuck now and were not before.
    pub(crate) fn after(&mut self, cx: &HostAccess, time: Duration, before: &[Stuck]) -> Vec<Stuck> {
        let new = |s: &StallDetector| fresh(s.stuck(), before);
        self.until(cx, time, EACH, |s, took| !new(s).is_empty() || (took >= AT_LEAST && !s.suspects()));
        new(&self.stalls)
    }

    /// The same for a single look.
    pub(crate) fn new_stuck(&self, before: &[Stuck]) -> Vec<Stuck> {
        fresh(self.stalls.stuck(), before)
    }
}

fn fresh(all: Vec<Stuck>, before: &[Stuck]) -> Vec<Stuck> {
    all.into_iter().filter(|s| !before.iter().any(|b| (&b.dev, b.queue) == (&s.dev, s.queue))).collect()
}

/// Devices of which these steps could leave a queue stuck.
pub(crate) fn devices(steps: &[Step]) -> Vec<String> {
    let mut devs: Vec<String> = Vec::new();
    for dev in steps.iter().filter_map(|s| s.setting.address()?.dev().map(str::to_string)) {
        if !devs.contains(&dev) {
            devs.push(dev);
        }
    }
    devs
}

/// `eth1 tx-3 completed nothing for 3 s after its interrupt was moved to CPU 14`
pub(crate) fn words(stuck: &[Stuck], steps: &[Step], now: &Snapshot) -> String {
    let moved = moved(steps, now);
    let one = |s: &Stuck| {
        let at = format!("{} tx-{}", s.dev, s.queue);
        let irq = now.nic(&s.dev).and_then(|n| n.vector_of(Dir::Tx, s.queue)).map(|v| v.irq);
        let after = match irq.and_then(|i| moved.get(&i)) {
            Some(cpus) => format!(" after its interrupt was moved to {}", cpus_text(cpus)),
            None => String::new(),
        };
        match s.how {
            StallKind::NothingCompleted { ms, bytes } => {
                format!("{at} completed nothing for {} s{after} ({bytes} bytes in flight)", ms / 1000)
            }
            StallKind::TimedOut { times } => {
                let times = ringwise_model::words::plural(times as usize, "time");
                format!("{at} timed out{after} ({times} by the kernel's watchdog)")
            }
        }
    };
    stuck.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The CPUs to which these steps move interrupts.
fn moved(steps: &[Step], now: &Snapshot) -> BTreeMap<IrqId, CpuSet> {
    let mut out = BTreeMap::new();
    for s in steps {
        if let Setting::IrqCpus { dev, of, cpus, .. } = &s.setting
            && let Some(v) = now.nic(dev).and_then(|n| irq::vector(n, VectorName::clone(of)))
        {
            out.insert(v.irq, cpus.clone());
        }
    }
    out
}

pub(crate) fn failure(words: String) -> Failure {
    Failure::new(words, "the queue is stuck")
}
