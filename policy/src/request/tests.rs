//! Requests that are understood, and those that are not.
