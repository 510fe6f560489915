//! Errors that only `[host]` and groups together cause.

use ringwise_config::parse;

fn faults(text: &str) -> Vec<String> {
    parse("f.toml", text).expect_err("sound").to_string().lines().map(str::to_string).collect()
}

/// A file with this host part, and a group of eth0.
fn file(host: &str, group: &str) -> String {
    format!(
        "version = 1\n[host]\n{host}\n[[interface]]\nmatch = {{ name = \"eth0\" }}\n[[interface.group]]\nname = \"latency\"\n{group}\n"
    )
}

#[test]
fn groups_beside_the_articles() {
    let group = "policy = \"cpu\"\ncpus = \"2-3\"\nflows = [\"tcp4 dst-port 443\"]";
    let got = faults(&file("goal = \"mixed\"\npair_as_article = true", group)).join("\n");
    assert!(got.contains("pair_as_article creates its own groups, so group \"latency\" conflicts"), "{got}");
    assert!(got.contains("either the group or pair_as_article") && got.contains("[[interface.group]]"), "{got}");
    parse("f.toml", &file("goal = \"mixed\"", group)).unwrap();
}

#[test]
fn a_useless_or_conflicting_number_of_latency_queues() {
    let policy = "policy = \"cpu\"";
    let got = faults(&file("goal = \"rpc\"\nlatency_queues = 3", policy)).join("\n");
    assert!(got.contains("latency_queues needs goal mixed, but the goal is rpc"), "{got}");
    for queues in ["queues = 1", "queues = [0]"] {
        let got = faults(&file("goal = \"mixed\"\nlatency_queues = 3", &format!("{policy}\n{queues}"))).join("\n");
        assert!(got.contains("group \"latency\" has 1 queue, but latency_queues is 3"), "{got}");
    }
    for good in ["queues = 3", "queues = \"5-7\"", "queues = \"auto\"", ""] {
        parse("f.toml", &file("goal = \"mixed\"\nlatency_queues = 3", &format!("{policy}\n{good}"))).unwrap();
    }
    // The command line or an interface may set the goal.
    parse("f.toml", &file("latency_queues = 3", policy)).unwrap();
    let other = "policy = \"cpu\"\n[[interface]]\nmatch = { name = \"eth1\" }\ngoal = \"mixed\"";
    parse("f.toml", &file("goal = \"rpc\"\nlatency_queues = 3", other)).unwrap();
}
