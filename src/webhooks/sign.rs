//! Signatures of Standard Webhooks, with a shared key.

use data_encoding::BASE64;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Random bytes of a key.
pub const SECRET_BYTES: usize = 32;

/// A key as receivers' libraries take it.
pub fn write_secret(secret: &[u8]) -> String {
    format!("whsec_{}", BASE64.encode(secret))
}

/// The header `webhook-signature`: over id, time of the attempt in Unix seconds, and body.
pub(super) fn signature(secret: &[u8], id: &str, timestamp: i64, body: &str) -> String {
    // A key may have any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_of_the_specification() {
        let secret = BASE64.decode(b"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("base64");
        let signed = signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(write_secret(&secret), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    }
}
