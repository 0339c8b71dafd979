//! One file per command: ask, then say. What is printed, and how, is in `render`.

pub(crate) mod ablate;
pub(crate) mod bench;
pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod cancel;
pub(crate) mod doctor;
mod ending;
pub(crate) mod keys;
pub(crate) mod receipts;
mod refusal;
pub(crate) mod run;
mod submission;
pub(crate) mod tools;
mod trial;
pub(crate) mod verify;
