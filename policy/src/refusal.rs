//! How findings become one refusal: the first code in gate order speaks, all findings are listed.

use toolcell_types::{ErrorCode, Finding, Problem};

/// One finding with its words, ready for the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    /// What was expected, what came.
    pub(crate) detail: String,
    /// What to do next.
    pub(crate) remedy: String,
}

/// The refusal made of at least one finding. Among equals the one found first speaks.
pub(crate) fn problem(first: Refusal, rest: impl IntoIterator<Item = Refusal>) -> Problem {
    let (mut lead, mut others) = (first, Vec::new());
    for one in rest {
        let earlier = one.code < lead.code;
        others.push(if earlier { std::mem::replace(&mut lead, one) } else { one });
    }
    others.sort_by_key(|one| one.code);
    // What a policy and a decoder refuse they refuse again: neither knows time.
    let remedy = format!("{}; sent unchanged it is refused again", lead.remedy);
    let mut problem = Problem::new(lead.code, lead.detail, remedy);
    problem.findings.extend(others.into_iter().map(|one| Finding { code: one.code, detail: one.detail }));
    problem
}

/// A text for a message: quoted, control characters escaped, at most 256 characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(256).collect();
    if short.len() < text.len() {
        short.push('\u{2026}');
    }
    format!("{short:?}")
}

/// Texts for a message: at most 16 of them, `nothing` if there is none.
pub(crate) fn listed<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut texts = texts.into_iter();
    let mut shown: Vec<&str> = texts.by_ref().take(16).collect();
    if texts.next().is_some() {
        shown.push("\u{2026}");
    }
    if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(code: ErrorCode, detail: &str) -> Refusal {
        Refusal { code, detail: detail.to_owned(), remedy: format!("remedy of {detail}") }
    }

    #[test]
    fn the_first_code_in_gate_order_speaks_and_everything_found_is_listed() {
        let found = problem(
            finding(ErrorCode::PermissionDenied, "a"),
            [finding(ErrorCode::InvalidRequest, "b"), finding(ErrorCode::InvalidArguments, "c")],
        );
        assert_eq!((found.code, found.detail.as_str()), (ErrorCode::InvalidArguments, "c"));
        assert_eq!(found.remedy, "remedy of c; sent unchanged it is refused again");
        let listed: Vec<_> = found.findings.iter().map(|one| one.detail.as_str()).collect();
        assert_eq!(listed, ["c", "a", "b"]);
    }

    #[test]
    fn texts_of_strangers_are_cut_and_escaped() {
        assert_eq!(quoted("a\n\u{1b}[0m\""), r#""a\n\u{1b}[0m\"""#);
        assert_eq!(quoted(&"x".repeat(257)).chars().count(), 256 + 3);
        assert_eq!(listed([]), "nothing");
        assert_eq!(listed(["a", "b"]), "a, b");
    }
}
