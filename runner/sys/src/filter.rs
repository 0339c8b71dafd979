//! seccomp(2) without no_new_privs, which no crate offers.

use std::io;

/// One instruction of a classic BPF program, as `struct sock_filter` of linux/filter.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct FilterInstruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip if a comparison holds.
    pub jt: u8,
    /// Instructions to skip if it does not.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// Installs a filter on the calling thread as it is: no_new_privs is not set with it (seccomp(2),
/// SECCOMP_SET_MODE_FILTER, Linux 3.17).
///
/// # Errors
/// EACCES without no_new_privs and without CAP_SYS_ADMIN in the own user namespace, EINVAL for what is no program.
pub fn install_filter(program: &[FilterInstruction]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_long| io::Error::from_raw_os_error(libc::EINVAL))?;
    // The same layout: see `FilterInstruction`.
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast::<libc::sock_filter>().cast_mut() };
    // SAFETY: the kernel reads `len` instructions from `filter`, which the slice holds until after the call, writes
    // nothing, and copies the program.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0_u32, &raw const program) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
