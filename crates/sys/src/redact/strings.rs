//! Names that are known to be private, looked for as words.

use std::collections::HashMap;

/// How a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// Numbers with dots are versions.
    Versions,
    /// Tables of the kernel: other programs look things up in them.
    Tables,
    /// Written for people: addresses also where they are glued to words, long digits, paths, shares.
    Prose,
}

/// Names that are looked for as words: original, pseudonym, kind.
pub(super) struct Strings {
    all: Vec<(String, String, &'static str)>,
    /// By their first two letters, in small ones; longest first, so that no part of one hides another.
    by_first: HashMap<[u8; 2], Vec<usize>>,
    /// First letters that there are.
    begins: Vec<bool>,
}

impl Strings {
    /// Those of less than two letters are not looked for.
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

    /// The longest that stands at `at`.
    pub(super) fn at(&self, input: &[u8], at: usize, care: Care) -> Option<&(String, String, &'static str)> {
        // Of a table most bytes are inside of a word, or begin none that is known.
        if care != Care::Prose && at > 0 && word(input.get(at - 1)) && word(input.get(at)) {
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

/// Whether `known` stands at `at`: as a word of its own, and in prose also glued to others when it is a long one.
fn is_known(input: &[u8], at: usize, known: &[u8], care: Care) -> bool {
    let end = at + known.len();
    let here = input.get(at..end).is_some_and(|b| b.eq_ignore_ascii_case(known));
    let inside = at > 0 && word(input.get(at - 1)) || word(input.get(end));
    here && (!inside || care == Care::Prose && known.len() >= 6)
}

pub(super) fn word(b: Option<&u8>) -> bool {
    b.is_some_and(u8::is_ascii_alphanumeric)
}
