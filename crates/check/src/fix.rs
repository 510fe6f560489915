//! The `ringwise plan` arguments that remove a finding.

use ringwise_knob::Setting;
use ringwise_knob::features::short_name;
use ringwise_knob::restarts_for_ntuple;
use ringwise_model::{Goal, GoalChoice, IntentFlags, Nic};
use ringwise_plan::Plan;

use crate::report::RemedyAddition;

/// Additional requests that make the plan remove a finding. Empty: the plan as it is removes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanArguments {
    pub(crate) sets: Vec<SetArgument>,
    /// The interface. The options for the goal and the number of queues need its name.
    dev: Option<String>,
    pub(crate) goal: Option<Goal>,
    queues: Option<u32>,
    disruptive: bool,
    take_over: bool,
}

/// One `--set`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SetArgument {
    /// The interface; `None`: the setting is the host's.
    pub dev: Option<String>,
    /// The key as in the configuration file: `rings.rx`, `sysctl."net.core.busy_poll"`.
    pub key: String,
    /// The value as `--set` expects it; text has no quotes.
    pub value: String,
}

impl SetArgument {
    /// Whether these settings give this key its value, on every queue that they name.
    fn is_among(&self, settings: &[&Setting]) -> bool {
        let mut values = settings.iter().filter_map(|s| self.value_in(s)).peekable();
        values.peek().is_some() && values.all(|value| value == self.value)
    }

    /// The value that the setting gives this key. `None`: it sets another one.
    fn value_in(&self, s: &Setting) -> Option<String> {
        let of = |dev: &String| self.dev.as_ref() == Some(dev);
        match s {
            Setting::RpsFlowCnt { dev, entries, .. } if of(dev) && self.key == "rps_flow_cnt" => {
                Some(entries.to_string())
            }
            Setting::Feature { dev, name, on } if of(dev) => {
                let key = self.key.strip_prefix("features.")?;
                (short_name(key) == short_name(name)).then(|| on.to_string())
            }
            _ => None,
        }
    }

    fn argument(&self) -> String {
        let dev = match self.dev.as_deref() {
            None => "host".to_string(),
            // The key begins after the first dot, so a name with a dot needs quotes.
            Some(dev) if dev.contains('.') => format!("\"{dev}\""),
            Some(dev) => dev.to_string(),
        };
        format!("{dev}.{}={}", self.key, self.value)
    }
}

impl PlanArguments {
    /// The plan as it is.
    pub fn planned() -> Self {
        Self::default()
    }

    pub fn goal(goal: Goal) -> Self {
        Self { goal: Some(goal), ..Self::default() }
    }

    pub fn queues(dev: &str, n: u32) -> Self {
        Self { dev: Some(dev.to_string()), queues: Some(n), ..Self::default() }
    }

    pub fn set(dev: &str, key: impl Into<String>, value: impl ToString) -> Self {
        Self::one(Some(dev.to_string()), key.into(), value)
    }

    pub fn feature(dev: &str, name: &str, on: bool) -> Self {
        Self::set(dev, format!("features.{name}"), on)
    }

    /// Switches `rx-ntuple-filter` on; some drivers restart the device for it.
    pub fn ntuple(nic: &Nic) -> Self {
        let fix = Self::feature(nic.name(), "ntuple", true);
        if restarts_for_ntuple(nic) { fix.disruptive() } else { fix }
    }

    pub fn host(key: &str, value: impl ToString) -> Self {
        Self::one(None, key.to_string(), value)
    }

    pub fn sysctl(name: &str, value: impl ToString) -> Self {
        Self::one(None, format!("sysctl.\"{name}\""), value)
    }

    pub fn take_over() -> Self {
        Self { take_over: true, ..Self::default() }
    }

    fn one(dev: Option<String>, key: String, value: impl ToString) -> Self {
        Self { sets: vec![SetArgument { dev, key, value: value.to_string() }], ..Self::default() }
    }

    /// Combines the settings of several fixes.
    pub fn all(fixes: impl IntoIterator<Item = Self>) -> Self {
        Self { sets: fixes.into_iter().flat_map(|f| f.sets).collect(), ..Self::default() }
    }

    /// Marks the fix as one that interrupts traffic.
    pub fn disruptive(self) -> Self {
        Self { disruptive: true, ..self }
    }

    /// Without the settings that the plan of the goal writes anyway, if these are all.
    pub(crate) fn beyond(self, plan: Option<&Plan>) -> Self {
        let Some(plan) = plan else { return self };
        let steps = || plan.steps.iter().map(|s| &s.setting);
        // The plan lists what interrupts traffic, and writes it with permission.
        let listed = plan.left_out.iter().map(|p| &p.setting).filter(|_| self.disruptive);
        let written: Vec<&Setting> = steps().chain(listed).collect();
        if self.sets.is_empty() || !self.sets.iter().all(|set| set.is_among(&written)) {
            return self;
        }
        let disruptive = self.disruptive && !self.sets.iter().all(|set| set.is_among(&steps().collect::<Vec<_>>()));
        Self { sets: Vec::new(), disruptive, ..self }
    }

    /// What these arguments add to the plan of the check.
    pub(crate) fn adds(&self) -> RemedyAddition {
        match () {
            () if self.disruptive => RemedyAddition::Disruption,
            () if *self == Self::planned() => RemedyAddition::Nothing,
            () => RemedyAddition::Options,
        }
    }

    /// Arguments after `ringwise plan`. `goal`: the goal that the user requested, unless it is the default. `devs`: the
    /// interfaces that the user named.
    pub(crate) fn words(&self, goal: Option<Goal>, devs: &[String]) -> Vec<String> {
        let flags = IntentFlags {
            devs: self.dev.as_ref().map_or_else(|| devs.to_vec(), |d| vec![d.clone()]),
            goal: self.goal.or(goal).map(GoalChoice::Of),
            set: self.sets.iter().map(SetArgument::argument).collect(),
            queues: self.queues,
            allow_disruption: self.disruptive,
            ..IntentFlags::default()
        };
        let mut words = flags.words();
        words.extend(self.take_over.then(|| "--take-over".to_string()));
        words
    }
}
