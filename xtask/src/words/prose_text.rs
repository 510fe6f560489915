//! The text of a file that people read: comments, string literals, and documents without their code.

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rust,
    C,
    /// Shell, Python, TOML and units: comments only.
    Script,
    Markdown,
    /// YAML: values too, such as the names of tasks.
    Yaml,
    /// Strings of at least two words: a string of one word is a key, or the name of a key or value in a list.
    Json,
}

impl Kind {
    pub(super) fn of(file: &str) -> Option<Self> {
        let name = file.rsplit('/').next().unwrap_or(file);
        if matches!(name, "Makefile" | "run" | "postinst" | "prerm" | "postrm") {
            return Some(Self::Script);
        }
        match name.rsplit_once('.')?.1 {
            "rs" => Some(Self::Rust),
            "c" | "h" => Some(Self::C),
            "sh" | "toml" | "py" | "service" => Some(Self::Script),
            "md" => Some(Self::Markdown),
            "yml" | "yaml" => Some(Self::Yaml),
            // Others are results and recordings.
            "json" if file.starts_with("schemas/") => Some(Self::Json),
            _ => None,
        }
    }
}

/// The separator between two texts that do not belong together.
const GAP: char = '\u{0}';

/// Lower case, with one space for any white space, and the line of each character.
#[derive(Default)]
pub(super) struct Prose {
    text: String,
    /// By byte of `text`.
    lines: Vec<usize>,
}

impl Prose {
    fn push(&mut self, c: char, line: usize) {
        let c = if c.is_whitespace() { ' ' } else { c };
        if c == ' ' && self.text.ends_with([' ', GAP]) || c == GAP && self.text.ends_with(GAP) {
            return;
        }
        for lower in c.to_lowercase() {
            self.text.push(lower);
            self.lines.resize(self.text.len(), line);
        }
    }

    fn gap(&mut self, line: usize) {
        self.push(GAP, line);
    }

    /// Lines in which a term begins, as whole words.
    pub(super) fn find(&self, term: &str) -> impl Iterator<Item = usize> {
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        self.text.match_indices(term).filter_map(move |(at, _)| {
            let (before, after) = (self.text[..at].chars().next_back(), self.text[at + term.len()..].chars().next());
            (!word(before) && !word(after)).then(|| self.lines[at])
        })
    }
}

pub(super) fn of(text: &str, kind: Kind) -> Prose {
    match kind {
        Kind::Rust | Kind::C => source(text, kind),
        Kind::Script => script(text),
        Kind::Markdown => markdown(text),
        Kind::Yaml => yaml(text),
        Kind::Json => source(text, kind),
    }
}

/// The text of a line without the parts between backquotes.
fn words(out: &mut Prose, text: &str, line: usize) {
    for (i, part) in text.split('`').enumerate() {
        if i % 2 == 1 {
            out.gap(line);
        } else {
            part.chars().for_each(|c| out.push(c, line));
        }
    }
}

fn markdown(text: &str) -> Prose {
    let (mut out, mut code) = (Prose::default(), false);
    for (n, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if code || line.trim().is_empty() {
            out.gap(n + 1);
        } else {
            words(&mut out, line, n + 1);
            out.push(' ', n + 1);
        }
    }
    out
}

/// A value may go on in the next line; a new key or item begins a new text.
fn yaml(text: &str) -> Prose {
    let mut out = Prose::default();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim_start().trim_start_matches(['#', '-', ' ']);
        let key = line.split_once(':').filter(|(key, _)| !key.is_empty() && !key.contains(' '));
        if line.is_empty() || key.is_some() {
            out.gap(n + 1);
        }
        words(&mut out, key.map_or(line, |(_, value)| value), n + 1);
        out.push(' ', n + 1);
    }
    out
}

fn script(text: &str) -> Prose {
    let mut out = Prose::default();
    for (n, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix('#') {
            Some(comment) => {
                words(&mut out, comment, n + 1);
                out.push(' ', n + 1);
            }
            None => {
                out.gap(n + 1);
                if let Some((_, comment)) = line.split_once(" # ") {
                    words(&mut out, comment, n + 1);
                    out.gap(n + 1);
                }
            }
        }
    }
    out
}

/// Comments, if there are any, and string literals, except of C. A comment that goes on in the next line is one text.
fn source(text: &str, kind: Kind) -> Prose {
    let mut out = Prose::default();
    let (mut rest, mut line) = (text, 1);
    while let Some(c) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("//").filter(|_| kind != Kind::Json) {
            let end = comment.find('\n').unwrap_or(comment.len());
            words(&mut out, comment[..end].trim_start_matches(['/', '!']), line);
            rest = &comment[end..];
            // It is joined with a comment in the next line, and separated from code after it.
            out.push(' ', line);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/").unwrap_or(comment.len());
            for l in comment[..end].split_inclusive('\n') {
                words(&mut out, l.trim_start().trim_start_matches('*'), line);
                line += usize::from(l.ends_with('\n'));
            }
            out.gap(line);
            rest = comment.get(end + 2..).unwrap_or_default();
        } else if let Some((literal, after)) = raw(rest, kind).or_else(|| quoted(rest)) {
            out.gap(line);
            let folded = literal.replace("\\n", " ");
            for l in folded.split_inclusive('\n') {
                let name = kind == Kind::Json && !literal.contains(' ');
                if kind != Kind::C && !name {
                    words(&mut out, l.trim_end_matches('\n').trim_end_matches('\\'), line);
                    out.push(' ', line);
                }
                line += usize::from(l.ends_with('\n'));
            }
            out.gap(line);
            rest = after;
        } else if let Some(after) = character(rest) {
            out.gap(line);
            rest = after;
        } else {
            line += usize::from(c == '\n');
            if !c.is_whitespace() {
                out.gap(line);
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// String literals of Rust with at least two words, without tests: what a user may see. A literal over several lines is one
/// text, with its first line.
pub(super) fn literals(text: &str) -> Vec<(usize, String)> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let (mut rest, mut line, mut out) = (text, 1, Vec::new());
    while let Some(c) = rest.chars().next() {
        let after = if rest.starts_with("//") {
            &rest[rest.find('\n').unwrap_or(rest.len())..]
        } else if let Some((literal, after)) = raw(rest, Kind::Rust).or_else(|| quoted(rest)) {
            let folded: Vec<&str> = literal.split("\\\n").map(str::trim_start).collect();
            let folded = folded.join("").replace('\n', " ");
            if folded.split_whitespace().filter(|w| w.chars().any(char::is_alphabetic)).count() > 1 {
                out.push((line, folded));
            }
            after
        } else {
            character(rest).unwrap_or(&rest[c.len_utf8()..])
        };
        line += rest[..rest.len() - after.len()].matches('\n').count();
        rest = after;
    }
    out
}

/// A raw string literal: its text, and the rest of the text.
fn raw(text: &str, kind: Kind) -> Option<(&str, &str)> {
    let hashes = text.strip_prefix('r').filter(|_| kind == Kind::Rust)?;
    let inner = hashes.trim_start_matches('#');
    let end = format!("\"{}", &hashes[..hashes.len() - inner.len()]);
    let inner = inner.strip_prefix('"')?;
    inner.split_once(end.as_str())
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut escaped = false;
    for (i, c) in inner.char_indices() {
        match c {
            '"' if !escaped => return Some((&inner[..i], &inner[i + 1..])),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    Some((inner, ""))
}

/// The text after a character literal. A lifetime is not a literal.
fn character(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('\'')?;
    if let Some(escape) = inner.strip_prefix('\\') {
        let end = escape.char_indices().skip(1).find(|(_, c)| *c == '\'')?.0;
        return Some(&escape[end + 1..]);
    }
    let c = inner.chars().next()?;
    inner[c.len_utf8()..].strip_prefix('\'')
}
