//! What ringwise did on a host that is in force there: live from its record, and as a capture holds it.

use std::collections::BTreeSet;

use clap::FromArgMatches;
use ringwise_apply::{Ending, Entry, Verify};
use ringwise_knob::{Hand, Learned, Made, Match};
use ringwise_model::{Fact, Gather, Intent, Snapshot};
use ringwise_plan::{Hands, Plan, Refusal};
use ringwise_sys::Host;
use serde::{Deserialize, Serialize};

use super::hands::{self, Take};
use super::plan::flags;
use super::transaction::{learned, store};
use crate::args::{Cli, Cmd, Common, GoalArg, IntentArgs};

/// Where in a recording it lies; no path of a host begins so.
const FILE: &str = "/ringwise/standing";

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Standing {
    /// Command lines of what was applied and kept, oldest first.
    pub applied: Vec<Applied>,
    pub learned: Vec<Learned>,
    /// Settings that differ now, in words with their device. `None`: the record could not be read.
    pub drift: Option<Vec<(Option<String>, String)>>,
    /// What is somebody else's.
    pub hands: Vec<Hand>,
    /// Of groups.
    pub made: Vec<Made>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    pub command: String,
    /// `goal forward …`
    pub title: String,
}

impl Standing {
    /// Of this host; `v`: how what is in force stands.
    pub fn live(s: &Snapshot, v: Option<&Verify>, common: &Common) -> Self {
        let history = ringwise_apply::history(&store(common), &s.host).unwrap_or_default();
        let kept = history.into_iter().filter(|e| {
            e.this_boot && e.ending == Ending::Kept && e.undone_by.is_none() && e.title.starts_with("goal ")
        });
        Self {
            applied: kept.map(|e| Applied { command: e.command, title: e.title }).collect(),
            learned: learned(common),
            drift: v.map(drift),
            hands: v.map(Verify::hands).unwrap_or_default(),
            made: v.map(|v| v.made.clone()).unwrap_or_default(),
        }
    }

    /// As text for a capture. `None`: nothing was ever done here.
    pub fn text(s: &Snapshot, common: &Common) -> Option<String> {
        let v = ringwise_apply::verify_in(s, &store(common)).ok()?;
        let all = Self::live(s, Some(&v), &Common { quiet: true, ..common.clone() });
        let nothing = all.applied.is_empty() && all.learned.is_empty() && v.settings.is_empty();
        (!nothing).then(|| serde_json::to_string(&all).ok()).flatten()
    }

    /// What a capture says of it.
    pub fn recorded(host: &dyn Host) -> Self {
        let text = host.read_text(FILE).ok();
        text.and_then(|t| serde_json::from_slice(t.as_bytes()).ok()).unwrap_or_default()
    }

    pub fn file() -> String {
        FILE.into()
    }

    /// What each apply that is in force asked for, newest first, with the interfaces it has the last word about. Where one
    /// was of the whole host, none are named.
    pub fn parts(&self, s: &Snapshot, recorded: bool) -> Vec<Part> {
        let mut left: BTreeSet<String> = s.tunable().map(|n| n.name().to_string()).into_set();
        let mut out = Vec::new();
        for a in self.applied.iter().rev() {
            let (devs, mut args) = words(a);
            if recorded {
                // What lies here says nothing about a recorded host.
                args.config = Some("none".into());
            }
            let whole = devs.is_empty();
            let mine: Vec<String> = devs.into_iter().filter(|d| left.remove(d)).collect();
            if whole || !mine.is_empty() {
                out.push(Part { args, devs: mine });
            }
            if whole {
                break;
            }
        }
        out
    }
}

/// One apply, as it was asked for.
pub struct Part {
    pub args: IntentArgs,
    /// Empty: all that no later one names.
    pub devs: Vec<String>,
}

/// The interfaces and the intent of the command line of an apply.
fn parsed(command: &str) -> Option<(Vec<String>, IntentArgs)> {
    // A redacted capture has flags without their values: texts and files, which no plan is made of.
    let given = |w: &&str| !(w.starts_with("--") && w.ends_with('='));
    let words = command.split_ascii_whitespace().map(|w| w.trim_matches('\'')).filter(given);
    let matches = crate::args::command().try_get_matches_from(words).ok()?;
    match Cli::from_arg_matches(&matches).ok()?.command? {
        Cmd::Apply(a) => Some((a.devs, a.intent)),
        _ => None,
    }
}

/// The command that applies the same again: what was wanted, without --yes and what else only that moment needed. A plan
/// file was for its moment too.
pub fn again(e: &Entry) -> String {
    let (mut devs, mut args) = match e.title.starts_with("plan ") {
        true => Default::default(),
        false => parsed(&e.command).unwrap_or_default(),
    };
    args.take_over = false;
    if args.goal == Some(GoalArg::Auto) {
        args.goal = settled(&args, &e.title);
    }
    // A record of a command line has no quotes: words of a reason are no interfaces. A bond's name stood for its members.
    let named = !devs.is_empty() && !e.command.contains("--reason");
    devs.retain(|d| e.devices.contains(d));
    if named && devs.is_empty() {
        devs.clone_from(&e.devices);
    }
    format!("ringwise apply {}", flags(&devs, &args)).trim_end().into()
}

/// What no flag says, and what auto was then, stands in the title.
fn settled(args: &IntentArgs, title: &str) -> Option<GoalArg> {
    let goal = || title.strip_prefix("goal ")?.split(' ').next()?.parse().ok();
    args.named_goal().or_else(goal).map(GoalArg::Of)
}

fn words(a: &Applied) -> (Vec<String>, IntentArgs) {
    let (devs, mut args) = parsed(&a.command).unwrap_or_default();
    args.goal = settled(&args, &a.title);
    args.override_config = true;
    // What was done then is not proposed again without the word.
    args.allow_disruption = false;
    args.take_over = false;
    (devs, args)
}

/// What differs from what was applied, in words.
fn drift(v: &Verify) -> Vec<(Option<String>, String)> {
    let words = |s: &ringwise_apply::Standing| {
        let a = s.want.address()?;
        let now = match &s.now {
            Fact::Known(n) => n.value_text(),
            Fact::Absent => "gone".into(),
            Fact::Unknown(u) => format!("unknown ({})", u.why),
        };
        let text = format!("{a}: applied {}, now {now}", s.want.value_text());
        Some((a.dev().map(str::to_string), text))
    };
    v.drifted().filter(|s| s.how != Match::Pending && s.now.unread().is_none()).filter_map(words).collect()
}

/// The whole host with the goals of interfaces that were applied by themselves.
pub fn join(whole: &mut Intent, parts: &[(Vec<String>, Intent)]) {
    for (devs, part) in parts {
        let of = |d: &Option<String>| d.as_ref().is_some_and(|d| devs.contains(d));
        whole.wishes.retain(|w| !of(&w.dev));
        whole.wishes.extend(part.wishes.iter().filter(|w| of(&w.dev)).cloned());
        whole.groups.retain(|g| !devs.contains(&g.dev));
        whole.groups.extend(part.groups.iter().filter(|g| devs.contains(&g.dev)).cloned());
        for d in devs {
            whole.dev_goals.insert(d.clone(), part.goal_of(d));
        }
    }
}

/// The plan of the whole host; interfaces that were applied by themselves are planned as they were then.
pub fn plan(
    s: &Snapshot,
    whole: &Intent,
    parts: &[(Vec<String>, Intent)],
    known: &[Learned],
    around: &Standing,
) -> Result<Plan, Refusal> {
    let hands = hands::hands(&around.hands, around.made.clone(), Take::Ask);
    let around = |i: &Intent, h: &Hands| ringwise_plan::plan_around(s, i, known, h);
    let mut plan = around(whole, &hands)?;
    for (devs, intent) in parts {
        // Without a link, or gone: there is nothing to say.
        let Ok(alone) = around(intent, &hands) else { continue };
        let of = |a: &Option<ringwise_knob::Address>| {
            a.as_ref().and_then(|a| a.dev()).is_some_and(|d| devs.iter().any(|x| x == d))
        };
        plan.steps.retain(|x| !of(&x.setting.address()));
        plan.steps.extend(alone.steps.into_iter().filter(|x| of(&x.setting.address())));
        plan.left_out.retain(|x| !of(&x.setting.address()));
        plan.left_out.extend(alone.left_out.into_iter().filter(|x| of(&x.setting.address())));
        plan.refused.retain(|x| !of(&x.address));
        plan.refused.extend(alone.refused.into_iter().filter(|x| of(&x.address)));
        plan.groups.retain(|g| !devs.contains(&g.dev));
        plan.groups.extend(alone.groups);
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(names: &[&str]) -> Snapshot {
        let nic = |n: &&str| ringwise_testkit::machines::NicSpec::new(n, "igb", Some(0), 4, 4);
        ringwise_testkit::machines::HostSpec {
            name: "edge3".into(),
            cpu: ringwise_testkit::topo::CpuSpec::flat(4, 2),
            nics: names.iter().map(nic).collect(),
            bonds: Vec::new(),
            rps_sock_flow_entries: 0,
            control: Vec::new(),
            held: Vec::new(),
        }
        .snapshot()
    }

    fn standing(commands: &[&str]) -> Standing {
        let one = |c: &&str| Applied { command: c.to_string(), title: "goal balanced".into() };
        Standing { applied: commands.iter().map(one).collect(), ..Standing::default() }
    }

    #[test]
    fn the_last_word_about_each_interface() {
        let s = host(&["eth0", "eth1", "eth2"]);
        let parts = standing(&[
            "ringwise apply --yes eth0 --goal rpc",
            "ringwise apply --yes --goal latency",
            "ringwise apply --yes eth1 eth2 --queues 2 --allow-disruption",
            "ringwise apply --yes eth2 --goal stream",
        ])
        .parts(&s, false);
        let told: Vec<(Vec<String>, Option<String>, Option<u32>)> =
            parts.into_iter().map(|p| (p.devs, p.args.named_goal().map(|g| g.to_string()), p.args.queues)).collect();
        assert_eq!(
            told,
            [
                (vec!["eth2".to_string()], Some("stream".to_string()), None),
                (vec!["eth1".to_string()], Some("balanced".to_string()), Some(2)),
                (vec![], Some("latency".to_string()), None),
            ]
        );
    }

    #[test]
    fn what_was_applied_is_proposed_again_without_its_moment() {
        let entry = |command: &str, title: &str| -> Entry {
            serde_json::from_value(serde_json::json!({
                "id": 1, "kind": "apply", "title": title, "who": "root", "command": command, "unix_time": 1,
                "this_boot": true, "devices": ["eth0", "eth1"], "steps": 3, "ending": "kept", "undo": [], "path": "",
            }))
            .unwrap()
        };
        for (command, want) in [
            ("/usr/sbin/ringwise apply -y eth0 --goal rpc", "ringwise apply eth0 --goal rpc"),
            ("ringwise -q apply --goal rpc --yes --take-over --confirm 60s", "ringwise apply --goal rpc"),
            ("ringwise apply -y --queues 2 --allow-disruption", "ringwise apply --queues 2 --allow-disruption"),
            ("ringwise apply -y --reason CHG-12 of Anna --goal rpc", "ringwise apply --goal rpc"),
            ("ringwise apply --no-such-flag", "ringwise apply"),
        ] {
            assert_eq!(again(&entry(command, "goal rpc")), want, "{command}");
        }
        assert_eq!(again(&entry("ringwise apply -y host.plan", "plan host.plan")), "ringwise apply");
    }

    #[test]
    fn a_recording_is_not_judged_by_a_file_of_this_host() {
        let s = host(&["eth0"]);
        let parts = standing(&["ringwise apply --yes --config /srv/a.toml"]).parts(&s, true);
        assert_eq!(parts[0].args.config.as_deref(), Some(std::path::Path::new("none")));
    }

    /// One interface with fewer queues than the others were given: nothing of that is a finding.
    #[test]
    fn an_interface_applied_by_itself_is_planned_by_itself() {
        let s = host(&["eth0", "eth1"]);
        let whole = Intent::default();
        let mine = Intent { devs: vec!["eth1".into()], queues: Some(2), allow_disruption: true, ..Intent::default() };
        let settings = |p: &Plan| p.steps.iter().map(|x| x.setting.clone()).collect::<Vec<_>>();
        let first = ringwise_plan::plan(&s, &whole, &[]).unwrap();
        let s = ringwise_testkit::project::project(&s, &settings(&first));
        let second = ringwise_plan::plan(&s, &mine, &[]).unwrap();
        let s = ringwise_testkit::project::project(&s, &settings(&second));
        let parts = [(vec!["eth1".to_string()], Intent { allow_disruption: false, ..mine })];
        let p = plan(&s, &whole, &parts, &[], &Standing::default()).unwrap();
        let left: Vec<_> =
            p.steps.iter().filter_map(|x| x.setting.address()).filter(|a| a.dev() == Some("eth1")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
