//! The outer shape of a declaration: a database, its collections, their patterns, and a block per field or per collection.

use crate::declare::block::{Block, BlockItem};
use crate::declare::check::Draft;
use crate::declare::finding::{At, Findings};
use crate::declare::kinds::{DeclaredField, Definition, PATTERNS, Pattern, Per, Status};
use crate::declare::tree::{Node, NodeContent};
use crate::declare::{names, spelling};
use document::op::Namespace;
use document::value::Path;
use std::sync::Arc;

const TOP: &[&str] = &["database", "collections"];

/// The database and the rules that could be read, each where it stands.
pub(crate) fn declaration(
    node: &Node,
    database: Option<&str>,
    findings: &mut Findings,
) -> (Option<Arc<str>>, Vec<Draft>) {
    let at = At { file: findings.file.clone(), spot: node.spot, ..At::default() };
    let Some(top) = Block::open(node, at, "begin with `database: <name>` and `collections:`", findings) else {
        return (None, Vec::new());
    };
    for entry in top.entries.iter() {
        if !TOP.contains(&entry.key.as_str()) {
            top.unknown(&entry.key, TOP.iter().copied(), TOP.iter().copied(), findings);
        }
    }
    let database = self::database(&top, database, findings);
    let mut drafts = Vec::new();
    if let Some(item) = top.require("collections", "collections:", findings) {
        // Without a database's name the rest is still read, for its findings.
        collections(&item, database.as_deref().unwrap_or("database"), &mut drafts, findings);
    }
    (database, drafts)
}

fn collections(item: &BlockItem<'_>, database: &str, drafts: &mut Vec<Draft>, findings: &mut Findings) {
    if let NodeContent::Map(entries) = &item.node.content
        && entries.is_empty()
    {
        findings.warning(&item.at, "no collection is declared, and so no rule", "name one under `collections`");
        return;
    }
    let what = "name the collections that rules write to";
    let Some(block) = Block::open(item.node, item.at.clone(), what, findings) else { return };
    for item in block.items() {
        let key = block.key_at(item.key);
        if let Err(reason) = names::collection(database, item.key) {
            let message = format!("`{}`: {reason}", item.key.escape_debug());
            findings.error(&key, message, "name a collection of the database");
            continue;
        }
        let host = Namespace::new(database, item.key);
        let what = format!("write a pattern under it: {}", spelling::one_of(Pattern::available()));
        if let Some(block) = Block::open(item.node, key, &what, findings) {
            patterns(&block, &host, drafts, findings);
        }
    }
}

fn database(top: &Block<'_>, given: Option<&str>, findings: &mut Findings) -> Option<Arc<str>> {
    let Some(item) = top.get("database") else {
        if given.is_none() {
            top.require("database", "database: <name>", findings);
        }
        return given.map(Arc::from);
    };
    let name = item.text("the name of a database", "shop", findings)?;
    if let Err(reason) = names::database(name) {
        findings.error(
            &item.at,
            format!("`{}`: {reason}", name.escape_debug()),
            "name the database that the rules are for: `database: shop`",
        );
        return None;
    }
    if let Some(given) = given
        && given != name
    {
        findings.error(
            &item.at,
            format!("the declaration is for `{name}`, the command runs on `{given}`"),
            format!("run it on `{name}` or on `admin`"),
        );
        return None;
    }
    Some(name.into())
}

fn patterns(block: &Block<'_>, host: &Namespace, drafts: &mut Vec<Draft>, findings: &mut Findings) {
    for item in block.items() {
        let mut at = block.key_at(item.key);
        let Some(pattern) = Pattern::named(item.key) else {
            block.unknown(item.key, PATTERNS.iter().map(|pattern| pattern.name), Pattern::available(), findings);
            continue;
        };
        let name: Arc<str> = format!("{}.{}", host.collection, pattern.name).into();
        match &pattern.status {
            Status::There(definition) if definition.per == Per::Field => {
                if let Some(fields) = Block::open(item.node, at, "name the field that it keeps", findings) {
                    self::fields(&fields, pattern, definition, host, drafts, findings);
                }
            }
            Status::There(definition) => {
                at.rule = Some(name.clone());
                let target = DeclaredField { name, host: host.clone(), field: Path::new(pattern.name) };
                drafts.push(draft(&item, at, target, pattern, definition, findings));
            }
            Status::Within { pattern: other, written } => {
                at.rule = Some(name);
                findings.error(
                    &at,
                    format!("`{}` is not a key of its own", pattern.name),
                    format!("write `{written}` in the `{other}` of the collection"),
                );
            }
            Status::NotYet => {
                at.rule = Some(name);
                not_yet(pattern, &at, findings);
            }
        }
    }
}

fn not_yet(pattern: &Pattern, at: &At, findings: &mut Findings) {
    let available = spelling::all_of(Pattern::available());
    findings.error(at, format!("`{}` is not there yet", pattern.name), format!("there are {available}"));
}

/// The rule of one block, as far as it can be read.
fn draft(
    item: &BlockItem<'_>,
    at: At,
    target: DeclaredField,
    pattern: &'static Pattern,
    definition: &Definition,
    findings: &mut Findings,
) -> Draft {
    let own = Block::open(item.node, at.clone(), "write the rule's keys under it", findings);
    let rule = own.as_ref().and_then(|own| (definition.lower)(own, &target, findings));
    let entries =
        own.iter().flat_map(|own| own.entries.iter().map(|entry| (entry.key.clone(), own.key_at(&entry.key))));
    let keys = entries.collect();
    Draft { target, kind: pattern.name, rule, at, keys }
}

fn fields(
    block: &Block<'_>,
    pattern: &'static Pattern,
    definition: &Definition,
    host: &Namespace,
    drafts: &mut Vec<Draft>,
    findings: &mut Findings,
) {
    for item in block.items() {
        let name: Arc<str> = format!("{}.{}", host.collection, item.key).into();
        let at = At { rule: Some(name.clone()), ..block.key_at(item.key) };
        let path = match names::path(item.key) {
            Ok(path) => path,
            Err(reason) => {
                findings.error(
                    &at,
                    format!("`{}` cannot be a field: {reason}", item.key.escape_debug()),
                    "name the field that the rule keeps",
                );
                continue;
            }
        };
        let reserved = match path.first() {
            "_id" => Some("`_id` never changes, so no rule can keep it"),
            "_pleach" => Some("`_pleach` holds Pleach's own state"),
            _ if path.parts.iter().any(|part| part.index.is_some()) => {
                Some("a position in an array belongs to no rule: name the array's field, and each element is kept")
            }
            _ => None,
        };
        if let Some(reason) = reserved {
            findings.error(&at, format!("`{path}` cannot be kept: {reason}"), "give the rule a field of its own");
        }
        let target = DeclaredField { name, host: host.clone(), field: path };
        drafts.push(draft(&item, at, target, pattern, definition, findings));
    }
}
