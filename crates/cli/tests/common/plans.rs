//! Hand-made plans.

use ringwise_knob::{IfRefused, Reason, Setting, Step, VectorName, live};
use ringwise_model::{CpuId, CpuSet, Intent, NodeId, ReasonFields, Snapshot};
use ringwise_plan::{
    DevLayout, Expected, NotPossible, Obstacle, Placed, Plan, PlanHost, ProposedChange, SCHEMA, SkippedInterface,
    VERSION,
};

/// One queue per local core for eth1 and eth2 of `edge3`, with XPS, without RPS, RFS unchanged.
pub(crate) fn edge3_plan(s: &Snapshot) -> Plan {
    let mut target = Vec::new();
    let mut layout = Vec::new();
    for (dev, base) in [("eth1", 0u32), ("eth2", 8)] {
        let order = [0, 2, 4, 6, 1, 3, 5, 7];
        for (q, o) in order.iter().enumerate() {
            let q = q as u32;
            let name = dev.to_string();
            let xps: CpuSet = [CpuId(*o), CpuId(*o + 8)].into_iter().collect();
            target.push(Setting::IrqCpus {
                dev: name.clone(),
                of: VectorName::Rx(q),
                cpus: CpuSet::one(CpuId(base + o)),
                on: None,
            });
            target.push(Setting::XpsCpus { dev: name.clone(), queue: q, cpus: xps });
            target.push(Setting::RpsCpus { dev: name, queue: q, cpus: CpuSet::new() });
        }
        layout.push(DevLayout {
            dev: dev.into(),
            node: Some(NodeId(base / 8)),
            queues: order
                .iter()
                .enumerate()
                .map(|(q, o)| Placed {
                    queue: q as u32,
                    cpu: Some(CpuId(base + o)),
                    far: Some(false),
                    shares_core: *o % 2 == 1,
                })
                .collect(),
        });
    }
    target.sort_by_key(|t| t.address());
    let steps = target.iter().filter_map(|t| step(s, t)).collect::<Vec<_>>();
    let mut plan = empty(s);
    plan.already = target.len() - steps.len();
    plan.steps = steps;
    plan.target = target;
    plan.layout = layout;
    plan.devices = s.nics[1..3].iter().map(|n| n.dev.clone()).collect();
    plan.considered = vec!["eth1".into(), "eth2".into()];
    plan.left_alone = vec![
        SkippedInterface { dev: "eth0".into(), why: text_only("one queue") },
        SkippedInterface { dev: "eth3".into(), why: Obstacle::LinkDown },
    ];
    plan.left_out = vec![ProposedChange {
        setting: Setting::Channels { dev: "eth1".into(), rx: None, tx: None, combined: Some(4) },
        from: live(s, &ringwise_knob::Address::Channels { dev: "eth1".into() }),
        rule: "A11".into(),
        reason: Reason::Text("one queue a physical core".into()),
        command: "ringwise plan --queues 4 --allow-disruption".into(),
        outage: "link down about 3 s".into(),
    }];
    plan.refused = vec![NotPossible {
        address: None,
        what: "eth1 RSS key".into(),
        why: text_only("this driver cannot set it (EOPNOTSUPP)"),
        needed: false,
        blocked_by: None,
        settings: 1,
    }];
    plan.expected = vec![Expected {
        worth: None,
        dev: Some("eth1".into()),
        text: "busiest CPU takes 12 % of eth1's queues instead of 50 %".into(),
        before: Some(50.0),
        after: Some(12.5),
        unit: "percent of queues".into(),
    }];
    plan
}

fn step(s: &Snapshot, to: &Setting) -> Option<Step> {
    let from = live(s, &to.address()?);
    if from.known() == Some(to) {
        return None;
    }
    let (rule, reason, source) = match to {
        Setting::IrqCpus { .. } => {
            ("A03", "one queue a near core first, then their siblings", "kernel documentation, networking/scaling")
        }
        Setting::XpsCpus { .. } => (
            "Q14",
            "every CPU sends on the queue whose interrupt is its own or on the core in the same place of the other node",
            "kernel documentation, networking/scaling",
        ),
        _ => ("Q05", "8 queues already spread over all near CPUs", "ringwise, rules on RPS"),
    };
    Some(Step {
        setting: to.clone(),
        from,
        rule: rule.into(),
        reason: Reason::Text(reason.into()),
        source: source.into(),
        interrupts_traffic: false,
        if_refused: IfRefused::PutBack,
        instead: Vec::new(),
    })
}

pub(crate) fn empty(s: &Snapshot) -> Plan {
    Plan {
        schema: SCHEMA.into(),
        version: VERSION,
        host: PlanHost::of(s),
        intent: Intent::default(),
        devices: vec![],
        considered: vec![],
        left_alone: vec![],
        bystanders: s.bystanders.count.clone(),
        steps: vec![],
        already: 0,
        target: vec![],
        layout: vec![],
        left_out: vec![],
        refused: vec![],
        warnings: vec![],
        expected: vec![],
        shared_for_locality: None,
        groups: vec![],
        sampled: vec![],
        sampled_placement: None,
        programs: vec![],
        advice: vec![],
        doubled_cores: vec![],
        by_hand: vec![],
        kept: vec![],
        control: vec![],
        cuts: vec![],
        outages: vec![],
    }
}

/// A plan as an earlier version wrote it, without reason codes.
fn text_only(why: &str) -> Obstacle {
    Obstacle::Other(ReasonFields { why: why.into(), code: None, facts: None })
}
