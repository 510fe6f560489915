//! What the tests share: a simulated host, a state directory, a request made from requested settings.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod guards;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::{Event, Outcome, Policy, Request, Store};
use ringwise_discover::Options;
use ringwise_knob::{IfRefused, Reason, Setting, SettingMap, Step, VectorName, compare, diff, live_of_device};
use ringwise_model::{CpuSet, Snapshot};
use ringwise_sys::Host;
pub(crate) use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::{Killed, Sim};

/// Helpers for a state directory.
pub(crate) trait State {
    fn store(&self) -> Store;
    fn journal(&self, id: u64) -> PathBuf;
    fn files(&self) -> Vec<String>;
}

impl State for Dir {
    fn store(&self) -> Store {
        Store::open(Some(&self.0)).with_socket_name(socket(self))
    }

    fn journal(&self, id: u64) -> PathBuf {
        self.0.join(format!("tx-{id:04}.jsonl"))
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A separate lock name, so that simulated hosts do not conflict with each other.
pub(crate) fn socket(dir: &Dir) -> String {
    format!("ringwise-test{}", dir.0.display())
}

pub(crate) fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

pub(crate) fn host(sim: &Arc<Sim>) -> Arc<dyn Host> {
    sim.clone()
}

pub(crate) fn look(sim: &Arc<Sim>) -> Snapshot {
    ringwise_discover::snapshot(&host(sim), &Options::all()).unwrap()
}

pub(crate) fn policy() -> Policy {
    Policy { deadline: Duration::from_secs(5), ..Policy::default() }
}

pub(crate) fn irq(dev: &str, q: u32, list: &str) -> Setting {
    Setting::IrqCpus { dev: dev.into(), of: VectorName::Rx(q), cpus: cpus(list), on: None }
}

pub(crate) fn irq_tx(dev: &str, q: u32, list: &str) -> Setting {
    Setting::IrqCpus { dev: dev.into(), of: VectorName::Tx(q), cpus: cpus(list), on: None }
}

pub(crate) fn xps(dev: &str, queue: u32, list: &str) -> Setting {
    Setting::XpsCpus { dev: dev.into(), queue, cpus: cpus(list) }
}

pub(crate) fn rps(dev: &str, queue: u32, list: &str) -> Setting {
    Setting::RpsCpus { dev: dev.into(), queue, cpus: cpus(list) }
}

pub(crate) fn flow_cnt(dev: &str, queue: u32, entries: u32) -> Setting {
    Setting::RpsFlowCnt { dev: dev.into(), queue, entries }
}

pub(crate) fn rfs(entries: u32) -> Setting {
    Setting::RfsEntries { entries }
}

pub(crate) fn channels(dev: &str, n: u32) -> Setting {
    Setting::Channels { dev: dev.into(), rx: None, tx: None, combined: Some(n) }
}

pub(crate) fn table(dev: &str, queues: &[u32], size: usize) -> Setting {
    Setting::RssTable { dev: dev.into(), table: queues.iter().copied().cycle().take(size).collect() }
}

/// The steps from the present to the requested values, as `knob::diff` returns them; `if_refused` applies to all of them.
pub(crate) fn request_if(now: &Snapshot, wanted: &[Setting], if_refused: IfRefused) -> Request {
    let target: SettingMap = wanted.iter().map(|s| (s.address().unwrap(), s.clone())).collect();
    let steps: Vec<Step> = diff(now, &target)
        .into_iter()
        .map(|c| Step {
            interrupts_traffic: c.address.interrupts_traffic(),
            setting: c.to,
            from: c.from,
            rule: "T01".into(),
            reason: Reason::Text("the test wants it".into()),
            source: "the test".into(),
            if_refused,
            instead: Vec::new(),
        })
        .collect();
    let devs: Vec<&str> = target.keys().filter_map(|a| a.dev()).collect();
    Request {
        devices: now.nics.iter().filter(|n| devs.contains(&n.name())).map(|n| n.dev.clone()).collect(),
        steps,
        title: ringwise_model::Title::Text("balanced".into()),
        reason: Some("CHG-1".into()),
        who: "root".into(),
        argv: vec!["ringwise".into(), "apply".into()],
        ..Request::default()
    }
}

pub(crate) fn request(now: &Snapshot, wanted: &[Setting]) -> Request {
    request_if(now, wanted, IfRefused::PutBack)
}

pub(crate) fn run(sim: &Arc<Sim>, dir: &Dir, request: &Request) -> Result<Outcome, ringwise_apply::Error> {
    ringwise_apply::run(&host(sim), request, &dir.store(), &policy(), &mut |_: &Event| {})
}

pub(crate) fn apply(sim: &Arc<Sim>, dir: &Dir, wanted: &[Setting]) -> Result<Outcome, ringwise_apply::Error> {
    let now = look(sim);
    run(sim, dir, &request(&now, wanted))
}

pub(crate) fn recover(sim: &Arc<Sim>, dir: &Dir) -> Result<Outcome, ringwise_apply::Error> {
    ringwise_apply::recover(&host(sim), &dir.store(), &policy(), &mut |_| {})
}

pub(crate) fn rollback(sim: &Arc<Sim>, dir: &Dir, id: u64, policy: &Policy) -> Result<Outcome, ringwise_apply::Error> {
    let request = Request {
        who: "root".into(),
        argv: vec!["ringwise".into(), "rollback".into(), id.to_string()],
        ..Request::default()
    };
    ringwise_apply::rollback(&host(sim), &dir.store(), id, &request, policy, &mut |_| {})
}

/// Every setting of every device and of the host.
pub(crate) fn settings(s: &Snapshot) -> SettingMap {
    let mut all: SettingMap = s.nics.iter().flat_map(|n| live_of_device(s, n.name())).collect();
    all.insert(rfs(0).address().unwrap(), rfs(s.host.rps_sock_flow_entries.known().copied().unwrap()));
    all
}

/// Settings of `before` that do not hold now.
pub(crate) fn differing(before: &Snapshot, now: &Snapshot) -> Vec<String> {
    let differs = settings(before).into_values().filter(|s| !compare(s, now).holds());
    differs.map(|s| format!("{} was {}", s.address().unwrap(), s.value_text())).collect()
}

/// A store whose process dies with the simulated host's: nothing is written to it after that.
pub(crate) fn mortal(dir: &Dir, sim: &Arc<Sim>) -> Store {
    let sim = sim.clone();
    dir.store().with_hook(Arc::new(move |_: &Path| {
        if sim.is_dead() {
            std::panic::panic_any(Killed);
        }
        Ok(())
    }))
}
