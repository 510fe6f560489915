//! Files of systemd, tuned and NetworkManager: sections, keys and values.

/// One `key = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IniSetting {
    /// The section without its brackets; empty before the first one.
    pub section: String,
    /// Without surrounding white space.
    pub key: String,
    /// Without surrounding white space; a line that ends in `\` continues in the next one.
    pub value: String,
    /// The first line of the setting, from 1.
    pub line: usize,
}

/// All settings in the order of the file. Lines that begin with `#` or `;`, and lines of another form, are ignored.
pub fn parse(text: &str) -> Vec<IniSetting> {
    let mut out = Vec::new();
    let mut section = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, first)) = lines.next() {
        let mut line = first.trim().to_string();
        if line.starts_with(['#', ';']) {
            continue;
        }
        while line.ends_with('\\') {
            let Some((_, next)) = lines.next() else { break };
            line.pop();
            line.push(' ');
            line.push_str(next.trim());
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.to_string();
        } else if let Some((key, value)) = line.split_once('=') {
            let (key, value) = (key.trim().to_string(), value.trim().to_string());
            out.push(IniSetting { section: section.clone(), key, value, line: at + 1 });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_continued_lines_and_their_places() {
        let all = parse("early=1\n[A]\nx = 1 \\\n  2\n# y=3\n;z=4\nno setting\n[B]\nw=\n");
        let shown: Vec<_> = all.iter().map(|s| (&*s.section, &*s.key, &*s.value, s.line)).collect();
        assert_eq!(shown, [("", "early", "1", 1), ("A", "x", "1  2", 3), ("B", "w", "", 9)]);
        assert_eq!(parse("a=\\").len(), 1);
    }
}
