//! A text that nobody can guess: who says it has read it.

use super::AblationError;

/// Random text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new one, of 128 random bits.
    ///
    /// # Errors
    /// [`AblationError::System`]: the kernel gives no random bytes.
    pub fn fresh() -> Result<Self, AblationError> {
        Ok(Self(format!("secret-{}", token()?)))
    }

    /// The text itself.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// One that was made by somebody else; none if it is too short to prove anything.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        (text.len() >= 16).then(|| Self(text.to_owned()))
    }

    /// Whether the text holds it.
    pub(super) fn is_in(&self, text: &str) -> bool {
        text.contains(&self.0)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// 32 random hexadecimal digits, for names that nobody else has.
pub(in crate::ablation) fn token() -> Result<String, AblationError> {
    let mut random = [0_u8; 16];
    let drawn = getrandom::fill(&mut random).map_err(std::io::Error::other);
    drawn.map_err(|source| AblationError::System { doing: "draw random bytes", source })?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_another_and_none_is_printed() {
        let (one, other) = (Secret::fresh().unwrap(), Secret::fresh().unwrap());
        assert!(one != other && one.is_in(&format!("REACHED {}", one.text())) && !one.is_in(other.text()));
        assert!(!format!("{one:?}").contains(&one.text()[8..]));
        assert!(Secret::of("short").is_none() && Secret::of(one.text()).is_some());
    }
}
