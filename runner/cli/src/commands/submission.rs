//! What `run` and `call` do around a call: read its input, open its files, tell its end.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bytes::Bytes;
use toolcell_client::{CallReply, Stream};
use toolcell_types::{BODY_MAX_BYTES, CallId, OutputText, Verdict};
use uuid::Uuid;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::args::CellArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{self, NotStarted, Place, Program};
use crate::request::{Prepared, RequestError, Surroundings};

/// A request with the files that its result goes to.
#[derive(Debug)]
pub(super) struct Submission {
    request: Prepared,
    receipt: Option<(PathBuf, Target)>,
    is_json: bool,
    /// Where the program's standard output goes.
    program_output: Stream,
    program: Option<Program>,
}

/// Where a result goes.
#[derive(Debug)]
enum Target {
    File(File),
    /// `-`
    Stdout,
}

impl Target {
    /// Opened before anything runs, so that a result is never without its place.
    fn open(path: &Path) -> Result<Self, Failure> {
        if is_stdout(path) {
            return Ok(Self::Stdout);
        }
        let made = File::create(path).with_context(|| format!("cannot write {}", path.display()));
        let made =
            made.map_err(|source| Failure::new(Exit::Usage, source, "name a file in a folder that you may write"));
        made.map(Self::File)
    }

    fn write(&self, path: &Path, text: &[u8]) -> Result<(), Failure> {
        let mut file = match self {
            Self::Stdout => return render::out(text),
            Self::File(file) => file,
        };
        let written = file.write_all(text).and_then(|()| file.flush());
        let written = written.with_context(|| format!("cannot write {}", path.display()));
        written.map_err(|source| Failure::plain(Exit::Failed, source))
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Standard output has room for one thing: the receipt, the request, the answer, or what the program writes.
fn program_output(cell: &CellArgs) -> Result<Stream, Failure> {
    let is_asked = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_stdout);
    let options = [("--receipt -", is_asked(&cell.receipt)), ("--request-out -", is_asked(&cell.request_out))];
    let asked: Vec<&str> = options.into_iter().filter(|(_, is)| *is).map(|(option, _)| option).collect();
    let hint = "name a file for one of them";
    match asked.as_slice() {
        [] => Ok(Stream::Stdout),
        [_] if !cell.json => Ok(Stream::Stderr),
        [option] => {
            let error = anyhow::anyhow!("{option} and --json both are for standard output");
            Err(Failure::new(Exit::Usage, error, format!("{hint}; the answer of --json holds the receipt as well")))
        }
        _ => Err(Failure::new(
            Exit::Usage,
            anyhow::anyhow!("{} both are for standard output", asked.join(" and ")),
            hint,
        )),
    }
}

impl Submission {
    /// Reads what the arguments refer to and makes the request. Files are opened before anything runs, so that a
    /// result is never without its place.
    pub(super) fn prepare(
        cell: &CellArgs,
        request: impl FnOnce(Surroundings<'_>) -> Result<Prepared, RequestError>,
    ) -> Result<Self, Failure> {
        let program_output = program_output(cell)?;
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
            Target::open(path)?.write(path, &request.body)?;
        }
        let receipt = cell.receipt.as_ref().map(|path| Ok((path.clone(), Target::open(path)?))).transpose()?;
        Ok(Self { request, receipt, is_json: cell.json, program_output, program: None })
    }

    /// The same, which knows the program to be started.
    pub(super) fn of_program(self, program: Program) -> Self {
        Self { program: Some(program), ..self }
    }

    /// Where the program's standard output goes.
    pub(super) fn program_output(&self) -> Stream {
        self.program_output
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
        let mut place = Place::Ledger { socket, is_operator: socket.is_none() || rustix::process::geteuid().is_root() };
        if let Some((path, file)) = &self.receipt {
            let mut text =
                serde_json::to_vec(&reply.answer.receipt).map_err(|source| Failure::plain(Exit::Failed, source))?;
            text.push(b'\n');
            file.write(path, &text)?;
            place = if is_stdout(path) { Place::Stdout } else { Place::File(path) };
        }
        if self.is_json {
            return Ok(());
        }
        let not_started = self.not_started(&reply.answer.verdict);
        let why = not_started.as_ref().map(|words| words.what.as_str());
        render::say(&render::summary(&reply.answer, place, reply.is_replay, why));
        if let Some(words) = &not_started {
            render::hint(&words.hint);
        } else if let (Some(error), Verdict::StartFailed { .. } | Verdict::Lost | Verdict::Internal) =
            (&reply.answer.error, &reply.answer.verdict)
        {
            render::hint(&error.remedy);
        }
        Ok(())
    }

    fn not_started(&self, verdict: &Verdict) -> Option<NotStarted> {
        let Verdict::StartFailed { stage, errno } = verdict else { return None };
        self.program.as_ref()?.not_started(stage, errno)
    }

    /// The program's kept output, where nobody followed it.
    pub(super) fn replay_output(&self, reply: &CallReply) -> Result<(), Failure> {
        render::err(&bytes(&reply.answer.stderr)?);
        let stdout = bytes(&reply.answer.stdout)?;
        match self.program_output {
            Stream::Stdout => render::out(&stdout)?,
            Stream::Stderr => render::err(&stdout),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn output(receipt: Option<&str>, request_out: Option<&str>, json: bool) -> Result<Stream, String> {
        let [receipt, request_out] = [receipt, request_out].map(|path| path.map(PathBuf::from));
        let cell = CellArgs { receipt, request_out, json, ..CellArgs::default() };
        program_output(&cell).map_err(|failure| failure.error.to_string())
    }

    #[test]
    fn a_receipt_on_standard_output_is_alone_there() {
        assert_eq!(output(None, None, true), Ok(Stream::Stdout));
        assert_eq!(output(Some("r.json"), Some("q.json"), true), Ok(Stream::Stdout));
        assert_eq!(output(Some("-"), Some("q.json"), false), Ok(Stream::Stderr));
        assert_eq!(output(None, Some("-"), false), Ok(Stream::Stderr));
    }

    #[test]
    fn two_things_for_standard_output_are_refused() {
        let told = |receipt, request, json| output(receipt, request, json).unwrap_err();
        assert_eq!(told(Some("-"), None, true), "--receipt - and --json both are for standard output");
        assert_eq!(told(None, Some("-"), true), "--request-out - and --json both are for standard output");
        let both = "--receipt - and --request-out - both are for standard output";
        assert_eq!(told(Some("-"), Some("-"), false), both);
        assert_eq!(told(Some("-"), Some("-"), true), both);
    }
}
