//! A plan as a request of a transaction.

use ringwise_apply::Request;
use ringwise_model::Requested;
use ringwise_plan::Plan;

use crate::replan::{unchanged_settings, without_names};

/// The steps of the plan, and what belongs to the transaction besides them. `at_boot`: no user can be asked, programs may start
/// later, and links may come up later. The title, the user and the command line are missing.
pub fn request(plan: &Plan, requested: Requested, at_boot: bool) -> Request {
    let unmet = plan.refused.iter().filter(|r| r.is_user_configured() && !(at_boot && r.is_expected_at_boot()));
    let mut request = Request {
        devices: plan.devices.clone(),
        steps: plan.steps.clone(),
        kept: plan.kept.iter().map(|k| k.hand.clone()).collect(),
        already: unchanged_settings(plan),
        unmet: unmet.filter_map(|r| r.address.clone()).collect(),
        requested: Some(requested),
        ..Request::default()
    };
    if at_boot {
        without_names(&mut request.steps);
    }
    request
}
