//! What the values of settings may be.

use std::net::{SocketAddr, ToSocketAddrs};

use url::Url;

use crate::domain::Precision;
use crate::domain::access::{Level, Plan};
use crate::store::parked::Queue;

/// An address to listen on: a number or a name, and a port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| format!("an address such as 127.0.0.1:8080: {error}"))?;
    // Of a name with both kinds of address, the one that clients try by default everywhere.
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| "the name has no address".to_owned())
}

pub(super) fn public_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("a URL such as https://vat.example.com: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("a URL that begins with http:// or https:// and names a host".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return Err("a URL without a user, a query and a fragment".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn name(text: &str) -> Result<String, String> {
    let characters = text.chars().count();
    let printable = !text.chars().any(char::is_control);
    if (1..=100).contains(&characters) && printable {
        Ok(text.to_owned())
    } else {
        Err("1 to 100 printable characters".to_owned())
    }
}

pub(super) fn plan(text: &str) -> Result<Plan, String> {
    Plan::from_name(text).ok_or_else(|| "UNLIMITED or FREE_TRIAL".to_owned())
}

pub(super) fn queue(text: &str) -> Result<Queue, String> {
    Queue::from_name(text).ok_or_else(|| "auto-assignment or search".to_owned())
}

pub(super) fn precision(text: &str) -> Result<Precision, String> {
    let share = text.parse().ok().and_then(Precision::from_share);
    share.ok_or_else(|| "0.90, 0.95 or 0.98".to_owned())
}

pub(super) fn level(text: &str) -> Result<Level, String> {
    Level::from_name(text).ok_or_else(|| "READ, EDIT or ADMIN".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_urls_are_judged_at_start() {
        for (text, is_right) in [
            ("https://vat.example.com", true),
            ("http://127.0.0.1:8080/base/", true),
            ("notaurl", false),
            ("vat.example.com", false),
            ("ftp://vat.example.com", false),
            ("https://vat.example.com?a=1", false),
            ("https://user:word@vat.example.com", false),
            ("", false),
        ] {
            assert_eq!(public_url(text).is_ok(), is_right, "{text}");
        }
    }
}
