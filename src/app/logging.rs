//! Structured logs on stderr. Tokens, bodies and database passwords are never among them.

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::app::settings::{LogFormat, LogSettings};

pub(super) fn start(settings: &LogSettings) -> anyhow::Result<()> {
    let builder = tracing_subscriber::fmt().with_env_filter(filter(settings)?).with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().with_span_list(false).init(),
    }
    Ok(())
}

/// What is logged.
pub(super) fn filter(settings: &LogSettings) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(&settings.log).with_context(|| format!("RUST_LOG: the log filter \"{}\"", settings.log))
}
