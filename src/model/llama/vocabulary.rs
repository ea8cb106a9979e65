//! A GGUF model's tokens as bytes, and its tokeniser made safe for text from outside.

use super::ffi;
use crate::model::session::SessionError;
use crate::vocab::{Token, TokenId, TokenKind, Vocabulary};
use std::sync::Arc;

/// Text is tokenised in pieces of at most this many bytes: some of llama.cpp's tokenisers
/// recurse once per character of a piece.
const LONGEST_PIECE: usize = 4096;

/// Elements of HTML that some vocabularies (Gemma's) hold as whole tokens: ordinary text.
const HTML: &[&str] = &[
    "a",
    "b",
    "blockquote",
    "body",
    "br",
    "caption",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "html",
    "i",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "span",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
];

/// Whether a user-defined token steers the model (`<tool_call>`, `[INST]`) rather than spelling
/// text (runs of blanks, HTML, added words). GGUF files mark both alike.
fn steers(text: &str) -> bool {
    if let Some(inner) = text.strip_prefix('<').and_then(|t| t.strip_suffix('>')) {
        let name = inner.strip_prefix('/').unwrap_or(inner);
        return !inner.is_empty() && !HTML.contains(&name);
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let marks = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b"_/-".contains(&b);
        return inner.len() > 1 && inner.bytes().all(marks);
    }
    false
}

/// Turns text into tokens and knows what each token spells.
#[derive(Debug)]
pub(super) struct Tokenizer {
    model: Arc<ffi::Model>,
    vocabulary: Arc<Vocabulary>,
    /// User-defined tokens that steer the model: llama.cpp recognises them in any text.
    markers: Vec<String>,
    /// For each byte the token that spells it alone.
    byte_tokens: Box<[Option<TokenId>; 256]>,
    /// Tokens of [`ANCHOR`], where the tokeniser puts a blank before every text.
    anchor: Option<Vec<TokenId>>,
}

/// Never merges with what follows it.
const ANCHOR: &str = "\n";

impl Tokenizer {
    pub(super) fn new(model: Arc<ffi::Model>) -> Self {
        let count = u32::try_from(model.token_count()).unwrap_or(u32::MAX);
        let mut tokens = Vec::with_capacity(count as usize);
        let mut end_of_generation = Vec::new();
        let mut markers = Vec::new();
        let mut byte_tokens = Box::new([None; 256]);
        for id in 0..count {
            let token = read_token(&model, id);
            if model.ends_generation(id) {
                end_of_generation.push(id);
            }
            match token.kind {
                TokenKind::Control => {
                    if model.attributes(id).is_user_defined()
                        && let Ok(text) = std::str::from_utf8(&token.bytes)
                        && !text.is_empty()
                    {
                        markers.push(text.to_owned());
                    }
                }
                TokenKind::Text | TokenKind::Byte => {
                    if let [byte] = token.bytes[..] {
                        let slot = &mut byte_tokens[usize::from(byte)];
                        // A text token is what the tokeniser itself would choose.
                        if slot.is_none() || token.kind == TokenKind::Text {
                            *slot = Some(id);
                        }
                    }
                }
            }
            tokens.push(token);
        }
        let mut tokenizer = Self {
            model,
            vocabulary: Arc::new(Vocabulary::new(tokens, end_of_generation)),
            markers,
            byte_tokens,
            anchor: None,
        };
        let spelled = tokenizer.model.tokenize("a", false).unwrap_or_default();
        if tokenizer.spelling(&spelled) == b" a" {
            tokenizer.anchor = tokenizer.model.tokenize(ANCHOR, false).ok();
        }
        tokenizer
    }

    pub(super) fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    fn spelling(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens
            .iter()
            .flat_map(|&token| self.vocabulary.bytes(token))
            .copied()
            .collect()
    }

    /// See [`Session::tokenize`](crate::model::Session::tokenize). Bytes that no token spells are
    /// left out.
    pub(super) fn tokenize(
        &self,
        text: &[u8],
        special: bool,
    ) -> Result<Vec<TokenId>, SessionError> {
        let mut tokens = Vec::with_capacity(text.len() / 3 + 4);
        for chunk in text.utf8_chunks() {
            if special {
                self.continue_with(chunk.valid(), true, &mut tokens)?;
            } else {
                for piece in pieces(chunk.valid(), &self.markers) {
                    self.continue_with(piece, false, &mut tokens)?;
                }
            }
            for &byte in chunk.invalid() {
                tokens.extend(self.byte_tokens[usize::from(byte)]);
            }
        }
        Ok(tokens)
    }

    /// Appends the tokens of `text` as it continues other text: without the blank that some
    /// tokenisers put before everything.
    fn continue_with(
        &self,
        text: &str,
        special: bool,
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), SessionError> {
        if text.is_empty() {
            return Ok(());
        }
        let call = |text: &str| {
            self.model
                .tokenize(text, special)
                .map_err(|failure| super::backend(failure.0))
        };
        match &self.anchor {
            None => tokens.extend(call(text)?),
            Some(anchor) => {
                let all = call(&format!("{ANCHOR}{text}"))?;
                match all.strip_prefix(&anchor[..]) {
                    Some(rest) => tokens.extend(rest),
                    None => tokens.extend(
                        text.bytes()
                            .filter_map(|byte| self.byte_tokens[usize::from(byte)]),
                    ),
                }
            }
        }
        Ok(())
    }
}

/// What token `id` is and spells.
fn read_token(model: &ffi::Model, id: TokenId) -> Token {
    let attributes = model.attributes(id);
    let mut bytes = model.piece(id);
    let control = |bytes| Token {
        bytes,
        kind: TokenKind::Control,
    };
    if attributes.is_special() || model.ends_generation(id) || bytes.is_empty() {
        return control(bytes);
    }
    if attributes.is_byte() {
        return Token {
            bytes,
            kind: TokenKind::Byte,
        };
    }
    if attributes.is_user_defined() {
        let text = String::from_utf8_lossy(&bytes);
        if steers(&text) {
            return control(bytes);
        }
        if text.chars().all(|c| c == '\u{2581}') {
            bytes = b" ".repeat(text.chars().count());
        }
    } else if !attributes.is_normal() || bytes.starts_with(b"[UNK_BYTE_") {
        // Unknown kinds, and entries of a byte-level vocabulary that are not byte-level text.
        return control(bytes);
    }
    Token {
        bytes,
        kind: TokenKind::Text,
    }
}

/// Cuts `text` so that no piece is too long and none contains a marker.
fn pieces<'a>(text: &'a str, markers: &[String]) -> Vec<&'a str> {
    let mut cuts: Vec<usize> = Vec::new();
    for marker in markers {
        for (at, _) in text.match_indices(marker.as_str()) {
            // Inside the marker, after its first character.
            cuts.push(at + marker.chars().next().map_or(0, char::len_utf8));
        }
    }
    cuts.push(text.len());
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut start = 0;
    for cut in cuts {
        while cut - start > LONGEST_PIECE {
            let end = natural_cut(&text[start..]);
            pieces.push(&text[start..start + end]);
            start += end;
        }
        if cut > start {
            pieces.push(&text[start..cut]);
            start = cut;
        }
    }
    pieces
}

/// Where to cut a text longer than [`LONGEST_PIECE`]: before the last blank that follows
/// something else, which is where words begin in most vocabularies.
fn natural_cut(text: &str) -> usize {
    let limit = (0..=LONGEST_PIECE)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    let bytes = text.as_bytes();
    (limit / 2..limit)
        .rev()
        .find(|&at| bytes[at] == b' ' && at > 0 && !bytes[at - 1].is_ascii_whitespace())
        .unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_told_from_text() {
        for (text, expected) in [
            ("<tool_call>", true),
            ("</think>", true),
            ("<|fim_prefix|>", true),
            ("<｜User｜>", true),
            ("[INST]", true),
            ("[/TOOL_CALLS]", true),
            ("<table>", false),
            ("</h1>", false),
            ("<>", false),
            ("\n\n\n", false),
            ("    ", false),
            ("[1]", false),
            ("word", false),
        ] {
            assert_eq!(steers(text), expected, "{text}");
        }
    }

    #[test]
    fn no_piece_contains_a_marker_or_is_too_long() {
        let markers = vec!["<think>".to_owned(), "</think>".to_owned()];
        let text = format!(
            "a<think>b</think><think><<think>>{}{}",
            "word ".repeat(3000),
            "я".repeat(5000)
        );
        let pieces = pieces(&text, &markers);
        assert_eq!(pieces.concat(), text);
        for piece in &pieces {
            assert!(piece.len() <= LONGEST_PIECE);
            assert!(!markers.iter().any(|marker| piece.contains(marker)));
        }
        assert!(pieces.len() < 20, "{}", pieces.len());
    }
}
