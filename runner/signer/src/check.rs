//! What a payload has to be to get a signature.

use toolcell_receipts::statement::{self, Recorded, StatementError};
use toolcell_types::{LogPosition, PAYLOAD_MAX_BYTES, Sha256};

/// Why a payload gets no signature.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the payload is {got} bytes long, 1 to {PAYLOAD_MAX_BYTES} are signed")]
    Length { got: usize },
    #[error("{source}{}", cause(source))]
    Statement { source: StatementError },
    #[error("log.{member} is {got}, the next entry has {expected}")]
    Elsewhere { member: &'static str, expected: String, got: String },
    #[error("the first entry is about key {got}, this key is {expected}")]
    OtherKey { expected: String, got: String },
    #[error("predicate.controls.mode is {got:?}, this instance is in {expected:?} mode")]
    OtherMode { expected: &'static str, got: &'static str },
    #[error("the first entry is no genesis")]
    NoGenesis,
}

fn mode(is_ablation: bool) -> &'static str {
    if is_ablation { "ablation" } else { "production" }
}

fn cause(error: &StatementError) -> String {
    std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"))
}

/// Takes only what has a possible length; looked at for a whole group before anything of it is read.
pub(crate) fn check_length(payload: &[u8]) -> Result<(), Refusal> {
    if payload.is_empty() || payload.len() > PAYLOAD_MAX_BYTES {
        return Err(Refusal::Length { got: payload.len() });
    }
    Ok(())
}

/// Takes only what stands exactly at `position` and is a genesis, intent or outcome of a log of this mode.
pub(crate) fn check(
    payload: &[u8],
    (position, is_ablation): (&LogPosition, bool),
    keyid: Sha256,
) -> Result<(), Refusal> {
    // Reading checks _type, predicateType, executor.id, controls.mode and that an intent precedes its outcome.
    let recorded = statement::look_over(payload).map_err(|source| Refusal::Statement { source })?;
    if recorded.executor().experiment.is_some() != is_ablation {
        return Err(Refusal::OtherMode { expected: mode(is_ablation), got: mode(!is_ablation) });
    }
    let log = recorded.log();
    let show = |digest: Option<Sha256>| digest.map_or_else(|| "none".to_owned(), |digest| digest.hex());
    let members = [
        ("origin", position.origin.clone(), log.origin.chars().take(96).collect()),
        ("index", position.index.to_string(), log.index.to_string()),
        ("previous", position.previous.hex(), log.previous.hex()),
        ("genesis", show(position.genesis), show(log.genesis)),
    ];
    if let Some((member, expected, got)) = members.into_iter().find(|(_, expected, got)| expected != got) {
        return Err(Refusal::Elsewhere { member, expected, got });
    }
    match recorded {
        Recorded::Genesis { genesis, .. } if genesis.keyid != keyid => {
            Err(Refusal::OtherKey { expected: keyid.hex(), got: genesis.keyid.hex() })
        }
        Recorded::Genesis { .. } => Ok(()),
        Recorded::Intent { .. } | Recorded::Outcome { .. } if position.index == 0 => Err(Refusal::NoGenesis),
        Recorded::Intent { .. } | Recorded::Outcome { .. } => Ok(()),
    }
}
