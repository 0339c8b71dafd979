//! `toolcell verify`: checks a receipt without asking anybody.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toolcell_receipts::verify::{Report, verify as check};
use toolcell_types::BODY_MAX_BYTES;

use crate::args::VerifyArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paths::Places;
use crate::render;

/// Lists every check; ends with 0 only if all that was asked for holds.
pub(crate) fn verify(args: &VerifyArgs) -> Result<Exit, Failure> {
    let receipt =
        read(&args.receipt, "name a file with a DSSE envelope, as --receipt or `toolcell receipts N` writes it")?;
    let request = args.request.as_deref();
    let request = request.map(|path| read(path, "name the file that --request-out wrote")).transpose()?;
    let (key, pem) = match &args.key {
        Some(path) => (path.clone(), read(path, "name a public key in PEM, as `toolcell keys show` writes it")?),
        None => own_key(args.state.as_deref())?,
    };
    let report = check(&receipt, &pem, request.as_deref());
    tell(args, &key, &report)?;
    Ok(if report.holds() { Exit::Ok } else { Exit::Failed })
}

fn tell(args: &VerifyArgs, key: &Path, report: &Report) -> Result<(), Failure> {
    let is_own = args.key.is_none();
    if args.json {
        let key = key.display().to_string();
        return render::value(&serde_json::json!({
            "holds": report.holds(), "key": key, "own_key": is_own, "checks": report.checks,
        }));
    }
    if is_own {
        render::say(&format!("no --key: checked against this machine's own public key, {}", key.display()));
    }
    let text: Vec<String> = report.to_string().lines().map(render::clean).collect();
    render::out(format!("{}\n", text.join("\n")).as_bytes())
}

/// The public key beside the ledger.
fn own_key(state: Option<&Path>) -> Result<(PathBuf, Vec<u8>), Failure> {
    let state = state.map(Path::to_owned).or_else(|| Places::of_process().map(|places| places.state));
    let Some(state) = state else {
        let error = anyhow::anyhow!("no --key, and no state folder of yours whose key could be taken");
        return Err(Failure::new(Exit::Usage, error, "name the public key: --key PUB.pem"));
    };
    let path = Places::public_key(&state);
    let pem = read(&path, "name the public key: --key PUB.pem (`toolcell keys show > PUB.pem` writes this machine's)")?;
    Ok((path, pem))
}

/// No receipt, request or key is larger than a request body.
fn read(path: &Path, hint: &str) -> Result<Vec<u8>, Failure> {
    let most = u64::try_from(BODY_MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut content = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut content)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut content))
    };
    let read = read.with_context(|| format!("cannot read {}", path.display()));
    read.map_err(|source| Failure::new(Exit::Usage, source, hint))?;
    if content.len() > BODY_MAX_BYTES {
        let error = anyhow::anyhow!("{} is longer than {BODY_MAX_BYTES} bytes", path.display());
        return Err(Failure::new(Exit::Usage, error, hint));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(receipt: &Path, key: Option<&Path>) -> VerifyArgs {
        VerifyArgs { receipt: receipt.into(), key: key.map(Into::into), request: None, state: None, json: false }
    }

    #[test]
    fn a_file_that_is_not_there_is_a_usage_error_with_a_hint() {
        let failure = verify(&args(Path::new("/nowhere/receipt.json"), None)).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.hint.is_some());
    }

    #[test]
    fn something_else_than_a_receipt_does_not_hold() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(verify(&args(&file, Some(&file))).unwrap(), Exit::Failed);
    }

    #[test]
    fn a_file_that_never_ends_is_not_read_to_the_end() {
        let failure = verify(&args(Path::new("/dev/zero"), None)).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
    }
}
