//! How many cases a test tries.

/// True in `make test-all`, where a test that otherwise tries a selection tries everything (`RINGWISE_TESTS=all`).
pub fn everything() -> bool {
    std::env::var_os("RINGWISE_TESTS").is_some_and(|t| t == "all")
}
