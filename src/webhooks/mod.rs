//! Sends what happened to the addresses that merchants registered, signed as Standard Webhooks says.
//!
//! A client must not make the service talk to machines that only the service can reach. So an address is judged when it
//! is registered, again after each look-up of its name, in the moment of connecting, and at every redirect.

mod resolve;
mod sign;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{StatusCode, header};
use url::{Host, Url};

use crate::domain::addresses::is_public;
use resolve::PublicResolver;
pub use sign::{SECRET_BYTES, write_secret};

/// How long a receiver may take for everything: name, connection, redirects, answer.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// How long a name may take to be looked up when an address is registered.
const LOOKUP: Duration = Duration::from_secs(3);
/// Redirects that are followed.
const MAX_REDIRECTS: usize = 3;
/// Most characters of an address.
pub const MAX_URL_CHARACTERS: usize = 2_000;
/// Connections to one receiver that are kept for the next delivery.
const KEPT_CONNECTIONS: usize = 4;

/// Where deliveries may go.
#[derive(Clone, Debug, Default, Args)]
pub struct WebhookSettings {
    /// Let webhooks lead to private, loopback and link-local addresses: whoever has an ADMIN token can then reach what
    /// this service reaches.
    #[arg(long, env = "WEBHOOKS_ALLOW_PRIVATE", default_value_t = false, action = clap::ArgAction::Set)]
    pub webhooks_allow_private: bool,
}

/// Why an address is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an address that can be called.
    #[error(
        "is an http or https URL with a host, without user name, password or fragment, of at most {MAX_URL_CHARACTERS} characters"
    )]
    Malformed,
    /// An address that only this service may reach.
    #[error("leads to a private, loopback or link-local address")]
    Private,
}

/// A message to be sent.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// The same at every attempt.
    pub id: &'a str,
    /// JSON.
    pub body: &'a str,
    /// When this attempt is made.
    pub at: DateTime<Utc>,
    /// The key of the signature.
    pub secret: &'a [u8],
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it.
    Delivered(u16),
    /// The receiver says that it wants no more.
    Gone,
    /// To be tried again, not before this long where the receiver says so.
    Failed {
        /// The status, where there was an answer.
        status: Option<u16>,
        /// What happened, in words.
        reason: String,
        /// What the receiver asked for.
        retry_after: Option<Duration>,
    },
}

/// Calls receivers.
#[derive(Clone, Debug)]
pub struct Sender {
    client: reqwest::Client,
    allow_private: bool,
}

impl Sender {
    /// A sender that goes where the settings let it.
    ///
    /// # Errors
    /// When there is no TLS.
    pub fn new(settings: &WebhookSettings) -> Result<Sender, reqwest::Error> {
        let allow_private = settings.webhooks_allow_private;
        let client = reqwest::Client::builder()
            .user_agent(concat!("vat-classification/", env!("CARGO_PKG_VERSION")))
            .timeout(DEADLINE)
            // A proxy would look names up by itself.
            .no_proxy()
            .dns_resolver(Arc::new(PublicResolver { allow_private }))
            .redirect(Policy::custom(move |attempt| follow(attempt, allow_private)))
            .pool_max_idle_per_host(KEPT_CONNECTIONS)
            .build()?;
        Ok(Sender { client, allow_private })
    }

    /// Judges an address before it is stored, and the addresses of its name if it can be looked up now.
    ///
    /// # Errors
    /// Why it is not taken.
    pub async fn check(&self, text: &str) -> Result<Url, AddressError> {
        let url = read_url(text)?;
        if !may_call(&url, self.allow_private) {
            return Err(AddressError::Private);
        }
        if let (false, Some(Host::Domain(name))) = (self.allow_private, url.host()) {
            let lookup = tokio::net::lookup_host((name, url.port_or_known_default().unwrap_or_default()));
            // A name that is not known yet is looked up again with every delivery.
            if let Ok(Ok(mut found)) = tokio::time::timeout(LOOKUP, lookup).await
                && found.any(|address| !is_public(address.ip()))
            {
                return Err(AddressError::Private);
            }
        }
        Ok(url)
    }

    /// Makes one attempt.
    pub async fn send(&self, url: &str, message: &Message<'_>) -> Outcome {
        let url = match read_url(url) {
            Ok(url) if may_call(&url, self.allow_private) => url,
            Ok(_) => return failed(None, AddressError::Private.to_string()),
            Err(error) => return failed(None, error.to_string()),
        };
        let timestamp = message.at.timestamp();
        let request = self
            .client
            .post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header("webhook-id", message.id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", sign::signature(message.secret, message.id, timestamp, message.body))
            .body(message.body.to_owned());
        match request.send().await {
            Ok(answer) => judge(answer.status(), answer.headers()),
            Err(error) => failed(error.status().map(|status| status.as_u16()), reason(&error)),
        }
    }
}

/// What an answer means. Its body is not read.
fn judge(status: StatusCode, headers: &header::HeaderMap) -> Outcome {
    if status.is_success() {
        return Outcome::Delivered(status.as_u16());
    }
    if status == StatusCode::GONE {
        return Outcome::Gone;
    }
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let reason = match status.is_redirection() {
        true => format!("answered {status}: this redirect is not followed"),
        false => format!("answered {status}"),
    };
    Outcome::Failed { status: Some(status.as_u16()), reason, retry_after: seconds.map(Duration::from_secs) }
}

fn failed(status: Option<u16>, reason: String) -> Outcome {
    Outcome::Failed { status, reason, retry_after: None }
}

/// The innermost cause that says something, without the address, which may carry a secret of the receiver's.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("gave no answer within {} s", DEADLINE.as_secs());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let kind = if error.is_connect() { "cannot be connected to" } else { "broke off" };
    format!("{kind}: {cause}")
}

/// Follows a redirect that keeps method and body and leads to where we may go, never from https to http.
fn follow(attempt: Attempt<'_>, allow_private: bool) -> reqwest::redirect::Action {
    let keeps = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let from_tls = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
    let safe = may_call(attempt.url(), allow_private) && !(from_tls && attempt.url().scheme() == "http");
    if keeps && safe && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

fn read_url(text: &str) -> Result<Url, AddressError> {
    let url = Url::parse(text).map_err(|_| AddressError::Malformed)?;
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    let callable = matches!(url.scheme(), "http" | "https") && url.has_host();
    if plain && callable && text.chars().count() <= MAX_URL_CHARACTERS { Ok(url) } else { Err(AddressError::Malformed) }
}

/// Whether an address may be called as far as it can be told without looking its name up.
fn may_call(url: &Url, allow_private: bool) -> bool {
    let public = match url.host() {
        Some(Host::Ipv4(address)) => is_public(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_public(IpAddr::V6(address)),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name != "localhost" && !name.ends_with(".localhost")
        }
        None => false,
    };
    matches!(url.scheme(), "http" | "https") && (public || allow_private)
}
