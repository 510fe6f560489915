//! The plays, and what each of them must leave on the hosts.

use super::Checks;
use super::ansible::{Controller, Played, Recap};
use super::member::{CommandOutput, Counter, Member};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

const WAVES: &str = "ringwise.host.waves";
/// How long the guests may take to come up.
const UP: Duration = Duration::from_secs(900);
/// The limit of one play. On a quiet machine it takes up to three minutes.
const PLAY: Duration = Duration::from_secs(1200);
/// Seconds that the trial of the host lasts whose link fails.
const TRIAL: u64 = 90;

/// The account of a user with sudo, of root, or of a user without it.
const USERS: [(&str, &str); 5] = [
    ("ordinary", "deploy"),
    ("competing", "deploy"),
    ("refusing", "root"),
    ("cut-off", "root"),
    ("unprivileged", "guest"),
];

/// The state of a host as the guest itself sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostState {
    /// Settings of the interfaces that the plays tune, printed by `lab/tools/state.c`.
    tuned: String,
    /// Settings of the interface that ssh uses.
    management: String,
    transactions: u32,
    trials: u32,
}

pub(super) struct Fleet<'a> {
    members: &'a [Member<'a>],
    controller: &'a Controller,
    checks: &'a mut Checks,
    counter: Counter,
    program: &'a Path,
    /// Each host before the first play.
    before: BTreeMap<&'static str, HostState>,
}

impl<'a> Fleet<'a> {
    pub(super) fn new(
        members: &'a [Member<'a>],
        controller: &'a Controller,
        checks: &'a mut Checks,
        program: &'a Path,
    ) -> Fleet<'a> {
        Fleet { members, controller, checks, counter: Counter::new(), program, before: BTreeMap::new() }
    }

    /// All plays, one after the other.
    ///
    /// # Errors
    /// A guest does not come up or does not answer, so that nothing can be checked.
    pub(super) fn run(&mut self) -> Result<()> {
        self.up()?;
        self.controller.inventory(&self.inventory())?;
        self.install()?;
        self.check_mode()?;
        self.twice()?;
        self.wave_that_fails()?;
        self.link_that_fails()?;
        self.without_root()?;
        self.without_python()
    }

    fn member(&self, name: &str) -> Result<&'a Member<'a>> {
        self.members.iter().find(|m| m.name == name).with_context(|| format!("no guest {name}"))
    }

    fn on(&self, name: &str, script: &str) -> Result<CommandOutput> {
        self.member(name)?.run(&self.counter, script)
    }

    fn see(&self, name: &str) -> Result<HostState> {
        let answer = self.on(
            name,
            "/h/state eth0 eth1 && echo -- && /h/state mgmt0 && echo -- && cd /var/lib && \
             find ringwise -name 'tx-*.jsonl' 2>/dev/null | wc -l && find ringwise -name 'trial-*.json' 2>/dev/null | wc -l",
        )?;
        let parts: Vec<&str> = answer.text.split("--\n").collect();
        let [tuned, management, counts] = parts[..] else { bail!("{name}: {answer:?}") };
        let mut counts = counts.lines().map(str::parse);
        let mut count = || counts.next().with_context(|| format!("{name}: {answer:?}"))?.context("a count");
        Ok(HostState {
            tuned: tuned.to_string(),
            management: management.to_string(),
            transactions: count()?,
            trials: count()?,
        })
    }

    /// The exit status and the document of a command of ringwise in the guest.
    fn document(&self, name: &str, command: &str) -> Result<(i32, Value)> {
        let answer = self.on(name, &format!("/h/ringwise {command} --json --quiet 2>/dev/null"))?;
        let document = serde_json::from_str(&answer.text).with_context(|| format!("{name}: {command}: {answer:?}"))?;
        Ok((answer.status, document))
    }

    fn play(&self, name: &str, playbook: &str, args: &[&str]) -> Result<Played> {
        println!("{name}: ansible-playbook {playbook} {}", args.join(" "));
        self.controller.play(name, playbook, args, PLAY)
    }

    /// Checks the exit status of a play, and shows its last lines if it is another one.
    fn ended(&mut self, what: &str, played: &Played, success: bool) {
        let tail: Vec<&str> = played.text.lines().rev().take(25).collect();
        let tail: String = tail.into_iter().rev().map(|l| format!("\n    | {l}")).collect();
        let holds = played.status.is_some_and(|s| (s == 0) == success);
        self.checks.check(what, holds, &format!("status {:?}{tail}", played.status));
    }

    fn recap(&mut self, what: &str, played: &Played, host: &str, expected: impl Fn(Recap) -> bool) {
        let recap = played.recap(host);
        self.checks.check(&format!("{host}: {what}"), recap.is_some_and(expected), &format!("{recap:?}"));
    }

    /// The play did not reach the host, or at least left everything there as it was.
    fn untouched(&mut self, host: &'static str, played: Option<&Played>, before: &HostState) -> Result<()> {
        if let Some(p) = played {
            let recap = p.recap(host);
            self.checks.check(
                &format!("{host}: the play does not begin there"),
                recap.is_none(),
                &format!("{recap:?}"),
            );
        }
        let now = self.see(host)?;
        self.checks.check(&format!("{host}: nothing is changed"), now == *before, &difference(before, &now));
        Ok(())
    }

    /// Everything is applied and confirmed on the host, and ringwise finds nothing to report.
    fn is_tuned(&mut self, host: &'static str) -> Result<HostState> {
        let now = self.see(host)?;
        let (status, verify) = self.document(host, "verify")?;
        let settings = verify["settings"].as_array().map_or(0, Vec::len);
        self.checks.check(
            &format!("{host}: verify finds every setting as applied"),
            status == 0 && settings > 0 && now.trials == 0,
            &format!("status {status}, {settings} settings, {} trials, {}", now.trials, verify["attention"]),
        );
        self.checks.check(
            &format!("{host}: its settings are other ones than before"),
            now.tuned != self.before[host].tuned,
            "they are the same",
        );
        Ok(now)
    }

    /// Nothing is in effect, and the settings are those of before the first play.
    fn is_untuned(&mut self, host: &'static str) -> Result<()> {
        let now = self.see(host)?;
        let before = &self.before[host];
        let same = now.tuned == before.tuned && now.management == before.management && now.trials == 0;
        let found = difference(before, &now);
        self.checks.check(&format!("{host}: every setting is as before"), same, &found);
        let (status, verify) = self.document(host, "verify")?;
        let holds = status == 0 && verify["settings"].as_array().is_some_and(Vec::is_empty);
        self.checks.check(&format!("{host}: nothing is in effect"), holds, &format!("status {status}, {verify}"));
        Ok(())
    }

    fn up(&mut self) -> Result<()> {
        let end = Instant::now() + UP;
        while let Some(m) = self.members.iter().find(|m| !m.is_ready()) {
            if m.has_ended() || Instant::now() > end {
                bail!("{}: the guest did not come up: {}", m.name, m.guest.dir.join("console.log").display());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        println!("before");
        // A port of this machine, which no guest may reach.
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        for (m, (name, user)) in self.members.iter().zip(USERS) {
            let id = self.controller.ssh(user, m.guest.host.ssh_port, "hostname; id -un; ls /usr/bin/python3");
            let expected = format!("fleet-{name}\n{user}\n/usr/bin/python3\n");
            let holds = id.as_ref().is_ok_and(|id| *id == expected);
            self.checks.check(&format!("{name}: {user} logs in over ssh"), holds, &format!("{id:?}"));
            let out = self.on(name, &format!("timeout 5 bash -c 'exec 3<>/dev/tcp/10.0.2.2/{port}'"))?;
            self.checks.check(&format!("{name}: no packet leaves the guest"), out.status != 0, &out.text);
            self.before.insert(m.name, self.see(name)?);
        }
        let active = self.on("competing", "systemctl is-active irqbalance.service")?;
        self.checks.check("competing: irqbalance runs", active.status == 0, &active.text);
        Ok(())
    }

    /// The inventory, in the order of the members, which is the order of the waves. JSON is YAML too.
    fn inventory(&self) -> String {
        let mut hosts = Vec::new();
        for (m, (name, user)) in self.members.iter().zip(USERS) {
            let mut host = json!({ "ansible_port": m.guest.host.ssh_port, "ansible_user": user });
            if user == "root" {
                host["ansible_become"] = json!(false);
            }
            if name == "refusing" {
                // igb has no rate between 3 and 10 µs.
                host["ringwise_set"] = json!({ "eth0.coalesce.rx-usecs": 5 });
            }
            hosts.push(format!("{}: {host}", json!(name)));
        }
        let vars = json!({
            "ansible_host": "127.0.0.1",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ringwise_interfaces": ["eth0", "eth1"],
            "ringwise_goal": "forward",
            "ringwise_install": "file",
            "ringwise_program_src": self.program.display().to_string(),
            // Emulated guests beside each other need time, and their latency varies by itself.
            "ringwise_trial": "15m",
            "ringwise_gate_verify": "5s",
            "ringwise_gate_window": "3s",
            "ringwise_gate_latency_floor_us": 100_000,
            "ringwise_gate_drop_floor_ppm": 50_000,
            // Each guest sends a thin stream to itself, so there is something to compare.
            "ringwise_gate_require_comparison": true,
        });
        format!(r#"{{"all": {{"hosts": {{{}}}, "vars": {vars}}}}}"#, hosts.join(", "))
    }

    /// The role copies the program to all hosts that it can change. Hosts of later waves are measured with it.
    fn install(&mut self) -> Result<()> {
        let playbook = self.controller.playbook(
            "install",
            "- hosts: all:!unprivileged\n  gather_facts: false\n  become: true\n  roles: [ringwise.host.ringwise]\n",
        )?;
        let played = self.play("install", &playbook, &["-e", "ringwise_apply=false"])?;
        self.ended("the role installs the program", &played, true);
        for host in ["ordinary", "competing", "refusing", "cut-off"] {
            self.recap("the program is new", &played, host, |r| r.changed == 1 && r.failed == 0);
            let same = self.on(host, "cmp /usr/local/sbin/ringwise /h/ringwise")?;
            self.checks.check(&format!("{host}: it is the whole program"), same.status == 0, &same.text);
        }
        Ok(())
    }

    /// The plan of each host as a diff.
    fn check_mode(&mut self) -> Result<()> {
        let pair = ["ordinary", "competing"];
        let args = ["-e", "ringwise_hosts=ordinary,competing", "--check", "--diff"];
        let played = self.play("check", WAVES, &args)?;
        self.ended("check mode succeeds", &played, true);
        for host in pair {
            self.recap("check mode reports the plan as a change", &played, host, |r| r.changed == 1 && r.failed == 0);
            let mut before = self.before[host].clone();
            if host == "competing" {
                // irqbalance moves interrupts there meanwhile.
                (before.tuned, before.management) = self.see(host).map(|s| (s.tuned, s.management))?;
            }
            self.untouched(host, None, &before)?;
        }
        let diff = played.text.lines().filter(|l| l.starts_with("+eth0/")).count();
        self.checks.check("the plan is shown as a diff", diff > 0, "no line begins with +eth0/");
        Ok(())
    }

    /// Two hosts in two waves: the first run changes them, the second one nothing.
    fn twice(&mut self) -> Result<()> {
        let args = ["-e", "ringwise_hosts=ordinary,competing", "-e", r#"{"ringwise_waves": [1, "100%"]}"#, "-v"];
        let played = self.play("first", WAVES, &args)?;
        self.ended("the first run succeeds", &played, true);
        let mut after = BTreeMap::new();
        for host in ["ordinary", "competing"] {
            // The transaction and its confirmation.
            self.recap("two changes", &played, host, |r| r.changed == 2 && r.failed == 0);
            let now = self.is_tuned(host)?;
            // irqbalance may move the interrupts of the interface that is not tuned.
            if host == "ordinary" {
                let (is, was) = (&now.management, &self.before[host].management);
                self.checks.check("ordinary: the interface of ssh is not tuned", is == was, &lines(was, is));
            }
            after.insert(host, now);
        }
        let warned = |p: &Played| p.warnings().contains("irqbalance runs on this host");
        self.checks.check("competing: the play reports irqbalance", warned(&played), &played.warnings());
        self.bans("competing")?;
        let again = self.play("second", WAVES, &args)?;
        self.ended("the second run succeeds", &again, true);
        for (host, was) in &after {
            self.recap("no change", &again, host, |r| r.changed == 0 && r.failed == 0);
            let now = self.is_tuned(host)?;
            let same = now.tuned == was.tuned && now.transactions == was.transactions;
            self.checks.check(&format!("{host}: the second run changes nothing"), same, &difference(was, &now));
        }
        Ok(())
    }

    /// irqbalance ignores every interrupt of the tuned interfaces.
    fn bans(&mut self, host: &str) -> Result<()> {
        let (_, verify) = self.document(host, "verify")?;
        let settings = verify["settings"].as_array().cloned().unwrap_or_default();
        let banned: Vec<&str> = settings
            .iter()
            .filter(|s| s["want"]["knob"] == "irqbalance_ban" && s["how"] == "same")
            .filter_map(|s| s["want"]["dev"].as_str())
            .collect();
        let holds = ["eth0", "eth1"].iter().all(|dev| banned.contains(dev));
        self.checks.check(&format!("{host}: irqbalance ignores the interrupts"), holds, &format!("{settings:?}"));
        Ok(())
    }

    /// One host after the other; the third refuses a setting.
    fn wave_that_fails(&mut self) -> Result<()> {
        let (cut, unprivileged) = (self.see("cut-off")?, self.see("unprivileged")?);
        let tuned = (self.see("ordinary")?.tuned, self.see("competing")?.tuned);
        let played = self.play("refused", WAVES, &["-e", "ringwise_hosts=all", "-e", r#"{"ringwise_waves": [1]}"#])?;
        self.ended("a host that refuses stops the play", &played, false);
        for host in ["ordinary", "competing"] {
            self.recap("passed before without a change", &played, host, |r| r.changed == 0 && r.failed == 0);
        }
        let now = (self.see("ordinary")?.tuned, self.see("competing")?.tuned);
        self.checks.check("hosts of earlier waves stay tuned", now == tuned, &format!("{tuned:?}, then {now:?}"));
        self.recap("failed", &played, "refusing", |r| r.failed == 1 && r.unreachable == 0);
        self.refusal(&played);
        self.is_untuned("refusing")?;
        self.untouched("cut-off", Some(&played), &cut)?;
        self.untouched("unprivileged", Some(&played), &unprivileged)
    }

    /// The output of a play has the account of the host that refuses.
    fn refusal(&mut self, played: &Played) {
        let (word, account) = played.fatal("refusing").unwrap_or_default();
        let outcome = &account["outcome"];
        let holds = word == "FAILED" && account["rc"] == 4 && outcome["schema"] == "ringwise.outcome";
        self.checks.check("the output has its exit status and its document", holds, &account.to_string());
        let failed = &outcome["failed"];
        let holds = outcome["verdict"] == "put_back" && failed.to_string().contains("EINVAL");
        self.checks.check("the document has the errno, and that everything was restored", holds, &outcome.to_string());
        let message = account["msg"].as_str().unwrap_or_default();
        let holds = message.contains("eth0") && message.contains("Invalid argument");
        self.checks.check("the message names the setting and the errno", holds, message);
    }

    /// The link of ssh fails during the trial. The host restores everything without its controller.
    fn link_that_fails(&mut self) -> Result<()> {
        let before = self.see("unprivileged")?;
        let transactions = self.see("cut-off")?.transactions;
        let trial = format!("ringwise_trial={TRIAL}s");
        // The next host cannot be measured, because its user cannot become root.
        let args = ["-e", "ringwise_hosts=cut-off,unprivileged", "-e", &trial, "-e", "ringwise_gate_others=0"];
        let played = self.play("cut", WAVES, &[&args[..], &["-e", r#"{"ringwise_waves": [1]}"#]].concat())?;
        self.ended("a host whose link fails stops the play", &played, false);
        self.recap("unreachable", &played, "cut-off", |r| r.unreachable == 1);
        let (word, account) = played.fatal("cut-off").unwrap_or_default();
        let message = account["msg"].as_str().unwrap_or_default();
        self.checks.check(
            "the output has the reason",
            word == "UNREACHABLE" && !message.is_empty(),
            &account.to_string(),
        );
        let (_, next) = played.fatal("unprivileged").unwrap_or_default();
        let holds = next["msg"].as_str().is_some_and(|m| m.contains("not begun") && m.contains("cut-off"));
        self.checks.check("unprivileged: its wave is not begun, because of cut-off", holds, &next.to_string());
        self.untouched("unprivileged", None, &before)?;
        let ssh = |fleet: &Self, command: &str| {
            fleet.controller.ssh("root", fleet.member("cut-off")?.guest.host.ssh_port, command)
        };
        let lost = ssh(self, "true");
        self.checks.check("cut-off: it does not answer over ssh", lost.is_err(), "it answers");
        let now = self.see("cut-off")?;
        let one_more = now.transactions == transactions + 1;
        self.checks.check("cut-off: there was a transaction", one_more, &difference(&self.before["cut-off"], &now));
        let end = Instant::now() + Duration::from_secs(4 * TRIAL);
        while self.see("cut-off")?.trials > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_secs(2));
        }
        let (is, was) = (self.see("cut-off")?.tuned, &self.before["cut-off"].tuned);
        self.checks.check("cut-off: it restores everything without its controller", is == *was, &lines(was, &is));
        self.on("cut-off", "systemctl stop cut.path cut.service; ip link set mgmt0 up; /h/state links mgmt0")?;
        let end = Instant::now() + Duration::from_secs(120);
        let status = loop {
            match ssh(self, "ringwise status --json --quiet") {
                Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_secs(1)),
                other => break other,
            }
        };
        let holds = status.as_ref().is_ok_and(|text| text.contains("ringwise.status"));
        self.checks.check("cut-off: the controller gets it back, with status 0", holds, &format!("{status:?}"));
        self.is_untuned("cut-off")
    }

    /// An account that cannot become root.
    fn without_root(&mut self) -> Result<()> {
        let before = self.see("unprivileged")?;
        let only = ["-e", "ringwise_hosts=unprivileged"];
        let played = self.play("no-sudo", WAVES, &only)?;
        self.ended("a user without sudo stops the play", &played, false);
        let (_, account) = played.fatal("unprivileged").unwrap_or_default();
        let holds = account["msg"].as_str().is_some_and(|m| m.contains("sudo"));
        self.checks.check("the message names sudo", holds, &account.to_string());
        self.untouched("unprivileged", None, &before)?;
        let mut args = only.to_vec();
        args.extend([
            "-e",
            "ansible_become=false",
            "-e",
            "ringwise_install=none",
            "-e",
            "ringwise_executable=/h/ringwise",
        ]);
        let played = self.play("no-root", WAVES, &args)?;
        self.ended("a user without root stops the play", &played, false);
        let (_, account) = played.fatal("unprivileged").unwrap_or_default();
        let holds = account["rc"].as_i64().is_some_and(|rc| rc != 0) && account["error"]["schema"] == "ringwise.error";
        self.checks.check("the output has the exit status and the error", holds, &account.to_string());
        let holds = account["msg"].as_str().is_some_and(|m| m.contains("root"));
        self.checks.check("the message reports that root is needed", holds, &account["msg"].to_string());
        self.untouched("unprivileged", None, &before)
    }

    /// Python is removed from two guests. The playbooks without Python do the same on them.
    fn without_python(&mut self) -> Result<()> {
        for host in ["refusing", "unprivileged"] {
            let gone = self.on(host, "rm -rf /usr/bin/python3* /usr/lib/python3* && ! command -v python3")?;
            self.checks.check(&format!("{host}: Python is removed"), gone.status == 0, &gone.text);
        }
        let on = ["-e", "ringwise_hosts=refusing"];
        let nothing_set = ["-e", "ringwise_hosts=refusing", "-e", r#"{"ringwise_set": {}}"#];
        for (name, playbook) in [("script", "ringwise.host.no_python"), ("raw", "ringwise.host.no_python_raw")] {
            let played = self.play(&format!("{name}-refused"), playbook, &on)?;
            self.ended(&format!("{name}: a host that refuses stops the play"), &played, false);
            let (_, account) = played.fatal("refusing").unwrap_or_default();
            let document: Value =
                account["stdout"].as_str().and_then(|s| serde_json::from_str(s).ok()).unwrap_or_default();
            let holds = account["rc"] == 4 && document["verdict"] == "put_back";
            self.checks.check(
                &format!("{name}: the output has its exit status and its document"),
                holds,
                &account.to_string(),
            );
            self.is_untuned("refusing")?;
            let played = self.play(&format!("{name}-first"), playbook, &nothing_set)?;
            self.ended(&format!("{name}: the first run succeeds"), &played, true);
            self.recap("two changes", &played, "refusing", |r| r.changed == 2 && r.failed == 0);
            let was = self.is_tuned("refusing")?;
            let (is, before) = (&was.management, &self.before["refusing"].management);
            self.checks.check(&format!("{name}: the interface of ssh is not tuned"), is == before, &lines(before, is));
            let played = self.play(&format!("{name}-second"), playbook, &nothing_set)?;
            self.ended(&format!("{name}: the second run succeeds"), &played, true);
            self.recap("no change", &played, "refusing", |r| r.changed == 0 && r.failed == 0);
            let now = self.see("refusing")?;
            self.checks.check(&format!("{name}: the second run changes nothing"), now == was, &difference(&was, &now));
            let undone = self.on("refusing", "/h/ringwise rollback --yes 0")?;
            self.checks.check("refusing: rollback restores everything", undone.status == 0, &undone.text);
            self.is_untuned("refusing")?;
        }
        let before = self.see("unprivileged")?;
        let args = ["-e", "ringwise_hosts=unprivileged", "-e", "ringwise_executable=/h/ringwise"];
        let played = self.play("raw-no-root", "ringwise.host.no_python_raw", &args)?;
        self.ended("raw: a user without root stops the play", &played, false);
        let (_, account) = played.fatal("unprivileged").unwrap_or_default();
        let document: Value = account["stdout"].as_str().and_then(|s| serde_json::from_str(s).ok()).unwrap_or_default();
        let holds = account["rc"].as_i64().is_some_and(|rc| rc != 0) && document["schema"] == "ringwise.error";
        self.checks.check("raw: the output has the exit status and the error", holds, &account.to_string());
        self.untouched("unprivileged", None, &before)
    }
}

/// The lines that are only in one of two texts.
fn lines(was: &str, is: &str) -> String {
    let only = |a: &str, b: &str, sign: &str| {
        a.lines().filter(|l| !b.lines().any(|o| o == *l)).map(|l| format!("{sign}{l}")).collect::<Vec<_>>()
    };
    [only(was, is, "-"), only(is, was, "+")].concat().join(", ")
}

fn difference(was: &HostState, is: &HostState) -> String {
    format!(
        "{} {} transactions {} to {}, trials {} to {}",
        lines(&was.tuned, &is.tuned),
        lines(&was.management, &is.management),
        was.transactions,
        is.transactions,
        was.trials,
        is.trials
    )
}
