//! Searches for names that are known to be private, as words.

use std::collections::HashMap;

/// How a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Numbers with dots are versions.
    Versions,
    /// Tables of the kernel, in which other programs look things up.
    Tables,
    /// Written for people: also finds addresses that are joined to words, long digit strings, paths, shares.
    Prose,
}

/// Names that are searched for as words: original, pseudonym, kind.
pub(super) struct Strings {
    all: Vec<(String, String, &'static str)>,
    /// By their first two letters, in lower case; longest first, so that a short name does not hide a longer one.
    by_first: HashMap<[u8; 2], Vec<usize>>,
    /// First letters that occur.
    begins: Vec<bool>,
}

impl Strings {
    /// Names of less than two letters are not searched for.
    pub(super) fn new(mut all: Vec<(String, String, &'static str)>) -> Self {
        all.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        let mut by_first: HashMap<_, Vec<usize>> = HashMap::new();
        let mut begins = vec![false; 256];
        for (i, (text, ..)) in all.iter().enumerate() {
            if let Some(first) = text.as_bytes().first_chunk::<2>() {
                let first = first.map(|b| b.to_ascii_lowercase());
                begins[usize::from(first[0])] = true;
                by_first.entry(first).or_default().push(i);
            }
        }
        Self { all, by_first, begins }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The longest name at position `at`.
    pub(super) fn at(&self, input: &[u8], at: usize, care: TextKind) -> Option<&(String, String, &'static str)> {
        // In a table most bytes are inside a word, or begin no known name.
        if care != TextKind::Prose && at > 0 && word(input.get(at - 1)) && word(input.get(at)) {
            return None;
        }
        let first = input[at..].first_chunk::<2>()?.map(|b| b.to_ascii_lowercase());
        if !self.begins[usize::from(first[0])] {
            return None;
        }
        let candidates = self.by_first.get(&first)?;
        candidates.iter().map(|i| &self.all[*i]).find(|(text, ..)| is_known(input, at, text.as_bytes(), care))
    }
}

/// Whether `known` occurs at `at`: as a separate word, and in prose also joined to others if it is long.
fn is_known(input: &[u8], at: usize, known: &[u8], care: TextKind) -> bool {
    let end = at + known.len();
    let here = input.get(at..end).is_some_and(|b| b.eq_ignore_ascii_case(known));
    let inside = at > 0 && word(input.get(at - 1)) || word(input.get(end));
    here && (!inside || care == TextKind::Prose && known.len() >= 6)
}

pub(super) fn word(b: Option<&u8>) -> bool {
    b.is_some_and(u8::is_ascii_alphanumeric)
}
