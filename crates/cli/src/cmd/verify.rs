//! `ringwise verify`

use std::time::Duration;

use ringwise_apply::{Entry, Journals, Verify};
use ringwise_discover::Options;
use ringwise_knob::{Match, Of, Setting, irq};
use ringwise_model::{CpuSet, IrqId, Snapshot};
use ringwise_observe::{Counted as Count, Delta, IrqDelta, sample};

use super::hands;
use super::transaction::{fail, store};
use crate::args::{Common, VerifyArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::render::hands::Advice;
use crate::render::standing::{self, Counted};
use crate::render::text::host_name;
use crate::source::{self, Source};
use crate::style::Style;

pub fn run(a: &VerifyArgs, common: &Common) -> Result<Status> {
    let source = source::open(&a.from)?;
    let store = store(common);
    let options = Options { skip_rivals: true, ..Options::all() };
    let mut s = source.snapshot(&options, common)?;
    let look = |s: &Snapshot| {
        let journals = Journals::read(&store).map_err(|e| fail(&e))?;
        let mut v = journals.verify(s);
        if !source.recorded {
            ringwise_apply::note_seen(&store, s, &mut v, source.host.unix_time());
        }
        Ok((v, journals))
    };
    let (mut v, mut journals) = look(&s)?;
    if source.recorded && v.settings.is_empty() && v.unfinished.is_none() {
        // Nothing in this directory is about that host: that is no word on what was applied there.
        return Err(Fail::error(format!(
            "what was applied on {} is not known here: its record is kept on the host itself (below /var/lib/ringwise)",
            host_name(&s)
        ))
        .next("ringwise verify --from FILE --state-dir COPY-OF-ITS-RECORD"));
    }
    let mut counted = None;
    if let Some(time) = a.r#for {
        counted = Some((count(&source, &s, &v, time, common)?, time.as_secs_f64()));
        // The state after the counting is the one to tell.
        s = source.snapshot(&options, common)?;
        (v, journals) = look(&s)?;
    }
    let astray = counted.as_ref().is_some_and(|(c, _)| c.iter().any(Counted::astray));
    let status = if v.exit_status() != 0 || astray { Status::Findings } else { Status::Ok };
    if a.format.json(common) {
        let mut doc = serde_json::to_value(&v).map_err(|e| Fail::error(e.to_string()))?;
        if let Some((list, seconds)) = &counted {
            doc["counted"] = serde_json::json!({ "seconds": seconds, "queues": list });
        }
        out::json(&doc)?;
        return Ok(status);
    }
    let style = Style::detect(common);
    let counted = counted.as_ref().map(|(c, seconds)| (c.as_slice(), *seconds));
    let list = journals.history(&s.host);
    let last = standing::last_in_force(&list);
    let evidence = hands::evidence(&source, &s, &v, &store);
    let now = (!source.recorded).then(|| source.host.unix_time());
    let advice = Advice { again: last.map(put_back_command), evidence, now };
    out::answer(&standing::verify(&host_name(&s), &v, counted, &advice, &style))?;
    Ok(status)
}

/// The command that brings it back. A plan file was for the moment it was made in.
fn put_back_command(e: &Entry) -> String {
    let words = e.command.split(' ').filter(|w| *w != "--take-over");
    let command =
        if e.title.starts_with("plan ") { "ringwise apply".into() } else { words.collect::<Vec<_>>().join(" ") };
    format!("{command} --take-over")
}

struct Watched {
    dev: String,
    of: Of,
    irq: IrqId,
    planned: CpuSet,
    /// Its next interrupt still comes on the old CPU, and moves it.
    pending: bool,
}

/// Counts the interrupts of every queue that was placed.
fn count(source: &Source, s: &Snapshot, v: &Verify, time: Duration, common: &Common) -> Result<Vec<Counted>> {
    let watched: Vec<Watched> = v
        .settings
        .iter()
        .filter_map(|st| {
            let Setting::IrqCpus { dev, of, cpus } = &st.want else { return None };
            let irq = irq::vector(s.nic(dev)?, *of)?.irq;
            Some(Watched { dev: dev.clone(), of: *of, irq, planned: cpus.clone(), pending: st.how == Match::Pending })
        })
        .collect();
    let irqs: Vec<IrqId> = watched.iter().map(|w| w.irq).collect();
    let read = || sample(source.host.as_ref(), &irqs).map_err(|e| Fail::error(e.to_string()));
    let first = read()?;
    let step = Duration::from_secs(10);
    let mut left = time;
    while !left.is_zero() {
        out::note(common.quiet, &format!("ringwise: counting interrupts, {:.0} s left", left.as_secs_f64().ceil()));
        let now = left.min(step);
        source.host.sleep(now);
        left = left.saturating_sub(now);
    }
    let delta = Delta::between(&first, &read()?);
    Ok(watched.iter().map(|w| counted(w, delta.irqs.get(&w.irq))).collect())
}

fn counted(w: &Watched, d: Option<&IrqDelta>) -> Counted {
    let mut seen_on = d.and_then(IrqDelta::cpus);
    if w.pending
        && let (Some(seen), Some(IrqDelta::Counted(map))) = (&mut seen_on, d)
    {
        // The one interrupt that moved it is no mistake.
        for (cpu, c) in map {
            if *c == Count::More(1) && !w.planned.contains(*cpu) {
                seen.remove(*cpu);
            }
        }
    }
    Counted {
        dev: w.dev.clone(),
        queue: w.of.to_string(),
        planned: w.planned.clone(),
        seen_on,
        interrupts: d.and_then(IrqDelta::total),
    }
}
