//! `ringwise adopt`

use ringwise_apply::{SettingInEffect, Store};
use ringwise_discover::Options;
use ringwise_knob::{Match, Step};
use ringwise_model::Title;

use super::transaction::{can_go_on, confirmed, fail, policy, printer, request, stderr_style, store};
use crate::args::{AdoptArgs, Common};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::{self, Source};
use ringwise_render::manual_changes;
use ringwise_text::plural;

pub(super) fn run(a: &AdoptArgs, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let style = crate::style::detect(common);
    let store = store(common);
    let steps = found(a, &source, &store, common)?;
    let as_json = a.format.json(common);
    if a.write.dry_run {
        if as_json {
            out::json(&serde_json::json!({ "schema": "ringwise.adopt", "version": 2, "settings": steps }))?;
        } else {
            out::answer(&manual_changes::adoptable(&steps, &style))?;
        }
        return Ok(Status::Ok);
    }
    if !steps.is_empty() {
        can_go_on(&a.write, "adopt")?;
        let list = || manual_changes::adoptable(&steps, &style);
        if !confirmed(
            &a.write,
            &format!("{}Adopt these values, so that ringwise expects them? [y/N/show]", list()),
            &list,
        )? {
            return Err(Fail::refused("not_confirmed", "not confirmed; nothing was recorded"));
        }
    }
    let title = Title::Adopt { devs: if a.all { Vec::new() } else { a.devs.clone() } };
    let before = Default::default();
    let err = stderr_style(&style);
    let mut print = printer(&source.host, &before, &err, common.quiet, a.reason.as_deref());
    let request = request(title, a.reason.as_ref());
    let outcome =
        ringwise_apply::adopt(&source.host, &store, &a.devs, &request, &policy()?, &mut print).map_err(|e| fail(&e))?;
    if as_json {
        out::json(&outcome)?;
    } else {
        out::answer(&manual_changes::adopted(&outcome, &style))?;
    }
    Ok(Status::Ok)
}

/// The settings that differ now. Naming a device to which nothing was applied is an error, because it is probably a typo.
fn found(a: &AdoptArgs, source: &Source, store: &Store, common: &Common) -> Result<Vec<Step>> {
    let s = source.snapshot(&Options { skip_rivals: true, ..Options::all() }, common)?;
    let mut v = ringwise_apply::verify_in(&s, store).map_err(|e| fail(&e))?;
    ringwise_apply::note_seen(store, &s, &mut v, source.host.unix_time());
    for dev in &a.devs {
        let on = |st: &&SettingInEffect| st.want.address().is_some_and(|x| x.dev() == Some(dev));
        if !v.settings.iter().any(|st| on(&st)) {
            if s.nic(dev).is_none() {
                return Err(source.no_such_device(dev, &s));
            }
            return Err(Fail::error(format!(
                "no settings of ringwise are in effect on {dev}, so there is nothing to adopt"
            ))
            .code("nothing_in_effect")
            .next("ringwise verify"));
        }
    }
    let blind = v.drifted().filter(|st| matches!(st.how, Match::Unknown(_))).count();
    if blind > 0 {
        out::note(
            common.quiet,
            &format!("ringwise: not adopted, because they cannot be read: {}", plural(blind, "setting")),
        );
    }
    Ok(ringwise_apply::adoptable(&v, &s, &a.devs))
}
