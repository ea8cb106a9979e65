//! Text, cut where it may be cut.

/// The longest start of `text` with at most `limit` bytes that ends between characters.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
