//! Properties that hold for any text; the fuzzer checks them too.

use ringwise_config::{parse, parse_set, print};

/// A valid text is printed and read again without a change; an invalid one has a message.
pub(crate) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse("f", text) {
        Ok(c) => {
            let printed = print(&c);
            let again = parse("f", &printed).unwrap_or_else(|f| panic!("printed, but not read: {f}\n{printed}"));
            assert_eq!(again.without_places(), c.without_places(), "\n{printed}");
        }
        Err(f) => assert!(!f.all.is_empty() && !f.to_string().is_empty(), "{f}"),
    }
    if text.len() < 200 {
        let _ = parse_set(text).map_err(|f| f.to_string());
    }
}
