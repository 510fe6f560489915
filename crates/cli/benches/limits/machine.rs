//! Captured machines of any size: a described tree, read once, put behind the simulated kernel so that its
//! requests are answered too, and recorded from there as `ringwise capture` does.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringwise_discover::{Options, snapshot};
use ringwise_model::nic::Pause;
use ringwise_model::{Channels, Coalesce, Count, Fact, Rings, Rss, Snapshot};
use ringwise_sys::{CaptureRecorder, Captured, Host};
use ringwise_testkit::sim::Sim;
use ringwise_testkit::tree::{Host as Description, Tree, TreeEntry};

use crate::Result;

/// Everything, and no device is late because this machine has other work: what is not read is not compared either.
pub(crate) fn patient() -> Options {
    Options { deadline: PATIENCE, ..Options::all() }
}

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Two packages, four nodes, an L3 for eight cores, two threads a core; untuned: every queue interrupt
/// may go anywhere and sits on one of the first CPUs of its node.
fn description(cpus: u32, nics: u32, queues: u32) -> Result<Description> {
    let mut text = format!(
        "origin = \"hand-written\"\nabout = \"benchmark\"\nhostname = \"bench\"\nkernel = \"6.12.48\"\nremapping = true\n\
         vendor = \"Bench\"\n[cpu]\npackages = 2\ncores = {}\nthreads = 2\nl3_cores = 8\nnodes_per_package = 2\n\
         far_distance = 32\nmodel = \"Bench\"\n",
        cpus / 4
    );
    for i in 0..nics {
        let (node, first) = (i % 4, 100 + i * (queues + 8));
        let _ = write!(
            text,
            "[[nic]]\nname = \"eth{i}\"\ndriver = \"ice\"\nbus = \"pci\"\naddress = \"0000:{:02x}:00.0\"\nnode = {node}\n\
             speed = 100000\nmac = \"02:00:00:00:01:{i:02x}\"\nrx = {queues}\ntx = {queues}\nfirst_irq = {first}\n\
             [[nic.vectors]]\nname = \"ice-0000:{:02x}:00.0:misc\"\n\
             [[nic.vectors]]\nname = \"ice-eth{i}-TxRx-{{n}}\"\ncount = {queues}\nlands = \"0-3\"\ncount_each = 100000\n",
            0x10 + i,
            0x10 + i
        );
    }
    Ok(Description::parse(&text)?)
}

/// The tree as plain files below `dir`, with that many processes.
pub(crate) fn on_disk(dir: &Path, cpus: u32, nics: u32, queues: u32, processes: u32) -> Result<()> {
    for (path, entry) in Tree::build(&description(cpus, nics, queues)?)?.entries() {
        let path = dir.join(path.trim_start_matches('/'));
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above)?;
        }
        match entry {
            TreeEntry::File(bytes) => std::fs::write(&path, bytes)?,
            TreeEntry::Dir => std::fs::create_dir_all(&path)?,
            TreeEntry::Link(target) => std::os::unix::fs::symlink(target, &path)?,
        }
    }
    for pid in 1..=processes {
        let process = dir.join(format!("proc/{pid}"));
        std::fs::create_dir_all(&process)?;
        std::fs::write(process.join("comm"), "postgres\n")?;
    }
    Ok(())
}

/// The tree as another program would have packed it.
pub(crate) fn foreign(file: &Path, cpus: u32, nics: u32, queues: u32) -> Result<()> {
    std::fs::write(file, Tree::build(&description(cpus, nics, queues)?)?.tar_gz()?)?;
    Ok(())
}

/// Adds what only kernel requests tell.
fn complete(mut s: Snapshot) -> Snapshot {
    for nic in &mut s.nics {
        nic.unread.clear();
        nic.addresses = Fact::Known(Vec::new());
        if !nic.has_own_queues() {
            continue;
        }
        let queues = nic.rx_queues.len() as u32;
        let count = |now, max| Some(Count { now, max });
        nic.channels = Fact::Known(Channels { rx: None, tx: None, combined: count(queues, queues), other: None });
        nic.rings = Fact::Known(Rings::sizes(count(2048, 8160), count(256, 8160)));
        nic.coalesce = Fact::Known(Coalesce([("rx-usecs".to_string(), 50), ("tx-usecs".to_string(), 50)].into()));
        nic.pause = Fact::Known(Pause { autoneg: Some(false), rx: Some(false), tx: Some(false) });
        nic.users = Fact::Absent;
        nic.rss = Fact::Known(Rss {
            symmetric: ringwise_model::not_requested(),
            contexts: ringwise_model::not_requested(),
            table: (0..2048).map(|i| i % queues).collect(),
            function: Fact::Known("toeplitz".into()),
            key: Fact::Known("6d5a56da255b0ec2".repeat(5)),
            fields: Default::default(),
        });
        for v in &mut nic.vectors {
            if v.is_queue() {
                v.napi = Some(8000 + v.irq.0);
            }
        }
    }
    s
}

/// The simulated kernel of such a machine.
pub(crate) fn simulated(dir: &Path, cpus: u32, nics: u32, queues: u32) -> Result<Sim> {
    let file = dir.join("described.tar.gz");
    foreign(&file, cpus, nics, queues)?;
    let host: Arc<dyn Host> = Arc::new(Captured::open(&file)?);
    Ok(Sim::new(&complete(snapshot(&host, &patient())?)))
}

/// Everything discovery asks of it, as `ringwise capture` writes it.
pub(crate) fn captured(dir: &Path, file: &Path, cpus: u32, nics: u32, queues: u32) -> Result<()> {
    let recorder = Arc::new(CaptureRecorder::new(simulated(dir, cpus, nics, queues)?));
    let host: Arc<dyn Host> = recorder.clone();
    snapshot(&host, &patient())?;
    recorder.finish().write_tar(file)?;
    Ok(())
}

/// Opened again; what is found there is what was described.
pub(crate) fn opened(file: &Path, cpus: usize, nics: usize, queues: usize) -> Result<(Arc<dyn Host>, Snapshot)> {
    let host: Arc<dyn Host> = Arc::new(Captured::open(file)?);
    let s = snapshot(&host, &patient())?;
    let own: Vec<_> = s.nics.iter().filter(|n| n.has_own_queues()).collect();
    let vectors: usize = own.iter().map(|n| n.queue_vectors().count()).sum();
    let found = (s.topology.cpus.len(), own.len(), vectors);
    if found != (cpus, nics, nics * queues) {
        return Err(format!("{}: found (CPUs, NICs, queue interrupts) {found:?}", file.display()).into());
    }
    Ok((host, s))
}
