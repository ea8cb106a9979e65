//! The schema document: every place in it has a number, and references find their places.
//!
//! Nothing outside the document is ever looked at.

use fluent_uri::{Iri, IriRef};
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
    resources: FxHashMap<String, Called>,
    anchors: FxHashMap<(NodeId, String), Called>,
    /// Dynamic anchors by name, with how many there are.
    dynamic: FxHashMap<String, (NodeId, usize)>,
}

/// What a name names.
#[derive(Clone, Copy)]
struct Called {
    node: NodeId,
    /// Another schema of the same name that says something else: what is meant is not clear.
    other: Option<NodeId>,
}

impl Called {
    fn only(node: NodeId) -> Self {
        Self { node, other: None }
    }
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
            let base = self.bases.get(&resource).map_or(NAMELESS, String::as_str);
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
            let base = self.bases.get(&resource).map_or(NAMELESS, String::as_str);
            let full = join(base, uri);
            let found = self.index().resources.get(trimmed(&full)).copied();
            let found = found.ok_or_else(|| SchemaError::ExternalReference {
                pointer: self.pointer(node),
                reference: reference.to_owned(),
            })?;
            resource = self.only(node, reference, found)?;
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
            let exact = index.anchors.get(&(resource, fragment.clone()));
            let found = exact.or_else(|| {
                // In another resource, where only one has it.
                let mut anchors = index.anchors.iter();
                let mut same = anchors.by_ref().filter(|((_, name), _)| *name == fragment);
                let first = same.next().map(|(_, found)| found);
                first.filter(|_| same.next().is_none())
            });
            match found.copied() {
                Some(found) => Some(self.only(node, reference, found)?),
                None => None,
            }
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

    /// The schema that is called so, where it is the only one.
    fn only(&self, node: NodeId, reference: &str, found: Called) -> Result<NodeId, SchemaError> {
        match found.other {
            None => Ok(found.node),
            Some(other) => Err(self.malformed(
                node,
                format!(
                    "the reference \"{reference}\" leads to two schemas, \"{}\" and \"{}\", which are \
                     called the same",
                    self.pointer(found.node),
                    self.pointer(other),
                ),
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
            let root = Called::only(NodeId(0));
            index.resources.insert(trimmed(base).to_owned(), root);
        }
        while let Some((node, place)) = stack.pop().or_else(|| unknown.pop()) {
            let value = self.value(node);
            if let (Value::Object(members), Place::Schema | Place::Unknown) = (value, place) {
                self.add_names(&mut index, node, members, place == Place::Schema);
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

    /// Adds what a schema is called. What was called so before stays, and is the only one unless
    /// this one stands where a schema does, too, and says something else.
    fn add_names(
        &self,
        index: &mut Index,
        node: NodeId,
        members: &Map<String, Value>,
        certain: bool,
    ) {
        let call = |called: &mut Called| {
            let differs = called.node != node && self.value(called.node) != self.value(node);
            if certain && differs && called.other.is_none() {
                called.other = Some(node);
            }
        };

        let resource = self.nodes[node.0 as usize].resource;
        if resource == node
            && let Some(base) = self.bases.get(&node)
        {
            let resources = &mut index.resources;
            let entry = resources.entry(trimmed(base).to_owned());
            call(entry.or_insert(Called::only(node)));
        }
        let mut add = |name: &str| {
            let anchors = &mut index.anchors;
            let entry = anchors.entry((resource, name.to_owned()));
            call(entry.or_insert(Called::only(node)));
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

/// What a document is called that has no name of its own.
const NAMELESS: &str = "json-schema:///";

/// Resolves a reference against a base (RFC 3986, section 5.2, and RFC 3987). What is no IRI, as a
/// title in the place of an identifier, is a name like any other, and stays as it is.
fn join(base: &str, reference: &str) -> String {
    let joined = || {
        let reference = IriRef::parse(reference).ok()?;
        let base = Iri::parse(base).or_else(|_| Iri::parse(NAMELESS)).ok()?;
        let joined = reference.resolve_against(&base).ok()?;
        Some(joined.normalize().into_string())
    };
    joined().unwrap_or_else(|| reference.to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_resolved_as_the_standard_says() {
        for (base, reference, whole) in [
            ("http://a/b/c", "d", "http://a/b/d"),
            ("http://a/b/c?q=/x/", "d", "http://a/b/d"),
            ("http://a/b/c", "?q", "http://a/b/c?q"),
            ("http://a/b/c/", "../d", "http://a/b/d"),
            ("http://a/b", "//c/d", "http://c/d"),
            ("http://a/b", "urn:x:y", "urn:x:y"),
            (NAMELESS, "d", "json-schema:///d"),
            (NAMELESS, "学校", "json-schema:///学校"),
            // No IRI: a name.
            (NAMELESS, "My title", "My title"),
            ("My title", "d", "json-schema:///d"),
        ] {
            assert_eq!(join(base, reference), whole, "{base} {reference}");
        }
    }

    #[test]
    fn a_name_of_two_schemas_names_neither() {
        let resolved = |schema: &Value| {
            let mut document = Document::new(schema, &Limits::default()).unwrap();
            let reference = schema["$ref"].as_str().unwrap();
            document
                .resolve(NodeId(0), reference)
                .map(|node| document.pointer(node))
                .map_err(|error| error.to_string())
        };
        for name in ["$id", "$anchor"] {
            let reference = if name == "$id" { "x" } else { "#x" };
            let of = |second: Value| json!({"$ref": reference, "$defs": {"a": {name: "x", "type": "string"}, "b": second}});
            let found = resolved(&of(json!({name: "x", "type": "number"}))).unwrap_err();
            assert!(
                found.contains("/$defs/a") && found.contains("/$defs/b"),
                "{found}"
            );
            // The same thing said twice, and what stands where nobody looks for schemas.
            for second in [
                json!({name: "x", "type": "string"}),
                json!({"p": {name: "x"}}),
            ] {
                assert!(resolved(&of(second)).is_ok());
            }
        }
    }
}
