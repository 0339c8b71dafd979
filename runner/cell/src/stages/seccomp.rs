//! System call filters. What they say is data with a reason per rule (`filters/*.json`); here they are compiled and
//! installed.
//!
//! Two filters for the tool, as seccompiler has one action per filter: the first lets through what is allowed or
//! refused by name and answers ENOSYS to all else (clone3 and io_uring among it), the second answers EPERM to what is
//! refused by name. The kernel takes the stricter answer (seccomp(2)). A call by another ABI kills the process, which
//! each filter checks first; numbers with the x32 bit are unknown to the first.

use seccompiler::{BpfProgram, TargetArch};

use crate::record::{Op, Stage, StageError};

/// Compiled filters, in the order of installation.
#[derive(Debug)]
pub(crate) struct Filters {
    /// For the tool.
    pub(crate) tool: Vec<BpfProgram>,
    /// For the init, once it has forked the tool.
    pub(crate) init: Vec<BpfProgram>,
    /// SHA-256 over the tool's programs, as hex: what was installed.
    pub(crate) tool_digest: String,
}

/// Why the filters cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilterError {
    /// The data is no filter, or names an unknown call.
    #[error("the filter data does not compile")]
    Compile {
        /// seccompiler's word.
        #[source]
        source: seccompiler::Error,
    },
    /// A filter of that name is not in the data.
    #[error("the filter data has no filter named {name}")]
    Missing {
        /// Which.
        name: &'static str,
    },
}

const TOOL: &str = include_str!("../../filters/tool.json");
const INIT: &str = include_str!("../../filters/init.json");

impl Filters {
    /// Compiles the embedded data, once, in the launcher.
    pub(crate) fn compile() -> Result<Self, FilterError> {
        let mut compiled = compile(TOOL)?;
        let mut take = |name: &'static str| compiled.remove(name).ok_or(FilterError::Missing { name });
        // The one with the smaller effect last would make no difference to the kernel; but the refusing one must not
        // come before the other is in, as it refuses nothing that installing needs.
        let tool = vec![take("known")?, take("refused")?];
        let init = vec![compile(INIT)?.remove("init").ok_or(FilterError::Missing { name: "init" })?];
        let tool_digest = digest(&tool);
        Ok(Self { tool, init, tool_digest })
    }
}

fn compile(data: &str) -> Result<std::collections::HashMap<String, BpfProgram>, FilterError> {
    seccompiler::compile_from_json(data.as_bytes(), TargetArch::x86_64)
        .map_err(|source| FilterError::Compile { source })
}

fn digest(programs: &[BpfProgram]) -> String {
    use sha2::Digest as _;
    let mut hash = sha2::Sha256::new();
    for instruction in programs.iter().flatten() {
        hash.update(instruction.code.to_le_bytes());
        hash.update([instruction.jt, instruction.jf]);
        hash.update(instruction.k.to_le_bytes());
    }
    toolcell_types::Sha256(hash.finalize().into()).hex()
}

/// Installs the programs on the calling thread, in order.
pub(super) fn apply(programs: &[BpfProgram]) -> Result<(), StageError> {
    for (index, program) in programs.iter().enumerate() {
        seccompiler::apply_filter(program).map_err(|_error| StageError {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            ..StageError::new(Stage::Seccomp, Op::Filter, nix::libc::EINVAL)
        })?;
    }
    Ok(())
}
