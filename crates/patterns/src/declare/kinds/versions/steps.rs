//! The steps of each version, read word by word. What a step loses is told as a warning.

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::{At, Findings};
use crate::declare::spelling;
use crate::declare::tree::{Node, NodeContent};
use crate::mql::call;
use crate::rule::lens::steps::{Convert, Default, Drop, Join, Nest, Pipelines, Rename, Split, Wrap, stages_of};
use crate::rule::lens::{ChangedPaths, VersionStep, VersionSteps};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Array, Value};
use std::sync::Arc;

/// The words that name steps, sorted; `up` comes with `down`.
const STEPS: &[&str] = &["convert", "default", "drop", "join", "nest", "rename", "split", "up", "wrap"];

/// Every read goes through all steps: a bound on what a client can ask for.
const MOST_VERSIONS: usize = 100;

/// The same for one of them.
const MOST_STEPS: usize = 200;

/// One version: its steps, and each as it is declared.
pub(super) struct DeclaredVersion {
    pub(super) steps: VersionSteps,
    pub(super) declared: Vec<Value<'static>>,
}

/// Reads `steps`; `field` holds the number and is no step's.
pub(super) fn read(
    item: &BlockItem<'_>,
    field: Option<&Path>,
    findings: &mut Findings,
) -> Option<Vec<DeclaredVersion>> {
    let before = findings.errors();
    let NodeContent::List(entries) = &item.node.content else {
        item.expected("a list, one entry for each version", "[{ rename: { phone: phoneNumber } }]", findings);
        return None;
    };
    if entries.is_empty() || entries.len() > MOST_VERSIONS {
        let message = format!("`steps` has {} entries; it needs 1 to {MOST_VERSIONS}", entries.len());
        findings.error(
            &item.at,
            message,
            "write one entry for each version: `steps: [{ rename: { phone: phoneNumber } }]`",
        );
        return None;
    }
    let mut versions = Vec::new();
    for (index, node) in entries.iter().enumerate() {
        let at = item.at.inside(&index.to_string(), node.spot);
        let mut version = DeclaredVersion { steps: Vec::new(), declared: Vec::new() };
        match &node.content {
            NodeContent::List(several) if !several.is_empty() => {
                for (number, node) in several.iter().enumerate() {
                    one(node, at.inside(&number.to_string(), node.spot), &mut version, findings);
                }
            }
            _ => one(node, at.clone(), &mut version, findings),
        }
        if version.steps.len() > MOST_STEPS {
            let message =
                format!("version {} has {} steps; at most {MOST_STEPS} are taken", index + 2, version.steps.len());
            findings.error(&at, message, "make several versions of it, or write it as `up` and `down`");
            return None;
        }
        if let Some(field) = field {
            no_forbidden_path(&version, field, &at, findings);
        }
        for loss in version.steps.iter().flat_map(|step| step.losses()) {
            findings.warning(
                &at,
                format!("the step to version {} loses something: {loss}", index + 2),
                "fine if nobody needs it",
            );
        }
        versions.push(version);
    }
    (findings.errors() == before).then_some(versions)
}

/// The steps of one map, in the order in which they are written.
fn one(node: &Node, at: At, version: &mut DeclaredVersion, findings: &mut Findings) {
    let what = "write a step: `{ rename: { phone: phoneNumber } }`";
    let Some(block) = Block::open(node, at, what, findings) else { return };
    for item in block.items() {
        let before = version.steps.len();
        match item.key {
            "up" => version.steps.extend(pipelines(&block, findings)),
            // It is read with `up`.
            "down" if block.get("up").is_some() => continue,
            "down" => {
                findings.error(
                    &block.key_at("down"),
                    "`down` without `up`",
                    "write both ways: `up: [ … ], down: [ … ]`",
                );
            }
            "drop" => version.steps.extend(paths(&item, findings).into_iter().map(|path| step(Drop { path }))),
            "wrap" => version.steps.extend(paths(&item, findings).into_iter().map(|path| step(Wrap { path }))),
            "convert" | "default" | "join" | "nest" | "rename" | "split" => {
                let example = "write the fields that it is about under it";
                let Some(fields) = Block::open(item.node, item.at.clone(), example, findings) else { continue };
                for own in fields.items() {
                    let Some(path) = key_path(&own, findings) else { continue };
                    version.steps.extend(of_field(item.key, path, &own, findings));
                }
            }
            other => block.unknown(other, STEPS.iter().copied().chain(["down"]), STEPS.iter().copied(), findings),
        }
        let own = version.steps.get(before..).filter(|own| own.len() <= MOST_STEPS).unwrap_or_default();
        named_once(own, &block.key_at(item.key), findings);
        let declared = match item.key {
            "up" => block
                .get("down")
                .map(|down| crate::mql::object([("up", item.node.to_value()), ("down", down.node.to_value())])),
            word => Some(call(word, item.node.to_value())),
        };
        version.declared.extend(declared);
    }
}

fn step(step: impl VersionStep + 'static) -> Arc<dyn VersionStep> {
    Arc::new(step)
}

/// A step of a word that says something about each of its fields.
fn of_field(word: &str, path: Path, item: &BlockItem<'_>, findings: &mut Findings) -> Option<Arc<dyn VersionStep>> {
    match word {
        "rename" => {
            let to = item.path("phoneNumber", findings)?;
            Some(step(Rename { from: path, to }))
        }
        "default" => Some(step(Default { path, value: item.node.to_value() })),
        "nest" => nest(path, item, findings),
        "split" => {
            let (into, on) = text_parts(item, "into", "on", "{ into: [first, last], on: \" \" }", findings)?;
            Some(step(Split { from: path, into, on }))
        }
        "join" => {
            let (from, with) = text_parts(item, "from", "with", "{ from: [street, city], with: \", \" }", findings)?;
            Some(step(Join { into: path, from, with }))
        }
        "convert" => convert(path, item, findings),
        _ => None,
    }
}

fn nest(from: Path, item: &BlockItem<'_>, findings: &mut Findings) -> Option<Arc<dyn VersionStep>> {
    let example = "{ into: phone.number, with: { phone.countryCode: \"+1\" } }";
    let block = record(item, &["into", "with"], example, findings)?;
    let into = block.require("into", "into: phone.number", findings)?.path("phone.number", findings)?;
    let mut with = Vec::new();
    if let Some(item) = block.get("with") {
        let constants = Block::open(item.node, item.at.clone(), "write `{ phone.countryCode: \"+1\" }`", findings)?;
        for constant in constants.items() {
            with.push((key_path(&constant, findings)?, constant.node.to_value()));
        }
    }
    if into.parts.len() < 2 {
        let message = format!("`into: {into}` is no path inside a document");
        findings.error(&item.at, message, format!("write `{}: {example}`, or use `rename`", item.key));
        return None;
    }
    Some(step(Nest { from, into, with }))
}

fn convert(path: Path, item: &BlockItem<'_>, findings: &mut Findings) -> Option<Arc<dyn VersionStep>> {
    let block = record(item, &["from", "to"], "{ from: string, to: int }", findings)?;
    let types: Vec<(&'static str, &'static str)> = Convert::types().iter().map(|name| (*name, *name)).collect();
    let from = block.require("from", "from: string", findings)?.choice(&types, findings)?;
    let to = block.require("to", "to: int", findings)?.choice(&types, findings)?;
    if from == to {
        findings.error(
            &item.at,
            format!("`{path}` is converted from {from} to {to}, which is the same"),
            "leave it out",
        );
        return None;
    }
    Some(step(Convert { path, from, to }))
}

/// Two or more paths, and the text between their values.
fn text_parts(
    item: &BlockItem<'_>,
    parts: &str,
    separator: &str,
    example: &str,
    findings: &mut Findings,
) -> Option<(Vec<Path>, String)> {
    let block = record(item, &[parts, separator], example, findings)?;
    let list = block.require(parts, example, findings)?;
    let found = paths(&list, findings);
    let separator = block.require(separator, example, findings)?.text("the text between them", "\" \"", findings)?;
    let distinct = found.iter().enumerate().all(|(at, path)| !found.iter().take(at).any(|other| overlap(other, path)));
    if found.len() < 2 || !distinct {
        findings.error(
            &list.at,
            format!("`{parts}` needs two or more fields, each once"),
            format!("write it as in `{example}`"),
        );
        return None;
    }
    Some((found, separator.to_owned()))
}

/// `{ up: [ … ], down: [ … ] }`.
fn pipelines(block: &Block<'_>, findings: &mut Findings) -> Option<Arc<dyn VersionStep>> {
    let mut stages = |key: &str| -> Option<Vec<Value<'static>>> {
        let item = block.require(key, &format!("{key}: [ … ]"), findings)?;
        let Value::Array(stages) = item.node.to_value() else {
            item.expected("a list of stages", "[{ $set: { a: 1 } }]", findings);
            return None;
        };
        if let Err(error) = checked(&stages) {
            let hint = "it may use what the pipeline of an update may: $set, $unset, $project, $replaceWith";
            findings.error(&item.at, format!("`{key}`: {}", error.message()), hint);
            return None;
        }
        Some(stages_of(&stages))
    };
    let (up, down) = (stages("up"), stages("down"));
    Some(step(Pipelines { up: up?, down: down? }))
}

fn checked(stages: &Array<'static>) -> document::Result<()> {
    Pipeline::parse_update(stages, &mut Names::new()).map(drop)
}

/// A map with these keys and no others.
fn record<'a>(item: &BlockItem<'a>, keys: &[&str], example: &str, findings: &mut Findings) -> Option<Block<'a>> {
    let what = format!("write `{}: {example}`", item.key);
    let block = Block::open(item.node, item.at.clone(), &what, findings)?;
    for entry in block.entries.iter().filter(|entry| !keys.contains(&entry.key.as_str())) {
        block.unknown(&entry.key, keys.iter().copied(), keys.iter().copied(), findings);
    }
    Some(block)
}

/// The path that a key is.
fn key_path(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Path> {
    let found = crate::declare::names::path(item.key);
    if let Err(reason) = &found {
        findings.error(&item.at, format!("`{}` cannot be a field: {reason}", item.key.escape_debug()), "name a field");
    }
    found.ok()
}

/// A list of paths.
fn paths(item: &BlockItem<'_>, findings: &mut Findings) -> Vec<Path> {
    let NodeContent::List(nodes) = &item.node.content else {
        item.expected("a list of fields", "[email]", findings);
        return Vec::new();
    };
    let of = |(index, node): (usize, &Node)| {
        let at = item.at.inside(&index.to_string(), node.spot);
        BlockItem { node, at, key: item.key }.path("[email]", findings)
    };
    nodes.iter().enumerate().filter_map(of).collect()
}

fn overlap(a: &Path, b: &Path) -> bool {
    a.is_prefix_of(b) || b.is_prefix_of(a)
}

/// What is said at once has no order: no path may be in two steps of one word.
fn named_once(steps: &[Arc<dyn VersionStep>], at: &At, findings: &mut Findings) {
    for (index, step) in steps.iter().enumerate() {
        let ChangedPaths::Paths(own) = step.changed() else { continue };
        let others = steps.iter().take(index).filter_map(|other| match other.changed() {
            ChangedPaths::Paths(paths) => Some(paths),
            ChangedPaths::Everything => None,
        });
        if let Some(twice) = others.flatten().find(|other| own.iter().any(|path| overlap(path, other))) {
            let message = format!("`{twice}` is named twice by one step");
            findings.error(at, message, "write two steps, in the order in which they are to be taken");
        }
    }
}

/// The number, `_id` and our own state are no step's.
fn no_forbidden_path(version: &DeclaredVersion, field: &Path, at: &At, findings: &mut Findings) {
    let forbidden = ["_id", "_pleach", field.first()];
    for step in &version.steps {
        let ChangedPaths::Paths(paths) = step.changed() else { continue };
        for path in paths.iter().filter(|path| forbidden.contains(&path.first())) {
            let message = format!("no step may change `{path}`");
            findings.error(at, message, format!("{} stay as they are", spelling::all_of(forbidden.into_iter())));
        }
    }
}
