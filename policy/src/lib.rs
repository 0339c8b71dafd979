//! Deciding which call may run, and with what.

mod admitted;
mod bounds;
mod fault;
mod malformed;
mod members;
mod paths;
mod policy;
mod principal;
mod refusal;
pub mod request;

pub use admitted::{AdmittedCall, EffectClass};
pub use fault::{InvalidPolicy, PolicyFault, Position};
pub use policy::Policy;
pub use principal::{Principal, Role};
