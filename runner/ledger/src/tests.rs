//! Behaviour of the whole ledger, with a signer and payloads made for it.

mod append;
mod crash;
mod fake;
mod tamper;
