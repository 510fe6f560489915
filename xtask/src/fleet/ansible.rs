//! Ansible on the controller: a virtual environment in the cache, and one run of a playbook.

use crate::{apt, cmd, paths, progress};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The newest series that Python 3.11, that of Debian 12, can run as a controller.
const VERSION: &str = "2.19.14";

/// The directory with `ansible-playbook`, which is installed there if it is missing.
pub(crate) fn ensure() -> Result<PathBuf> {
    let dir = paths::cache().join(format!("ansible-{VERSION}"));
    let (ready, bin) = (dir.join("ready"), dir.join("bin"));
    if ready.is_file() {
        return Ok(bin);
    }
    println!("setup: installing ansible-core {VERSION} with pip (into the cache: not on this machine)");
    let environment = || {
        let _ = fs::remove_dir_all(&dir);
        cmd::output(Command::new(cmd::need("python3")?).args(["-m", "venv"]).arg(&dir)).map(drop)
    };
    if environment().is_err() {
        // Debian's Python has no venv of its own.
        println!("setup: installing python3-venv on this machine");
        let apt = apt::Apt::new("tools", &[&apt::codename()?])?;
        apt.update()?;
        apt.install(None, &["python3", "python3-venv"])?;
        environment()?;
    }
    cmd::retried("pip", || {
        let mut c = Command::new(bin.join("python"));
        c.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        cmd::output(c.arg(format!("ansible-core=={VERSION}"))).map(drop)
    })?;
    fs::write(ready, "")?;
    Ok(bin)
}

/// What the recap at the end of a play counts for one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Recap {
    pub ok: u32,
    pub changed: u32,
    pub unreachable: u32,
    pub failed: u32,
}

/// A run of a playbook that ended.
#[derive(Debug)]
pub(super) struct Played {
    /// `None`: a signal or the time limit ended it.
    pub status: Option<i32>,
    pub text: String,
}

impl Played {
    /// The line of a host in the recap; `None`: the play did not reach it.
    pub(super) fn recap(&self, host: &str) -> Option<Recap> {
        recaps(&self.text).get(host).copied()
    }

    /// The warnings in one line each. Ansible breaks them at the width of the terminal.
    pub(super) fn warnings(&self) -> String {
        let mut out = String::new();
        let mut lines = self.text.lines();
        while let Some(first) = lines.by_ref().find(|l| l.starts_with("[WARNING]: ")) {
            let more: Vec<&str> = lines.by_ref().take_while(|l| !l.is_empty()).collect();
            out += &format!("{}\n", [&[first], &more[..]].concat().join(" "));
        }
        out
    }

    /// The result of the task that ended the play on a host, with the word in front of it: `FAILED` or `UNREACHABLE`.
    pub(super) fn fatal(&self, host: &str) -> Option<(String, Value)> {
        self.text.lines().find_map(|line| {
            let (at, rest) = line.strip_prefix("fatal: [")?.split_once("]: ")?;
            let (word, json) = rest.split_once("! => ")?;
            let whose = at.split(" -> ").next()?;
            (whose == host).then(|| Some((word.to_string(), serde_json::from_str(json).ok()?)))?
        })
    }
}

fn recaps(text: &str) -> BTreeMap<String, Recap> {
    let after = text.lines().skip_while(|l| !l.starts_with("PLAY RECAP"));
    let line = |l: &str| {
        let (host, counts) = l.split_once(" : ")?;
        let count =
            |key: &str| counts.split_whitespace().find_map(|w| w.strip_prefix(key)?.strip_prefix('=')?.parse().ok());
        let recap = Recap {
            ok: count("ok")?,
            changed: count("changed")?,
            unreachable: count("unreachable")?,
            failed: count("failed")?,
        };
        Some((host.trim().to_string(), recap))
    };
    after.filter_map(line).collect()
}

/// A controller: the inventory, its key, and its ssh settings are in a directory that exists as long as the run.
pub(super) struct Controller {
    bin: PathBuf,
    dir: PathBuf,
    /// The outputs of all plays.
    logs: PathBuf,
    _temporary: progress::Temporary,
}

impl Controller {
    /// # Errors
    /// The directory or the key cannot be made.
    pub(super) fn new(bin: PathBuf, logs: &Path) -> Result<Controller> {
        // The path of a socket of ssh has at most 100 bytes, so this is not in the target directory.
        let dir = std::env::temp_dir().join(format!("ringwise-fleet-{}", std::process::id()));
        let temporary = progress::temporary(&dir);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir)?;
        fs::create_dir_all(logs)?;
        let mut c = Command::new(cmd::need("ssh-keygen")?);
        c.args(["-q", "-t", "ed25519", "-N", "", "-C", "fleet", "-f"]).arg(dir.join("key"));
        cmd::output(&mut c)?;
        // All guests have the same host key, which is in their image. The keys are not checked, because no packet of these
        // connections leaves the machine.
        let config = format!(
            "Host *\n  IdentityFile {}\n  IdentitiesOnly yes\n  PasswordAuthentication no\n  StrictHostKeyChecking no\n  \
             UserKnownHostsFile /dev/null\n  LogLevel ERROR\n  KexAlgorithms curve25519-sha256\n  \
             ServerAliveInterval 10\n  ServerAliveCountMax 3\n",
            dir.join("key").display()
        );
        fs::write(dir.join("ssh_config"), config)?;
        fs::write(dir.join("ansible.cfg"), "[defaults]\n")?;
        Ok(Controller { bin, dir, logs: logs.to_path_buf(), _temporary: temporary })
    }

    pub(super) fn public_key(&self) -> PathBuf {
        self.dir.join("key.pub")
    }

    /// Writes the inventory.
    pub(super) fn inventory(&self, text: &str) -> Result<()> {
        Ok(fs::write(self.dir.join("inventory.yml"), text)?)
    }

    /// Writes a playbook of this run. The result is its path.
    pub(super) fn playbook(&self, name: &str, text: &str) -> Result<String> {
        let path = self.dir.join(format!("{name}.yml"));
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    /// Runs a playbook. Its output is kept as `NAME.log` too.
    ///
    /// # Errors
    /// Ansible cannot be started.
    pub(super) fn play(&self, name: &str, playbook: &str, args: &[&str], limit: Duration) -> Result<Played> {
        let log = self.logs.join(format!("{name}.log"));
        let out = File::create(&log).with_context(|| log.display().to_string())?;
        let sub = |name: &str| self.dir.join(name);
        let ssh = format!("-F {} -o ControlMaster=auto -o ControlPersist=60s", sub("ssh_config").display());
        let mut c = Command::new(self.bin.join("ansible-playbook"));
        c.arg(playbook).args(args).stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        // Nothing of the user's own Ansible is read or written.
        c.env("ANSIBLE_CONFIG", sub("ansible.cfg"))
            .env("ANSIBLE_HOME", sub("home"))
            .env("ANSIBLE_COLLECTIONS_PATH", paths::root().join("contrib/ansible"))
            .env("ANSIBLE_INVENTORY", sub("inventory.yml"))
            .env("ANSIBLE_SSH_ARGS", ssh)
            .env("ANSIBLE_SSH_CONTROL_PATH_DIR", sub("cp"))
            // Logging in to an emulated guest takes seconds.
            .env("ANSIBLE_TIMEOUT", "60")
            .env("ANSIBLE_PIPELINING", "true")
            .env("ANSIBLE_NOCOLOR", "1")
            .env("ANSIBLE_LOCALHOST_WARNING", "false")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("LC_ALL", "C.UTF-8");
        let path = std::env::var("PATH").unwrap_or_default();
        c.env("PATH", format!("{}:{path}", self.bin.display()));
        let mut child = c.spawn().context("cannot start ansible-playbook")?;
        let _child = progress::child(child.id());
        let end = Instant::now() + limit;
        let status = loop {
            if let Some(s) = child.try_wait()? {
                break s.code();
            }
            if Instant::now() > end {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        Ok(Played { status, text })
    }

    /// One command over ssh as this user, without Ansible.
    ///
    /// # Errors
    /// The command fails, or the host does not answer.
    pub(super) fn ssh(&self, user: &str, port: u16, command: &str) -> Result<String> {
        let mut c = Command::new(cmd::need("ssh")?);
        c.arg("-F").arg(self.dir.join("ssh_config")).args(["-o", "ConnectTimeout=20", "-p", &port.to_string()]);
        cmd::output(c.arg(format!("{user}@127.0.0.1")).arg(command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
TASK [ringwise.host.ringwise : Apply on trial] *********
fatal: [a]: FAILED! => {\"changed\": false, \"rc\": 4}
fatal: [b -> c]: UNREACHABLE! => {\"unreachable\": true}

PLAY RECAP *********
a                          : ok=3    changed=0    unreachable=0    failed=1    skipped=2    rescued=0    ignored=0
b                          : ok=12   changed=2    unreachable=1    failed=0    skipped=2    rescued=0    ignored=0
";

    #[test]
    fn the_recap_and_the_account_of_a_host_are_found() {
        let played = Played { status: Some(2), text: OUTPUT.into() };
        assert_eq!(played.recap("a"), Some(Recap { ok: 3, changed: 0, unreachable: 0, failed: 1 }));
        assert_eq!(played.recap("b"), Some(Recap { ok: 12, changed: 2, unreachable: 1, failed: 0 }));
        assert_eq!(played.recap("c"), None, "the play did not reach it");
        let (word, account) = played.fatal("a").unwrap();
        assert_eq!((word.as_str(), account["rc"].as_i64()), ("FAILED", Some(4)));
        assert_eq!(played.fatal("b").unwrap().0, "UNREACHABLE", "a delegated task is a failure of its host");
        assert_eq!(played.fatal("c"), None);
    }
}
