//! Decodes keys from the bytes of the keyboard.

/// A key that the user pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character, as typed.
    Char(char),
    /// Enter.
    Enter,
    /// Escape, without a sequence.
    Escape,
    /// Tab.
    Tab,
    /// Shift-Tab.
    BackTab,
    /// Backspace.
    Backspace,
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// Ctrl-L: redraws the screen after another program has written to it.
    Redraw,
}

/// What the loop has to do after a key. The view handles all other keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopAction {
    /// The view has handled the key.
    Nothing,
    /// End the program.
    Quit,
    /// Draw the whole screen again.
    Redraw,
    /// Move forward by this many samples of the recording; backwards if negative.
    Seek(i64),
    /// Go to the first sample of the recording.
    First,
    /// Go to the last sample of the recording.
    Last,
    /// Double the speed of the replay.
    Faster,
    /// Halve the speed of the replay.
    Slower,
}

/// Decodes keys from bytes. A sequence may arrive in pieces.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    rest: Vec<u8>,
}

impl Keys {
    /// All keys in these bytes. `done`: no more bytes follow soon, so an escape byte is the key Escape.
    pub(crate) fn read(&mut self, bytes: &[u8], done: bool) -> Vec<Key> {
        self.rest.extend_from_slice(bytes);
        let (mut out, mut at) = (Vec::new(), 0);
        while at < self.rest.len() {
            match one(&self.rest[at..]) {
                Some((key, n)) => {
                    out.extend(key);
                    at += n;
                }
                None if done => {
                    if self.rest[at] == 0x1b {
                        out.push(Key::Escape);
                    }
                    at += 1;
                }
                None => break,
            }
        }
        self.rest.drain(..at);
        out
    }

    /// Whether an escape byte or the beginning of a sequence waits for more bytes.
    pub(crate) fn waits(&self) -> bool {
        !self.rest.is_empty()
    }
}

/// The first key, and its number of bytes. An unknown sequence is no key. `None`: more bytes are needed.
fn one(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let key = |k| Some((Some(k), 1));
    match bytes[0] {
        0x1b => match bytes.get(1)? {
            b'[' => csi(bytes),
            b'O' => Some((named(*bytes.get(2)?), 3)),
            0x1b => key(Key::Escape),
            // Keys with Alt have no meaning here.
            _ => Some((None, 2)),
        },
        b'\r' | b'\n' => key(Key::Enter),
        b'\t' => key(Key::Tab),
        0x7f | 0x08 => key(Key::Backspace),
        0x0c => key(Key::Redraw),
        0..0x20 => Some((None, 1)),
        b if b < 0x80 => key(Key::Char(char::from(b))),
        b => {
            let n = match b {
                0xc0..0xe0 => 2,
                0xe0..0xf0 => 3,
                0xf0.. => 4,
                _ => return Some((None, 1)),
            };
            let text = std::str::from_utf8(bytes.get(..n)?).ok();
            Some((text.and_then(|t| t.chars().next()).map(Key::Char), n))
        }
    }
}

fn named(byte: u8) -> Option<Key> {
    Some(match byte {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'Z' => Key::BackTab,
        b'P' => Key::Char('?'),
        _ => return None,
    })
}

/// `ESC [ numbers letter`
fn csi(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    // F1 of the Linux console.
    if bytes.get(2)? == &b'[' {
        bytes.get(3)?;
        return Some((None, 4));
    }
    let end = 2 + bytes[2..].iter().position(|b| (0x40..0x7f).contains(b))?;
    let key = match (bytes[end], bytes.get(2..end)) {
        (b'~', Some(b"1" | b"7")) => Some(Key::Home),
        (b'~', Some(b"4" | b"8")) => Some(Key::End),
        (b'~', Some(b"5")) => Some(Key::PageUp),
        (b'~', Some(b"6")) => Some(Key::PageDown),
        (b'~', _) => None,
        (b, _) => named(b),
    };
    Some((key, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_also_in_pieces() {
        let mut k = Keys::default();
        assert_eq!(
            k.read(b"q\x1b[A\x1bOB\x1b[5~\x1b[1;5Cx\x7f\xc3\xa4", false),
            [
                Key::Char('q'),
                Key::Up,
                Key::Down,
                Key::PageUp,
                Key::Right,
                Key::Char('x'),
                Key::Backspace,
                Key::Char('ä')
            ]
        );
        assert_eq!(k.read(b"\x1b", false), []);
        assert!(k.waits());
        assert_eq!(k.read(b"[Z\t", false), [Key::BackTab, Key::Tab]);
        assert_eq!(k.read(b"\x1b", false), []);
        assert_eq!(k.read(b"", true), [Key::Escape]);
        assert!(!k.waits());
        assert_eq!(k.read(b"\x1b[200~a\x1bb\x01", false), [Key::Char('a')]);
    }

    #[test]
    fn any_bytes_end() {
        let mut n = 1u32;
        let mut k = Keys::default();
        for _ in 0..20_000 {
            n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            k.read(&[(n >> 24) as u8], n & 0x100 == 0);
            assert!(k.rest.len() < 5000);
        }
        k.read(b"", true);
        assert!(!k.waits());
    }
}
