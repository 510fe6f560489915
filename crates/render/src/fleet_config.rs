//! The page of `config check` about many hosts: on which of them a configuration file fits.

use std::collections::BTreeMap;

use ringwise_model::Snapshot;
use ringwise_model::order::Order;
use ringwise_plan::Plan;
use ringwise_text::{Style, Tint, hang, plural, thousands, visible};
use serde::Serialize;

use crate::fleet::{FailedCapture, HOSTS, Limit, OTHERS, entry, failures, host_cell, reads, summary, with_files};
use crate::skipped;
use crate::table::plain;

/// Reasons of a host that are kept for the page. JSON has all of them.
const KEPT: usize = 50;

/// What a configuration file does on a host, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigFit {
    /// The file is an error on this host, so it would change nothing.
    Fails,
    /// A part of what it requests cannot be set, is skipped or is unknown.
    FitsPartly,
    /// Everything that it requests can be set.
    Fits,
    /// Everything that it requests is in effect.
    ChangesNothing,
}

impl ConfigFit {
    const ALL: [Self; 4] = [Self::Fails, Self::FitsPartly, Self::Fits, Self::ChangesNothing];

    fn name(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::FitsPartly => "fits partly",
            Self::Fits => "fits",
            Self::ChangesNothing => "changes nothing",
        }
    }
}

/// A requested setting that the plan does not contain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NotPlanned {
    /// `eth1 rings 256 -> 1024`
    pub what: String,
    /// What prevents it.
    pub why: String,
}

/// A host with the file, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigOnHost {
    /// The capture, as the user named it.
    #[serde(skip)]
    pub file: String,
    /// Whether the file fits.
    pub verdict: ConfigFit,
    /// `None`: the name is unknown, or the host has none.
    pub host: Option<String>,
    /// Host groups of the file that apply.
    pub host_groups: Vec<String>,
    /// Where the entries for interfaces are that match one of this host.
    pub entries: Vec<String>,
    /// Number of settings that would be written.
    pub changes: usize,
    /// Whether one of them interrupts traffic.
    pub interrupts_traffic: bool,
    /// Requested settings that are not planned.
    pub not_planned: Vec<NotPlanned>,
    /// Notes about host groups for which something about this host is unknown.
    pub undecided: Vec<String>,
    /// Why the file fails.
    pub faults: Vec<String>,
    /// Why the file fails, without what differs between hosts: reasons that are alike are counted together.
    #[serde(skip)]
    alike: Vec<String>,
    /// Reasons that are not kept.
    #[serde(skip)]
    further: usize,
}

impl ConfigOnHost {
    /// A host on which the file fails for these reasons.
    pub fn failed(file: &str, s: &Snapshot, faults: Vec<String>) -> Self {
        Self {
            file: file.into(),
            verdict: ConfigFit::Fails,
            host: s.host.name.known().filter(|n| *n != "(none)").cloned(),
            host_groups: Vec::new(),
            entries: Vec::new(),
            changes: 0,
            interrupts_traffic: false,
            not_planned: Vec::new(),
            undecided: Vec::new(),
            alike: faults.clone(),
            faults,
            further: 0,
        }
    }

    /// The same; `alike`: why, without what differs between hosts.
    #[must_use]
    pub fn counted_as(self, alike: Vec<String>) -> Self {
        Self { alike, ..self }
    }

    /// A host for which the file has this plan.
    pub fn planned(file: &str, s: &Snapshot, plan: &Plan) -> Self {
        let skipped = plan.left_out.iter().filter(|l| l.is_user_configured()).map(|l| {
            let dev = l.setting.dev().unwrap_or("host");
            let why = match l.outage.as_str() {
                "" => "the decision is yours".to_string(),
                outage => format!("it interrupts traffic ({outage})"),
            };
            NotPlanned {
                what: format!("{dev} {}", skipped::change(&l.from, &l.setting)),
                why: format!("{why}; {}", l.reason),
            }
        });
        let impossible = plan.refused.iter().filter(|r| r.is_user_configured() || r.leaves_goal_incomplete());
        let impossible = impossible.map(|r| NotPlanned { what: r.what.clone(), why: r.why.to_string() });
        let not_planned: Vec<NotPlanned> = impossible.chain(skipped).collect();
        let verdict = match (not_planned.is_empty(), plan.steps.is_empty()) {
            (false, _) => ConfigFit::FitsPartly,
            (true, false) => ConfigFit::Fits,
            (true, true) => ConfigFit::ChangesNothing,
        };
        let (changes, interrupts_traffic) = (plan.steps.len(), plan.interrupts_traffic());
        Self { verdict, changes, interrupts_traffic, not_planned, ..Self::failed(file, s, Vec::new()) }
    }

    /// The same with the parts of the file that are for this host. If a host group is undecided, it is unknown what the
    /// host itself would get.
    #[must_use]
    pub fn with_parts(self, host_groups: Vec<String>, entries: Vec<String>, undecided: Vec<String>) -> Self {
        let verdict = if undecided.is_empty() { self.verdict } else { self.verdict.min(ConfigFit::FitsPartly) };
        Self { verdict, host_groups, entries, undecided, ..self }
    }

    /// Drops what the page does not show, so that many hosts need little memory.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        self.further = self.not_planned.len().saturating_sub(KEPT);
        self.not_planned.truncate(KEPT);
        self.entries = Vec::new();
        self
    }

    /// `faults`: those of the host, or those that are alike on several hosts.
    fn reasons<'a>(&'a self, faults: &'a [String]) -> impl Iterator<Item = String> + 'a {
        let planned = self.not_planned.iter().map(|n| format!("{}: {}", n.what, n.why));
        faults.iter().chain(&self.undecided).cloned().chain(planned)
    }

    fn skipped(&self) -> usize {
        self.not_planned.len() + self.further + self.undecided.len()
    }
}

/// Sorts hosts: those on which the file fails first, then those with the most skipped settings, then by file.
pub fn worst_first(hosts: &mut [ConfigOnHost]) {
    hosts.order_by(|a, b| {
        let key = |h: &ConfigOnHost| (h.verdict, std::cmp::Reverse(h.skipped()));
        key(a).cmp(&key(b)).then_with(|| a.file.cmp(&b.file))
    });
}

/// What is shown besides the hosts.
#[derive(Debug, Clone, Default)]
pub struct ConfigPage<'a> {
    /// The configuration file, as the user named it.
    pub config: &'a str,
    /// Captures that cannot be read.
    pub failed: &'a [FailedCapture],
    /// Parts of the file that match none of the hosts, one text each.
    pub unmatched: &'a [String],
    /// No list is shortened.
    pub all: bool,
}

/// The page. `hosts`: the worst first. With `-v` the reasons are listed for each host.
pub fn page(hosts: &[ConfigOnHost], p: &ConfigPage, style: &Style) -> String {
    let limit = Limit::new(p.all, style);
    let counts = ConfigFit::ALL.into_iter().filter_map(|v| {
        let n = hosts.iter().filter(|h| h.verdict == v).count();
        (n > 0).then(|| format!("{} on {}", v.name(), thousands(n as u64)))
    });
    let counts: Vec<String> = counts.collect();
    let mut out = hang("", &format!("{}: {}", visible(p.config), summary(hosts.len(), &counts, p.failed)), style.width);
    out += &failures("NOT READ", p.failed, &limit, style);
    let shown = limit.of(HOSTS, hosts.len());
    if let Some(list) = hosts.get(..shown).filter(|l| !l.is_empty()) {
        out.push('\n');
        out += &table(list, style);
        out += &limit.more(shown, hosts.len());
    }
    out += &match style.verbose {
        0 => shared_reasons(hosts, &limit, style),
        _ => reasons_of_hosts(hosts, &limit, style),
    };
    out += &list("Parts of the file that match none of these hosts:", p.unmatched, &limit, style);
    if let Some(first) = hosts.first() {
        let config = ringwise_model::shell::quote(p.config);
        let next = match first.verdict {
            // A plan would only repeat the reason.
            ConfigFit::Fails => {
                let show = reads("ringwise show", &first.file);
                format!("correct {config}; to see what this host has:\n  {show}")
            }
            _ => reads(&format!("ringwise plan --config {config}"), &first.file),
        };
        out += &format!("\nNext: {next}\n");
    }
    out
}

fn table(hosts: &[ConfigOnHost], style: &Style) -> String {
    let mut rows = vec![["HOST", "RESULT", "CHANGES", "NOT SET", "HOST GROUPS"].map(String::from).to_vec()];
    for h in hosts {
        let number = |n: usize| if h.verdict == ConfigFit::Fails { "-".into() } else { thousands(n as u64) };
        let groups = match (h.host_groups.as_slice(), style.width) {
            ([], _) => "-".into(),
            ([one], _) => one.clone(),
            (all, None) => all.join(" "),
            ([first, rest @ ..], _) => format!("{first} +{}", rest.len()),
        };
        let host = host_cell(h.host.as_deref(), style);
        rows.push(vec![host, h.verdict.name().into(), number(h.changes), number(h.skipped()), groups]);
    }
    let files: Vec<&str> = hosts.iter().map(|h| h.file.as_str()).collect();
    with_files(&plain(&rows, &[2, 3]), &files, style)
}

/// Why the file fails or fits partly: each reason once, the most frequent first.
fn shared_reasons(hosts: &[ConfigOnHost], limit: &Limit, style: &Style) -> String {
    let mut out = String::new();
    for (verdict, title) in
        [(ConfigFit::Fails, "Why the file fails:"), (ConfigFit::FitsPartly, "Why the file fits only partly:")]
    {
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        let mine = || hosts.iter().filter(|h| h.verdict == verdict);
        mine().flat_map(|h| h.reasons(&h.alike)).for_each(|r| *count.entry(r).or_default() += 1);
        let mut all: Vec<(String, usize)> = count.into_iter().collect();
        all.order_by_key(|(_, n)| std::cmp::Reverse(*n));
        let texts: Vec<String> = all.into_iter().map(|(r, n)| format!("{}: {r}", plural(n, "host"))).collect();
        out += &list(title, &texts, limit, style);
    }
    out
}

fn reasons_of_hosts(hosts: &[ConfigOnHost], limit: &Limit, style: &Style) -> String {
    let mut out = String::new();
    let with: Vec<&ConfigOnHost> = hosts.iter().filter(|h| h.reasons(&h.faults).next().is_some()).collect();
    let shown = limit.of(HOSTS, with.len());
    for h in with.iter().take(shown) {
        let mut texts: Vec<String> = h.reasons(&h.faults).collect();
        texts.extend((h.further > 0).then(|| format!("and {} more (-j)", thousands(h.further as u64))));
        let name = h.host.as_deref().unwrap_or(&h.file);
        out += &list(&format!("{}, {}:", visible(name), h.verdict.name()), &texts, &Limit::new(true, style), style);
    }
    out + &limit.more(shown, with.len())
}

fn list(title: &str, texts: &[String], limit: &Limit, style: &Style) -> String {
    if texts.is_empty() {
        return String::new();
    }
    let shown = limit.of(OTHERS, texts.len());
    let mut out = format!("\n{}\n", style.paint(Tint::Bold, title));
    texts.iter().take(shown).for_each(|t| out += &entry(&visible(t), style));
    out + &limit.more(shown, texts.len())
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::machines;
    use ringwise_text::len;

    use super::*;

    fn host(file: &str, verdict: ConfigFit, not_planned: usize) -> ConfigOnHost {
        let s = machines::ten()[0].snapshot();
        let one = |i: usize| NotPlanned { what: format!("eth{i} rings"), why: "not supported by the driver".into() };
        let not_planned = (0..not_planned).map(one).collect();
        let (changes, host) = (12, Some(format!("host-of-{file}")));
        ConfigOnHost { verdict, not_planned, changes, host, ..ConfigOnHost::failed(file, &s, Vec::new()) }
    }

    fn fleet() -> Vec<ConfigOnHost> {
        let mut all = vec![
            host("caps/a.tar.gz", ConfigFit::ChangesNothing, 0),
            host("caps/b.tar.gz", ConfigFit::FitsPartly, 1),
            host("caps/c.tar.gz", ConfigFit::Fits, 0),
            host("caps/d.tar.gz", ConfigFit::FitsPartly, 2),
            host("caps/e.tar.gz", ConfigFit::Fails, 0),
        ];
        all[4].faults = vec!["fleet.toml line 3: a fault".into()];
        all[4].alike = all[4].faults.clone();
        worst_first(&mut all);
        all
    }

    #[test]
    fn the_worst_host_is_first_and_the_counts_are_on_top() {
        let all = fleet();
        let files: Vec<&str> = all.iter().map(|h| h.file.as_str()).collect();
        assert_eq!(files, ["e", "d", "b", "c", "a"].map(|f| format!("caps/{f}.tar.gz")));
        let p = ConfigPage { config: "fleet.toml", ..ConfigPage::default() };
        let text = page(&all, &p, &Style::plain(None));
        let first = "fleet.toml: 5 hosts: fails on 1, fits partly on 2, fits on 1, changes nothing on 1\n";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("  2 hosts: eth0 rings: not supported by the driver\n  1 host: eth1"), "{text}");
        assert!(text.contains("Why the file fails:\n  1 host: fleet.toml line 3: a fault\n"), "{text}");
        let show = "Next: correct fleet.toml; to see what this host has:\n  ringwise show --from caps/e.tar.gz\n";
        assert!(text.ends_with(show), "{text}");
        let text = page(&all[1..], &p, &Style::plain(None));
        assert!(text.ends_with("Next: ringwise plan --config fleet.toml --from caps/d.tar.gz\n"), "{text}");
    }

    #[test]
    fn faults_that_are_alike_are_counted_together() {
        let s = machines::ten()[0].snapshot();
        let fails = |file: &str, has: &str| {
            let host = ConfigOnHost::failed(file, &s, vec![format!("there is no interface eth9; this host has {has}")]);
            host.counted_as(vec!["there is no interface eth9".into()])
        };
        let (all, p) =
            ([fails("a", "eth0"), fails("b", "eth1")], ConfigPage { config: "r.toml", ..ConfigPage::default() });
        let text = page(&all, &p, &Style::plain(None));
        assert!(text.contains("Why the file fails:\n  2 hosts: there is no interface eth9\n"), "{text}");
        let text = page(&all, &p, &Style { verbose: 1, ..Style::plain(None) });
        assert!(text.contains("eth9; this host has eth0\n") && text.contains("eth9; this host has eth1\n"), "{text}");
    }

    #[test]
    fn lines_fit_a_terminal() {
        let mut all = fleet();
        all[1].host = Some("a-host-with-a-very-long-name.example.net".into());
        all[1].host_groups = vec!["edge".into(), "large".into(), "amsterdam".into()];
        let unmatched = ["fleet.toml line 8: no interface of these hosts matches name eth9, driver ixgbe".to_string()];
        for verbose in [0, 1] {
            let style = Style { verbose, ..Style::plain(Some(80)) };
            let p = ConfigPage { config: "fleet.toml", unmatched: &unmatched, ..ConfigPage::default() };
            let text = page(&all, &p, &style);
            assert!(text.lines().all(|l| l.starts_with("Next: ") || len(l) <= 80), "{text}");
            assert!(text.contains("edge +2"), "{text}");
            assert!(text.contains("matches name eth9"), "{text}");
        }
    }

    #[test]
    fn an_undecided_group_never_fits() {
        let fits = host("x", ConfigFit::Fits, 0);
        let undecided = || vec!["host group a does not apply, because the host name is unknown".to_string()];
        assert_eq!(fits.clone().with_parts(Vec::new(), Vec::new(), Vec::new()).verdict, ConfigFit::Fits);
        let partly = fits.with_parts(Vec::new(), Vec::new(), undecided());
        assert_eq!((partly.verdict, partly.skipped()), (ConfigFit::FitsPartly, 1));
        let fails = host("x", ConfigFit::Fails, 0).with_parts(Vec::new(), Vec::new(), undecided());
        assert_eq!(fails.verdict, ConfigFit::Fails);
    }

    #[test]
    fn few_reasons_are_kept() {
        let h = host("x", ConfigFit::FitsPartly, 70).shortened();
        assert_eq!((h.not_planned.len(), h.skipped()), (KEPT, 70));
    }
}
