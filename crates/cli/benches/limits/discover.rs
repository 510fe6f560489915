//! Discovery of a large captured machine, and of one with thousands of software interfaces.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use ringwise_discover::snapshot;
use ringwise_kfmt::rtnl::{self, LinkInfo};
use ringwise_sys::{CaptureRecorder, Captured, Host, Request, RequestKey};

use crate::table::Table;
use crate::{Result, machine, median};

const CPUS: u32 = 512;
const NICS: u32 = 16;
const QUEUES: u32 = 128;

pub(crate) fn measure(table: &mut Table, dir: &Path) -> Result<()> {
    let ours = dir.join("large.tar.gz");
    machine::captured(dir, &ours, CPUS, NICS, QUEUES)?;
    let foreign = dir.join("large-foreign.tar.gz");
    machine::foreign(&foreign, CPUS, NICS, QUEUES)?;
    for (file, kind) in [(&ours, "captured"), (&foreign, "plain tree")] {
        let (host, _) = machine::opened(file, CPUS as usize, NICS as usize, QUEUES as usize)?;
        let what = format!("discovery, 512 CPUs, 16 NICs, 2,048 queue interrupts ({kind})");
        table.time(&what, 100.0, median(9, || snapshot(&host, &machine::patient())));
        table.note_time(&format!("  opening that archive ({kind})"), median(3, || Captured::open(file)));
        table.below(&format!("  memory at most, with opening ({kind})"), 64.0, peak(file)?, "MB");
    }
    software(table, dir)
}

/// Peak of a process that opens and discovers `file`, in MB (2^20).
fn peak(file: &Path) -> Result<f64> {
    let out = Command::new(std::env::current_exe()?).arg("--child").arg(file).output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    let kb: f64 = text
        .trim()
        .parse()
        .map_err(|_| format!("the child said {text:?}, {}", String::from_utf8_lossy(&out.stderr)))?;
    Ok(kb / 1024.0)
}

/// The child: prints its peak in kB.
pub(crate) fn child(file: &str) -> Result<()> {
    let host: Arc<dyn Host> = Arc::new(Captured::open(Path::new(file))?);
    let s = snapshot(&host, &machine::patient())?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    println!("{}", line.trim().trim_end_matches(" kB"));
    drop(s);
    Ok(())
}

/// 5,000 VLANs on one NIC and 500 veth beside a small machine.
fn software(table: &mut Table, dir: &Path) -> Result<()> {
    let recorder = Arc::new(CaptureRecorder::new(machine::simulated(dir, 64, 2, 16)?));
    let host: Arc<dyn Host> = recorder.clone();
    let small = snapshot(&host, &machine::patient())?;
    let without = recorder.finish();
    let below = small.nics.iter().find(|n| n.has_own_queues()).and_then(|n| n.dev.ifindex).ok_or("no NIC")?.0;
    let mut with = without.clone();
    let asked = RequestKey::of(&Request::Links).ok_or("no key for the link dump")?;
    let reply = with.kernel.get_mut(&asked).ok_or("the link dump was not recorded")?;
    let links = reply.answer.as_mut().map_err(|r| format!("link dump: {r:?}"))?;
    for i in 0..5500 {
        let vlan = i < 5000;
        links.push(rtnl::link_reply(&LinkInfo {
            ifindex: 1000 + i,
            link_type: rtnl::ARPHRD_ETHER,
            flags: rtnl::IFF_UP,
            name: if vlan { format!("eth0.{i}") } else { format!("veth{i}") },
            kind: Some(if vlan { "vlan" } else { "veth" }.into()),
            link: Some(if vlan { below } else { 2 }),
            link_in_other_netns: !vlan,
            mac: Some("02:00:00:00:00:01".into()),
            mtu: Some(1500),
            operstate: Some("up"),
            carrier: Some(true),
            ..LinkInfo::default()
        })?);
    }
    let without: Arc<dyn Host> = Arc::new(Captured::from(without));
    let with: Arc<dyn Host> = Arc::new(Captured::from(with));
    let counted = snapshot(&with, &machine::patient())?.bystanders.count;
    if (counted.get("vlan"), counted.get("veth")) != (Some(&5000), Some(&500)) {
        return Err(format!("5,000 VLANs and 500 veth were counted as {counted:?}").into());
    }
    let few = median(15, || snapshot(&without, &machine::patient()));
    let many = median(15, || snapshot(&with, &machine::patient()));
    table.time("5,000 VLANs and 500 veth add to discovery (captured)", 50.0, many.beyond(few));
    Ok(())
}
