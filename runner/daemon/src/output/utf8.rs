//! Where a head may end and a tail may begin without cutting a character in two.
//!
//! Guarantees: at most three bytes are given up on each side, and only if what is left is then UTF-8; bytes that are no
//! text stay as they are. Does not: repair or replace anything.

/// Head and tail. If both are text once the cut characters at their inner ends are gone, those are gone.
pub(super) fn at_borders<'a>(head: &'a [u8], tail: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    match (text_before(head), text_after(tail)) {
        (Some(whole_head), Some(whole_tail)) => (whole_head, whole_tail),
        _no_text => (head, tail),
    }
}

/// The head without a character whose end was cut off; none if it is no UTF-8 otherwise.
fn text_before(head: &[u8]) -> Option<&[u8]> {
    match std::str::from_utf8(head) {
        Ok(_text) => Some(head),
        // No error length: the bytes end in the middle of a character (std::str::Utf8Error::error_len).
        Err(cut) if cut.error_len().is_none() => head.get(..cut.valid_up_to()),
        Err(_no_text) => None,
    }
}

/// The tail without the rest of a character whose beginning was cut off; none if it is no UTF-8 otherwise.
fn text_after(tail: &[u8]) -> Option<&[u8]> {
    let rest = tail.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
    let text = tail.get(rest..)?;
    // The stream itself may end in the middle of a character; then it is no text, and nothing is trimmed.
    std::str::from_utf8(text).is_ok().then_some(text)
}

/// 10xxxxxx (RFC 3629).
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(head: &[u8], tail: &[u8]) -> Vec<u8> {
        let (head, tail) = at_borders(head, tail);
        [head, tail].concat()
    }

    #[test]
    fn characters_cut_in_two_are_left_out_on_both_sides() {
        let euro = "€".as_bytes();
        for (head_bytes, tail_bytes) in [(1, 2), (2, 1), (1, 1), (2, 2)] {
            let head = [b"ab".as_slice(), &euro[..head_bytes]].concat();
            let tail = [&euro[3 - tail_bytes..], b"yz".as_slice()].concat();
            assert_eq!(join(&head, &tail), b"abyz");
        }
        assert_eq!(join("a€".as_bytes(), "€z".as_bytes()), "a€€z".as_bytes());
    }

    #[test]
    fn bytes_that_are_no_text_stay_as_they_are() {
        assert_eq!(join(&[0xff, 0xe2], b"z"), [0xff, 0xe2, b'z']);
        assert_eq!(join(&[b'a', 0xe2], &[0x80, 0xff]), [b'a', 0xe2, 0x80, 0xff]);
        assert_eq!(join(b"a", &[0x80, 0x80, 0x80, 0x80]), [b'a', 0x80, 0x80, 0x80, 0x80]);
    }
}
