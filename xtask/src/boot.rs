//! Boots one guest: prepares its share directory, runs QEMU with a deadline, and collects the results.

use crate::heartbeat::{Dead, Heartbeat};
use crate::host::{Host, System};
use crate::package::Arch;
use crate::qemu::{self, Accel, Qemu};
use crate::scenario::Scenario;
use crate::{image, irqbalance, kernel, module, paths, peers, progress, userland};
use anyhow::{Context, Result};
use std::fmt;
use std::fs::{self, File};
use std::io::{IsTerminal, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What the guest does after booting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Scenarios,
    Demo,
    Shell,
}

/// Everything that one boot needs. It is prepared before QEMU starts.
pub(crate) struct Guest<'a> {
    pub host: &'a Host,
    pub kernel: &'a str,
    pub ready: kernel::Ready,
    pub test_nic: module::Built,
    pub cost_model: module::Built,
    /// Its root file system, unless that is the initramfs.
    disk: Option<PathBuf>,
    pub qemu: Qemu,
    pub accel: Accel,
    pub dir: PathBuf,
}

/// How a boot ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub status: Option<ExitStatus>,
    /// What the guest wrote into a file, because its machine has no debug exit.
    written: Option<u8>,
    pub took: Duration,
    /// A fault of QEMU, so the boot has no result: its emulation stalled, or it crashed.
    pub lost: Option<Lost>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lost {
    /// One CPU no longer runs its timers, while the others do.
    DeafCpu { cpu: usize, at: String },
    /// No CPU has run its timers for a while.
    Silent { at: String },
    /// The guest's kernel reported a stall.
    Stalled,
    /// QEMU ended with a signal: an assertion in its memory map failed while the guest mapped devices.
    Died,
    /// It exceeded its time limit there. The guest would have ended it at that limit, so the guest's clock stands
    /// still.
    Hung { at: String },
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Lost::DeafCpu { cpu, at } => {
                write!(
                    f,
                    "CPU {cpu} of the guest stopped at \"{at}\": no heartbeat for 15 s while the others continued"
                )
            }
            Lost::Silent { at } => write!(f, "the guest stopped at \"{at}\": no heartbeat of any CPU for 90 s"),
            Lost::Stalled => f.write_str("the guest's kernel reported a stall"),
            Lost::Died => f.write_str("QEMU crashed"),
            Lost::Hung { at } => write!(f, "the guest hung at \"{at}\""),
        }
    }
}

impl Ended {
    /// The status that the guest reported, if it did.
    pub(crate) fn guest_status(&self) -> Option<u8> {
        if self.written.is_some() {
            return self.written;
        }
        // isa-debug-exit: QEMU exits with (value << 1) | 1; 0 means that the guest reported nothing.
        let code = self.status?.code()?;
        (code & 1 == 1).then(|| u8::try_from(code >> 1).unwrap_or(u8::MAX))
    }
}

impl<'a> Guest<'a> {
    /// `cost`: a scenario needs the cost model.
    pub(crate) fn prepare(host: &'a Host, k: &'a kernel::Kernel, cost: bool) -> Result<Guest<'a>> {
        let qemu = qemu::ensure(host.arch)?;
        let ready = kernel::ensure(k)?;
        let accel = qemu::accel(&qemu, &ready)?;
        let none = || module::Built::No("neither the host nor a scenario needs it".into());
        let test_nic = if host.has_test_nic() { module::TEST_NIC.ensure(k, &ready)? } else { none() };
        // The test NIC charges its poll with it, if it is loaded.
        let cost_model = if cost || host.has_test_nic() { module::COST_MODEL.ensure(k, &ready)? } else { none() };
        let disk = (host.system == System::Systemd).then(|| userland::ensure(host.python)).transpose()?;
        let dir = free_dir(&format!("{}-{}", host.name, k.name));
        Ok(Guest { host, kernel: &k.name, ready, test_nic, cost_model, disk, qemu, accel, dir })
    }

    pub(crate) fn share(&self) -> PathBuf {
        self.dir.join("share")
    }

    /// Keeps the results of scenarios that ended before the guest was lost, and removes those of an unfinished
    /// scenario.
    pub(crate) fn go_on(&self, scenarios: &[&Scenario]) -> Result<()> {
        let results = self.share().join("results");
        for s in scenarios.iter().filter(|s| !results.join(format!("{}.rc", s.name)).exists()) {
            remove(&results.join(format!("{}.out", s.name)))?;
        }
        for file in ["phase", "again", "booted", "heartbeat", "status"] {
            remove(&results.join(file))?;
        }
        Ok(())
    }

    /// Renames the files of a boot, so that the next boot does not overwrite them.
    pub(crate) fn put_aside(&self) {
        let mut aside = self.dir.clone().into_os_string();
        aside.push(".first");
        let _ = fs::remove_dir_all(&aside);
        let _ = fs::rename(&self.dir, &aside);
    }

    /// Fills the share directory.
    pub(crate) fn fill(&self, ringwise: &Path, mode: Mode, scenarios: &[&Scenario]) -> Result<()> {
        let _ = fs::remove_dir_all(&self.dir);
        fs::create_dir_all(&self.dir)?;
        fs::write(self.dir.join("pid"), std::process::id().to_string())?;
        let share = self.share();
        fs::create_dir_all(share.join("scenarios"))?;
        fs::create_dir_all(share.join("results"))?;
        for entry in fs::read_dir(paths::lab())?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "sh") {
                fs::copy(&path, share.join(entry.file_name()))?;
            }
        }
        let expected = share.join("expected");
        fs::create_dir_all(&expected)?;
        for entry in fs::read_dir(paths::lab().join("expected"))?.flatten() {
            fs::copy(entry.path(), expected.join(entry.file_name()))?;
        }
        let mut plan = String::new();
        for s in scenarios {
            fs::copy(&s.path, share.join("scenarios").join(format!("{}.sh", s.name)))?;
            plan += &format!("{} {}\n", s.name, s.timeout);
        }
        if scenarios.iter().any(|s| s.needs_irqbalance) {
            irqbalance::put(&share)?;
        }
        if scenarios.iter().any(|s| s.needs_peers) {
            peers::put(&share)?;
        }
        if self.host.system == System::Systemd {
            // The scripts and units of the packages, for a scenario that installs one.
            let to = share.join("packaging");
            fs::create_dir_all(&to)?;
            for dir in ["packaging/scripts", "packaging/systemd"] {
                for entry in fs::read_dir(paths::root().join(dir))? {
                    let entry = entry?;
                    fs::copy(entry.path(), to.join(entry.file_name()))?;
                }
            }
        }
        fs::write(share.join("plan"), plan)?;
        fs::write(share.join("nics"), self.host.nic_table())?;
        let mode_word = match mode {
            Mode::Scenarios => "scenarios",
            Mode::Demo => "demo",
            Mode::Shell => "shell",
        };
        let has_nic = matches!(self.test_nic, module::Built::Module(_));
        let env = format!(
            "{}KERNEL={}\nMODE={mode_word}\nHAVE_MQNIC={}\nCOLUMNS={}\nLC_ALL={}\nNO_COLOR={}\n",
            self.host.guest_variables(),
            self.kernel,
            u8::from(has_nic),
            columns(),
            charset(),
            if colour() { "" } else { "1" },
        );
        fs::write(share.join("host.env"), env)?;
        let to = share.join("ringwise");
        fs::copy(ringwise, &to)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
        crate::tools::install(&share, self.host.arch)?;
        for (built, m) in [(&self.test_nic, module::TEST_NIC), (&self.cost_model, module::COST_MODEL)] {
            if let module::Built::Module(ko) = built {
                fs::copy(ko, share.join(format!("{}.ko", m.name)))?;
            }
        }
        Ok(())
    }

    /// The time limit of each scenario of the plan.
    fn limits(&self) -> Vec<(String, Duration)> {
        let plan = fs::read_to_string(self.share().join("plan")).unwrap_or_default();
        let line = |l: &str| {
            let (name, seconds) = l.split_once(' ')?;
            Some((name.to_string(), Duration::from_secs(seconds.parse().ok()?)))
        };
        plan.lines().filter_map(line).collect()
    }

    /// Boots the guest. Returns when the guest ends, or at the deadline.
    pub(crate) fn run(&self, mode: Mode, limit: Duration) -> Result<Ended> {
        let initrd = image::ensure(&self.ready)?;
        // QEMU ends with this process, even if it is killed.
        let mut words = vec!["setpriv", "--pdeathsig", "KILL"];
        if self.host.needs_tap() {
            // QEMU creates its tap in its own namespace, so the machine's network does not change.
            words.splice(0..0, ["unshare", "-n"]);
        }
        let mut c = Command::new(words[0]);
        c.args(&words[1..]).args(self.qemu.words());
        let machine = match self.host.arch {
            Arch::Amd64 => "console=ttyS0 tsc=reliable no_timer_check lpj=8000000",
            Arch::Arm64 => "console=ttyAMA0",
        };
        let append = format!(
            "{machine} quiet panic=-1 mitigations=off apparmor=0 audit=0 net.ifnames=0 {} {} {}",
            self.host.cmdline,
            if self.disk.is_some() { "lab.root=vda systemd.show_status=0" } else { "" },
            if mode == Mode::Demo { "lab.quiet" } else { "" }
        );
        c.args(self.host.qemu())
            .args(["-accel", self.accel.option()])
            .args(["-nodefaults", "-no-user-config", "-display", "none"])
            .args(["-serial", "stdio", "-monitor", "none"])
            // This device has no driver (lab/scenarios/000-lab.sh switches its memory off and on).
            .args(["-device", "nvme,bus=pcie.0,serial=map,msix_qsize=9", "-fsdev"])
            .arg(format!("local,id=lab,path={},security_model=none,multidevs=remap", self.share().display()))
            .args(["-device", "virtio-9p-pci,bus=pcie.0,fsdev=lab,mount_tag=lab"])
            .arg("-kernel")
            .arg(&self.ready.image)
            .arg("-initrd")
            .arg(&initrd)
            .arg("-append")
            .arg(append.trim_end());
        if self.host.arch == Arch::Amd64 {
            c.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x4"]);
        }
        match &self.disk {
            // Data that a guest writes there survives its reboots only.
            Some(image) => {
                let file = format!("if=none,id=root,format=raw,snapshot=on,file={}", image.display());
                c.args(["-drive", &file, "-device", "virtio-blk-pci,bus=pcie.0,drive=root"]);
            }
            None => {
                c.arg("-no-reboot");
            }
        }
        let console = self.dir.join("console.log");
        match mode {
            Mode::Scenarios => {
                c.stdin(Stdio::null()).stdout(File::create(&console)?).stderr(File::create(self.dir.join("qemu.log"))?);
            }
            Mode::Demo => {
                c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(self.dir.join("qemu.log"))?);
            }
            Mode::Shell => {}
        }
        let start = Instant::now();
        let mut child = c.spawn().context("cannot start QEMU: run `cargo xtask setup`")?;
        let _child = progress::child(child.id());
        let echo = match (mode, child.stdout.take()) {
            (Mode::Demo, Some(out)) => Some((out, File::create(&console)?)),
            _ => None,
        };
        std::thread::scope(|threads| {
            if let Some((out, log)) = echo {
                threads.spawn(move || tee(out, log));
            }
            let up_by = start + Duration::from_secs(self.host.boot_limit);
            let never_up = || mode == Mode::Scenarios && Instant::now() > up_by && !is_up(&console);
            let stalled = || mode != Mode::Shell && (has_stalled(&console) || never_up());
            let limits = self.limits();
            let mut pace = Pace::new(start, Duration::from_secs(self.host.boot_limit));
            let mut heartbeat = Heartbeat::new(&self.share());
            let mut lost = None;
            let status = wait(&mut child, limit, &mut || {
                if mode == Mode::Shell {
                    return false;
                }
                let said = words_of(&console);
                if last_words(&said).is_some_and(|w| w.starts_with("reboot")) {
                    heartbeat.pause();
                }
                let at = || last_words(&said).unwrap_or("boot").to_string();
                lost = match heartbeat.dead() {
                    Some(Dead::Cpu(cpu)) => Some(Lost::DeafCpu { cpu, at: at() }),
                    Some(Dead::All) => Some(Lost::Silent { at: at() }),
                    None if stalled() => Some(Lost::Stalled),
                    None if mode == Mode::Scenarios => pace.is_over(&said, &limits).map(|at| Lost::Hung { at }),
                    None => None,
                };
                lost.is_some()
            })?;
            if status.is_some_and(|s| s.signal().is_some()) {
                lost = Some(Lost::Died);
            }
            let written = fs::read_to_string(self.share().join("results/status")).ok();
            let written = written.and_then(|text| text.trim().parse().ok());
            Ok(Ended { status, written, took: start.elapsed(), lost })
        })
    }
}

/// When the guest last reported its progress.
struct Pace {
    said: usize,
    since: Instant,
    /// For times outside of scenarios: loading drivers, a reboot, the end.
    boot: Duration,
}

impl Pace {
    /// The extra time for the end of a scenario on a busy machine.
    const GRACE: Duration = Duration::from_secs(90);

    fn new(since: Instant, boot: Duration) -> Pace {
        Pace { said: 0, since, boot }
    }

    /// The last report of the guest, if it is too old. A guest that reboots within a scenario reports that,
    /// and reports again when it is up.
    fn is_over(&mut self, console: &str, limits: &[(String, Duration)]) -> Option<String> {
        let said: Vec<&str> = console.lines().filter_map(|l| l.trim_end().strip_prefix("lab: ")).collect();
        if said.len() != self.said {
            (self.said, self.since) = (said.len(), Instant::now());
        }
        // Before the first report, the limit of the boot applies.
        let last = said.last()?;
        let name = last.split(',').next().unwrap_or(last);
        let quiet = self.since.elapsed();
        let over = match limits.iter().find(|(n, _)| n == name) {
            Some((_, limit)) => quiet > *limit + Self::GRACE,
            None => quiet > self.boot,
        };
        over.then(|| last.to_string())
    }
}

/// The guest's last report of its progress.
fn last_words(console: &str) -> Option<&str> {
    console.lines().filter_map(|l| l.trim_end().strip_prefix("lab: ")).next_back()
}

/// Copies the guest's console to the terminal while it runs, and saves it.
fn tee(mut from: impl Read, mut log: File) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let _ = log.write_all(&buffer[..n]);
        // The result of a stalled guest is discarded, so its complaints are only in the log.
        if !String::from_utf8_lossy(&buffer[..n]).contains("rcu: ") {
            let mut out = std::io::stdout();
            let _ = out.write_all(&buffer[..n]).and_then(|()| out.flush());
        }
    }
}

/// Removes a file that may not exist.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn words_of(console: &Path) -> String {
    let text = fs::read(console).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

fn has_stalled(console: &Path) -> bool {
    let text = words_of(console);
    // The second text: the kernel has not started its first process and waits for a device of QEMU.
    ["detected stalls on CPUs", "INFO: task swapper/"].iter().any(|s| text.contains(s))
}

/// Whether the first process of the guest has reached the shared directory.
fn is_up(console: &Path) -> bool {
    words_of(console).contains("lab: up after")
}

/// The directory for the files of this boot. Another lab that runs at the same time uses another one.
fn free_dir(name: &str) -> PathBuf {
    let dir = |n: u32| match n {
        1 => paths::target().join("lab").join(name),
        n => paths::target().join("lab").join(format!("{name}.{n}")),
    };
    let taken = |d: &Path| {
        fs::read_to_string(d.join("pid"))
            .is_ok_and(|pid| pid != std::process::id().to_string() && Path::new("/proc").join(pid).exists())
    };
    (1..100).map(dir).find(|d| !taken(d)).unwrap_or_else(|| dir(100))
}

fn colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::io::stdout().is_terminal()
}

/// The character set of this terminal, because the guest prints to it.
fn charset() -> &'static str {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|v| std::env::var(v).ok().filter(|s| !s.is_empty()));
    let utf8 = named.is_some_and(|s| {
        let s = s.to_ascii_lowercase();
        s.contains("utf-8") || s.contains("utf8")
    });
    if utf8 { "C.UTF-8" } else { "C" }
}

/// Waits up to `limit` or until `give_up`, then ends the process.
fn wait(child: &mut Child, limit: Duration, give_up: &mut dyn FnMut() -> bool) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    for turn in 0u64.. {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > end || (turn % 20 == 0 && give_up()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// The terminal's width, for a guest that cannot ask.
fn columns() -> u32 {
    let asked = Command::new("stty")
        .arg("size")
        .stdin(Stdio::inherit())
        .stderr(Stdio::null())
        .output()
        .ok()
        .and_then(|o| String::from_utf8(o.stdout).ok())
        .and_then(|s| s.split_whitespace().nth(1)?.parse().ok());
    let named = std::env::var("COLUMNS").ok().and_then(|s| s.parse().ok());
    asked.or(named).filter(|c| *c > 0).unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(said: usize, seconds_ago: u64) -> Pace {
        let since = Instant::now() - Duration::from_secs(seconds_ago);
        Pace { said, since, boot: Duration::from_secs(240) }
    }

    fn limits() -> [(String, Duration); 2] {
        [("10-a".to_string(), Duration::from_secs(5)), ("20-b".to_string(), Duration::from_secs(500))]
    }

    #[test]
    fn a_scenario_past_its_limit_is_seen_and_the_next_one_has_its_own() {
        let (one, two) = ("x\nlab: up after 1 s\nlab: 10-a\r\n", "lab: up after 1 s\nlab: 10-a\nlab: 20-b, phase 2\n");
        let over = |said, console| at(said, 120).is_over(console, &limits());
        assert_eq!(over(2, one).as_deref(), Some("10-a"), "120 s are more than 5 and the grace");
        assert_eq!(over(1, one), None, "it has just begun");
        assert_eq!(over(3, two), None, "it may take 500 s");
    }

    #[test]
    fn a_guest_whose_drivers_never_load_or_that_never_comes_back_is_seen() {
        let up = "lab: up after 1 s\n";
        assert_eq!(at(1, 120).is_over(up, &limits()), None, "the drivers are loading");
        assert_eq!(at(1, 250).is_over(up, &limits()).as_deref(), Some("up after 1 s"));
        let reboot = "lab: up after 1 s\nlab: 20-b\nlab: reboot (hard)\n";
        assert_eq!(at(3, 120).is_over(reboot, &limits()), None);
        assert_eq!(at(3, 250).is_over(reboot, &limits()).as_deref(), Some("reboot (hard)"));
        assert_eq!(at(0, 999).is_over("", &limits()), None, "the limit of the boot is seen elsewhere");
    }
}
