//! What tells one request from another: method, path with query, and body.

use axum::extract::Request;
use axum::http::header;
use sha2::{Digest, Sha256};

/// Grows with the body as it is read.
pub(super) struct Fingerprint {
    digest: Sha256,
    form: Option<Form>,
    /// Whether the body was read to its end.
    pub(super) whole: bool,
}

impl Fingerprint {
    /// Of a request of which nothing was read yet.
    pub(super) fn begin(request: &Request) -> Fingerprint {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let digest = Sha256::new().chain_update(request.method().as_str()).chain_update(b" ").chain_update(path);
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let digest = digest.chain_update(b"\n");
        let form = kind.and_then(boundary).map(|boundary| Form::new(boundary, digest.clone()));
        Fingerprint { digest, form, whole: false }
    }

    /// Takes a piece of the body.
    pub(super) fn take(&mut self, piece: &[u8]) {
        match &mut self.form {
            None => self.digest.update(piece),
            Some(form) => form.take(piece, &mut self.digest),
        }
    }

    /// Whether a request was kept under this value, by this version or by the ones that took a form for the bytes it is.
    pub(super) fn is_kept_as(&self, value: &[u8]) -> bool {
        let as_it_is = self.form.as_ref().map(|form| form.as_it_is.clone().finalize());
        self.value() == value || as_it_is.is_some_and(|digest| digest[..] == *value)
    }

    /// Its value.
    pub(super) fn value(&self) -> Vec<u8> {
        let mut digest = self.digest.clone();
        digest.update(self.form.as_ref().map_or(&[][..], |form| &form.held));
        digest.finalize().to_vec()
    }
}

/// The boundary that a content type names, if it is that of a form.
fn boundary(kind: &str) -> Option<&str> {
    let mut parts = kind.split(';').map(str::trim);
    parts.next().filter(|kind| kind.to_ascii_lowercase().starts_with("multipart/"))?;
    let named = parts.filter_map(|part| part.split_once('='));
    let boundary = named.filter(|(name, _)| name.eq_ignore_ascii_case("boundary")).map(|(_, value)| value).next()?;
    Some(boundary.trim_matches('"')).filter(|boundary| !boundary.is_empty())
}

/// A form without its boundary, which clients make anew each time that they send the same one. What stands behind its end
/// is no part of it.
struct Form {
    delimiter: Vec<u8>,
    /// What may be the beginning of a delimiter.
    held: Vec<u8>,
    ended: bool,
    /// The digest of every byte.
    as_it_is: Sha256,
}

impl Form {
    fn new(boundary: &str, as_it_is: Sha256) -> Form {
        Form { delimiter: format!("--{boundary}").into_bytes(), held: Vec::new(), ended: false, as_it_is }
    }

    fn take(&mut self, piece: &[u8], digest: &mut Sha256) {
        /// Stands for a delimiter, and behind the last one for the end.
        const MARK: &[u8] = b"--";
        self.as_it_is.update(piece);
        if self.ended {
            return;
        }
        self.held.extend_from_slice(piece);
        let mut done = 0;
        while let Some(at) = find(&self.held[done..], &self.delimiter) {
            let (begins, ends) = (done + at, done + at + self.delimiter.len());
            digest.update(&self.held[done..begins]);
            done = begins;
            // The two characters behind it tell whether it is the last.
            let Some(behind) = self.held.get(ends..ends + MARK.len()) else { break };
            digest.update(MARK);
            if behind == MARK {
                self.ended = true;
                done = self.held.len();
                break;
            }
            done = ends;
        }
        if !self.held[done..].starts_with(&self.delimiter) {
            let certain = self.held.len().saturating_sub(self.delimiter.len() - 1).max(done);
            digest.update(&self.held[done..certain]);
            done = certain;
        }
        self.held.drain(..done);
    }
}

/// Where something begins; it begins with a dash.
fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| *byte == b'-') {
        if text[from + at..].starts_with(wanted) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn of(kind: &str, body: &str, piece: usize) -> Vec<u8> {
        let request = Request::post("/a?b").header(header::CONTENT_TYPE, kind).body(Body::empty()).expect("a request");
        let mut fingerprint = Fingerprint::begin(&request);
        body.as_bytes().chunks(piece).for_each(|piece| fingerprint.take(piece));
        fingerprint.value()
    }

    #[test]
    fn a_form_is_the_same_whatever_its_boundary_and_however_it_arrives() {
        let form = |boundary: &str, content: &str| {
            format!("--{boundary}\r\nContent-Type: image/png\r\n\r\n{content}\r\n--{boundary}--\r\n")
        };
        let kind = |boundary: &str| format!("multipart/form-data; boundary={boundary}");
        let content = "--a---b-- and so on --";
        let first = of(&kind("x1"), &form("x1", content), 1_000);
        for piece in [1, 2, 3, 7, 50] {
            assert_eq!(of(&kind("x1"), &form("x1", content), piece), first, "{piece}");
            assert_eq!(of(&kind("\"another-one\""), &form("another-one", content), piece), first, "{piece}");
        }
        assert_eq!(of(&kind("x1"), form("x1", content).trim_end(), 9), first, "what follows the end is no part of it");
        assert_ne!(of(&kind("x1"), &form("x1", "else"), 9), first);
        let two = form("x1", content).replace("--x1--", "--x1\r\n\r\n--x1--");
        assert_ne!(of(&kind("x1"), &two, 9), first, "a further part");
    }

    #[test]
    fn a_form_that_another_version_kept_by_its_bytes_is_known() {
        let body = "--x1\r\n\r\ncontent\r\n--x1--\r\n";
        let request = Request::post("/a?b").header(header::CONTENT_TYPE, "multipart/form-data; boundary=x1");
        let mut fingerprint = Fingerprint::begin(&request.body(Body::empty()).expect("a request"));
        fingerprint.take(body.as_bytes());
        let kept = Sha256::digest(format!("POST /a?b\n{body}"));
        assert!(fingerprint.is_kept_as(&kept) && fingerprint.is_kept_as(&fingerprint.value()));
        assert!(!fingerprint.is_kept_as(&Sha256::digest("POST /a?b\n")));
    }

    #[test]
    fn any_other_body_counts_as_it_is() {
        let of = |body: &str| of("application/json; boundary=x", body, 3);
        assert_eq!(of("{\"a\": \"--x\"}"), of("{\"a\": \"--x\"}"));
        assert_ne!(of("{\"a\": \"--x\"}"), of("{\"a\": \"--y\"}"));
    }
}
