//! cell
