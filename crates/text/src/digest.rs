//! SHA-256 digests of text and JSON values, and ids derived from them. JSON digests ignore key
//! order.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of bytes in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the SHA-256 of a JSON value in canonical form (sorted keys, no white space) in
/// lower-case hexadecimal.
pub fn json_sha256_hex(mut value: Value) -> String {
    value.sort_all_objects();
    sha256_hex(value.to_string().as_bytes())
}

/// Returns a deterministic id for a name in UUID format, version 8 (RFC 9562).
pub fn uuid_from_name(name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    // Version 8, for custom ids, and the variant of RFC 9562.
    bytes[6] = 0x80 | bytes[6] & 0x0f;
    bytes[8] = 0x80 | bytes[8] & 0x3f;
    let text = hex(&bytes);
    let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]];
    parts.join("-")
}

/// Formats a digest in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_order_does_not_matter() {
        let a: Value = serde_json::from_str(r#"{"a":1,"b":[{"x":null,"y":"z"}]}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"b":[{"y":"z","x":null}],"a":1}"#).unwrap();
        assert_eq!(json_sha256_hex(a.clone()), json_sha256_hex(b));
        assert_ne!(json_sha256_hex(a), json_sha256_hex(json!({"a": 2})));
    }

    #[test]
    fn an_id_has_the_form_of_a_uuid() {
        // SHA-256 of "abc" with version and variant bits.
        assert_eq!(uuid_from_name("abc"), "ba7816bf-8f01-8fea-8141-40de5dae2223");
    }

    #[test]
    fn known_digest() {
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
