//! Tests on the simulated host. It has no traffic and no load, so both are derived from its clock.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ringwise_apply::{Policy, RunResult};
use ringwise_intent::ManualChangePolicy;
use ringwise_kfmt::link_stats::{LinkStats, link_stats_reply};
use ringwise_model::{Goal, Requested};
use ringwise_plan::{BulkPolicy, GroupSizes, GroupsUndecided, Plan};
use ringwise_sys::{Clock, Request, Result as Got};
use ringwise_testkit::sim::{Sim, build};

use super::*;
use crate::args::IntentArgs;
use crate::cmd::plan::make;
use crate::cmd::transaction::store;

const FRAMES_PER_S: u64 = 10_000;

/// A host with frames of one size on eth0, and CPUs that are equally busy.
struct Loaded {
    sim: Sim,
    busy_percent: AtomicU64,
    frame_bytes: AtomicU64,
    /// The text of `/samples/counters`.
    samples: Option<String>,
}

impl Clock for Loaded {
    fn since_boot(&self) -> Duration {
        self.sim.since_boot()
    }
    fn unix_time(&self) -> u64 {
        self.sim.unix_time()
    }
    fn sleep(&self, time: Duration) {
        self.sim.sleep(time);
    }
}

impl Host for Loaded {
    fn read(&self, path: &str) -> Got<Vec<u8>> {
        match (path, &self.samples) {
            (SAMPLES, Some(text)) => return Ok(text.clone().into_bytes()),
            ("/proc/stat", _) => {}
            _ => return self.sim.read(path),
        }
        let text = String::from_utf8(self.sim.read(path)?).unwrap();
        let ticks = u64::try_from(self.since_boot().as_millis() / 10).unwrap();
        let busy = ticks * self.busy_percent.load(Ordering::Relaxed) / 100;
        let line = |l: &str| match l.split_once(' ') {
            Some((cpu, _)) if cpu.starts_with("cpu") => format!("{cpu} {busy} 0 0 {} 0 0 0 0 0 0\n", ticks - busy),
            _ => format!("{l}\n"),
        };
        Ok(text.lines().map(line).collect::<String>().into_bytes())
    }
    fn write(&self, path: &str, data: &[u8]) -> Got<()> {
        self.sim.write(path, data)
    }
    fn list(&self, path: &str) -> Got<Vec<String>> {
        self.sim.list(path)
    }
    fn readlink(&self, path: &str) -> Got<String> {
        self.sim.readlink(path)
    }
    fn kernel(&self, request: &Request) -> Got<Vec<Vec<u8>>> {
        let reply = self.sim.kernel(request)?;
        let Request::Link { dev } = request else { return Ok(reply) };
        let frames = u64::try_from(self.since_boot().as_millis()).unwrap() * FRAMES_PER_S / 1000;
        let mut counts = vec![0; 25];
        // As many in each direction: packets, then bytes.
        (counts[0], counts[1]) = (frames / 2, frames / 2);
        let bytes = frames / 2 * self.frame_bytes.load(Ordering::Relaxed);
        (counts[2], counts[3]) = (bytes, bytes);
        let stats = LinkStats { ifindex: 2, name: dev.clone(), counts, carrier_changes: Some(1) };
        Ok(vec![link_stats_reply(&stats).unwrap()])
    }
}

struct Case {
    host: Arc<Loaded>,
    source: Source,
    common: Common,
    dir: PathBuf,
}

impl Case {
    fn new(name: &str, recorded: bool, samples: Option<String>) -> Self {
        let dir = std::env::temp_dir().join(format!("ringwise-sampled-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let sim = Sim::new(&build::host(8, 2).kernel("6.18.15").mqnic("eth0", 0, 8).linked().done());
        let host = Loaded { sim, busy_percent: AtomicU64::new(10), frame_bytes: AtomicU64::new(821), samples };
        let host = Arc::new(host);
        let source = Source {
            host: host.clone(),
            recorded,
            passive: false,
            nested: None,
            recorded_by: None,
            recording: Default::default(),
        };
        let common = Common { quiet: true, state_dir: Some(dir.clone()), ..Common::default() };
        Self { host, source, common, dir }
    }

    fn plan(&self, sample: Option<Duration>) -> Plan {
        let goal = Some(Goal::Mixed.into());
        let args = IntentArgs { goal, config: Some("none".into()), sample, ..IntentArgs::default() };
        make(&self.source, &["eth0".into()], &args, false, &self.common).unwrap().plan(ManualChangePolicy::Ask).unwrap()
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

const FIVE_SECONDS: Option<Duration> = Some(Duration::from_secs(5));

/// Queues for latency, and the policy of the others.
fn groups(p: &Plan) -> (usize, &str) {
    let of = |name| p.groups.iter().find(|g| g.name == name).unwrap();
    (of("latency").queues.len(), of("bulk").policy.as_deref().unwrap())
}

#[test]
fn the_plan_follows_what_was_counted() {
    let c = Case::new("followed", false, None);
    let begin = c.host.since_boot();
    assert_eq!(groups(&c.plan(None)), (2, "bulk"));
    assert!(c.host.since_boot() - begin < Duration::from_secs(1), "nothing is counted without the option");
    let p = c.plan(FIVE_SECONDS);
    assert!(c.host.since_boot() - begin >= Duration::from_secs(5));
    assert_eq!(groups(&p), (4, "bulk"));
    let BulkPolicy::Load { busy_percent, .. } = p.sampled[0].policy else { panic!("{:?}", p.sampled) };
    let GroupSizes::Traffic { frames, mean_frame_bytes, small_percent, .. } = p.sampled[0].sizes else {
        panic!("{:?}", p.sampled)
    };
    assert_eq!((busy_percent, mean_frame_bytes, small_percent), (10, 821, 50));
    assert!((49_000..52_000).contains(&frames), "{frames}");
}

/// `plan --sample --out FILE` on a busy host, and `apply FILE` when it is idle: the file is applied as it was reviewed,
/// and what is checked later is compared with that.
#[test]
fn a_plan_file_is_applied_without_another_sample() {
    let c = Case::new("file", false, None);
    c.host.busy_percent.store(80, Ordering::Relaxed);
    let file = c.dir.join("edge.plan");
    ringwise_intent::write_plan(&file, &c.plan(FIVE_SECONDS), None, 0).unwrap();
    c.host.busy_percent.store(1, Ordering::Relaxed);
    let begin = c.host.since_boot();
    let p = ringwise_intent::load_plan(Path::new(&file)).unwrap().plan;
    assert_eq!(groups(&p), (4, "cpu"));
    let requested = Requested { flags: None, intent: p.intent.clone() };
    let request = ringwise_intent::request(&p, requested, false);
    let store = store(&c.common).with_socket_name(c.dir.file_name().unwrap().to_string_lossy());
    let o = ringwise_apply::run(&c.source.host, &request, &store, &Policy::default(), &mut |_| {}).unwrap();
    assert_eq!((o.verdict, o.refused.len()), (RunResult::Applied, 0), "{o:#?}");
    assert!(c.host.since_boot() - begin < Duration::from_secs(5));
    let s = ringwise_discover::snapshot(&c.source.host, &ringwise_discover::Options::all()).unwrap();
    let applied = ringwise_intent::AppliedRecord::live(&s, None, &store, Vec::new());
    let intent = &applied.parts(&s).list[0].intent;
    let again = ringwise_plan::plan(&s, intent, &[]).unwrap();
    assert!(again.steps.is_empty(), "{:#?}", again.steps);
    assert_eq!(groups(&again), (4, "cpu"));
}

#[test]
fn a_recording_has_its_own_counters_or_none() {
    let c = Case::new("recorded", true, None);
    let p = c.plan(FIVE_SECONDS);
    let why = GroupsUndecided::NotSampled { why: NotSampled::NotRecorded };
    assert_eq!((&p.sampled[0].policy, &p.sampled[0].sizes), (&BulkPolicy::Kept { why }, &GroupSizes::Kept { why }));
    assert_eq!(groups(&p), (2, "bulk"));
    assert!(p.warnings.iter().any(|w| w.contains("cannot be sampled")), "{:?}", p.warnings);

    c.host.busy_percent.store(70, Ordering::Relaxed);
    let s = ringwise_discover::snapshot(&c.source.host, &ringwise_discover::Options::all()).unwrap();
    let layout = Layout::of(&s, &[]);
    let mut sampler = Sampler::new(c.source.host.as_ref(), &layout, false);
    let first = sampler.read(c.source.host.as_ref());
    c.host.sleep(Duration::from_secs(3));
    let second = sampler.read(c.source.host.as_ref());
    let text = [layout.to_line(), first.to_line(), second.to_line()].join("\n");
    let c = Case::new("with-counters", true, Some(text));
    let begin = c.host.since_boot();
    assert_eq!(groups(&c.plan(FIVE_SECONDS)), (4, "cpu"));
    assert!(c.host.since_boot() - begin < Duration::from_secs(1), "a recording is not waited for");
}

#[test]
fn without_counters_the_reason_is_named() {
    let c = Case::new("no-counters", false, None);
    let mut s = ringwise_discover::snapshot(&c.source.host, &ringwise_discover::Options::all()).unwrap();
    let begin = c.host.since_boot();
    let minute = Duration::from_secs(60);
    let host = c.source.host.clone();
    let passive =
        Source { host, recorded: false, passive: true, nested: None, recorded_by: None, recording: Default::default() };
    assert_eq!(take(&passive, &s, minute, &c.common), Sample::NotTaken(NotSampled::Passive));
    s.nics.retain(|n| !n.has_own_queues());
    assert_eq!(take(&c.source, &s, minute, &c.common), Sample::NotTaken(NotSampled::NoInterface));
    assert!(c.host.since_boot() - begin < Duration::from_secs(1), "nothing is counted");
}
