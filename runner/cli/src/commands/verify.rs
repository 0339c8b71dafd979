//! `toolcell verify`: checks a receipt without asking anybody.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toolcell_receipts::verify::{Mark, Mode, Report, verify_of as check};
use toolcell_receipts::{PublicKey, dsse};
use toolcell_types::BODY_MAX_BYTES;

use crate::args::VerifyArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paths::Places;
use crate::render;

/// Lists every check; ends with 0 only if all that was asked for holds.
pub(crate) fn verify(args: &VerifyArgs) -> Result<Exit, Failure> {
    let receipt = read(&args.receipt, RECEIPT_HINT)?;
    let request = args.request.as_deref();
    let request = request.map(|path| read(path, "name the file that --request-out wrote")).transpose()?;
    let (key, pem) = match &args.key {
        Some(path) => (path.clone(), read(path, "name a public key in PEM, as `toolcell keys show` writes it")?),
        None => own_key(args.state.as_deref())?,
    };
    let mode = if args.ablation { Mode::Ablation } else { Mode::Production };
    let report = check(mode, &receipt, &pem, request.as_deref());
    if !args.json {
        no_receipt_or_no_key(args, (&key, &pem), &report)?;
    }
    tell(args, &key, &report)?;
    if !args.json && has_failed(&report, "signature") {
        render::hint(&whose(&receipt, &pem, &key));
    }
    Ok(if report.holds() { Exit::Ok } else { Exit::Failed })
}

fn has_failed(report: &Report, name: &str) -> bool {
    report.check(name).is_some_and(|check| check.mark == Mark::Failed)
}

/// A file of another kind, most likely by mistake: then a list of checks would only hide it.
fn no_receipt_or_no_key(args: &VerifyArgs, (key, pem): (&Path, &[u8]), report: &Report) -> Result<(), Failure> {
    let failed = |name| report.check(name).filter(|check| check.mark == Mark::Failed);
    if let Some(check) = failed("envelope") {
        let words = render::clean(&check.words);
        let error = anyhow::anyhow!("{} is no receipt: {words}", args.receipt.display());
        return Err(Failure::new(Exit::Failed, error, RECEIPT_HINT));
    }
    // Where in the PEM the decoder gave up helps nobody who named another file.
    if let (Some(_), Err(error)) = (failed("key"), PublicKey::from_pem(pem)) {
        let error = anyhow::anyhow!("{} cannot be used: {error}", key.display());
        let hint = "name a public key in PEM, as `toolcell keys show` writes it: --key PUB.pem";
        return Err(Failure::new(Exit::Failed, error, hint));
    }
    Ok(())
}

/// Another key's receipt, or a forgery? The key id in an envelope is a hint that anybody can write, so that the first is
/// only what it says; that this key did not sign it is sure in both cases.
fn whose(receipt: &[u8], pem: &[u8], key: &Path) -> String {
    let (Ok(opened), Ok(ours)) = (dsse::open(receipt), PublicKey::from_pem(pem)) else { return String::new() };
    let (ours, named) = (ours.id().hex(), opened.signatures.into_iter().find_map(|signature| signature.keyid));
    match named {
        Some(named) if named != ours => format!(
            "it says that key {} signed it, and was checked with key {ours} ({}): give that key with --key PUB.pem, or \
             the state folder of its instance with --state DIR",
            named.chars().take(64).collect::<String>(),
            key.display()
        ),
        Some(_) => "it names this very key, which did not sign it as it stands: it was changed, or forged".to_owned(),
        None => "it does not say which key signed it; if another one did, give that with --key PUB.pem".to_owned(),
    }
}

const RECEIPT_HINT: &str = "name a file with a DSSE envelope, as --receipt or `toolcell receipts N` writes it";

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
    let state = state.map(Path::to_owned).or_else(|| Places::of_process().ok().map(|places| places.state));
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
        VerifyArgs {
            receipt: receipt.into(),
            key: key.map(Into::into),
            request: None,
            state: None,
            ablation: false,
            json: false,
        }
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
        let file = folder.path().join("README.md");
        for (text, why) in [("# toolcell", "is not JSON"), ("{}", "payload")] {
            std::fs::write(&file, text).unwrap();
            let failure = verify(&args(&file, Some(&file))).unwrap_err();
            let told = failure.error.to_string();
            assert_eq!(failure.exit, Exit::Failed);
            assert!(told.starts_with(&format!("{} is no receipt: ", file.display())) && told.contains(why), "{told}");
            let json = VerifyArgs { json: true, ..args(&file, Some(&file)) };
            assert_eq!(verify(&json).unwrap(), Exit::Failed, "its checks are listed");
        }
    }

    const PAYLOAD: &str = "e30=";
    const KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    fn envelope(keyid: &str) -> String {
        let sig = format!("{}==", "A".repeat(86));
        format!(
            r#"{{"payload":"{PAYLOAD}","payloadType":"application/vnd.in-toto+json","signatures":[{{{keyid}"sig":"{sig}"}}]}}"#
        )
    }

    #[test]
    fn something_else_than_a_key_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.json");
        std::fs::write(&file, envelope("")).unwrap();
        let told = verify(&args(&file, Some(&file))).unwrap_err().error.to_string();
        let expected = "cannot be used: the key is not an Ed25519 public key in PEM (BEGIN PUBLIC KEY)";
        assert_eq!(told, format!("{} {expected}", file.display()));
    }

    #[test]
    fn a_receipt_of_another_key_is_told_apart_from_a_forged_one() {
        let ours = PublicKey::from_pem(KEY.as_bytes()).unwrap().id().hex();
        let told = |keyid: &str| whose(envelope(keyid).as_bytes(), KEY.as_bytes(), Path::new("/k.pem"));
        let other = told(&format!("\"keyid\":\"{}\",", "ab".repeat(32)));
        let asks = other.contains("--key PUB.pem") && other.contains("--state DIR");
        assert!(asks && other.contains(&"ab".repeat(32)) && other.contains(&ours), "{other}");
        let forged = told(&format!("\"keyid\":\"{ours}\","));
        assert!(forged.contains("forged") && !forged.contains("--key"), "{forged}");
        assert!(told("").contains("does not say"), "{}", told(""));
    }

    #[test]
    fn a_file_that_never_ends_is_not_read_to_the_end() {
        let failure = verify(&args(Path::new("/dev/zero"), None)).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
    }
}
