//! What is compared, behind one interface: a schema becomes a start, from which masks are computed
//! token by token.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher as Guided, ParserFactory};
use serde_json::{Value, json};
use snaffle::grammar::Limits;
use snaffle::grammar::schema::{SchemaOptions, compile};
use snaffle::mask::{Lexicon, MaskStore, Matcher};
use snaffle::vocab::{Token, TokenKind, Vocabulary};
use toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};

use crate::vocabulary::Words;

/// A library with a vocabulary.
pub trait Peer {
    fn name(&self) -> &'static str;
    /// Forgets what was remembered of other schemas.
    fn forget(&mut self);
    /// A matcher at the start of a schema's texts.
    fn start(&self, schema: &Value) -> Result<Box<dyn Run>, String>;
}

/// A matcher somewhere in a text.
pub trait Run {
    /// Another one at the same place, that shares what was computed.
    fn again(&self) -> Box<dyn Run>;
    /// Computes the mask and says whether `token` is in it.
    fn mask(&mut self, token: u32) -> Result<bool, String>;
    fn accept(&mut self, token: u32) -> Result<bool, String>;
}

pub struct Snaffle {
    lexicon: Arc<Lexicon>,
    store: Arc<MaskStore>,
}

impl Snaffle {
    pub fn new(words: &Words) -> Self {
        let tokens = words.tokens.iter().map(|token| Token {
            bytes: token.clone().unwrap_or_default(),
            kind: match token {
                Some(_) => TokenKind::Text,
                None => TokenKind::Control,
            },
        });
        let vocabulary = Vocabulary::new(tokens.collect(), vec![words.end]);
        Self {
            lexicon: Arc::new(Lexicon::new(Arc::new(vocabulary))),
            store: Arc::new(MaskStore::default()),
        }
    }
}

impl Peer for Snaffle {
    fn name(&self) -> &'static str {
        "snaffle"
    }

    fn forget(&mut self) {
        self.store = Arc::new(MaskStore::default());
    }

    fn start(&self, schema: &Value) -> Result<Box<dyn Run>, String> {
        let compiled = compile(schema, &SchemaOptions::default()).map_err(|e| e.to_string())?;
        let limits = Limits::default();
        let matcher = Matcher::new(&compiled.grammar, &self.lexicon, &self.store, &limits);
        Ok(Box::new(matcher.map_err(|e| e.to_string())?))
    }
}

impl Run for Matcher {
    fn again(&self) -> Box<dyn Run> {
        Box::new(self.clone())
    }

    fn mask(&mut self, token: u32) -> Result<bool, String> {
        let mask = Matcher::mask(self).map_err(|e| e.to_string())?;
        Ok(mask.contains(token))
    }

    fn accept(&mut self, token: u32) -> Result<bool, String> {
        self.accept_token(token).map_err(|e| e.to_string())
    }
}

pub struct LlGuidance {
    factory: ParserFactory,
}

impl LlGuidance {
    pub fn new(words: &Words) -> Result<Self, String> {
        let tokens: Vec<Vec<u8>> = words
            .tokens
            .iter()
            .map(|token| token.clone().unwrap_or_else(|| b"\xFF<control>".to_vec()))
            .collect();
        let info = TokRxInfo::new(tokens.len() as u32, words.end);
        let trie = TokTrie::from(&info, &tokens);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&env).map_err(|e| e.to_string())?;
        factory.quiet();
        Ok(Self { factory })
    }
}

impl Peer for LlGuidance {
    fn name(&self) -> &'static str {
        "llguidance 1.9.1"
    }

    /// It keeps nothing between schemas but its slices, which belong to the vocabulary.
    fn forget(&mut self) {}

    fn start(&self, schema: &Value) -> Result<Box<dyn Run>, String> {
        let mut schema = schema.clone();
        if let Some(members) = schema.as_object_mut() {
            let spelling = json!({
                "item_separator": ", ", "key_separator": ": ", "whitespace_flexible": false,
            });
            members.insert("x-guidance".to_owned(), spelling);
        }
        let grammar = TopLevelGrammar::from_json_schema(schema);
        let parser = self.factory.create_parser(grammar);
        let matcher = Guided::new(parser);
        match matcher.get_error() {
            None => Ok(Box::new(Guiding(matcher))),
            Some(error) => Err(error),
        }
    }
}

struct Guiding(Guided);

impl Run for Guiding {
    fn again(&self) -> Box<dyn Run> {
        Box::new(Self(self.0.deep_clone()))
    }

    fn mask(&mut self, token: u32) -> Result<bool, String> {
        let mask = self.0.compute_mask().map_err(|e| e.to_string())?;
        Ok(mask.is_allowed(token))
    }

    fn accept(&mut self, token: u32) -> Result<bool, String> {
        self.0.consume_token(token).map_err(|e| e.to_string())?;
        Ok(!self.0.is_error())
    }
}
