//! System call filters. What they say is data with a reason per rule (`filters/*.json`); here they are compiled and
//! installed.
//!
//! Two filters for the tool, as seccompiler has one action per filter, and a third for cells that show host paths of the
//! caller's: the first lets through what is allowed or
//! refused by name and answers ENOSYS to all else (clone3 and io_uring among it), the second answers EPERM to what is
//! refused by name. The kernel takes the stricter answer (seccomp(2)). A call by another ABI kills the process, which
//! each filter checks first; numbers with the x32 bit are unknown to the first.

mod dispatch;

use seccompiler::{BpfProgram, TargetArch};
use serde_json::Value;

use self::dispatch::{DispatchError, dispatch};
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
    /// The data is no JSON.
    #[error("the filter data cannot be read")]
    Data {
        /// The parser's word.
        #[source]
        source: serde_json::Error,
    },
    /// A program could not be made shorter.
    #[error("the filter {name} cannot be made a search tree")]
    Dispatch {
        /// Which.
        name: &'static str,
        /// Why.
        #[source]
        source: DispatchError,
    },
}

const TOOL: &str = include_str!("../../filters/tool.json");
const INIT: &str = include_str!("../../filters/init.json");

impl Filters {
    /// Compiles the embedded data, once, in the launcher.
    pub(crate) fn compile() -> Result<Self, FilterError> {
        let mut programs = std::collections::BTreeMap::new();
        for (name, whole, conditional) in sources()? {
            let made = dispatch(&whole, &conditional).map_err(|source| FilterError::Dispatch { name, source })?;
            let _new = programs.insert(name, made);
        }
        let take = |name: &'static str| programs.get(name).cloned().ok_or(FilterError::Missing { name });
        // The refusing one last: it refuses to install any more.
        Ok(Self {
            sealed: FilterSet::new(vec![take("known")?, take("refused")?]),
            mounted: FilterSet::new(vec![take("known")?, take("mounted")?, take("refused")?]),
            init: FilterSet::new(vec![take("init")?]),
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

/// Filters by their names in the data, each as seccompiler's own program of all its rules, and as one of those rules
/// alone that look at arguments.
fn sources() -> Result<Vec<(&'static str, BpfProgram, BpfProgram)>, FilterError> {
    let mut sources = Vec::new();
    for (names, data) in [(["known", "mounted", "refused"].as_slice(), TOOL), (&["init"], INIT)] {
        let mut rules: Value = serde_json::from_str(data).map_err(|source| FilterError::Data { source })?;
        let whole = compile(data)?;
        for filter in rules.as_object_mut().into_iter().flat_map(|filters| filters.values_mut()) {
            if let Some(rules) = filter.get_mut("filter").and_then(Value::as_array_mut) {
                rules.retain(|rule| rule.get("args").is_some());
            }
        }
        let conditional = compile(&rules.to_string())?;
        for name in names.iter().copied() {
            let take = |of: &std::collections::HashMap<String, BpfProgram>| {
                of.get(name).cloned().ok_or(FilterError::Missing { name })
            };
            sources.push((name, take(&whole)?, take(&conditional)?));
        }
    }
    Ok(sources)
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

/// Installs the programs on the calling thread, in order. `sets_no_new_privs` is false only where that control is
/// switched off: seccompiler sets the bit each time.
pub(super) fn apply(filters: &FilterSet, sets_no_new_privs: bool) -> Result<(), StageError> {
    for (index, program) in filters.programs.iter().enumerate() {
        let fault = || StageError {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            ..StageError::new(Stage::Seccomp, Op::Filter, nix::libc::EINVAL)
        };
        if sets_no_new_privs {
            seccompiler::apply_filter(program).map_err(|_error| fault())?;
        } else {
            let instructions = program.iter().map(|one| toolcell_sys::FilterInstruction {
                code: one.code,
                jt: one.jt,
                jf: one.jf,
                k: one.k,
            });
            toolcell_sys::install_filter(&instructions.collect::<Vec<_>>()).map_err(|_error| fault())?;
        }
    }
    Ok(())
}
