//! `common` and `inherits`: parts that several kinds have, put together to what one kind is.

use super::{KIND_KEYS, indexes, required, schema};
use crate::constraints::polymorphic::{DocumentKind, KindIndex, declared_names, opened};
use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::{At, Findings};
use crate::declare::spelling;
use crate::declare::tree::NodeContent;
use crate::mql;
use document::value::Path;
use document::{Doc, DocWriter, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What stands under the name of a kind or of a part of `common`.
#[derive(Clone, Debug, Default)]
pub(super) struct KindPart {
    required: Vec<Path>,
    schema: Option<Doc<'static>>,
    indexes: Vec<KindIndex>,
    /// The parts that it has as well, each where it stands.
    inherits: Vec<(String, At)>,
}

impl KindPart {
    /// An empty one is a kind without demands.
    pub(super) fn read(
        within: &Block<'_>,
        item: &BlockItem<'_>,
        discriminator: Option<&Path>,
        findings: &mut Findings,
    ) -> KindPart {
        if matches!(&item.node.content, NodeContent::Map(entries) if entries.is_empty()) {
            return KindPart::default();
        }
        let what = "write what its documents must have, such as `{ required: [title] }`, or `{}` for nothing";
        let Some(block) = Block::open(item.node, within.key_at(item.key), what, findings) else {
            return KindPart::default();
        };
        block.only(KIND_KEYS, findings);
        KindPart {
            required: block.get("required").map(|item| required(&item, discriminator, findings)).unwrap_or_default(),
            schema: block.get("schema").and_then(|item| schema::read(&item, findings)),
            indexes: block.get("indexes").map(|item| indexes::read(&item, findings)).unwrap_or_default(),
            inherits: block.get("inherits").map(|item| inherits(&item, findings)).unwrap_or_default(),
        }
    }
}

/// `inherits: media`, or a list.
fn inherits(item: &BlockItem<'_>, findings: &mut Findings) -> Vec<(String, At)> {
    const EXAMPLE: &str = "media";
    let NodeContent::List(items) = &item.node.content else {
        let name = item.text("the name of a part of `common`", EXAMPLE, findings);
        return name.map(|name| (name.to_owned(), item.at.clone())).into_iter().collect();
    };
    let mut all: Vec<(String, At)> = Vec::new();
    if items.is_empty() {
        findings.error(&item.at, "`inherits` is empty", "name a part of `common`, or leave it out");
    }
    for (index, node) in items.iter().enumerate() {
        let own = BlockItem { node, at: item.at.inside(&index.to_string(), node.spot), key: item.key };
        let Some(name) = own.text("the name of a part of `common`", EXAMPLE, findings) else { continue };
        match all.iter().any(|(other, _)| other == name) {
            true => findings.error(&own.at, format!("`{name}` is there twice"), "keep one of them"),
            false => all.push((name.to_owned(), own.at)),
        }
    }
    all
}

/// The parts of `common`.
#[derive(Debug, Default)]
pub(super) struct Parts {
    all: Vec<(String, At, KindPart)>,
    used: RefCell<BTreeSet<String>>,
}

impl Parts {
    pub(super) fn read(item: &BlockItem<'_>, discriminator: Option<&Path>, findings: &mut Findings) -> Parts {
        let what = "name the parts that several kinds have";
        let Some(block) = Block::open(item.node, item.at.clone(), what, findings) else { return Parts::default() };
        let part = |item: BlockItem<'_>, findings: &mut Findings| {
            (item.key.to_owned(), block.key_at(item.key), KindPart::read(&block, &item, discriminator, findings))
        };
        let all: Vec<_> = block.items().map(|item| part(item, findings)).collect();
        let parts = Parts { all, used: RefCell::default() };
        parts.no_cycles(findings);
        parts
    }

    fn find(&self, name: &str) -> Option<&KindPart> {
        self.all.iter().find(|(own, ..)| own == name).map(|(.., part)| part)
    }

    fn no_cycles(&self, findings: &mut Findings) {
        for (name, _, part) in &self.all {
            for (other, at) in &part.inherits {
                if self.leads_to(other, name, &mut BTreeSet::new()) {
                    let message = format!("a cycle: `{name}` inherits `{other}`, which inherits `{name}`");
                    findings.error(at, message, "leave one of them out");
                }
            }
        }
    }

    /// Whether a part is the other, or inherits it.
    fn leads_to(&self, from: &str, to: &str, seen: &mut BTreeSet<String>) -> bool {
        if from == to {
            return true;
        }
        let inner = || self.find(from).into_iter().flat_map(|part| &part.inherits);
        seen.insert(from.to_owned()) && inner().any(|(name, _)| self.leads_to(name, to, seen))
    }

    /// A kind with everything that it inherits, the furthest first.
    pub(super) fn combined(&self, name: &str, own: &KindPart, findings: &mut Findings) -> DocumentKind {
        let (mut parts, mut seen) = (Vec::new(), BTreeSet::new());
        self.gather(own, &mut seen, &mut parts, findings);
        let (mut required, mut indexes): (Vec<Path>, Vec<KindIndex>) = Default::default();
        for part in parts.iter().copied().chain([own]) {
            for path in part.required.iter().filter(|path| !required.contains(path)).cloned().collect::<Vec<_>>() {
                required.push(path);
            }
            for index in part.indexes.iter().filter(|index| !indexes.contains(index)).cloned().collect::<Vec<_>>() {
                indexes.push(index);
            }
        }
        let schemas: Vec<&Doc<'static>> = parts.iter().filter_map(|part| part.schema.as_ref()).collect();
        DocumentKind { name: name.to_owned(), schema: together(own.schema.as_ref(), &schemas), required, indexes }
    }

    fn gather<'p>(
        &'p self,
        part: &'p KindPart,
        seen: &mut BTreeSet<String>,
        into: &mut Vec<&'p KindPart>,
        findings: &mut Findings,
    ) {
        for (name, at) in &part.inherits {
            self.used.borrow_mut().insert(name.clone());
            let Some(inherited) = self.find(name) else {
                let names = || self.all.iter().map(|(name, ..)| &**name);
                let hint = match spelling::nearest(name, names()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None if self.all.is_empty() => {
                        format!("declare it: `common: {{ {name}: {{ required: [title] }} }}`")
                    }
                    None => format!("the parts are {}", spelling::all_of(names())),
                };
                findings.error(at, format!("`common` has no part called `{}`", name.escape_debug()), hint);
                continue;
            };
            if seen.insert(name.clone()) {
                self.gather(inherited, seen, into, findings);
                into.push(inherited);
            }
        }
    }

    /// Parts that no kind has.
    pub(super) fn unused(&self, findings: &mut Findings) {
        for (name, at, _) in self.all.iter().filter(|(name, ..)| !self.used.borrow().contains(name)) {
            findings.warning(
                at,
                format!("no kind inherits `{name}`"),
                format!("write `inherits: {name}` in a kind, or remove it"),
            );
        }
    }
}

/// One schema of a kind's own and inherited ones. Those that list what is allowed leave room for what the others name.
fn together(own: Option<&Doc<'static>>, inherited: &[&Doc<'static>]) -> Option<Doc<'static>> {
    if inherited.is_empty() {
        return own.cloned();
    }
    let all = || own.into_iter().chain(inherited.iter().copied());
    let names: BTreeSet<String> = all().flat_map(declared_names).collect();
    let paths: Vec<Path> = names.iter().map(|name| Path::new(name)).collect();
    let mut parts: Vec<Value<'static>> =
        inherited.iter().map(|schema| Value::Document(opened(schema, &paths))).collect();
    let own = own.map_or_else(Doc::empty, |own| opened(own, &paths));
    let mut writer = DocWriter::new();
    for (name, value) in own.iter() {
        match (name.as_str(), value) {
            ("allOf", Value::Array(more)) => parts.extend(more.iter().map(Value::into_owned)),
            (name, value) => _ = writer.append(name, &value),
        }
    }
    writer.append("allOf", &mql::list(parts));
    Some(writer.finish())
}
