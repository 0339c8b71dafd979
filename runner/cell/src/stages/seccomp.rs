//! System call filters. What they say is data with a reason per rule (`filters/*.json`); here they are compiled and
//! installed.
//!
//! Two filters for the tool, as seccompiler has one action per filter, and a third for cells that show host paths of the
//! caller's: the first lets through what is allowed or
//! refused by name and answers ENOSYS to all else (clone3 and io_uring among it), the second answers EPERM to what is
//! refused by name. The kernel takes the stricter answer (seccomp(2)). A call by another ABI kills the process, which
//! each filter checks first; numbers with the x32 bit are unknown to the first.

use seccompiler::{BpfProgram, TargetArch};

use crate::record::{Op, Stage, StageError};

/// Compiled filters.
#[derive(Debug)]
pub(crate) struct Filters {
    /// For a tool that sees nothing of the caller's.
    sealed: FilterSet,
    /// For a tool that sees host paths: what lies there may be a socket.
    mounted: FilterSet,
    /// For the init, once it has forked the tool.
    pub(crate) init: FilterSet,
}

/// Programs in the order of their installation.
#[derive(Debug)]
pub(crate) struct FilterSet {
    /// The programs.
    pub(crate) programs: Vec<BpfProgram>,
    /// SHA-256 over them, as hex: what was installed.
    pub(crate) digest: String,
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
        let tool = compile(TOOL)?;
        let take = |name: &'static str| tool.get(name).cloned().ok_or(FilterError::Missing { name });
        let init = compile(INIT)?.remove("init").ok_or(FilterError::Missing { name: "init" })?;
        // The refusing one last: it refuses to install any more.
        Ok(Self {
            sealed: FilterSet::new(vec![take("known")?, take("refused")?]),
            mounted: FilterSet::new(vec![take("known")?, take("mounted")?, take("refused")?]),
            init: FilterSet::new(vec![init]),
        })
    }

    /// Those for a tool, by whether it sees host paths of the caller's.
    pub(crate) fn for_tool(&self, has_mounts: bool) -> &FilterSet {
        if has_mounts { &self.mounted } else { &self.sealed }
    }
}

impl FilterSet {
    fn new(programs: Vec<BpfProgram>) -> Self {
        let digest = digest(&programs);
        Self { programs, digest }
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
pub(super) fn apply(filters: &FilterSet) -> Result<(), StageError> {
    for (index, program) in filters.programs.iter().enumerate() {
        seccompiler::apply_filter(program).map_err(|_error| StageError {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            ..StageError::new(Stage::Seccomp, Op::Filter, nix::libc::EINVAL)
        })?;
    }
    Ok(())
}
