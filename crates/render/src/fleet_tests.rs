use super::*;
use ringwise_model::Goal;

fn host(name: Option<&str>, file: &str, errors: usize) -> HostSummary {
    HostSummary {
        file: file.into(),
        host: name.map(str::to_string),
        errors,
        warnings: 2,
        infos: 1,
        planned: true,
        worst: ["A03", "Q14", "A02", "Q04", "A08"].map(String::from).to_vec(),
        rules: ["A02", "A03", "A08", "H26", "Q04", "Q14"].map(String::from).to_vec(),
    }
}

fn planned_host(file: &str, steps: usize) -> PlannedHost {
    PlannedHost {
        file: file.into(),
        host: Some("edge7".into()),
        devices: [("eth0", "igb"), ("eth1", "igb"), ("mq0", "")].map(|(a, b)| (a.to_string(), b.to_string())).to_vec(),
        goal: Goal::Rpc,
        steps,
        interrupts_traffic: steps > 5,
        not_planned: 0,
    }
}

fn terminal() -> Style {
    Style::plain(Some(80))
}

#[test]
fn a_row_fits_a_terminal_and_is_whole_elsewhere() {
    let long = "caps/rack-12/a-directory-with-a-long-name/and-another-one/host-with-a-long-name.example.net.tar.gz";
    let name = "host-with-a-long-name.example.net";
    let hosts = [host(Some(name), long, 3), host(None, "caps/b.tar.gz", 0)];
    let page = checked(&hosts, &[], false, None, &terminal());
    assert!(page.lines().all(|l| l.starts_with("Next: ") || len(l) <= 80), "{page}");
    assert!(page.contains("\nhost-with-a-long-na…       3         2  A03 Q14 A02 +2  …"), "{page}");
    assert!(page.contains("\nfiles in caps/\nHOST  ") && page.contains("A03 Q14 A02 +2  b.tar.gz\n"), "{page}");
    let page = checked(&hosts, &[], false, None, &Style::plain(None));
    assert!(page.contains(&format!("{name}       3         2  A03 Q14 A02 Q04 A08  {long}\n")), "{page}");
    assert!(page.contains("  A02  2 of 2  interrupt is not pinned"), "{page}");
    assert!(page.ends_with(&format!("\nNext: ringwise check --from {long}\n")), "{page}");
    let page = checked(&hosts, &[], false, Some("forward"), &Style::plain(None));
    assert!(page.ends_with(&format!("\nNext: ringwise check --goal forward --from {long}\n")), "{page}");
}

#[test]
fn names_of_a_capture_control_no_terminal() {
    let bad = "a\u{1b}[2J\nROW\u{202e}";
    let mut h = host(Some(bad), bad, 1);
    let failed = |expected| FailedCapture { file: bad.into(), why: bad.into(), expected };
    let mut planned_one = planned_host(bad, 9);
    planned_one.host = Some(bad.into());
    planned_one.devices = vec![(bad.into(), bad.into())];
    for style in [terminal(), Style::plain(None), Style { color: true, ..terminal() }] {
        h.planned = !h.planned;
        let group = PlanGroup { example: planned_one.clone(), others: vec![bad.into()] };
        let style = Style { verbose: 1, ..style };
        let pages = [
            checked(&[h.clone(), h.clone()], &[failed(None), failed(Some("a capture"))], false, None, &style),
            planned(&[group], &[failed(None), failed(Some("a capture"))], "ringwise plan", false, &style),
        ];
        for page in pages {
            // The last filter for whole texts replaces escape characters; it cannot know which lines are ours.
            assert!(!page.lines().any(|l| l.starts_with("ROW")), "{page}");
            let safe = ringwise_text::visible::text(&page, true);
            assert!(!safe.contains("\u{1b}[2J") && !safe.contains('\u{202e}'), "{safe}");
        }
    }
}

#[test]
fn colours_are_used_only_if_the_style_has_them() {
    let failed = [FailedCapture { file: "x".into(), why: "open x: ENOENT".into(), expected: Some("a capture") }];
    let hosts = [host(None, "a", 1), host(None, "b", 1)];
    let groups = [PlanGroup { example: planned_host("a", 3), others: Vec::new() }];
    let pages = |style: &Style| {
        checked(&hosts, &failed, false, None, style) + &planned(&groups, &failed, "ringwise plan", false, style)
    };
    assert!(!pages(&terminal()).contains('\u{1b}'));
    let coloured = pages(&Style { color: true, ..terminal() });
    assert!(coloured.contains("\u{1b}[31mNOT READ\u{1b}[0m\n"), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[1m1 of 1 hosts has this plan\u{1b}[0m: goal rpc, 3 changes\n"), "{coloured:?}");
}

#[test]
fn a_long_list_ends_with_what_is_not_shown() {
    let hosts: Vec<HostSummary> = (0..1234).map(|n| host(None, &format!("c/{n}.tar.gz"), 0)).collect();
    let page = checked(&hosts, &[], false, None, &terminal());
    assert!(
        page.starts_with("1,234 hosts: 1,234 with warnings only\n") && page.contains("\n  and 1,214 more (--all)\n"),
        "{page}"
    );
    for page in [checked(&hosts, &[], true, None, &terminal()), checked(&hosts, &[], false, None, &Style::plain(None))]
    {
        assert!(!page.contains("(--all)") && page.contains("1233.tar.gz"), "{page}");
    }
    // One more line than the limit is shown instead of counted.
    let page = checked(&hosts[..21], &[], false, None, &terminal());
    assert!(!page.contains("(--all)") && page.contains("20.tar.gz"), "{page}");
}

#[test]
fn groups_name_an_example() {
    let others: Vec<String> = (0..212).map(|n| format!("c/{n}")).collect();
    let groups = [
        PlanGroup { example: planned_host("c/a", 24), others },
        PlanGroup { example: planned_host("c/b", 1), others: vec!["c/c".into()] },
        PlanGroup { example: planned_host("c/z", 0), others: Vec::new() },
    ];
    let page = planned(&groups, &[], "ringwise plan --goal rpc", false, &terminal());
    let want = "216 hosts: 2 different plans, nothing to do on 1

213 of 216 hosts share this plan: goal rpc, 24 changes, interrupts traffic
  example edge7: eth0 eth1 (igb), mq0 (driver unknown)
  ringwise plan --goal rpc --from c/a

2 of 216 hosts share this plan: goal rpc, 1 change
  example edge7: eth0 eth1 (igb), mq0 (driver unknown)
  ringwise plan --goal rpc --from c/b

nothing to do on 1 of 216 hosts: goal rpc
  example edge7: eth0 eth1 (igb), mq0 (driver unknown)
  ringwise plan --goal rpc --from c/z
";
    assert_eq!(page, want);
    let listed = planned(&groups, &[], "ringwise plan", false, &Style { verbose: 1, ..terminal() });
    assert!(listed.contains("  and c/c\n") && listed.contains(" c/211\n"), "{listed}");
}

#[test]
fn no_capture_could_be_read() {
    let failed = [FailedCapture { file: "x".into(), why: "open x: ENOENT".into(), expected: Some("a capture") }];
    let want = "0 hosts; 1 capture could not be used\n\nNOT READ\n  open x: ENOENT\n  Expected: a capture\n";
    assert_eq!(checked(&[], &failed, false, None, &terminal()), want);
    assert_eq!(planned(&[], &failed, "ringwise plan", false, &terminal()), want.replace("READ", "PLANNED"));
}
