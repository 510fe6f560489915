//! Plans for groups that follow the traffic: those that were requested, those for a sample, and the settings that lead from one to the
//! other.

use ringwise_adapt::Forbidden;
use ringwise_adapt::groups::{BUSY_PERCENT, GroupChange, GroupChoice, GroupPolicy, SuggestedGroups};
use ringwise_apply::may_be_moved;
use ringwise_knob::partial::{is_part_of, named_parts, with_parts_of};
use ringwise_knob::{Family, Step};
use ringwise_model::{CpuId, CpuSet, Fact, GroupQueues, GroupWish, Intent, Sample, Snapshot, TrafficSample};
use ringwise_plan::policies::{BULK, LATENCY};
use ringwise_plan::{BulkPolicy, Group, Plan};

use crate::followed_groups::Followed;
use crate::replan::plan_adjusted;
use crate::service::Service;
use crate::setting_move::SettingMove;

// A service that changes the policy at another load than a plan would change it back and forth with each apply.
const _: () = assert!(BUSY_PERCENT == ringwise_plan::BUSY_PERCENT);

/// Two samples are of the same traffic if the mean sizes of their frames differ by less than this part,
const SIZE_VARIES: f64 = 0.05;
/// and the shares of queues and the busy times of CPUs by less than this, in thousandths.
const SHARE_VARIES_PERMILLE: u64 = 50;

/// The settings of a change, and the bulk queues afterwards.
pub(crate) struct PlannedGroups {
    pub changes: Vec<SettingMove>,
    pub bulk: Vec<u32>,
}

impl Service<'_> {
    /// The groups as requested. `None`: nothing can be planned now, or there are no such groups.
    pub(crate) fn requested_groups(&self, dev: &str) -> Result<Option<GroupChoice>, String> {
        Ok(self.plan_groups(dev, &|i| self.others(dev, i))?.and_then(|(plan, _)| choice(&plan, dev)))
    }

    /// The plan that this sample suggests.
    pub(crate) fn plan_for_sample(&self, dev: &str, sample: &TrafficSample) -> Result<Option<Plan>, String> {
        let sample = Sample::Taken(sample.clone());
        let planned = self.plan_groups(dev, &|i| {
            self.others(dev, i);
            i.sample = Some(sample.clone());
        })?;
        Ok(planned.map(|(plan, _)| plan))
    }

    /// The settings that change the groups. `None`: nothing can be planned now.
    ///
    /// `Err`: why the service must not write them.
    pub(crate) fn changes_of_groups(
        &self,
        dev: &str,
        change: GroupChange,
    ) -> Result<Option<Result<PlannedGroups, String>>, String> {
        let of_article = |f: &Followed| f.intent.as_ref().is_some_and(|i| i.pair_as_article);
        if self.groups.interfaces.len() > 1 && self.groups.interfaces.get(dev).is_some_and(of_article) {
            return Ok(Some(Err("pair_as_article has one number for all interfaces".into())));
        }
        let planned = self.plan_groups(dev, &|i| {
            self.others(dev, i);
            choose(i, dev, change.to);
        })?;
        let Some((plan, now)) = planned else { return Ok(None) };
        let bulk = group(&plan, dev, BULK).map(|g| g.queues.clone()).unwrap_or_default();
        let own = plan.steps.iter().filter(|s| s.setting.dev() == Some(dev));
        let changes: Result<Vec<SettingMove>, String> = own.map(|s| self.change(dev, s, &now)).collect();
        Ok(Some(match changes {
            Ok(changes) if changes.is_empty() => {
                Err("its queues have no settings that differ between the groups".into())
            }
            Ok(changes) => Ok(PlannedGroups { changes, bulk }),
            Err(why) => Err(why),
        }))
    }

    /// The other interfaces keep the groups that are in effect on them, so that their queues are not given to these CPUs again.
    fn others(&self, dev: &str, intent: &mut Intent) {
        for (other, present) in self.groups.changed_choices() {
            if other != dev {
                choose(intent, &other, present);
            }
        }
    }

    fn change(&self, dev: &str, step: &Step, now: &Snapshot) -> Result<SettingMove, String> {
        let what = step.setting.address().map(|a| a.to_string()).unwrap_or_default();
        let is_rss = step.setting.address().is_some_and(|a| a.family() == Family::Rss);
        let forbidden = self.link_losses.forbids_table(dev).filter(|_| is_rss);
        if step.interrupts_traffic || forbidden == Some(Forbidden::WriteResetsDevice) {
            return Err(format!("{what} interrupts traffic: ringwise apply --goal mixed --sample changes it"));
        }
        if let Some(why) = forbidden {
            return Err(format!("{what}: {why}"));
        }
        let Some(address) = step.setting.address().filter(may_be_moved) else {
            return Err(format!("the service does not write {what}: ringwise apply --goal mixed --sample changes it"));
        };
        let Fact::Known(from) = &step.from else {
            return Err(format!("{what} does not exist: ringwise apply --goal mixed --sample creates it"));
        };
        let from = named_parts(from, &step.setting);
        let earlier = self.balanced.iter().find(|t| t.address == address && t.is_in_effect(now));
        let base = earlier.map_or_else(|| from.clone(), |t| with_parts_of(t.base.clone(), &from));
        let to = if is_part_of(&step.setting, &base) { base.clone() } else { step.setting.clone() };
        Ok(SettingMove { address, from, to, base })
    }

    /// The plan, and the host that it is for. `None`: a transaction is running, or something has to be corrected first.
    fn plan_groups(&self, dev: &str, adjust: &dyn Fn(&mut Intent)) -> Result<Option<(Plan, Snapshot)>, String> {
        let Some(seen) = self.compared()?.0 else { return Ok(None) };
        let v = &seen.in_effect;
        if v.running.is_some() || v.trial.is_some() || v.unfinished.is_some() || !v.newer.is_empty() {
            return Ok(None);
        }
        let resting = self.pauses.names();
        let t = self.keep_decision(&seen, &resting, &CpuSet::new());
        if !t.steps.is_empty() || !t.plan.is_empty() {
            return Ok(None);
        }
        let plan = plan_adjusted(dev, &self.basis(&seen, &t.manual), adjust)?;
        Ok(plan.map(|plan| (plan, seen.now)))
    }
}

/// Groups of these sizes and with this policy on one interface, as far as the goal decides them.
fn choose(intent: &mut Intent, dev: &str, to: GroupChoice) {
    if intent.pair_as_article {
        (intent.sample, intent.latency_queues) = (None, Some(to.latency_queues));
        intent.bulk_policy = Some(to.policy.name().into());
        return;
    }
    // What was sampled when it was applied must not choose the policy again.
    if let Some(Sample::Taken(sample)) = &mut intent.sample {
        sample.interfaces.retain(|i| i.dev != dev);
    }
    let is_open = intent.latency_queues.is_none();
    let goal = Intent {
        latency_queues: Some(to.latency_queues),
        bulk_policy: Some(to.policy.name().into()),
        ..Intent::default()
    };
    for wish in ringwise_plan::implied(&goal) {
        let configured = |g: &&mut GroupWish| g.dev == dev && g.name.eq_ignore_ascii_case(&wish.name);
        match intent.groups.iter_mut().find(configured) {
            Some(g) if g.queues == GroupQueues::Auto && is_open => g.queues = wish.queues,
            Some(_) => {}
            None if wish.queues == GroupQueues::Auto || is_open => {
                intent.groups.push(GroupWish { dev: dev.into(), ..wish });
            }
            None => {}
        }
    }
}

fn group<'p>(plan: &'p Plan, dev: &str, name: &str) -> Option<&'p Group> {
    plan.groups.iter().find(|g| g.dev == dev && g.name.eq_ignore_ascii_case(name))
}

/// `None`: the plan makes no groups for latency and bulk here. A policy of the user counts as `bulk`, and never changes.
fn choice(plan: &Plan, dev: &str) -> Option<GroupChoice> {
    let latency = group(plan, dev, LATENCY)?;
    let bulk = group(plan, dev, BULK)?;
    let cpu = bulk.policy.as_deref() == Some(GroupPolicy::Cpu.name());
    let policy = if cpu { GroupPolicy::Cpu } else { GroupPolicy::Bulk };
    Some(GroupChoice { latency_queues: latency.queues.len() as u32, policy })
}

/// What the plan chose by its sample.
pub(crate) fn suggested(plan: &Plan, dev: &str) -> SuggestedGroups {
    let Some(sampled) = plan.sampled.iter().find(|s| s.dev == dev) else { return SuggestedGroups::default() };
    let busy_percent = match sampled.policy {
        BulkPolicy::Load { busy_percent, .. } => Some(busy_percent),
        BulkPolicy::Kept { .. } => None,
    };
    SuggestedGroups { latency_queues: sampled.sizes.latency_queues(), busy_percent }
}

/// Whether both samples are of the same traffic, so that a plan would choose about the same.
pub(crate) fn is_similar(a: &TrafficSample, b: &TrafficSample) -> bool {
    let near = |a: Option<u64>, b: Option<u64>, most: u64| match (a, b) {
        (Some(a), Some(b)) => a.abs_diff(b) < most,
        (a, b) => a.is_none() && b.is_none(),
    };
    // What the CPUs of other interfaces and programs do changes nothing here.
    let serves =
        |s: &TrafficSample, cpu: CpuId| s.interfaces.iter().flat_map(|i| &i.queues).any(|q| q.cpu == Some(cpu));
    let busy = |s: &TrafficSample| -> Vec<_> {
        let own = s.cpus.iter().filter(|c| serves(s, c.cpu));
        own.map(|c| (c.cpu, c.busy_permille, c.interrupt_permille)).collect()
    };
    let (before, now) = (busy(a), busy(b));
    let cpus = before.len() == now.len()
        && before.iter().zip(&now).all(|((cpu, busy, interrupt), (other, b, i))| {
            let wide = |n: &Option<u32>| n.map(u64::from);
            cpu == other
                && near(wide(busy), wide(b), SHARE_VARIES_PERMILLE)
                && near(wide(interrupt), wide(i), SHARE_VARIES_PERMILLE)
        });
    cpus && a.interfaces.len() == b.interfaces.len()
        && a.interfaces.iter().zip(&b.interfaces).all(|(x, y)| {
            let mean = |frames: Option<u64>, bytes: Option<u64>| {
                frames.filter(|n| *n > 0).zip(bytes).map(|(frames, bytes)| bytes as f64 / frames as f64)
            };
            let sizes = match (mean(x.frames, x.bytes), mean(y.frames, y.bytes)) {
                (Some(a), Some(b)) => (a - b).abs() < SIZE_VARIES * a.max(b),
                (a, b) => a.is_none() && b.is_none(),
            };
            let shares = |q: &ringwise_model::SampledInterface| -> Vec<Option<u64>> {
                let all = q.queues.iter().map(|q| q.packets).sum::<Option<u64>>().filter(|n| *n > 0);
                q.queues.iter().map(|q| q.packets.zip(all).map(|(n, all)| n.saturating_mul(1000) / all)).collect()
            };
            let (before, now) = (shares(x), shares(y));
            let queues =
                before.len() == now.len() && before.iter().zip(&now).all(|(a, b)| near(*a, *b, SHARE_VARIES_PERMILLE));
            // Whether there is traffic at all decides, too.
            let rate = |frames: Option<u64>, ms: u64| frames.map(|n| n.saturating_mul(1000) / ms.max(1));
            let (fast, slow) = (rate(x.frames, a.duration_ms), rate(y.frames, b.duration_ms));
            let traffic = |r: Option<u64>| r.map(|r| r >= ringwise_plan::FEWEST_FRAMES_PER_S);
            x.dev == y.dev && sizes && queues && traffic(fast) == traffic(slow)
        })
}

#[cfg(test)]
mod tests {
    use ringwise_model::{SampledCpu, SampledInterface, SampledQueue};

    use super::*;

    fn sample(frame_bytes: u64, packets: [u64; 2], busy: u32) -> TrafficSample {
        let queue = |(queue, n): (u32, &u64)| SampledQueue {
            queue,
            packets: Some(*n),
            bytes: None,
            interrupts: None,
            cpu: Some(CpuId(queue)),
        };
        let frames = packets.iter().sum::<u64>();
        TrafficSample {
            duration_ms: 1000,
            cpus: vec![SampledCpu { cpu: CpuId(0), busy_permille: Some(busy), interrupt_permille: Some(busy / 2) }],
            interfaces: vec![SampledInterface {
                dev: "eth0".into(),
                frames: Some(frames),
                bytes: Some(frames * frame_bytes),
                queues: (0..).zip(&packets).map(queue).collect(),
            }],
        }
    }

    #[test]
    fn samples_of_the_same_traffic() {
        let first = sample(800, [1000, 1000], 300);
        assert!(is_similar(&first, &sample(820, [1500, 1400], 320)), "more of the same");
        assert!(!is_similar(&first, &sample(900, [1000, 1000], 300)), "longer frames");
        assert!(!is_similar(&first, &sample(800, [1500, 500], 300)), "another queue");
        assert!(!is_similar(&first, &sample(800, [1000, 1000], 400)), "busier");
        assert!(!is_similar(&first, &sample(800, [10, 10], 300)), "hardly any traffic");
        let mut unknown = first.clone();
        unknown.interfaces[0].bytes = None;
        assert!(!is_similar(&first, &unknown) && is_similar(&unknown, &unknown));
    }
}
