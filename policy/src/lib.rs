//! Deciding which call may run, and with what.

mod admitted;
mod bounds;
mod decide;
mod denied;
mod document;
mod fault;
#[cfg(test)]
mod fixtures;
mod malformed;
mod members;
mod paths;
mod policy;
mod principal;
mod refusal;
pub mod request;
mod schema;
mod template;
mod tool;
mod tools_file;

pub use admitted::{AdmittedCall, EffectClass};
pub use fault::{InvalidPolicy, PolicyFault, Position};
pub use policy::Policy;
pub use principal::{Principal, Role};
