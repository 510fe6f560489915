//! The CPUs that the applies in effect propose for programs, and those that the listening programs may use.

use std::collections::BTreeSet;

use ringwise_discover::sockets::{Listener, ListeningProcess, listening_processes};
use ringwise_model::{Goal, GroupWish, Intent, Nic, Snapshot};
use ringwise_plan::{ListeningProgram, ListeningSocket, ManualChanges, ProgramPlacement, ProgramReport, program_cpus};
use ringwise_sys::Host;

use crate::flows::look_up;
use crate::manual_changes::{ManualChangePolicy, manual_changes_for_plan};
use crate::standing::AppliedRecord;

/// Plans again what is in effect on this host, and compares the proposals for programs with the programs that listen. `None`: nothing
/// in effect proposes CPUs for programs.
pub fn compare_programs(live: &dyn Host, s: &Snapshot, standing: &AppliedRecord) -> Option<ProgramReport> {
    let mut out = ProgramReport::default();
    let (proposals, groups) = proposals(live, s, standing, &mut out.unplanned);
    if proposals.is_empty() {
        return (!out.unplanned.is_empty()).then_some(out);
    }
    match listening_processes(live) {
        Ok(found) => {
            let one = |p: ListeningProcess| {
                let socket = |l: &Listener| ListeningSocket { address: l.address, matches: l.matches() };
                let sockets = p.listeners.iter().map(socket).collect();
                ListeningProgram { name: p.name, pid: p.pid, allowed: p.cpus_allowed, sockets }
            };
            let listening: Vec<ListeningProgram> = found.all.into_iter().map(one).collect();
            out.list = program_cpus(s, &proposals, &groups, &listening);
            out.unread = found.unread;
        }
        Err(u) => out.unread = Some(u),
    }
    Some(out)
}

fn proposals(
    live: &dyn Host,
    s: &Snapshot,
    standing: &AppliedRecord,
    unplanned: &mut Vec<String>,
) -> (Vec<ProgramPlacement>, Vec<GroupWish>) {
    let (mut programs, mut groups) = (Vec::new(), Vec::new());
    let around = ManualChanges {
        made: standing.made.clone(),
        ..manual_changes_for_plan(&standing.hands, ManualChangePolicy::Ask)
    };
    let mut later: BTreeSet<String> = BTreeSet::new();
    let parts = standing.parts(s);
    if let Some(a) = &parts.unknown {
        let which = a.transaction.map_or_else(|| "a transaction".into(), |id| format!("transaction {id}"));
        unplanned.push(format!("{which} was recorded by an earlier version, so its goal is unknown"));
    }
    for part in parts.list {
        let decides = |dev: &str| !later.contains(dev) && (part.devs.is_empty() || part.devs.iter().any(|d| d == dev));
        if !s.tunable().map(Nic::name).any(|dev| decides(dev) && may_propose(&part.intent, dev)) {
            later.extend(part.devs);
            continue;
        }
        // A program that does not listen now has no CPUs to compare.
        let mut intent = Intent { strict: false, ..part.intent.clone() };
        let planned = match look_up(live, &mut intent, true) {
            Ok(_) => ringwise_plan::plan_around(s, &intent, &standing.learned, &around).map_err(|r| r.to_string()),
            Err(e) => Err(e.to_string()),
        };
        match planned {
            Ok(plan) => {
                programs.extend(plan.programs.into_iter().filter(|p| decides(&p.dev)));
                groups.extend(intent.groups.into_iter().filter(|g| decides(&g.dev)));
            }
            Err(why) => unplanned.push(why),
        }
        later.extend(part.devs);
    }
    (programs, groups)
}

/// Whether a plan can propose CPUs for programs of this interface. Programs of the groups of goal mixed are known only by the flows of
/// configured groups.
fn may_propose(intent: &Intent, dev: &str) -> bool {
    matches!(intent.goal_of(dev), Goal::Rpc | Goal::Latency | Goal::Stream)
        || intent.groups.iter().any(|g| g.dev == dev)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringwise_apply::{Policy, Request, Store, run};
    use ringwise_discover::Options;
    use ringwise_model::{GoalChoice, IntentFlags, Requested};
    use ringwise_plan::ProgramCpus;
    use ringwise_testkit::dir::Dir;
    use ringwise_testkit::sim::{Sim, build};

    use super::*;
    use crate::request;

    /// A host with two nodes to which these goals were applied, one after the other.
    fn applied(goals: &[(Goal, &[&str])]) -> (Arc<Sim>, Arc<dyn Host>, Dir) {
        let sim = Arc::new(Sim::new(&build::host(16, 2).igb("eth0", 0, 2).igb("eth1", 1, 2).done()));
        let (host, dir): (Arc<dyn Host>, Dir) = (sim.clone(), Dir::new());
        for (goal, devs) in goals {
            let devs: Vec<String> = devs.iter().map(|d| d.to_string()).collect();
            let flags = IntentFlags { goal: Some(GoalChoice::Of(*goal)), devs: devs.clone(), ..IntentFlags::default() };
            let intent = Intent { goal: *goal, devs, ..Intent::default() };
            let s = ringwise_discover::snapshot(&host, &Options::all()).unwrap();
            let plan = ringwise_plan::plan(&s, &intent, &[]).unwrap();
            let by = Request { who: "root".into(), argv: vec!["x".into()], ..Request::default() };
            let wanted = request(&plan, Requested { flags: Some(flags), intent }, false).by(&by);
            // Other tests on this machine, and ringwise itself, must not be in the way.
            let store = Store::open(Some(&dir.0)).with_socket_name(format!("ringwise-intent{}", dir.0.display()));
            run(&host, &wanted, &store, &Policy::default(), &mut |_| {}).unwrap();
        }
        (sim, host, dir)
    }

    fn compared(host: &Arc<dyn Host>, dir: &Dir) -> Option<ProgramReport> {
        let (store, s) = (Store::open(Some(&dir.0)), ringwise_discover::snapshot(host, &Options::all()).unwrap());
        let v = ringwise_apply::verify_in(&s, &store).unwrap();
        compare_programs(host.as_ref(), &s, &AppliedRecord::live(&s, Some(&v), &store, Vec::new()))
    }

    fn words(r: &ProgramReport) -> Vec<String> {
        let one = |p: &ProgramCpus| {
            let devs: Vec<&str> = p.proposed_for.iter().map(|f| f.dev.as_str()).collect();
            format!("{} for {} on {}: {}", p.name, devs.join(" "), p.allowed, p.as_proposed)
        };
        r.list.iter().map(one).collect()
    }

    #[test]
    fn programs_on_the_proposed_cpus_and_others() {
        let (sim, host, dir) = applied(&[(Goal::Rpc, &["eth0"])]);
        sim.listens("nginx", Some(80));
        sim.listens("sshd", Some(22));
        let r = compared(&host, &dir).expect("goal rpc proposes CPUs");
        let proposed = r.list[0].proposed.clone();
        assert!(!proposed.is_empty() && proposed.len() < 16, "{proposed}");
        assert_eq!(words(&r), ["nginx for eth0 on 0-15: false", "sshd for eth0 on 0-15: false"]);
        sim.may_use("nginx", &proposed);
        let r = compared(&host, &dir).unwrap();
        assert_eq!(words(&r), [format!("nginx for eth0 on {proposed}: true"), "sshd for eth0 on 0-15: false".into()]);
        let many = r.list[0].proposed_for_many.clone().expect("one node of two");
        sim.may_use("sshd", &many);
        assert_eq!(words(&compared(&host, &dir).unwrap())[1], format!("sshd for eth0 on {many}: true"));
        sim.sockets_unreadable(true);
        let r = compared(&host, &dir).unwrap();
        assert_eq!((r.list.len(), r.unread.map(|u| u.what)), (0, Some("read /proc/net/tcp".into())));
    }

    #[test]
    fn a_goal_without_proposals_reads_no_socket() {
        let (sim, host, dir) = applied(&[(Goal::Rpc, &["eth0"]), (Goal::Balanced, &["eth0"])]);
        sim.sockets_unreadable(true);
        assert_eq!(compared(&host, &dir), None, "the later goal decides");
        let (_, host, dir) = applied(&[]);
        assert_eq!(compared(&host, &dir), None);
    }

    /// As in the plan: a program that uses interfaces of several nodes has no limit.
    #[test]
    fn a_program_on_interfaces_of_two_nodes_has_no_proposal() {
        let (sim, host, dir) = applied(&[(Goal::Rpc, &[])]);
        sim.listens("nginx", Some(80));
        assert_eq!(compared(&host, &dir).map(|r| r.list), Some(Vec::new()));
    }
}
