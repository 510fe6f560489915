//! Faults that only `[host]` and groups together make.

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
    assert!(
        got.contains("pair_as_article makes groups of all queues itself, group \"latency\" is beside them"),
        "{got}"
    );
    assert!(got.contains("the group, or pair_as_article") && got.contains("[[interface.group]]"), "{got}");
    parse("f.toml", &file("goal = \"mixed\"", group)).unwrap();
}
