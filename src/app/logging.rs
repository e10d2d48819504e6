//! Structured logs on stderr. Tokens, bodies and database passwords are never among them.

use anyhow::Context;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::app::settings::{LogFormat, LogSettings};

pub(super) fn start(settings: &LogSettings) -> anyhow::Result<()> {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match settings.log_format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().with_span_list(false).boxed(),
    };
    tracing_subscriber::registry().with(filter(settings)?).with(lines).init();
    Ok(())
}

/// What is logged.
pub(super) fn filter(settings: &LogSettings) -> anyhow::Result<Targets> {
    settings.log.parse().with_context(|| format!("RUST_LOG: the log filter \"{}\"", settings.log))
}
