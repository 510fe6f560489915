//! Tests on the simulated host. It forwards no packets, so the packet counts are derived from its clock.

use std::sync::Arc;
use std::sync::Mutex;

use ringwise_apply::{Policy, Request};
use ringwise_kfmt::link_stats::{LinkStats, link_stats_reply};
use ringwise_knob::{Reason, Setting, Step};
use ringwise_sys::{Clock, Host, Result as Got};
use ringwise_testkit::sim::{Sim, build};

use super::*;

/// A host with 1000 packets a second on eth0, and a signal at a given time.
struct Busy {
    sim: Sim,
    stop_at: Mutex<Option<Duration>>,
    stop: Arc<AtomicBool>,
}

impl Clock for Busy {
    fn since_boot(&self) -> Duration {
        self.sim.since_boot()
    }
    fn unix_time(&self) -> u64 {
        self.sim.unix_time()
    }
    fn sleep(&self, time: Duration) {
        self.sim.sleep(time);
        if self.stop_at.lock().unwrap().is_some_and(|at| self.since_boot() >= at) {
            self.stop.store(true, Ordering::SeqCst);
        }
    }
}

impl Host for Busy {
    fn read(&self, path: &str) -> Got<Vec<u8>> {
        self.sim.read(path)
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
    fn kernel(&self, request: &ringwise_sys::Request) -> Got<Vec<Vec<u8>>> {
        let reply = self.sim.kernel(request)?;
        let ringwise_sys::Request::Link { dev } = request else { return Ok(reply) };
        let mut counts = vec![0; 25];
        counts[0] = u64::try_from(self.since_boot().as_millis()).unwrap();
        let stats = LinkStats { ifindex: 2, name: dev.clone(), counts, carrier_changes: Some(1) };
        Ok(vec![link_stats_reply(&stats).unwrap()])
    }
}

struct Case {
    host: Arc<Busy>,
    source: Source,
    common: Common,
    dir: PathBuf,
}

impl Case {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("ringwise-measured-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let sim = Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done());
        let host = Arc::new(Busy { sim, stop_at: Mutex::new(None), stop: Arc::default() });
        let recording = Default::default();
        let source =
            Source { host: host.clone(), recorded: false, passive: false, nested: None, recording, recorded_by: None };
        let common = Common { quiet: true, state_dir: Some(dir.clone()), ..Common::default() };
        Self { host, source, common, dir }
    }

    /// Applies RPS on all CPUs for one queue.
    fn apply(&self) -> Outcome {
        let source = &self.source;
        let s = ringwise_discover::snapshot(&source.host, &ringwise_discover::Options::all()).unwrap();
        let setting = Setting::RpsCpus { dev: "eth0".into(), queue: 0, cpus: "0-3".parse().unwrap() };
        let from = ringwise_knob::live(&s, &setting.address().unwrap());
        let step = Step {
            setting,
            from,
            rule: "T00".into(),
            reason: Reason::NearestQueue,
            source: "a test".into(),
            interrupts_traffic: false,
            if_refused: ringwise_knob::IfRefused::PutBack,
            instead: Vec::new(),
        };
        let devices = s.nics.iter().map(|n| n.dev.clone()).collect();
        let request = Request {
            devices,
            steps: vec![step],
            title: ringwise_model::Title::Text("a test".into()),
            ..Request::default()
        };
        let store = store(&self.common).with_socket_name(self.dir.file_name().unwrap().to_string_lossy());
        ringwise_apply::run(&source.host, &request, &store, &Policy::default(), &mut |_| {}).unwrap()
    }

    fn measure(&self, seconds: u64) -> Measure<'_> {
        Measure::new(&self.source, &self.common, vec!["eth0".into()], Duration::from_secs(seconds))
    }

    fn packets(&self, w: &MeasuredWindow) -> u64 {
        let of = |c: &ringwise_observe::Counters| c.links["eth0"].counts["rx_packets"];
        of(w.last.as_ref().unwrap()) - of(&w.first)
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn both_windows_lie_beside_the_journal() {
    let c = Case::new("both");
    let mut m = c.measure(300);
    m.before(&c.host.stop).unwrap();
    let o = c.apply();
    assert_eq!(o.verdict, RunResult::Applied);
    let path = m.applied(&o).unwrap();
    assert_eq!(path, c.dir.join("measure-0001.rec"));
    m.after(&path, false, &c.host.stop);
    let got = measured::read(&measured::file_beside_journal(&c.dir.join("tx-0001.jsonl"), 1)).unwrap();
    assert_eq!(c.packets(&got.before), 300_000);
    assert_eq!(c.packets(got.after.as_ref().unwrap()), 300_000);
}

#[test]
fn stopped_before_nothing_is_touched_and_stopped_after_it_stays() {
    let c = Case::new("stopped");
    *c.host.stop_at.lock().unwrap() = Some(c.host.since_boot() + Duration::from_secs(5));
    let mut m = c.measure(300);
    let e = m.before(&c.host.stop).unwrap_err();
    assert_eq!(e.status, Status::Refused);
    assert!(std::fs::read_dir(&c.dir).unwrap().next().is_none(), "no journal, no recording");

    c.host.stop.store(false, Ordering::SeqCst);
    *c.host.stop_at.lock().unwrap() = None;
    m.before(&c.host.stop).unwrap();
    let o = c.apply();
    let path = m.applied(&o).unwrap();
    *c.host.stop_at.lock().unwrap() = Some(c.host.since_boot() + Duration::from_secs(7));
    m.after(&path, false, &c.host.stop);
    let got = measured::read(&measured::file_beside_journal(&c.dir.join("tx-0001.jsonl"), 1)).unwrap();
    let after = c.packets(got.after.as_ref().unwrap());
    assert!((7_000..8_000).contains(&after), "{after}");
    let s = ringwise_discover::snapshot(&c.source.host, &ringwise_discover::Options::all()).unwrap();
    let v = ringwise_apply::verify_in(&s, &store(&c.common)).unwrap();
    assert_eq!((v.settings.len(), v.exit_status()), (1, 0));
}

#[test]
fn a_confirmation_begins_the_second_window_anew() {
    let c = Case::new("confirmed");
    let mut m = c.measure(60);
    m.before(&c.host.stop).unwrap();
    let path = m.applied(&c.apply()).unwrap();
    let first = |path: &Path| measured::read(path).unwrap().after.unwrap().first.at_us;
    let begun = first(&path);
    c.host.sleep(Duration::from_secs(40));
    confirmed(&c.source, &c.common, 1);
    assert!(first(&path) >= begun + 40_000_000);
    assert!(
        measured::read(&path).unwrap().after.unwrap().last.is_none(),
        "the window stays open until a report closes it"
    );
    // A transaction that was not measured gets no second window.
    std::fs::remove_file(&path).unwrap();
    confirmed(&c.source, &c.common, 1);
    assert!(!path.exists());
    let none = crate::cmd::report::measured_beside(&c.dir.join("tx-0001.jsonl"), 1);
    assert_eq!(none.unwrap_err().next.as_deref(), Some("ringwise apply --measure 5m, for the next transaction"));
}
