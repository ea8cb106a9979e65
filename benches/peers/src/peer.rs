//! What is compared, behind one interface: a schema becomes a start, from which masks are computed
//! token by token.

use std::sync::Arc;
use std::time::Duration;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher as Guided, ParserFactory};
use serde_json::{Value, json};
use snaffle::grammar::schema::{Bounds, SchemaOptions, compile};
use snaffle::grammar::{Limits, for_llama_cpp};
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
    fn start(&self, schema: &Value) -> Result<Box<dyn Run + '_>, String>;
    /// How long each figure may take: what needs milliseconds a mask is measured on as many
    /// schemas and calls as it comes to in that time.
    fn patience(&self) -> Duration {
        Duration::MAX
    }
    /// Whether its memory is allocated where it is counted.
    fn is_counted(&self) -> bool {
        true
    }
}

/// A matcher somewhere in a text.
pub trait Run {
    /// Another one at the same place, that shares what was computed.
    fn again(&self) -> Result<Box<dyn Run + '_>, String>;
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

    fn start(&self, schema: &Value) -> Result<Box<dyn Run + '_>, String> {
        let compiled = compile(schema, &SchemaOptions::default()).map_err(|e| e.to_string())?;
        let limits = Limits::default();
        let matcher = Matcher::new(&compiled.grammar, &self.lexicon, &self.store, &limits);
        Ok(Box::new(matcher.map_err(|e| e.to_string())?))
    }
}

impl Run for Matcher {
    fn again(&self) -> Result<Box<dyn Run + '_>, String> {
        Ok(Box::new(self.clone()))
    }

    fn mask(&mut self, token: u32) -> Result<bool, String> {
        let mask = Matcher::mask(self).map_err(|e| e.to_string())?;
        Ok(mask.contains(token))
    }

    fn accept(&mut self, token: u32) -> Result<bool, String> {
        self.accept_token(token).map_err(|e| e.to_string())
    }
}

/// llguidance as its simple factory makes it, slices included.
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

    fn start(&self, schema: &Value) -> Result<Box<dyn Run + '_>, String> {
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
    fn again(&self) -> Result<Box<dyn Run + '_>, String> {
        Ok(Box::new(Self(self.0.deep_clone())))
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

/// llama.cpp's grammar sampler, fed with the grammars that this project prints for it.
pub struct LlamaCpp {
    model: LlamaModel,
    /// All tokens but those that it refuses in any case, or takes as an empty text.
    candidates: Vec<LlamaTokenData>,
}

impl LlamaCpp {
    pub fn new(words: &Words, backend: &LlamaBackend) -> Result<Self, String> {
        let params = LlamaModelParams::default().with_vocab_only(true);
        let model = LlamaModel::load_from_file(backend, &words.path, &params);
        let texts = words.tokens.iter().enumerate();
        Ok(Self {
            model: model.map_err(|e| e.to_string())?,
            candidates: texts
                .filter(|(_, token)| token.as_ref().is_some_and(|token| !token.is_empty()))
                .map(|(id, _)| LlamaTokenData::new(LlamaToken(id as i32), 0.0, 0.0))
                .collect(),
        })
    }
}

impl Peer for LlamaCpp {
    fn name(&self) -> &'static str {
        "llama.cpp"
    }

    /// It keeps nothing.
    fn forget(&mut self) {}

    fn start(&self, schema: &Value) -> Result<Box<dyn Run + '_>, String> {
        // Without bounds where the schema has none, which it would have to unroll.
        let options = SchemaOptions {
            bounds: Bounds::none(),
            ..SchemaOptions::default()
        };
        let compiled = compile(schema, &options).map_err(|e| e.to_string())?;
        let grammar = for_llama_cpp(&compiled.grammar, &Limits::default());
        let grammar = grammar.map_err(|e| e.to_string())?;
        let text = grammar.to_gbnf().map_err(|e| e.to_string())?;
        Ok(Box::new(Sampling::new(self, text)?))
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn is_counted(&self) -> bool {
        false
    }
}

struct Sampling<'p> {
    peer: &'p LlamaCpp,
    grammar: String,
    sampler: LlamaSampler,
    array: LlamaTokenDataArray,
}

impl<'p> Sampling<'p> {
    fn new(peer: &'p LlamaCpp, grammar: String) -> Result<Self, String> {
        let sampler = LlamaSampler::grammar(&peer.model, &grammar, "root");
        Ok(Self {
            sampler: sampler.map_err(|e| e.to_string())?,
            peer,
            grammar,
            array: LlamaTokenDataArray::new(Vec::new(), false),
        })
    }
}

impl Run for Sampling<'_> {
    fn again(&self) -> Result<Box<dyn Run + '_>, String> {
        Ok(Box::new(Self::new(self.peer, self.grammar.clone())?))
    }

    fn mask(&mut self, token: u32) -> Result<bool, String> {
        self.array.data.clear();
        self.array.data.extend_from_slice(&self.peer.candidates);
        self.sampler.apply(&mut self.array);
        let wanted = LlamaToken(token as i32);
        let found = self.array.data.iter().find(|data| data.id() == wanted);
        Ok(found.is_some_and(|data| data.logit() > f32::NEG_INFINITY))
    }

    fn accept(&mut self, token: u32) -> Result<bool, String> {
        // It says nothing of its own: the mask was asked before.
        self.sampler.accept(LlamaToken(token as i32));
        Ok(true)
    }
}
