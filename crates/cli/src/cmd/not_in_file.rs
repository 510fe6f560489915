//! What a command line requests beside its configuration file, and what a boot, which reads the file alone, does not apply.

use std::path::Path;

use ringwise_config::{Config, HostPart, print_host_keys};
use ringwise_model::{ConfiguredBy, Intent};
use ringwise_plan::Plan;
use ringwise_render::plan::NotInFile;

/// What the plan has beside its configuration file.
pub(super) fn of(plan: &Plan) -> NotInFile {
    let file = plan.intent.config.as_ref().map(|f| ringwise_intent::load_config(Path::new(f)));
    // A plan file may be older than the configuration file that it names.
    file.and_then(Result::ok).map(|file| compared(&plan.intent, &file)).unwrap_or_default()
}

/// Compares `intent`, merged from `file` and the command line, with the file alone. The selected interfaces are not
/// compared.
fn compared(intent: &Intent, file: &Config) -> NotInFile {
    let h = &file.host_with(&intent.host_groups);
    let open = Intent {
        goal: intent.goal,
        smt: h.smt,
        far_node: h.far_node,
        pair_as_article: h.pair_as_article.unwrap_or_default(),
        ..Intent::default()
    };
    // The intent of a plan names the defaults of its goal too.
    let (full, open) = (ringwise_plan::in_full(intent), ringwise_plan::in_full(&open));
    let all = HostPart { interfaces: Vec::new(), ..Config::of_intent(&full).host };
    let own = HostPart {
        interfaces: Vec::new(),
        goal: Some(h.goal.unwrap_or_default()),
        smt: open.smt,
        far_node: open.far_node,
        ..h.clone()
    };
    let (all, own) = (print_host_keys(&all), print_host_keys(&own));
    let set = |by: &ConfiguredBy| matches!(by, ConfiguredBy::Argument { .. } | ConfiguredBy::Flag { .. });
    NotInFile {
        host: all.lines().filter(|line| !own.lines().any(|o| o == *line)).map(str::to_string).collect(),
        set: intent.wishes.iter().any(|w| w.dev.is_some() && set(&w.by)) || intent.groups.iter().any(|g| set(&g.by)),
        disruption: intent.allow_disruption && h.allow_disruption != Some(true),
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::{Goal, IntentFlags};
    use ringwise_testkit::machines;

    use super::*;

    const FILE: &str = "version = 1\n[host]\ngoal = \"forward\"\nreserve = \"0\"\nallow_disruption = true\n";

    fn beside(file: &str, flags: &IntentFlags) -> NotInFile {
        let c = ringwise_config::parse("x.toml", file).unwrap();
        let mut all = c.clone();
        all.lay(&ringwise_intent::of_flags(flags).unwrap());
        let bound = ringwise_config::bind(&all, &[], &machines::ten()[0].snapshot()).unwrap();
        compared(&ringwise_plan::in_full(&bound.intent), &c)
    }

    #[test]
    fn options_that_repeat_the_file_are_in_it() {
        let goal = Some(Goal::Forward.into());
        let flags = IntentFlags {
            goal,
            reserve: Some([0].into_iter().map(ringwise_model::CpuId).collect()),
            allow_disruption: true,
            ..IntentFlags::default()
        };
        assert_eq!(beside(FILE, &flags), NotInFile::default());
        assert_eq!(beside("version = 1\n", &IntentFlags::default()), NotInFile::default());
    }

    #[test]
    fn a_key_of_a_host_group_that_applies_is_in_the_file() {
        let file = "version = 1\n[host_group.all]\nmatch = { cpu_count = \">= 1\" }\nhost = { queues = 4 }\n";
        let flags = IntentFlags { queues: Some(4), ..IntentFlags::default() };
        let host = |text: &str| beside(text, &flags).host;
        assert_eq!(host(file), [""; 0]);
        assert_eq!(host(&file.replace(">= 1", "> 100000")), ["queues = 4"]);
    }

    #[test]
    fn options_that_the_file_lacks() {
        let flags = IntentFlags { queues: Some(4), allow_disruption: true, ..IntentFlags::default() };
        let got = beside(FILE, &flags);
        assert_eq!((got.host, got.set, got.disruption), (vec!["queues = 4".to_string()], false, false));
        let got = beside(&FILE.replace("allow_disruption = true\n", ""), &flags);
        assert_eq!(got.host, ["queues = 4", "allow_disruption = true"]);
        assert!(got.disruption);
    }
}
