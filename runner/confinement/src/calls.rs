//! The system calls that are left to a process, as data with a reason for each.
//!
//! Two lists, as seccompiler has one answer per filter. `allowed`: what is not in it is answered ENOSYS, as by a kernel
//! that never had it, so that a library that tries something newer falls back. `fatal`: what no honest way of ours leads
//! to; it ends the process at once, which the kernel logs. So does any call by another ABI. Numbers with the x32 bit are
//! in neither list, and ENOSYS. Where both lists name a call, the stricter answer is taken (seccomp(2)).

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use seccompiler::{BpfProgram, TargetArch};

use crate::tries::Tries;
use crate::{Act, ConfinementError};

/// Compiled lists.
#[derive(Debug, Clone)]
pub struct Calls {
    fatal: BpfProgram,
    allowed: BpfProgram,
}

impl Calls {
    /// Compiles the lists `fatal` and `allowed` of a JSON text in seccompiler's form.
    ///
    /// # Errors
    /// [`ConfinementError::Calls`] for data that is no filter, [`ConfinementError::List`] if one is not there.
    pub fn compile(data: &str) -> Result<Self, ConfinementError> {
        let mut lists = seccompiler::compile_from_json(data.as_bytes(), TargetArch::x86_64)
            .map_err(|source| ConfinementError::Calls { source })?;
        let mut take = |name: &'static str| lists.remove(name).ok_or(ConfinementError::List { name });
        Ok(Self { fatal: take("fatal")?, allowed: take("allowed")? })
    }

    /// Leaves only these to all threads of the process, for good, and sees that it is so.
    ///
    /// # Errors
    /// [`ConfinementError`]; the process must then end.
    pub fn leave_only(&self) -> Result<(), ConfinementError> {
        tried().all_work()?;
        // The second one no longer lets a filter be installed.
        for list in [&self.fatal, &self.allowed] {
            seccompiler::apply_filter_all_threads(list).map_err(|source| ConfinementError::Calls { source })?;
        }
        tried().all_refused(|_act| Errno::NOSYS.raw_os_error())?;
        match rustix::thread::secure_computing_mode() {
            Ok(rustix::thread::SecureComputingMode::Filter) => Ok(()),
            Ok(mode) => Err(ConfinementError::Mode { mode: i64::from(mode as u32) }),
            Err(errno) => Err(ConfinementError::Mode { mode: i64::from(errno.raw_os_error()).saturating_neg() }),
        }
    }
}

/// No part of ours makes sockets of this family.
fn tried() -> Tries {
    let made = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    Tries::of([(Act::Socket, made.map(drop))])
}

#[cfg(test)]
mod tests;
