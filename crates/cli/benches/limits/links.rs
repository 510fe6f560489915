//! Thousands of software interfaces on the running kernel, in a network namespace of our own.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::table::Table;
use crate::{Result, program, shortest};

/// Needs root, `unshare` and `ip`; without them the row shows what is missing, and is not counted.
pub(crate) fn measure(table: &mut Table, program: &Path) -> Result<()> {
    let what = "thousands of software interfaces add to show, running kernel";
    let out = Command::new("unshare").arg("-n").arg(std::env::current_exe()?).arg("--links").arg(program).output();
    match out {
        Ok(o) if o.status.success() => {
            let text = String::from_utf8_lossy(&o.stdout);
            let (kind, ms) = text.trim().rsplit_once(' ').ok_or_else(|| format!("the child said {text:?}"))?;
            table.below(&format!("{kind} add to show, running kernel"), 50.0, ms.parse()?, "ms");
        }
        Ok(o) => table.note(what, format!("not measured: {}", String::from_utf8_lossy(&o.stderr).trim())),
        Err(e) => table.note(what, format!("not measured: unshare: {e}")),
    }
    Ok(())
}

/// Inside the namespace: prints what was added and the milliseconds that it costs.
pub(crate) fn child(program: &str) -> Result<()> {
    let show = || program::run(Command::new(program).arg("show"));
    show()?;
    // The difference of two noisy numbers: of the shortest runs.
    let without = shortest(31, show);
    ip("link add name rwa type veth peer name rwb\nlink set rwa up\nlink set rwb up\n")?;
    let vlans: String = (1..=5000)
        .map(|i| {
            format!("link add link {} name v{i} type vlan id {}\n", if i > 2500 { "rwa" } else { "rwb" }, 1 + i % 2500)
        })
        .collect();
    let pairs =
        |n: u32| -> String { (0..n).map(|i| format!("link add name p{i} type veth peer name q{i}\n")).collect() };
    let kind = match ip(&vlans) {
        Ok(()) => ip(&pairs(250)).map(|()| "5,000 VLANs and 500 veth")?,
        // A kernel without VLANs: as many interfaces of the other kind.
        Err(_) => ip(&pairs(2750)).map(|()| "5,500 veth (no VLANs in this kernel)")?,
    };
    let with = shortest(31, show);
    println!("{kind} {:.2}", with.saturating_sub(without).as_secs_f64() * 1e3);
    Ok(())
}

fn ip(batch: &str) -> Result<()> {
    let mut ip = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // `ip` may stop reading at its first error, and reports it with its exit status.
    let _ = ip.stdin.take().ok_or("no stdin")?.write_all(batch.as_bytes());
    let out = ip.wait_with_output()?;
    if out.status.success() {
        Ok(())
    } else {
        Err(format!("ip: {}", String::from_utf8_lossy(&out.stderr).trim()).into())
    }
}
