//! Log lines of the parts: on standard error, human or JSON, the instance's own words only.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::LogFormat;

/// Sends this process's log lines to standard error. Once per process.
///
/// # Errors
/// When something has done it before.
pub(crate) fn begin(format: LogFormat) -> anyhow::Result<()> {
    let registry = tracing_subscriber::registry().with(LevelFilter::INFO);
    match format {
        LogFormat::Human => {
            registry.with(fmt::layer().with_ansi(io::stderr().is_terminal()).with_writer(io::stderr)).try_init()?;
        }
        LogFormat::Json => registry.with(fmt::layer().json().flatten_event(true).with_writer(io::stderr)).try_init()?,
    }
    Ok(())
}
