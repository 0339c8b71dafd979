//! Texts in a page.

/// The text as it may stand between tags and in attributes, its control characters made visible.
pub(super) fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in super::super::clean(text).chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_a_tag_or_ends_an_attribute() {
        assert_eq!(text("<b a='1' c=\"2\">&amp;\u{1b}"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;\\u{1b}");
    }
}
