//! An imported configuration with which a plan is possible.

use ringwise_config::import::{Chosen, ChosenSetting, ImportedValue};
use ringwise_model::Snapshot;
use ringwise_plan::{Plan, Refusal};

/// Plans with the choices, as `ringwise plan --config` would, and drops those that no plan accepts. The error is the reason
/// why no plan is possible even without them.
pub(super) fn plan(chosen: &mut Chosen, s: &Snapshot) -> Result<Plan, String> {
    loop {
        // A match by the name of an interface of this host is never ambiguous.
        let bound = ringwise_config::bind(&chosen.config(s), &[], s).unwrap_or_default();
        let refusal = match ringwise_plan::plan(s, &bound.intent, &[]) {
            Ok(plan) => return Ok(plan),
            Err(refusal) => refusal,
        };
        let before = chosen.choices.len();
        drop_one(chosen, &refusal);
        if chosen.choices.len() == before {
            return Err(refusal.to_string());
        }
    }
}

/// Drops one line of the file. The numbers of the choices change, so the next one needs a new plan.
fn drop_one(chosen: &mut Chosen, refusal: &Refusal) {
    let (at, why) = match refusal {
        Refusal::WrongWishes { wrong } => {
            let of = |said: &str| (0..chosen.choices.len()).find(|at| Chosen::place_of(*at).to_string() == said);
            let Some((at, w)) = wrong.iter().find_map(|w| Some((of(&w.said)?, w))) else { return };
            (at, format!("{}: {}; {}", w.what, w.mistake.found(), w.mistake.right()))
        }
        other => {
            let concerns = |c: &ChosenSetting| match (other, &c.part) {
                (Refusal::Conflict { dev, .. }, ImportedValue::IrqCpus(..)) => c.dev.as_ref() == Some(dev),
                (
                    Refusal::CpuBeyondMachine { .. } | Refusal::NoCandidates { .. } | Refusal::NoNearCandidates { .. },
                    ImportedValue::Cpus(_) | ImportedValue::ExcludeCpus(_),
                ) => true,
                _ => false,
            };
            let Some(at) = chosen.choices.iter().position(concerns) else { return };
            (at, other.to_string())
        }
    };
    chosen.drop_line(at, &why);
}
