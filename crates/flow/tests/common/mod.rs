//! Properties of every input, which the fuzzer in `fuzz/` and the tests check.

use ringwise_flow::synthetic::Synthetic;
use ringwise_flow::{FlowSpec, lines};

/// An accepted flow is the same after it is printed and parsed again.
pub(crate) fn flows(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<FlowSpec>() {
        Ok(spec) => {
            if let Some(t) = spec.exact() {
                assert_eq!(t.to_string().parse::<FlowSpec>().map(|s| s.exact()), Ok(Some(t)));
            }
        }
        Err(e) => assert!(e.to_string().starts_with("flow: found")),
    }
    if let Ok(Some(c)) = lines::parse(&text) {
        assert!(c.tuple.src.is_ipv6() == c.tuple.dst.is_ipv6());
    }
    if let Ok(s) = Synthetic::parse(&text) {
        assert!(s.count > 0 && s.src.0.is_ipv6() == s.dst.0.is_ipv6());
    }
}
