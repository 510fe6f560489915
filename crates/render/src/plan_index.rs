//! A plan by device, because a page shows one device after the other and needs the part of each.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, ManualChange, Setting, Step};
use ringwise_plan::{DevLayout, DoubledCore, Group, Plan};

/// The part of one device or of the host, in the order of the plan.
#[derive(Default)]
pub struct PlanPart<'a> {
    pub target: Vec<(&'a Setting, Address)>,
    pub steps: BTreeMap<Address, &'a Step>,
    pub groups: Vec<&'a Group>,
    pub doubled_cores: Vec<&'a DoubledCore>,
    pub layout: Option<&'a DevLayout>,
}

#[derive(Default)]
pub struct PlanIndex<'a> {
    pub host: PlanPart<'a>,
    devices: BTreeMap<&'a str, PlanPart<'a>>,
    /// Indexes of the manual changes that the plan overrides.
    manual: BTreeMap<Address, usize>,
    changes: &'a [ManualChange],
}

impl<'a> PlanIndex<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let mut index = Self { changes: &plan.by_hand, ..Self::default() };
        for t in &plan.target {
            if let Some(a) = t.address() {
                index.part_of(t.dev()).target.push((t, a));
            }
        }
        for st in &plan.steps {
            if let Some(a) = st.setting.address() {
                index.part_of(st.setting.dev()).steps.insert(a, st);
            }
        }
        for g in &plan.groups {
            index.part_of(Some(&g.dev)).groups.push(g);
        }
        for d in &plan.doubled_cores {
            index.part_of(Some(&d.dev)).doubled_cores.push(d);
        }
        for l in &plan.layout {
            index.part_of(Some(&l.dev)).layout.get_or_insert(l);
        }
        for (i, h) in plan.by_hand.iter().enumerate() {
            if let Some(a) = h.address() {
                index.manual.entry(a).or_insert(i);
            }
        }
        index
    }

    fn part_of(&mut self, dev: Option<&'a str>) -> &mut PlanPart<'a> {
        match dev {
            Some(d) => self.devices.entry(d).or_default(),
            None => &mut self.host,
        }
    }

    pub fn device(&self, dev: &str) -> Option<&PlanPart<'a>> {
        self.devices.get(dev)
    }

    /// The manual change that this step overrides.
    pub fn manual_change(&self, step: &Step) -> Option<&'a ManualChange> {
        step.setting.address().and_then(|a| self.manual.get(&a)).and_then(|i| self.changes.get(*i))
    }

    /// The manual changes that any of these steps overrides, in the order of the plan.
    pub fn manual_changes(&self, steps: &[&Step]) -> Vec<&'a ManualChange> {
        let places =
            steps.iter().filter_map(|st| self.manual.get(&st.setting.address()?)).copied().collect::<BTreeSet<_>>();
        places.into_iter().filter_map(|i| self.changes.get(i)).collect()
    }
}
