//! The matrix as one page: no script, nothing from elsewhere.

use toolcell_lab::ablation::Report;

/// The page.
pub(crate) fn page(report: &Report) -> String {
    format!("{}", report.summary.probes)
}
