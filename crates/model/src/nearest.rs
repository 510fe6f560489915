//! The name that was probably meant, among known ones.

/// The known name that is nearest to `word`: few typing errors apart, or one that begins with it. Case, `-` and `_` do
/// not matter. `None`: no name is near.
pub fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |s: &str| s.chars().take(LONGEST).collect::<String>().to_lowercase().replace(['_', '-'], "");
    let word = plain(word);
    let letters = word.chars().count();
    // Counts insertions, deletions, replacements and swapped neighbours.
    let apart = |name: &str| strsim::osa_distance(&word, &plain(name));
    let best = among.into_iter().min_by_key(|name| apart(name))?;
    let typed_wrong = apart(best) <= (letters / 3).max(1) && apart(best) < letters;
    (typed_wrong || (letters >= 3 && plain(best).starts_with(&word))).then_some(best)
}

/// Characters that are compared, so that a long word costs little.
const LONGEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant() {
        assert_eq!(nearest("ring", ["rss", "rings", "match"]), Some("rings"));
        assert_eq!(nearest("rx-usec", ["rx-usecs", "tx-usecs"]), Some("rx-usecs"));
        assert_eq!(nearest("far-node", ["far_node", "smt"]), Some("far_node"));
        for swapped in ["rigns", "irngs", "rinsg", "RINGS"] {
            assert_eq!(nearest(swapped, ["rss", "rings", "match"]), Some("rings"), "{swapped}");
        }
        assert_eq!(nearest("eth9", ["eth0", "eth10"]), Some("eth0"));
        assert_eq!(nearest("stat", ["show", "status"]), Some("status"));
        for other in ["quux", "", "x"] {
            assert_eq!(nearest(other, ["rings", "rss", "y"]), None, "{other}");
        }
        assert_eq!(nearest("rings", []), None);
    }
}
