//! What `run` and `call` do around a call: read its input, open its files, tell its end.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bytes::Bytes;
use toolcell_client::CallReply;
use toolcell_types::{BODY_MAX_BYTES, CallId, OutputText, Verdict};
use uuid::Uuid;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::args::CellArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{self, Place};
use crate::request::{Prepared, RequestError, Surroundings};

/// A request with the files that its result goes to.
#[derive(Debug)]
pub(super) struct Submission {
    request: Prepared,
    receipt: Option<(PathBuf, File)>,
    is_json: bool,
}

impl Submission {
    /// Reads what the arguments refer to and makes the request. Files are opened before anything runs, so that a
    /// result is never without its place.
    pub(super) fn prepare(
        cell: &CellArgs,
        request: impl FnOnce(Surroundings<'_>) -> Result<Prepared, RequestError>,
    ) -> Result<Self, Failure> {
        let stdin = cell.stdin.as_deref().map(read_input).transpose()?;
        let around = Surroundings {
            fresh_id: fresh_id()?,
            stdin,
            variable: &|name| std::env::var_os(name),
            resolve: &|path| std::fs::canonicalize(path).or_else(|_not_there| std::path::absolute(path)),
            absolute: &|path| std::path::absolute(path),
        };
        let request = request(around).map_err(|error| {
            let remedy = error.remedy();
            Failure::new(Exit::Usage, error, remedy)
        })?;
        if let Some(path) = &cell.request_out {
            let mut file = create(path)?;
            write(&mut file, path, &request.body)?;
        }
        let receipt = cell.receipt.as_ref().map(|path| Ok((path.clone(), create(path)?))).transpose()?;
        Ok(Self { request, receipt, is_json: cell.json })
    }

    /// The name of the call.
    pub(super) fn call_id(&self) -> CallId {
        self.request.call_id.clone()
    }

    /// The request's bytes.
    pub(super) fn body(&self) -> Bytes {
        self.request.body.clone()
    }

    /// Writes the receipt and says the one line.
    pub(super) fn tell(self, reply: &CallReply, socket: Option<&Path>) -> Result<(), Failure> {
        let mut place = Place::Ledger { socket, is_operator: rustix::process::geteuid().is_root() };
        if let Some((path, file)) = &self.receipt {
            let mut text =
                serde_json::to_vec(&reply.answer.receipt).map_err(|source| Failure::plain(Exit::Failed, source))?;
            text.push(b'\n');
            write(&mut &*file, path, &text)?;
            place = Place::File(path);
        }
        if self.is_json {
            return Ok(());
        }
        render::say(&render::summary(&reply.answer, place, reply.is_replay));
        if let (Some(error), Verdict::StartFailed { .. } | Verdict::Lost | Verdict::Internal) =
            (&reply.answer.error, &reply.answer.verdict)
        {
            render::hint(&error.remedy);
        }
        Ok(())
    }

    /// The program's kept output, where nobody followed it.
    pub(super) fn replay_output(reply: &CallReply) -> Result<(), Failure> {
        render::err(&bytes(&reply.answer.stderr)?);
        render::out(&bytes(&reply.answer.stdout)?)?;
        for (name, dropped) in [("stdout", &reply.answer.truncated.stdout), ("stderr", &reply.answer.truncated.stderr)]
        {
            if let Some(dropped) = dropped {
                render::say(&format!(
                    "{name} was longer: {} bytes from its middle were not kept",
                    dropped.dropped_bytes
                ));
            }
        }
        Ok(())
    }
}

fn bytes(text: &OutputText) -> Result<Vec<u8>, Failure> {
    match text {
        OutputText::Text(text) => Ok(text.clone().into_bytes()),
        OutputText::Base64 { base64 } => STANDARD
            .decode(base64)
            .context("the answer's output is no base64")
            .map_err(|source| Failure::plain(Exit::Failed, source)),
    }
}

fn fresh_id() -> Result<CallId, Failure> {
    CallId::new(&Uuid::now_v7().to_string()).map_err(|source| Failure::plain(Exit::Failed, source))
}

/// A file, or our own standard input for `-`. More than a request can hold is not read.
fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    const HINT: &str = "name a readable file of at most 4 MiB, or show a larger one inside with --ro";
    let mut content = Vec::new();
    let most = u64::try_from(BODY_MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let read = if path == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut content)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut content))
    };
    let at = || format!("--stdin {}", path.display());
    read.with_context(at).map_err(|source| Failure::new(Exit::Usage, source, HINT))?;
    if content.len() > BODY_MAX_BYTES {
        let error = anyhow::anyhow!("{}: more than the {BODY_MAX_BYTES} bytes that a request can hold", at());
        return Err(Failure::new(Exit::Usage, error, HINT));
    }
    Ok(content)
}

fn create(path: &Path) -> Result<File, Failure> {
    let made = File::create(path).with_context(|| format!("cannot write {}", path.display()));
    made.map_err(|source| Failure::new(Exit::Usage, source, "name a file in a folder that you may write"))
}

fn write(file: &mut impl io::Write, path: &Path, text: &[u8]) -> Result<(), Failure> {
    let written = file.write_all(text).and_then(|()| file.flush());
    let written = written.with_context(|| format!("cannot write {}", path.display()));
    written.map_err(|source| Failure::plain(Exit::Failed, source))
}
