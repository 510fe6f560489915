//! What ringwise applied on a host and is in effect there: read from the state directory, or from a capture.

use std::collections::BTreeSet;

use ringwise_apply::{HistoryEntry, Store, TransactionKind, Verify};
use ringwise_knob::{CreatedObject, Learned, ManualChange, Match};
use ringwise_model::{CpuId, CpuSet, Fact, Intent, Nic, Requested, Snapshot, Topology, shell};
use ringwise_plan::{ManualChanges, Plan, Refusal};
use ringwise_sys::Host;
use serde::{Deserialize, Serialize};

use crate::manual_changes::{ManualChangePolicy, manual_changes_for_plan};

/// Path of the record in a capture. No path of a host begins like this.
pub const FILE: &str = "/ringwise/standing";

/// The record of what was applied here.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct AppliedRecord {
    /// Transactions of this boot that were kept and not undone, oldest first.
    pub applied: Vec<Applied>,
    /// What devices refused or ignored when ringwise wrote to them.
    pub learned: Vec<Learned>,
    /// Settings that differ from what was applied, each with its device and as text. `None`: the journals could not be read.
    pub drift: Option<Vec<(Option<String>, String)>>,
    /// Settings that were changed outside ringwise.
    pub hands: Vec<ManualChange>,
    /// What was created for groups of queues only.
    pub made: Vec<CreatedObject>,
}

/// A transaction in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// `None`: the capture was made by a version that did not record it.
    #[serde(default)]
    pub transaction: Option<u64>,
    /// `None`: it was recorded by a version that kept the command line only.
    #[serde(default)]
    pub requested: Option<Requested>,
}

impl AppliedRecord {
    /// The record of this host. `v`: what is in effect, compared with the host.
    pub fn live(s: &Snapshot, v: Option<&Verify>, store: &Store, learned: Vec<Learned>) -> Self {
        let history = ringwise_apply::history(store, &s.host).unwrap_or_default();
        let kept = history.into_iter().filter(|e| {
            let applies = e.requested.is_some() || e.argv.is_empty();
            e.is_in_effect() && e.kind == TransactionKind::Apply && applies
        });
        Self {
            applied: kept.map(|e| Applied { transaction: Some(e.id), requested: e.requested }).collect(),
            learned,
            drift: v.map(drift),
            hands: v.map(Verify::manual_changes).unwrap_or_default(),
            made: v.map(|v| v.made.clone()).unwrap_or_default(),
        }
    }

    /// The record as JSON for a capture. `None`: nothing was ever applied on this host, or its journals cannot be read.
    pub fn text(s: &Snapshot, store: &Store) -> Option<String> {
        let v = ringwise_apply::verify_in(s, store).ok()?;
        let all = Self::live(s, Some(&v), store, store.learned().unwrap_or_default());
        let nothing = all.applied.is_empty() && all.learned.is_empty() && v.settings.is_empty();
        (!nothing).then(|| serde_json::to_string(&all).ok()).flatten()
    }

    /// The record in a capture; an empty one where the capture has none.
    pub fn recorded(host: &dyn Host) -> Self {
        let text = host.read_text(FILE).ok();
        text.and_then(|t| serde_json::from_slice(t.as_bytes()).ok()).unwrap_or_default()
    }

    /// What each apply in effect requested, newest first, with those of its interfaces that no later one names. Transactions
    /// before one of the whole host, or before one whose request is unknown, are not in it.
    pub fn parts(&self, s: &Snapshot) -> AppliedParts {
        let mut left: BTreeSet<String> = s.tunable().map(|n| n.name().to_string()).collect();
        let mut out = AppliedParts::default();
        for a in self.applied.iter().rev() {
            let Some(r) = &a.requested else {
                out.unknown = Some(a.clone());
                break;
            };
            let whole = r.flags.as_ref().map_or(&r.intent.devs, |f| &f.devs).is_empty();
            let devs: Vec<String> = match whole {
                true => r.intent.devs.clone(),
                false => r.intent.devs.iter().filter(|d| left.remove(*d)).cloned().collect(),
            };
            let from_config = r.intent.config.is_some() && r.flags.as_ref().is_some_and(|f| f.goal.is_none());
            if whole || !devs.is_empty() {
                let (intent, allowed_disruption) = (judged(&r.intent, &devs), r.intent.allow_disruption);
                out.list.push(AppliedPart { intent, whole, devs, from_config, allowed_disruption });
            }
            if whole {
                break;
            }
        }
        out
    }
}

/// What is in effect, apply by apply.
#[derive(Debug, Default)]
pub struct AppliedParts {
    /// Newest first.
    pub list: Vec<AppliedPart>,
    /// The newest transaction whose request is unknown.
    pub unknown: Option<Applied>,
}

/// One apply, as it was requested.
#[derive(Debug)]
pub struct AppliedPart {
    /// What was requested, limited to `devs`, without the permission to interrupt traffic.
    pub intent: Intent,
    /// The apply was for the whole host: for all interfaces that no later apply names.
    pub whole: bool,
    /// Interfaces that this apply still decides: those that no later apply names.
    pub devs: Vec<String>,
    /// The goal comes from the configuration file.
    pub from_config: bool,
    /// It was permitted to interrupt traffic.
    pub allowed_disruption: bool,
}

impl AppliedPart {
    /// CPUs that may serve the queues of this interface ([`ringwise_plan::permitted_cpus`]). `None`: unknown, or the layout decides more.
    pub fn permitted_cpus(&self, topology: &Topology, nic: &Nic) -> Option<CpuSet> {
        ringwise_plan::permitted_cpus(topology, nic, &self.intent)
    }

    /// Whether the plan chose the XPS masks of this interface ([`ringwise_plan::chooses_xps_masks`]).
    pub fn chooses_xps_masks(&self, nic: &Nic) -> bool {
        ringwise_plan::chooses_xps_masks(nic, &self.intent)
    }

    /// CPUs that may help the only receive queue of this interface ([`ringwise_plan::rps_helpers`]).
    pub fn rps_helpers(&self, topology: &Topology, nic: &Nic, cpu: CpuId) -> Option<CpuSet> {
        ringwise_plan::rps_helpers(topology, nic, &self.intent, cpu)
    }
}

/// The intent by which a host is checked. Changes that needed permission to interrupt traffic are not proposed again.
fn judged(requested: &Intent, devs: &[String]) -> Intent {
    let mut i = Intent { devs: devs.to_vec(), allow_disruption: false, ..requested.clone() };
    if !devs.is_empty() {
        let named = |dev: &String| devs.contains(dev);
        i.wishes.retain(|w| w.dev.as_ref().is_none_or(named));
        i.groups.retain(|g| named(&g.dev));
        i.dev_goals.retain(|dev, _| named(dev));
    }
    i
}

/// The command that applies the same again, without flags that only that run needed. `None`: a reviewed plan was applied,
/// or what was requested is not recorded.
pub fn command_again(e: &HistoryEntry) -> Option<String> {
    let flags = e.requested.as_ref()?.flags.as_ref()?;
    Some(shell::join(["ringwise".into(), "apply".into()].into_iter().chain(flags.words())))
}

/// What differs from what was applied, as text.
fn drift(v: &Verify) -> Vec<(Option<String>, String)> {
    let words = |s: &ringwise_apply::SettingInEffect| {
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

/// Adds the goals of interfaces that were applied separately to the intent of the whole host.
pub fn join_goals(whole: &mut Intent, parts: &[(Vec<String>, Intent)]) {
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

/// The plan of the whole host. Interfaces that were applied separately are planned as requested then.
///
/// Errors: the whole host cannot be planned.
pub fn plan(
    s: &Snapshot,
    whole: &Intent,
    parts: &[(Vec<String>, Intent)],
    known: &[Learned],
    around: &AppliedRecord,
) -> Result<Plan, Refusal> {
    let hands =
        ManualChanges { made: around.made.clone(), ..manual_changes_for_plan(&around.hands, ManualChangePolicy::Ask) };
    let around = |i: &Intent, h: &ManualChanges| ringwise_plan::plan_around(s, i, known, h);
    let mut plan = around(whole, &hands)?;
    for (devs, intent) in parts {
        // An interface without a link, or one that is gone, has no plan.
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
    use ringwise_model::{ConfiguredBy, Goal, IntentFlags, Knob, Wish};
    use ringwise_testkit::machines::{self, NicSpec};
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    fn host(names: &[&str]) -> Snapshot {
        let nic = |n: &&str| NicSpec::new(n, "igb", Some(0), 4, 4);
        machines::host("edge3", CpuSpec::flat(4, 2), names.iter().map(nic).collect()).snapshot()
    }

    fn applied(intent: Intent) -> Applied {
        let flags = IntentFlags { devs: intent.devs.clone(), ..IntentFlags::default() };
        Applied { transaction: Some(1), requested: Some(Requested { flags: Some(flags), intent }) }
    }

    fn of(devs: &[&str], goal: Goal) -> Intent {
        Intent { devs: devs.iter().map(|d| d.to_string()).collect(), goal, ..Intent::default() }
    }

    #[test]
    fn the_last_word_about_each_interface() {
        let s = host(&["eth0", "eth1", "eth2"]);
        let mut all = AppliedRecord::default();
        let two = Intent { queues: Some(2), allow_disruption: true, ..of(&["eth1", "eth2"], Goal::Balanced) };
        all.applied =
            [of(&["eth0"], Goal::Rpc), of(&[], Goal::Latency), two, of(&["eth2"], Goal::Stream)].map(applied).into();
        let parts = all.parts(&s);
        let told: Vec<_> = parts
            .list
            .iter()
            .map(|p| (p.devs.join(" "), p.intent.goal, p.intent.queues, p.intent.allow_disruption, p.whole))
            .collect();
        assert_eq!(
            told,
            [
                ("eth2".to_string(), Goal::Stream, None, false, false),
                ("eth1".to_string(), Goal::Balanced, Some(2), false, false),
                (String::new(), Goal::Latency, None, false, true),
            ]
        );
        assert_eq!(parts.unknown, None);
    }

    /// Captures and journals of versions that recorded only the command line.
    #[test]
    fn what_an_earlier_version_recorded_is_unknown() {
        let s = host(&["eth0", "eth1"]);
        let old = r#"{"applied":[{"command":"ringwise apply eth0 --goal rpc","title":"goal rpc"}],
            "learned":[],"drift":[],"hands":[],"made":[]}"#;
        let mut all: AppliedRecord = serde_json::from_str(old).unwrap();
        assert_eq!(all.applied, [Applied { transaction: None, requested: None }]);
        all.applied.push(applied(of(&["eth1"], Goal::Stream)));
        let parts = all.parts(&s);
        assert_eq!((parts.list.len(), parts.unknown), (1, Some(Applied { transaction: None, requested: None })));
        assert_eq!(parts.list[0].devs, ["eth1"]);
    }

    /// The intent of one interface contains the settings that name it, and those that name no interface.
    #[test]
    fn an_interface_that_a_later_apply_names_is_no_part_of_an_earlier_one() {
        let s = host(&["eth0", "eth1"]);
        let wish = |dev: &str| Wish {
            dev: Some(dev.into()),
            knob: Knob::Rings { values: ringwise_model::RingValues::sizes(Some(512), None) },
            by: ConfiguredBy::Unknown,
            params_by: Default::default(),
        };
        let both = Intent { wishes: vec![wish("eth0"), wish("eth1")], ..of(&["eth0", "eth1"], Goal::Rpc) };
        let all = AppliedRecord {
            applied: vec![applied(both), applied(of(&["eth1"], Goal::Stream))],
            ..AppliedRecord::default()
        };
        let parts = all.parts(&s).list;
        assert_eq!((&parts[1].devs, &parts[1].intent.wishes), (&vec!["eth0".to_string()], &vec![wish("eth0")]));
    }

    /// The user's other words on the command line change nothing, and a printed command is read as the same flags.
    #[test]
    fn the_command_that_applies_the_same_again() {
        let entry = |requested: Option<Requested>| -> HistoryEntry {
            let mut e: HistoryEntry = serde_json::from_value(serde_json::json!({
                "id": 1, "kind": "apply", "title": "goal rpc", "who": "root", "command": "", "unix_time": 1,
                "this_boot": true, "devices": ["eth0", "eth1"], "steps": 3, "ending": "kept", "undo": [], "path": "",
            }))
            .unwrap();
            e.requested = requested;
            e
        };
        let flags = IntentFlags {
            devs: vec!["eth1".into()],
            goal: Some(Goal::Rpc.into()),
            set: vec!["eth1.rss.table=\"weight 3 1\"".into()],
            ..IntentFlags::default()
        };
        let asked = |flags| Requested { flags, intent: of(&["eth1"], Goal::Rpc) };
        assert_eq!(
            command_again(&entry(Some(asked(Some(flags))))).unwrap(),
            "ringwise apply eth1 --goal rpc --set 'eth1.rss.table=\"weight 3 1\"'"
        );
        assert_eq!(command_again(&entry(Some(asked(None)))), None, "a reviewed plan");
        assert_eq!(command_again(&entry(None)), None, "an earlier version");
    }

    /// One interface has fewer queues than the others, because its apply requested so: that is no finding.
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
        let p = plan(&s, &whole, &parts, &[], &AppliedRecord::default()).unwrap();
        let left: Vec<_> =
            p.steps.iter().filter_map(|x| x.setting.address()).filter(|a| a.dev() == Some("eth1")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
