//! The daemon's own log, on standard error.
//!
//! Guarantees: control characters in logged texts are escaped (tracing-subscriber since 0.3.20 for the human form, JSON
//! by itself), so that nobody writes log lines but us. By convention of this crate argument values, environments and
//! output are never logged; names that a controller chose are logged in their checked form or with `{:?}`.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::LevelFilter;

use crate::{DaemonError, LogFormat};

/// Sends log lines of level INFO and above to standard error from now on.
///
/// # Errors
/// [`DaemonError::Logs`] if the process has a log already.
pub(crate) fn start(format: LogFormat) -> Result<(), DaemonError> {
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(LevelFilter::INFO)
        .with_ansi(format == LogFormat::Human && std::io::stderr().is_terminal());
    let done = match format {
        LogFormat::Human => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init(),
    };
    done.map_err(|source| DaemonError::Logs { source })
}
