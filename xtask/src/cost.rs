//! `cargo xtask cost`: what a sample of `ringwise watch` costs on this machine, in namespaces of its own with pairs of veth.

use crate::{cmd, paths, peers, program};
use anyhow::{Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Four pairs of eight queues; then the samples of the growth test.
const SCRIPT: &str = r#"
set -u
ip link set lo up
for i in 0 1 2 3; do
    ip link add v$i numrxqueues 8 numtxqueues 8 type veth peer name w$i numrxqueues 8 numtxqueues 8
    ip link set v$i up
    ip link set w$i up
done
DEVS='v0 w0 v1 w1 v2 w2 v3 w3'
# The kernel's own sum for a group, to the microsecond; without it the shell's times, to the millisecond.
CGROUP=
if mkdir "$PEERS/../cgroup" && mount -t cgroup2 none "$PEERS/../cgroup" 2>/dev/null; then
    CGROUP=$PEERS/../cgroup/ringwise-cost-$$
    mkdir "$CGROUP" && trap 'rmdir "$CGROUP"' EXIT
fi
. "$LAB/cost.sh"
peers_up
costs >"$PEERS/tmp/costs"
echo "Linux $(uname -r), $(nproc) CPUs, $(grep -c : /proc/interrupts) rows of interrupts, 4 pairs of veth with 8 queues"
sed 's/^/us a sample: /' "$PEERS/tmp/costs"
sort -u "$PEERS/tmp/cost.err" | head -5
ours=$(sed -n 's/ ringwise watch --plain$//p' "$PEERS/tmp/costs")
echo "ringwise watch --plain at one sample a second: $(awk -v u="$ours" 'BEGIN { printf "%.3f", u / 10000 }') % of a CPU"
ringwise watch $DEVS --plain --interval 1ms --count "$SAMPLES" >/dev/null 2>&1 &
pid=$!
peak() { awk '$1 == "VmHWM:" { print $2 }' /proc/$pid/status 2>/dev/null; }
sleep 3
early=$(peak)
last=$early
while now=$(peak) && [ -n "$now" ]; do
    last=$now
    sleep 0.2
done
echo "memory at most: after 3 s $early kB, after $SAMPLES samples $last kB"
"#;

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let given = match args {
        [] => None,
        [flag, path] if flag == "--program" => Some(PathBuf::from(path)),
        [other, ..] => bail!("cost: expected only --program FILE, found {other:?}"),
    };
    let ringwise = given.map_or_else(|| program::build(program::Profile::Release), Ok)?;
    let dir = std::env::temp_dir().join(format!("ringwise-cost-{}", std::process::id()));
    let root = dir.join("peers");
    fs::create_dir_all(&root)?;
    cmd::output(Command::new("tar").arg("-C").arg(&root).arg("-xf").arg(peers::ensure()?))?;
    fs::create_dir_all(dir.join("bin"))?;
    fs::copy(ringwise, dir.join("bin/ringwise"))?;
    let path = format!("{}:{}", dir.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    // A private /sys shows the devices of the namespace; no other process sees the mounts.
    let all = format!("mount --make-rprivate / && mount -t sysfs sys /sys\n{SCRIPT}");
    let done = Command::new("unshare")
        .args(["--net", "--mount", "--", "bash", "-c", &all])
        .env("PATH", path)
        .env("PEERS", &root)
        .env("LAB", paths::lab())
        .env("SAMPLES", "10000")
        .env("N", std::env::var("N").unwrap_or_else(|_| "20".into()))
        .status();
    fs::remove_dir_all(&dir)?;
    Ok(if done?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
