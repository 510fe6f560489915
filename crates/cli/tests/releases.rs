//! Every release stores the files that it writes in `fixtures/releases/VERSION`; every later release reads all of them.
//! `RINGWISE_BLESS=1` creates the folder of the present version if it does not exist. A folder is never changed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common::root;
use ringwise_apply::{Ending, Policy, Request, RunResult, Store, TransactionKind};
use ringwise_discover::{Options, snapshot};
use ringwise_knob::{IfRefused, Reason, Setting, Step, VectorName, compare, live};
use ringwise_model::{Intent, Requested, Snapshot};
use ringwise_plan::{Plan, plan};
use ringwise_sys::{CaptureRecorder, Captured, Host};
use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, build};

fn releases() -> Vec<PathBuf> {
    let dir = root().join("fixtures/releases");
    let mut out: Vec<PathBuf> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    out.sort();
    out
}

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(8, 2).igb("eth0", 0, 8).virtio("eth1", 1, 4).done()))
}

fn look(host: &Arc<dyn Host>) -> Snapshot {
    snapshot(host, &Options::all()).unwrap()
}

fn irq(q: u32, list: &str) -> Setting {
    Setting::IrqCpus { dev: "eth0".into(), of: VectorName::Rx(q), cpus: list.parse().unwrap(), on: None }
}

fn xps(queue: u32, list: &str) -> Setting {
    Setting::XpsCpus { dev: "eth0".into(), queue, cpus: list.parse().unwrap() }
}

/// The settings of the first transaction. The host must have them for the folder to be valid.
fn first() -> Vec<Setting> {
    (0..4).flat_map(|q| [irq(q, &q.to_string()), xps(q, &q.to_string())]).collect()
}

fn requested() -> Requested {
    Requested { flags: None, intent: Intent::default() }
}

fn request(now: &Snapshot, wanted: &[Setting], if_refused: IfRefused) -> Request {
    let step = |s: &Setting| Step {
        setting: s.clone(),
        from: live(now, &s.address().unwrap()),
        rule: "A03".into(),
        reason: Reason::Text("one queue a near core".into()),
        source: "kernel documentation, networking/scaling".into(),
        interrupts_traffic: false,
        if_refused,
        instead: Vec::new(),
    };
    Request {
        devices: vec![now.nic("eth0").unwrap().dev.clone()],
        steps: wanted.iter().map(step).collect(),
        title: ringwise_model::Title::Goal { goal: ringwise_model::Goal::Balanced },
        reason: Some("CHG-4711".into()),
        who: "root".into(),
        argv: ["ringwise", "apply", "--yes"].map(String::from).into(),
        requested: Some(requested()),
        ..Request::default()
    }
}

fn write_release(dir: &Path) {
    let sim = sim();
    let host: Arc<dyn Host> = sim.clone();
    std::fs::create_dir_all(dir).unwrap();
    let recorder = Arc::new(CaptureRecorder::new(Shared(host.clone())));
    let recording: Arc<dyn Host> = recorder.clone();
    let now = look(&recording);
    recorder.finish().write_tar(&dir.join("capture.tar.gz")).unwrap();
    let text = serde_json::to_string_pretty(&plan(&now, &Intent::default(), &[]).unwrap()).unwrap();
    std::fs::write(dir.join("host.plan"), text + "\n").unwrap();
    let store = Store::open(Some(dir)).with_socket_name(format!("ringwise-test{}", dir.display()));
    let policy = Policy::default();
    let run = |wanted: &[Setting], if_refused| {
        let now = look(&host);
        let request = request(&now, wanted, if_refused);
        ringwise_apply::run(&host, &request, &store, &policy, &mut |_| {}).unwrap()
    };
    assert_eq!(run(&first(), IfRefused::PutBack).verdict, RunResult::Applied);
    // A setting that the device accepts and ignores, which is learned.
    sim.fault(SimulatedFault::Ignore { at: At::Matching("tx-5".into()) });
    assert_eq!(run(&[irq(4, "4"), xps(5, "5")], IfRefused::Skip).ignored.len(), 1);
    sim.clear_faults();
    let request = Request {
        who: "root".into(),
        argv: ["ringwise", "rollback", "2"].map(String::from).into(),
        ..Request::default()
    };
    ringwise_apply::rollback(&host, &store, 2, &request, &policy, &mut |_| {}).unwrap();
    // Only files that later releases read belong here; the summary for status holds the path of this machine.
    for name in ["lock", "status.json"] {
        let _ = std::fs::remove_file(dir.join(name));
    }
}

/// `Recorder` takes a host, not a shared one.
/// A host that a recorder may own.
pub(crate) struct Shared(pub Arc<dyn Host>);

impl ringwise_sys::Clock for Shared {
    fn since_boot(&self) -> std::time::Duration {
        self.0.since_boot()
    }
    fn unix_time(&self) -> u64 {
        self.0.unix_time()
    }
    fn sleep(&self, time: std::time::Duration) {
        self.0.sleep(time);
    }
}

impl Host for Shared {
    fn read(&self, path: &str) -> ringwise_sys::Result<Vec<u8>> {
        self.0.read(path)
    }
    fn write(&self, path: &str, data: &[u8]) -> ringwise_sys::Result<()> {
        self.0.write(path, data)
    }
    fn list(&self, path: &str) -> ringwise_sys::Result<Vec<String>> {
        self.0.list(path)
    }
    fn readlink(&self, path: &str) -> ringwise_sys::Result<String> {
        self.0.readlink(path)
    }
    fn kernel(&self, request: &ringwise_sys::Request) -> ringwise_sys::Result<Vec<Vec<u8>>> {
        self.0.kernel(request)
    }
}

#[test]
fn this_version_has_left_its_files() {
    let dir = root().join("fixtures/releases").join(env!("CARGO_PKG_VERSION"));
    if !dir.exists() && ringwise_testkit::golden::blessing() {
        write_release(&dir);
    }
    assert!(dir.is_dir(), "{} is missing: RINGWISE_BLESS=1 makes it", dir.display());
}

/// A copy of the folder as state directory, and a host in the state after its transactions.
fn state(release: &Path) -> (Dir, Arc<Sim>) {
    let dir = Dir::new();
    for e in std::fs::read_dir(release).unwrap() {
        let path = e.unwrap().path();
        std::fs::copy(&path, dir.0.join(path.file_name().unwrap())).unwrap();
    }
    let sim = sim();
    let now = look(&(sim.clone() as Arc<dyn Host>));
    sim.outside(|h| {
        for s in first() {
            let (path, text) = match &s {
                Setting::IrqCpus { of: VectorName::Rx(q), cpus, .. } => {
                    let v = now.nic("eth0").unwrap().vectors.iter().find(|v| v.rx().contains(q)).unwrap();
                    (format!("/proc/irq/{}/smp_affinity_list", v.irq), cpus.to_string())
                }
                Setting::XpsCpus { queue, cpus, .. } => {
                    let mask = format!("{:x}", 1u32 << cpus.first().unwrap().0);
                    (format!("/sys/class/net/eth0/queues/tx-{queue}/xps_cpus"), mask)
                }
                other => panic!("{other:?}"),
            };
            h.write(&path, text.as_bytes()).unwrap();
        }
    });
    (dir, sim)
}

#[test]
fn journals_ledger_and_what_was_learned() {
    for release in releases() {
        let name = release.display();
        let (dir, sim) = state(&release);
        let host: Arc<dyn Host> = sim.clone();
        let store = Store::open(Some(&dir.0)).with_socket_name(format!("ringwise-test{}", dir.0.display()));
        let before = sim_start();
        let now = look(&host);
        let v = ringwise_apply::verify_in(&now, &store).unwrap();
        assert_eq!((v.exit_status(), v.settings.len()), (0, 8), "{name}: {:?}", v.drifted().collect::<Vec<_>>());
        let list = ringwise_apply::history(&store, &now.host).unwrap();
        let kinds: Vec<_> = list.iter().map(|e| (e.kind.clone(), e.ending.clone(), e.undone_by)).collect();
        assert_eq!(
            kinds,
            [
                (TransactionKind::Apply, Ending::Kept, None),
                (TransactionKind::Apply, Ending::Kept, Some(3)),
                (TransactionKind::Rollback { before: 2 }, Ending::Kept, None)
            ],
            "{name}"
        );
        assert!(list.iter().all(|e| e.this_boot && !e.who.is_empty()), "{name}");
        if release.ends_with("0.1.0") {
            // It recorded the command line as one text. The request is unknown, and is not derived from that text.
            assert!(list.iter().all(|e| e.requested.is_none() && e.argv.is_empty()), "{name}");
        } else {
            let apply = |e: &&ringwise_apply::HistoryEntry| e.kind == TransactionKind::Apply;
            assert!(list.iter().all(|e| !e.argv.is_empty()), "{name}");
            assert!(list.iter().filter(apply).all(|e| e.requested == Some(requested())), "{name}");
        }
        assert_eq!(list[0].reason.as_deref(), Some("CHG-4711"), "{name}");
        assert_eq!(store.learned().unwrap().len(), 1, "{name}");
        // This version can roll back with the ledger of that version.
        let request = Request { who: "root".into(), ..Request::default() };
        let out = ringwise_apply::rollback(&host, &store, 0, &request, &Policy::default(), &mut |_| {}).unwrap();
        assert_eq!(out.verdict, RunResult::Applied, "{name}: {:?}", out.failed);
        let now = look(&host);
        for s in first() {
            let was = live(&before, &s.address().unwrap()).known().cloned().unwrap();
            assert!(compare(&was, &now).holds(), "{name}: {was:?}");
        }
    }
}

fn sim_start() -> Snapshot {
    look(&(sim() as Arc<dyn Host>))
}

#[test]
fn captures_and_plans() {
    for release in releases() {
        let name = release.display();
        let captured: Arc<dyn Host> = Arc::new(Captured::open(&release.join("capture.tar.gz")).unwrap());
        let (then, now) = (look(&captured), sim_start());
        for (a, b) in then.nics.iter().zip(&now.nics) {
            assert_eq!(
                (&a.dev, a.rx_queues.len(), a.vectors.len()),
                (&b.dev, b.rx_queues.len(), b.vectors.len()),
                "{name}"
            );
            assert_eq!(
                a.vectors.iter().map(|v| &v.asked).collect::<Vec<_>>(),
                b.vectors.iter().map(|v| &v.asked).collect::<Vec<_>>()
            );
        }
        let file = release.join("host.plan");
        let old: Plan = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert!(!old.steps.is_empty() && old.steps.iter().all(|s| s.setting.address().is_some()), "{name}");
        // The plan is read completely, and refused only because of machine and boot.
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).arg("apply").arg("--yes").arg(&file).output().unwrap();
        let err = String::from_utf8_lossy(&o.stderr);
        assert_eq!(o.status.code(), Some(6), "{name}: {err}");
        assert!(err.contains("was made for another"), "{name}: {err}");
    }
}
