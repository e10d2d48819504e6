//! Structured logs on stderr. Tokens, bodies and database passwords are never among them.

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::app::settings::{LogFormat, LogSettings};

pub(super) fn start(settings: &LogSettings) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&settings.log).with_context(|| format!("the log filter \"{}\"", settings.log))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
