//! The schema document: every place in it has a number, and references find their places.
//!
//! Nothing outside the document is ever looked at.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::error::SchemaError;
use super::options::Limits;

/// A place in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// The dialect, as far as it changes what a schema means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Draft {
    /// Draft 4 and before: boolean `exclusiveMinimum`, `id`.
    Draft4,
    /// Drafts 6 and 7: `$ref` hides its siblings.
    Draft7,
    /// 2019-09 and 2020-12.
    Draft2020,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

struct Node<'a> {
    value: &'a Value,
    parent: NodeId,
    step: Step<'a>,
    /// The node whose `$id` this place's references are relative to.
    resource: NodeId,
}

/// A schema document.
pub struct Document<'a> {
    nodes: Vec<Node<'a>>,
    by_address: FxHashMap<usize, NodeId>,
    draft: Draft,
    /// Base URI of each resource root.
    bases: FxHashMap<NodeId, String>,
    index: Option<Index>,
}

/// What `$id` and `$anchor` name; built when first needed.
#[derive(Default)]
struct Index {
    resources: FxHashMap<String, NodeId>,
    anchors: FxHashMap<(NodeId, String), NodeId>,
    /// Dynamic anchors by name, with how many there are.
    dynamic: FxHashMap<String, (NodeId, usize)>,
}

/// Keywords below which no schema is found.
const NOT_SCHEMAS: [&str; 5] = ["enum", "const", "default", "examples", "example"];

impl<'a> Document<'a> {
    /// Opens `root`, refusing what is nested too deeply or too large.
    pub fn new(root: &'a Value, limits: &Limits) -> Result<Self, SchemaError> {
        measure(root, limits)?;
        let draft = root
            .get("$schema")
            .and_then(Value::as_str)
            .map_or(Draft::Draft2020, draft_of);
        let mut document = Self {
            nodes: Vec::new(),
            by_address: FxHashMap::default(),
            draft,
            bases: FxHashMap::default(),
            index: None,
        };
        document.add(root, NodeId(0), Step::Root);
        Ok(document)
    }

    /// The whole document.
    pub fn root(&self) -> NodeId {
        NodeId(0)
    }

    /// Its dialect.
    pub fn draft(&self) -> Draft {
        self.draft
    }

    /// What stands at `node`.
    pub fn value(&self, node: NodeId) -> &'a Value {
        self.nodes[node.0 as usize].value
    }

    fn add(&mut self, value: &'a Value, parent: NodeId, step: Step<'a>) -> NodeId {
        let address = std::ptr::from_ref(value) as usize;
        if let Some(&known) = self.by_address.get(&address) {
            return known;
        }
        let id = NodeId(self.nodes.len() as u32);
        let mut resource = self
            .nodes
            .get(parent.0 as usize)
            .map_or(id, |parent| parent.resource);
        if let Some(uri) = identifier(value, self.draft) {
            let base = self.bases.get(&resource).map_or("", String::as_str);
            let full = join(base, uri);
            resource = id;
            self.bases.insert(id, full);
        }
        self.nodes.push(Node {
            value,
            parent,
            step,
            resource,
        });
        self.by_address.insert(address, id);
        id
    }

    /// The member `key` of the object at `node`.
    pub fn member(&mut self, node: NodeId, key: &str) -> Option<NodeId> {
        let (key, value) = self.value(node).as_object()?.get_key_value(key)?;
        Some(self.add(value, node, Step::Key(key)))
    }

    /// The item `index` of the array at `node`.
    pub fn item(&mut self, node: NodeId, index: usize) -> Option<NodeId> {
        let value = self.value(node).as_array()?.get(index)?;
        Some(self.add(value, node, Step::Index(index)))
    }

    /// The JSON Pointer of `node`.
    pub fn pointer(&self, node: NodeId) -> String {
        let mut steps = Vec::new();
        let mut at = node;
        loop {
            let node = &self.nodes[at.0 as usize];
            match node.step {
                Step::Root => break,
                Step::Key(key) => steps.push(key.replace('~', "~0").replace('/', "~1")),
                Step::Index(index) => steps.push(index.to_string()),
            }
            at = node.parent;
        }
        let mut out = String::new();
        for step in steps.iter().rev() {
            out.push('/');
            out.push_str(step);
        }
        out
    }

    /// The last step to `node`, if it is a key: what a rule may be named after.
    pub fn name(&self, node: NodeId) -> Option<&'a str> {
        match self.nodes[node.0 as usize].step {
            Step::Key(key) => Some(key),
            _ => None,
        }
    }

    /// A [`SchemaError::Malformed`] at `node`.
    pub fn malformed(&self, node: NodeId, reason: impl Into<String>) -> SchemaError {
        SchemaError::Malformed {
            pointer: self.pointer(node),
            reason: reason.into(),
        }
    }

    /// The place that `reference`, written at `node`, names.
    pub fn resolve(&mut self, node: NodeId, reference: &str) -> Result<NodeId, SchemaError> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let mut resource = self.nodes[node.0 as usize].resource;
        if !uri.is_empty() {
            let base = self.bases.get(&resource).map_or("", String::as_str);
            let full = join(base, uri);
            let found = self.index().resources.get(trimmed(&full)).copied();
            resource = found.ok_or_else(|| SchemaError::ExternalReference {
                pointer: self.pointer(node),
                reference: reference.to_owned(),
            })?;
        }
        let fragment = percent_decoded(fragment);
        let target = if fragment.is_empty() {
            Some(resource)
        } else if fragment.starts_with('/') {
            // Nested `id`s are often no more than labels: then the document is meant.
            self.walk(resource, &fragment)
                .or_else(|| self.walk(NodeId(0), &fragment))
        } else {
            let index = self.index();
            let exact = index.anchors.get(&(resource, fragment.clone())).copied();
            exact.or_else(|| {
                index
                    .anchors
                    .iter()
                    .find(|((_, name), _)| *name == fragment)
                    .map(|(_, &node)| node)
            })
        };
        match target {
            Some(target) if self.value(target).is_object() || self.value(target).is_boolean() => {
                Ok(target)
            }
            Some(_) => Err(self.malformed(
                node,
                format!("the reference \"{reference}\" leads to something that is no schema"),
            )),
            None => Err(self.malformed(
                node,
                format!("the reference \"{reference}\" leads to nothing"),
            )),
        }
    }

    /// The place of the only dynamic anchor of that name, or nothing if there are several.
    pub fn dynamic_anchor(&mut self, name: &str) -> Option<NodeId> {
        match self.index().dynamic.get(name) {
            Some(&(node, 1)) => Some(node),
            _ => None,
        }
    }

    fn walk(&mut self, from: NodeId, pointer: &str) -> Option<NodeId> {
        let mut at = from;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            at = match self.value(at) {
                Value::Object(_) => self.member(at, &step)?,
                Value::Array(_) => self.item(at, step.parse().ok()?)?,
                _ => return None,
            };
        }
        Some(at)
    }

    fn index(&mut self) -> &Index {
        if self.index.is_none() {
            let index = self.build_index();
            self.index = Some(index);
        }
        self.index.get_or_insert_default()
    }

    fn build_index(&mut self) -> Index {
        let mut index = Index::default();
        let mut stack = vec![(NodeId(0), Place::Schema)];
        // What is under keywords that nobody knows names nothing that a schema names, too.
        let mut unknown = Vec::new();
        if let Some(base) = self.bases.get(&NodeId(0)) {
            index.resources.insert(trimmed(base).to_owned(), NodeId(0));
        }
        while let Some((node, place)) = stack.pop().or_else(|| unknown.pop()) {
            let value = self.value(node);
            if let (Value::Object(members), Place::Schema | Place::Unknown) = (value, place) {
                self.add_names(&mut index, node, members);
            }
            for (step, child) in children(value) {
                if !child.is_object() && !child.is_array() {
                    continue;
                }
                let place = match (place, step) {
                    (_, Step::Key(key)) if NOT_SCHEMAS.contains(&key) && place != Place::Map => {
                        continue;
                    }
                    (Place::Schema, Step::Key(key)) if MAPS.contains(&key) => Place::Map,
                    (Place::Schema, Step::Key(key)) if SCHEMAS.contains(&key) => Place::Schema,
                    (Place::Schema, Step::Key(_)) | (Place::Unknown, _) => Place::Unknown,
                    // The items of a list of schemas, or of a map.
                    (Place::Schema, Step::Index(_) | Step::Root) | (Place::Map, _) => Place::Schema,
                };
                let child = self.add(child, node, step);
                match place {
                    Place::Unknown => unknown.push((child, place)),
                    Place::Schema | Place::Map => stack.push((child, place)),
                }
            }
        }
        index
    }

    /// Adds what a schema is called; what was called so before stays.
    fn add_names(&self, index: &mut Index, node: NodeId, members: &Map<String, Value>) {
        let resource = self.nodes[node.0 as usize].resource;
        if resource == node
            && let Some(base) = self.bases.get(&node)
        {
            let resources = &mut index.resources;
            resources.entry(trimmed(base).to_owned()).or_insert(node);
        }
        let mut add = |name: &str| {
            let anchors = &mut index.anchors;
            anchors.entry((resource, name.to_owned())).or_insert(node);
        };
        let text = |keyword: &str| members.get(keyword).and_then(Value::as_str);
        for keyword in ["$anchor", "$dynamicAnchor"] {
            text(keyword).map(&mut add);
        }
        for keyword in ["$id", "id"] {
            if let Some((_, name)) = text(keyword).and_then(|id| id.split_once('#'))
                && !name.is_empty()
            {
                add(name);
            }
        }
        if let Some(name) = text("$dynamicAnchor") {
            index.dynamic.entry(name.to_owned()).or_insert((node, 0)).1 += 1;
        }
    }
}

/// Where a value stands in a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A schema, or a list of schemas.
    Schema,
    /// Schemas by name.
    Map,
    /// Under a keyword that nobody knows.
    Unknown,
}

/// Keywords whose values are schemas or lists of schemas.
const SCHEMAS: [&str; 18] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "extends",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose values are schemas by name.
const MAPS: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

fn children<'a>(value: &'a Value) -> Box<dyn Iterator<Item = (Step<'a>, &'a Value)> + 'a> {
    match value {
        Value::Object(members) => {
            Box::new(members.iter().map(|(key, child)| (Step::Key(key), child)))
        }
        Value::Array(items) => {
            Box::new((0..).zip(items).map(|(at, child)| (Step::Index(at), child)))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// Depth and size, without recursion.
fn measure(root: &Value, limits: &Limits) -> Result<(), SchemaError> {
    let mut stack = vec![(root, 1usize)];
    let mut count = 0usize;
    while let Some((value, depth)) = stack.pop() {
        count += 1;
        let exceeded = |which, limit| SchemaError::Limit {
            pointer: String::new(),
            which,
            limit,
        };
        if depth > limits.depth {
            return Err(exceeded("levels of nesting", limits.depth));
        }
        if count > limits.nodes {
            return Err(exceeded("JSON values", limits.nodes));
        }
        match value {
            Value::Object(members) => stack.extend(members.values().map(|v| (v, depth + 1))),
            Value::Array(items) => stack.extend(items.iter().map(|v| (v, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

fn draft_of(uri: &str) -> Draft {
    if ["draft-04", "draft-03", "draft-02", "draft-01"]
        .iter()
        .any(|old| uri.contains(old))
    {
        Draft::Draft4
    } else if uri.contains("draft-06") || uri.contains("draft-07") {
        Draft::Draft7
    } else {
        Draft::Draft2020
    }
}

fn identifier(value: &Value, draft: Draft) -> Option<&str> {
    let members = value.as_object()?;
    let keyword = if draft == Draft::Draft4 { "id" } else { "$id" };
    let uri = members.get(keyword)?.as_str()?;
    // A `$ref` hides its siblings in these drafts, `$id` included.
    if draft <= Draft::Draft7 && members.contains_key("$ref") {
        return None;
    }
    let uri = uri.split('#').next().unwrap_or(uri);
    (!uri.is_empty()).then_some(uri)
}

fn trimmed(uri: &str) -> &str {
    uri.trim_end_matches('#')
}

/// Resolves a reference against a base URI (RFC 3986, section 5.2, without queries).
fn join(base: &str, reference: &str) -> String {
    let has_scheme = reference
        .split_once(':')
        .is_some_and(|(scheme, _)| !scheme.is_empty() && !scheme.contains(['/', '?', '#']));
    if has_scheme || base.is_empty() {
        return reference.to_owned();
    }
    let authority_end = base.find("://").map_or(0, |at| {
        base[at + 3..]
            .find('/')
            .map_or(base.len(), |slash| at + 3 + slash)
    });
    if let Some(rest) = reference.strip_prefix("//") {
        let scheme = base.split("://").next().unwrap_or_default();
        return format!("{scheme}://{rest}");
    }
    if reference.starts_with('/') {
        return format!("{}{reference}", &base[..authority_end]);
    }
    let path_end = base[authority_end..]
        .rfind('/')
        .map_or(authority_end, |slash| authority_end + slash);
    let mut segments: Vec<&str> = base[authority_end..path_end]
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect();
    for segment in reference.split('/') {
        match segment {
            "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    if authority_end == 0 && !base.starts_with('/') {
        segments.join("/")
    } else {
        format!("{}/{}", &base[..authority_end], segments.join("/"))
    }
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(byte) = hex {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
