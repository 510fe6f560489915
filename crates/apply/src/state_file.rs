//! Files of the state directory that are one JSON object: they are read exactly as written, or not at all.

use std::fs;
use std::io;
use std::path::Path;

use ringwise_model::JsonFault;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::checksum::{self, Sum};

/// Format with a checksum. Files of version 0.1 have format 1 and no checksum.
pub(crate) const SUMMED: u32 = 2;

/// The value as one line with its checksum.
pub(crate) fn text<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut line = checksum::add(serde_json::to_vec(value)?);
    line.push(b'\n');
    Ok(line)
}

/// `None`: the file does not exist. A file that cannot be parsed is an error and does not count as empty; the same holds for a
/// file of format [`SUMMED`] whose checksum is missing or wrong. `then`: what the user can do about it.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(path: &Path, then: &'static str) -> Result<Option<T>, Error> {
    #[derive(Deserialize)]
    struct Format {
        #[serde(default)]
        format: u32,
    }
    let damaged = |why: String| Error::Damaged { path: path.to_path_buf(), why, then };
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::State { path: path.to_path_buf(), source }),
    };
    let sum = check(&bytes);
    if sum == Sum::Wrong {
        return Err(damaged("wrong checksum".into()));
    }
    if sum == Sum::None && serde_json::from_slice::<Format>(&bytes).is_ok_and(|f| f.format >= SUMMED) {
        return Err(damaged("no checksum".into()));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|e| damaged(JsonFault::from(e).to_string()))
}

/// The same, for files that count as missing if they cannot be used.
pub(crate) fn read_whole<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    read(path, "").ok().flatten()
}

/// The same for files without a format number: the caller knows whether the checksum must be present. A file that cannot be used
/// counts as missing.
pub(crate) fn read_with_sum<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<(T, Sum)> {
    let bytes = fs::read(path).ok()?;
    let sum = check(&bytes);
    (sum != Sum::Wrong).then(|| serde_json::from_slice(&bytes).ok().map(|value| (value, sum))).flatten()
}

fn check(bytes: &[u8]) -> Sum {
    checksum::check(bytes.strip_suffix(b"\n").unwrap_or(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct File {
        format: u32,
        entries: Vec<u32>,
    }

    #[test]
    fn every_flipped_bit_is_an_error_and_files_of_version_0_1_have_no_checksum() {
        let path = std::env::temp_dir().join(format!("ringwise-state-file-{}", std::process::id()));
        let get = || read::<File>(&path, "then");
        assert_eq!(get().unwrap(), None);
        let whole = File { format: SUMMED, entries: vec![1, 2] };
        let bytes = text(&whole).unwrap();
        fs::write(&path, &bytes).unwrap();
        assert_eq!(get().unwrap().as_ref(), Some(&whole));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            match get() {
                Ok(read) => assert_eq!(read.as_ref(), Some(&whole), "bit {bit}"),
                Err(e) => assert!(e.to_string().contains(" is damaged ("), "bit {bit}: {e}"),
            }
        }
        fs::write(&path, r#"{"format":2,"entries":[1]}"#).unwrap();
        assert!(get().unwrap_err().to_string().contains("(no checksum)"));
        fs::write(&path, "{\n  \"format\": 1,\n  \"entries\": [7]\n}\n").unwrap();
        assert_eq!(get().unwrap().unwrap().entries, [7]);
        fs::remove_file(&path).unwrap();
    }
}
