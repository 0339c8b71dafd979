//! The daemon's end of the signer's socket. Blocking; lives in the ledger's writer thread.
//!
//! Guarantees: one request, one answer, each behind its length and never larger than a message may be; a signer that
//! does not answer in time is an error. Does not: try again, since the signer may remember what it did not answer.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use toolcell_ledger::{Sign, SignError};
use toolcell_types::signing::{FromSigner, MESSAGE_MAX_BYTES, SignerStatus, ToSigner};

/// A group of 64 payloads is signed in a few milliseconds; a disk may take seconds for its fsync.
const PATIENCE: Duration = Duration::from_secs(60);

/// The connection.
#[derive(Debug)]
pub(crate) struct SignerClient {
    stream: UnixStream,
}

impl SignerClient {
    /// Takes over the stream socket.
    ///
    /// # Errors
    /// The descriptor is no socket.
    pub(crate) fn connect(socket: OwnedFd) -> std::io::Result<Self> {
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream })
    }

    fn ask(&mut self, request: &ToSigner, meanwhile: &mut dyn FnMut()) -> Result<FromSigner, SignError> {
        let encoded = postcard::to_stdvec(request).map_err(|error| protocol(format!("no message: {error}")))?;
        let length = u32::try_from(encoded.len()).map_err(|error| protocol(error.to_string()))?;
        if encoded.len() > MESSAGE_MAX_BYTES {
            return Err(protocol(format!("a message of {length} bytes is too long")));
        }
        let unreachable = |source| SignError::Unreachable { source };
        self.stream.write_all(&length.to_le_bytes()).map_err(unreachable)?;
        self.stream.write_all(&encoded).map_err(unreachable)?;
        meanwhile();
        let mut length = [0_u8; 4];
        self.stream.read_exact(&mut length).map_err(unreachable)?;
        let length = usize::try_from(u32::from_le_bytes(length)).map_err(|error| protocol(error.to_string()))?;
        if length > MESSAGE_MAX_BYTES {
            return Err(protocol(format!("an answer of {length} bytes is too long")));
        }
        let mut answer = vec![0_u8; length];
        self.stream.read_exact(&mut answer).map_err(unreachable)?;
        postcard::from_bytes(&answer).map_err(|error| protocol(format!("no answer: {error}")))
    }
}

impl Sign for SignerClient {
    fn status(&mut self) -> Result<SignerStatus, SignError> {
        match self.ask(&ToSigner::Status, &mut || {})? {
            FromSigner::Status(status) => Ok(status),
            FromSigner::Signed { .. } | FromSigner::Refused { .. } => Err(protocol("expected a status".to_owned())),
        }
    }

    fn sign(&mut self, payloads: &[Vec<u8>], meanwhile: &mut dyn FnMut()) -> Result<Vec<[u8; 64]>, SignError> {
        let signatures = match self.ask(&ToSigner::Sign { payloads: payloads.to_vec() }, meanwhile)? {
            FromSigner::Signed { signatures } => signatures,
            FromSigner::Refused { at, detail } => return Err(SignError::Refused { at, detail }),
            FromSigner::Status(_) => return Err(protocol("expected signatures".to_owned())),
        };
        if signatures.len() != payloads.len() {
            return Err(protocol(format!("{} signatures for {} payloads", signatures.len(), payloads.len())));
        }
        let whole = signatures.into_iter().map(|signature| {
            let length = signature.len();
            <[u8; 64]>::try_from(signature).map_err(|_bytes| protocol(format!("a signature of {length} bytes")))
        });
        whole.collect()
    }
}

fn protocol(detail: String) -> SignError {
    SignError::Protocol { detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A signer of cardboard that answers each message with the next of `answers`, bytes and all.
    fn signer(answers: Vec<Vec<u8>>) -> (SignerClient, std::thread::JoinHandle<Vec<Vec<u8>>>) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || {
            let mut heard = Vec::new();
            for answer in answers {
                let mut length = [0; 4];
                theirs.read_exact(&mut length).unwrap();
                let mut message = vec![0; u32::from_le_bytes(length).try_into().unwrap()];
                theirs.read_exact(&mut message).unwrap();
                heard.push(message);
                theirs.write_all(&answer).unwrap();
            }
            heard
        });
        (SignerClient::connect(ours.into()).unwrap(), thread)
    }

    fn framed(answer: &FromSigner) -> Vec<u8> {
        let encoded = postcard::to_stdvec(answer).unwrap();
        [u32::try_from(encoded.len()).unwrap().to_le_bytes().as_slice(), &encoded].concat()
    }

    #[test]
    fn payloads_go_out_and_signatures_come_back_in_order() {
        let signatures = vec![vec![1; 64], vec![2; 64]];
        let (mut client, thread) = signer(vec![framed(&FromSigner::Signed { signatures })]);
        let mut meanwhile = 0;
        let signed = client.sign(&[b"a".to_vec(), b"b".to_vec()], &mut || meanwhile += 1).unwrap();
        assert_eq!((signed, meanwhile), (vec![[1; 64], [2; 64]], 1));
        let heard = thread.join().unwrap();
        let ToSigner::Sign { payloads } = postcard::from_bytes(&heard[0]).unwrap() else { panic!() };
        assert_eq!(payloads, [b"a".to_vec(), b"b".to_vec()]);
    }

    #[test]
    fn a_refusal_keeps_its_words() {
        let refusal = FromSigner::Refused { at: 1, detail: "a fork".to_owned() };
        let (mut client, _thread) = signer(vec![framed(&refusal)]);
        assert!(
            matches!(client.sign(&[vec![0]], &mut || {}), Err(SignError::Refused { at: 1, detail }) if detail == "a fork")
        );
    }

    #[test]
    fn answers_that_make_no_sense_are_errors() {
        let short = FromSigner::Signed { signatures: vec![vec![1; 63]] };
        let few = FromSigner::Signed { signatures: Vec::new() };
        let answers = vec![framed(&short), framed(&few), vec![1, 0, 0, 0, 99], u32::MAX.to_le_bytes().to_vec()];
        let (mut client, _thread) = signer(answers);
        for _ in 0..4 {
            assert!(matches!(client.sign(&[vec![0]], &mut || {}), Err(SignError::Protocol { .. })));
        }
    }

    #[test]
    fn a_signer_that_is_gone_cannot_be_reached() {
        let (mut client, thread) = signer(Vec::new());
        thread.join().unwrap();
        assert!(matches!(client.status(), Err(SignError::Unreachable { .. })));
    }
}
