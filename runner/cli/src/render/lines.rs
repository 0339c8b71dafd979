//! Texts in lines that fit a terminal.

/// No line is longer, but for a word that is.
pub(super) const WIDTH: usize = 100;

/// The text in lines, the first behind `first` spaces, the others behind `then`.
pub(super) fn wrapped(text: &str, first: usize, then: usize) -> String {
    let mut lines = String::new();
    let mut line = " ".repeat(first);
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = " ".repeat(then);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
}
