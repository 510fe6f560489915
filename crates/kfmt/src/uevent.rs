//! `uevent` files of sysfs: one `KEY=VALUE` per line (`DRIVER=igb`, `PCI_SLOT_NAME=0000:03:00.0`).

use std::collections::BTreeMap;

use crate::ParseError;

/// Keys and values. A file without lines gives an empty map, because some devices have no keys.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, ParseError> {
    let mut map = BTreeMap::new();
    for (i, line) in text.lines().enumerate() {
        if line.is_empty() {
            continue;
        }
        let bad = || ParseError::at("uevent", i + 1, line, "KEY=VALUE");
        let (key, value) = line.split_once('=').ok_or_else(bad)?;
        if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(bad());
        }
        map.insert(key.to_string(), value.to_string());
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_keys() {
        let m = parse("DRIVER=igb\nPCI_ID=8086:10C9\nMODALIAS=pci:v=1\nEMPTY=\n").unwrap();
        assert_eq!((m["DRIVER"].as_str(), m["MODALIAS"].as_str(), m["EMPTY"].as_str()), ("igb", "pci:v=1", ""));
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn refuses_the_rest() {
        for bad in ["DRIVER", "=x", "a b=c", "\0=1"] {
            assert_eq!(parse(bad).unwrap_err().line, Some(1), "{bad:?}");
        }
    }
}
