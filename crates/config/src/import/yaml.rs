//! The part of YAML that configuration files of nmstate and perftune.py use: mappings and sequences by indentation,
//! plain and quoted scalars, sequences in brackets, comments. Everything else is an error with its line.

/// A value with the line on which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub line: usize,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Also an empty value.
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// Something that is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub line: usize,
    pub why: &'static str,
}

/// Deeper nesting is refused; states of nmstate have about six levels.
const MAX_DEPTH: usize = 32;

struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

/// Parses one document.
pub(super) fn parse(text: &str) -> Result<Node, Unreadable> {
    let mut lines = Vec::new();
    for (i, raw) in text.lines().enumerate() {
        let number = i + 1;
        let bad = |why| Err(Unreadable { line: number, why });
        let body = without_comment(raw).trim_end();
        let trimmed = body.trim_start_matches(' ');
        if trimmed.is_empty() {
            continue;
        }
        if trimmed.starts_with('\t') {
            return bad("indentation by tabs");
        }
        match trimmed {
            "---" if lines.is_empty() => continue,
            "---" => return bad("more than one document"),
            "..." => break,
            t if t.starts_with('%') => return bad("a directive"),
            t => lines.push(Line { number, indent: body.len() - t.len(), text: t }),
        }
    }
    let mut parser = Parser { lines, at: 0 };
    let Some(first) = parser.lines.first() else {
        return Ok(Node { line: 1, value: Value::Map(Vec::new()) });
    };
    let indent = first.indent;
    let node = parser.block(indent, 0)?;
    match parser.lines.get(parser.at) {
        Some(l) => Err(Unreadable { line: l.number, why: "indentation that matches no line above" }),
        None => Ok(node),
    }
}

/// A `#` begins a comment at the beginning of a line or after white space, outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (i, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return &line[..i],
            // A quote inside of a plain word is part of it.
            (None, '\'' | '"') if before.is_whitespace() || matches!(before, '[' | ',' | ':') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            _ => {}
        }
        before = c;
    }
    line
}

struct Parser<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    /// The lines with this indentation, and those below them.
    fn block(&mut self, indent: usize, depth: usize) -> Result<Node, Unreadable> {
        let Line { number, text, .. } = self.lines[self.at];
        if depth > MAX_DEPTH {
            return Err(Unreadable { line: number, why: "nesting that is too deep" });
        }
        let value = if text == "-" || text.starts_with("- ") {
            Value::List(self.list(indent, depth)?)
        } else {
            Value::Map(self.map(indent, depth)?)
        };
        Ok(Node { line: number, value })
    }

    fn list(&mut self, indent: usize, depth: usize) -> Result<Vec<Node>, Unreadable> {
        let mut out = Vec::new();
        while let Some(l) = self.lines.get(self.at).filter(|l| l.indent == indent) {
            let (number, text) = (l.number, l.text);
            let Some(rest) = text.strip_prefix('-').filter(|r| r.is_empty() || r.starts_with(' ')) else { break };
            let inner = rest.trim_start();
            if inner.is_empty() {
                self.at += 1;
                out.push(self.below(indent, number, depth)?);
            } else if key_of(inner).is_some() || inner.starts_with("- ") || inner == "-" {
                // The rest of the line is the first line of a block that is indented as it stands there.
                let deeper = indent + (text.len() - inner.len());
                self.lines[self.at] = Line { number, indent: deeper, text: inner };
                out.push(self.block(deeper, depth + 1)?);
            } else {
                self.at += 1;
                out.push(inline(inner, number)?);
            }
        }
        Ok(out)
    }

    fn map(&mut self, indent: usize, depth: usize) -> Result<Vec<(String, Node)>, Unreadable> {
        let mut out: Vec<(String, Node)> = Vec::new();
        while let Some(l) = self.lines.get(self.at).filter(|l| l.indent == indent) {
            let (number, text) = (l.number, l.text);
            if text == "-" || text.starts_with("- ") {
                break;
            }
            let bad = |why| Unreadable { line: number, why };
            let (key, rest) = key_of(text).ok_or_else(|| bad("a line that is neither `key: value` nor `- item`"))?;
            let key = match inline(key, number)?.value {
                Value::Scalar(key) => key,
                _ => return Err(bad("a key that is not a word")),
            };
            if out.iter().any(|(k, _)| *k == key) {
                return Err(bad("a key that is there twice"));
            }
            self.at += 1;
            let node = if rest.is_empty() {
                // A list may have the same indentation as its key.
                match self.lines.get(self.at) {
                    Some(n) if n.indent == indent && (n.text == "-" || n.text.starts_with("- ")) => {
                        let line = n.number;
                        Node { line, value: Value::List(self.list(indent, depth + 1)?) }
                    }
                    _ => self.below(indent, number, depth)?,
                }
            } else {
                inline(rest, number)?
            };
            out.push((key, node));
        }
        Ok(out)
    }

    /// The block below a line with this indentation; an empty value if the next line is not deeper.
    fn below(&mut self, indent: usize, number: usize, depth: usize) -> Result<Node, Unreadable> {
        match self.lines.get(self.at).map(|n| n.indent).filter(|n| *n > indent) {
            Some(deeper) => self.block(deeper, depth + 1),
            None => Ok(Node { line: number, value: Value::Scalar(String::new()) }),
        }
    }
}

/// `key` and the value after its colon.
fn key_of(text: &str) -> Option<(&str, &str)> {
    let quoted = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let from = match quoted {
        Some(q) => 1 + text[1..].find(q)? + 1,
        None => 0,
    };
    if quoted.is_none() && text.starts_with(['[', '{']) {
        return None;
    }
    let colon = text[from..].match_indices(':').map(|(i, _)| from + i);
    let at = colon.into_iter().find(|i| text[i + 1..].is_empty() || text[i + 1..].starts_with(' '))?;
    Some((text[..at].trim_end(), text[at + 1..].trim()))
}

/// A scalar, or a sequence of scalars in brackets.
fn inline(text: &str, line: usize) -> Result<Node, Unreadable> {
    let bad = |why| Err(Unreadable { line, why });
    let value = match text.chars().next() {
        Some('[') => {
            let Some(inner) = text[1..].strip_suffix(']') else { return bad("a sequence over several lines") };
            if inner.contains(['[', '{', '"', '\'']) {
                return bad("a sequence in brackets with more than plain words");
            }
            let words = inner.split(',').map(str::trim).filter(|w| !w.is_empty());
            Value::List(words.map(|w| Node { line, value: Value::Scalar(w.to_string()) }).collect())
        }
        Some('{') if text == "{}" => Value::Map(Vec::new()),
        Some('{') => return bad("a mapping in braces"),
        Some('&' | '*') => return bad("an anchor or alias"),
        Some('!') => return bad("a tag"),
        Some('|' | '>') => return bad("a text over several lines"),
        Some('@' | '`' | '%') => return bad("a reserved character at the beginning of a value"),
        Some(q @ ('"' | '\'')) => {
            let Some(inner) = text[1..].strip_suffix(q).filter(|_| text.len() >= 2) else {
                return bad("a quoted text that does not end on its line");
            };
            if inner.contains(q) || (q == '"' && inner.contains('\\')) {
                return bad("an escaped character in a quoted text");
            }
            Value::Scalar(inner.to_string())
        }
        _ if text.contains(": ") => return bad("a second `key: value` on the line"),
        _ => Value::Scalar(text.to_string()),
    };
    Ok(Node { line, value })
}

impl Node {
    /// The value of a key of a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(k, _)| k == key).map(|(_, n)| n)
    }

    /// Keys and values; none if it is not a mapping.
    pub(super) fn entries(&self) -> &[(String, Node)] {
        if let Value::Map(all) = &self.value { all } else { &[] }
    }

    /// Items of a sequence; a scalar that is not empty is a sequence of one.
    pub(super) fn items(&self) -> Vec<&Node> {
        match &self.value {
            Value::List(all) => all.iter().collect(),
            Value::Scalar(text) if !text.is_empty() => vec![self],
            _ => Vec::new(),
        }
    }

    /// A scalar.
    pub(super) fn text(&self) -> Option<&str> {
        if let Value::Scalar(text) = &self.value { Some(text) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_by_indentation() {
        let text = "---\n# note\na: 1 # one\nb:\n  - x\n  - c: 'y: #'\n    d: [1, 2]\nl:\n- 1\n-\n  e: {}\nf: \"\"\n";
        let n = parse(text).unwrap();
        assert_eq!(n.get("a").unwrap().text(), Some("1"));
        let b = n.get("b").unwrap().items();
        assert_eq!((b[0].text(), b[0].line), (Some("x"), 5));
        assert_eq!((b[1].get("c").unwrap().text(), b[1].get("c").unwrap().line), (Some("y: #"), 6));
        assert_eq!(b[1].get("d").unwrap().items().len(), 2);
        let l = n.get("l").unwrap().items();
        assert_eq!((l.len(), l[1].get("e").unwrap().entries().len()), (2, 0));
        assert_eq!(n.get("f").unwrap().text(), Some(""));
        assert!(parse("").unwrap().entries().is_empty());
        // A MAC address and a path are plain words.
        assert_eq!(parse("mac: 52:54:00:12:34:56\n").unwrap().get("mac").unwrap().text(), Some("52:54:00:12:34:56"));
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (text, line, word) in [
            ("a: 1\nb: &x 2\n", 2, "anchor"),
            ("a: *x\n", 1, "alias"),
            ("a: !!str 1\n", 1, "tag"),
            ("a: |\n  text\n", 1, "several lines"),
            ("a: {b: 1}\n", 1, "braces"),
            ("a:\n\tb: 1\n", 2, "tabs"),
            ("a: 1\n---\nb: 2\n", 2, "document"),
            ("a: 1\na: 2\n", 2, "twice"),
            ("a: 1\n  b: 2\n", 2, "indentation"),
            ("words\n", 1, "neither"),
            ("a: \"b\n", 1, "does not end"),
            ("a: [1,\n  2]\n", 1, "several lines"),
            ("a: b: c\n", 1, "second"),
        ] {
            let e = parse(text).unwrap_err();
            assert_eq!(e.line, line, "{text}");
            assert!(e.why.contains(word), "{text}: {}", e.why);
        }
        let deep: String = (0..100).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
        assert!(parse(&deep).unwrap_err().why.contains("deep"));
        let dashes = format!("{}1\n", "- ".repeat(10_000));
        assert!(parse(&dashes).unwrap_err().why.contains("deep"));
    }

    /// Cut and disturbed texts are errors, and never a panic.
    #[test]
    fn every_part_of_a_text_is_read_or_refused() {
        let text = "---\na: 'x'\nb:\n  - \"y\"\n  - c: [µ, 2]\n  -\n    d: {}\nü: é\n";
        for (i, _) in text.char_indices() {
            let _ = parse(&text[..i]);
            let _ = parse(&text[i..]);
            for c in ['\'', '"', '[', '{', '-', ':', '\t', ' ', '\n', '#'] {
                let _ = parse(&format!("{}{c}{}", &text[..i], &text[i..]));
            }
        }
    }
}
