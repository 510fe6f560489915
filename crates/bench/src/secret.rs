//! Two ends prove to each other that they know the same secret, without sending the secret or anything that could be
//! replayed.
//!
//! ```text
//!   client: hello with a number of its own ──► server: challenge with a number of its own, and its proof
//!   client: proof ──────────────────────────► server: hello
//! ```
//!
//! A proof is the HMAC-SHA-256 of the role of its sender and both numbers, with the secret as key.

use std::io;

use hmac_sha256::HMAC;

/// The role of the sender of a proof, so that one end's proof cannot be used by the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProofRole {
    Client,
    Server,
}

/// 256 random bits in hex.
pub(crate) fn nonce() -> io::Result<String> {
    Ok(hex(&ringwise_sys::trust::random::<32>()?))
}

pub(crate) fn proof(secret: &str, who: ProofRole, of_client: &str, of_server: &str) -> String {
    let who = match who {
        ProofRole::Client => "client",
        ProofRole::Server => "server",
    };
    let text = format!("ringwise bench 2\n{who}\n{of_client}\n{of_server}\n");
    hex(&HMAC::mac(text.as_bytes(), secret.as_bytes()))
}

/// Compares in a time that does not depend on where they differ.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn the_function_is_hmac_sha_256() {
        let mac = hex(&HMAC::mac(b"what do ya want for nothing?", b"Jefe"));
        assert_eq!(mac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn a_proof_is_of_one_end_and_one_connection() {
        let p = |s: &str, who, a: &str, b: &str| proof(s, who, a, b);
        let mine = p("words", ProofRole::Client, "1", "2");
        assert!(same(&mine, &p("words", ProofRole::Client, "1", "2")));
        for other in [
            p("words", ProofRole::Server, "1", "2"),
            p("word", ProofRole::Client, "1", "2"),
            p("words", ProofRole::Client, "1", "3"),
            p("words", ProofRole::Client, "12", ""),
        ] {
            assert!(!same(&mine, &other));
        }
        assert!(!same(&mine, &mine[1..]) && nonce().unwrap() != nonce().unwrap());
    }
}
