//! What is meant: from typed arguments to the request that the daemon gets, in its canonical bytes.
//!
//! The mapping itself reads nothing: files, variables and paths come in through [`Surroundings`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value};
use toolcell_types::{BODY_MAX_BYTES, CallId, CallRequest, LimitsPatch, MountMode, MountSpec, StdinSpec, json};

use crate::args::{CallArgs, CellArgs, EnvArg, MountArg, RunArgs};

/// The tool behind `run`.
pub(crate) const EXEC: &str = "exec";

/// Why arguments are no request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// JSON has no place for other bytes.
    #[error("{what} {} is not UTF-8", value.display())]
    NotUtf8 {
        /// Which argument.
        what: &'static str,
        /// Its value.
        value: OsString,
    },
    /// `-e NAME` and no such variable here.
    #[error("-e {name}: there is no such variable here")]
    NoVariable {
        /// The variable.
        name: String,
    },
    /// A path that cannot be made absolute.
    #[error("{path}: the path cannot be made absolute")]
    Path {
        /// The path, as typed.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// ARGS_JSON is not JSON of the strict kind.
    #[error("ARGS_JSON: {source}")]
    ArgsJson {
        /// What is wrong and where.
        source: json::StrictJsonError,
    },
    /// ARGS_JSON is JSON, but no object.
    #[error("ARGS_JSON must be one JSON object, like {{\"code\":\"print(1)\"}}")]
    ArgsNoObject,
    /// The request cannot be written.
    #[error("the request has no JSON form")]
    Write {
        /// Why.
        source: serde_json::Error,
    },
    /// The request has no canonical form.
    #[error("the request has no canonical form")]
    Canonical {
        /// Why.
        source: json::CanonicalError,
    },
    /// More than the daemon takes.
    #[error("the request is {got} bytes long, at most {BODY_MAX_BYTES} are taken")]
    TooLong {
        /// Its length.
        got: usize,
    },
}

impl RequestError {
    /// What to do next.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => {
                "use names and arguments in UTF-8; other bytes go in by --stdin or a file with --ro"
            }
            Self::NoVariable { .. } => "set it, or write NAME=VALUE",
            Self::Path { .. } => "give an absolute path",
            Self::ArgsJson { source: json::StrictJsonError::Syntax { .. } } => {
                "write one JSON object, in quotes for the shell, like '{\"code\":\"print(1)\"}'; `toolcell tools TOOL` \
                 shows what the tool takes"
            }
            Self::ArgsJson { source } => source.remedy(),
            Self::ArgsNoObject => "look at what the tool takes: toolcell tools TOOL",
            Self::Write { .. } | Self::Canonical { .. } => {
                "this is a fault of toolcell: report it with the command line"
            }
            Self::TooLong { .. } => "show large input as a file with --ro",
        }
    }
}

/// What the arguments refer to.
pub(crate) struct Surroundings<'a> {
    /// A name for a call that has none.
    pub(crate) fresh_id: CallId,
    /// The content of `--stdin`, if it was given.
    pub(crate) stdin: Option<Vec<u8>>,
    /// A variable of the caller.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The absolute form of a path, links followed where it exists.
    pub(crate) resolve: &'a dyn Fn(&str) -> std::io::Result<PathBuf>,
    /// The absolute form of a path, links kept.
    pub(crate) absolute: &'a dyn Fn(&str) -> std::io::Result<PathBuf>,
}

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    /// Its name.
    pub(crate) call_id: CallId,
    /// Its RFC 8785 form; the receipt's subject is the digest of exactly these bytes.
    pub(crate) body: Bytes,
}

/// `run` is a call of the tool `exec`.
pub(crate) fn of_run(args: &RunArgs, around: Surroundings<'_>) -> Result<Prepared, RequestError> {
    let argv = args
        .argv
        .iter()
        .map(|arg| match arg.to_str() {
            Some(text) => Ok(Value::from(text)),
            None => Err(RequestError::NotUtf8 { what: "the argument", value: arg.clone() }),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut members = Map::new();
    members.insert("argv".to_owned(), Value::Array(argv));
    for (name, value) in [("cwd", &args.workdir), ("image", &args.image)] {
        if let Some(value) = value {
            members.insert(name.to_owned(), Value::from(value.as_str()));
        }
    }
    prepare(EXEC, members, &args.cell, around)
}

/// `call` names the tool and brings its arguments.
pub(crate) fn of_call(args: &CallArgs, around: Surroundings<'_>) -> Result<Prepared, RequestError> {
    let value = json::parse_strict(args.args.as_bytes()).map_err(|source| RequestError::ArgsJson { source })?;
    match value {
        Value::Object(members) => prepare(&args.tool, members, &args.cell, around),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(RequestError::ArgsNoObject)
        }
    }
}

fn prepare(
    tool: &str,
    args: Map<String, Value>,
    cell: &CellArgs,
    around: Surroundings<'_>,
) -> Result<Prepared, RequestError> {
    let request = CallRequest {
        call_id: cell.call_id.clone().unwrap_or_else(|| around.fresh_id.clone()),
        tool: tool.to_owned(),
        args,
        key: None,
        session: None,
        limits: limits(cell),
        mounts: mounts(cell, &around)?,
        files: Vec::new(),
        outputs: Vec::new(),
        env: env(&cell.env, &around)?,
        stdin: around.stdin.map(stdin),
        expect_revision: None,
        expect_policy: None,
        deadline_ms: None,
        preconditions: Vec::new(),
        labels: BTreeMap::new(),
        salt: None,
        ablate: cell.ablate.iter().map(ToString::to_string).collect(),
    };
    let value = serde_json::to_value(&request).map_err(|source| RequestError::Write { source })?;
    let body = json::canonical(&value).map_err(|source| RequestError::Canonical { source })?;
    if body.len() > BODY_MAX_BYTES {
        return Err(RequestError::TooLong { got: body.len() });
    }
    Ok(Prepared { call_id: request.call_id, body: body.into() })
}

fn limits(cell: &CellArgs) -> LimitsPatch {
    let typed = &cell.limits;
    LimitsPatch {
        wall_ms: typed.timeout,
        cpu_ms: typed.cpu_time,
        memory_bytes: typed.memory,
        pids: typed.pids,
        cpu_millis: typed.cpus,
        tmp_bytes: typed.tmp_size,
        tmp_inodes: typed.tmp_files,
        output_keep_bytes: typed.output_keep,
        output_limit_bytes: typed.output_limit,
        file_bytes: typed.file_size,
        open_files: typed.open_files,
    }
}

fn mounts(cell: &CellArgs, around: &Surroundings<'_>) -> Result<Vec<MountSpec>, RequestError> {
    cell.ro.iter().chain(&cell.volume).map(|mount| mount_spec(mount, around)).collect()
}

/// The daemon takes host paths without links in them; inside, the path is the one that was typed.
fn mount_spec(mount: &MountArg, around: &Surroundings<'_>) -> Result<MountSpec, RequestError> {
    let path = |source| RequestError::Path { path: mount.host.clone(), source };
    let inside = match &mount.inside {
        Some(inside) => inside.clone(),
        None => text("the path", (around.absolute)(&mount.host).map_err(path)?)?,
    };
    let host = text("the path", (around.resolve)(&mount.host).map_err(path)?)?;
    Ok(MountSpec { host, inside, mode: MountMode::Ro })
}

/// The last of two equal names wins, as with docker.
fn env(typed: &[EnvArg], around: &Surroundings<'_>) -> Result<BTreeMap<String, String>, RequestError> {
    let mut variables = BTreeMap::new();
    for EnvArg { name, value } in typed {
        let value = match value {
            Some(value) => value.clone(),
            None => match (around.variable)(name) {
                Some(value) => text("the variable", value.into())?,
                None => return Err(RequestError::NoVariable { name: name.clone() }),
            },
        };
        variables.insert(name.clone(), value);
    }
    Ok(variables)
}

fn stdin(bytes: Vec<u8>) -> StdinSpec {
    match String::from_utf8(bytes) {
        Ok(text) => StdinSpec::Text(text),
        Err(no_text) => StdinSpec::Base64 { base64: STANDARD.encode(no_text.as_bytes()) },
    }
}

fn text(what: &'static str, path: PathBuf) -> Result<String, RequestError> {
    path.into_os_string().into_string().map_err(|value| RequestError::NotUtf8 { what, value })
}

#[cfg(test)]
mod tests;
