//! Command lines that are printed to be copied into a shell.

/// One word of a command line.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    // Some shells expand words that begin with these.
    let expands = word.starts_with(['=', '%']);
    if !word.is_empty() && !expands && word.chars().all(plain) {
        return word.to_string();
    }
    // A word cannot hold a NUL: it would not have got here as an argument.
    shlex::Quoter::new().allow_nul(true).quote(word).map_or_else(|_| word.to_string(), std::borrow::Cow::into_owned)
}

/// A whole command line.
pub fn join<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    words.into_iter().map(|w| quote(w.as_ref())).collect::<Vec<_>>().join(" ")
}

/// The words of a text that a person typed as a shell would read it. `None`: a quote has no end.
pub fn split(text: &str) -> Option<Vec<String>> {
    shlex::split(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_change_is_quoted() {
        let plain = "ringwise apply eth0 --cpus 0-3,8 --set eth0.rings.rx=1024 --config /etc/a.toml";
        assert_eq!(join(plain.split(' ')), plain);
        assert_eq!(join(["--set", "eth1.rss.table=\"weight 3 1\""]), "--set 'eth1.rss.table=\"weight 3 1\"'");
    }

    #[test]
    fn a_shell_reads_the_same_words() {
        let words =
            ["", " ", "a b", "it's", "$HOME", "`id`", "a\nb", "~", "=ls", "%1", "\\", "\"'", "!x", "^a^b", "é;#"];
        assert_eq!(shlex::split(&join(words)).unwrap(), words);
    }
}
