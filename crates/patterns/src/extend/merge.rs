//! Goes through two declarations side by side: what is to be written where, and what the result must say.

use super::Declared;
use super::edit::Edit;
use super::layout::Layout;
use super::written;
use crate::declare::kinds::{Pattern, Per, Status};
use crate::declare::tree::{Entries, MapEntry, Node, NodeContent};
use crate::languages::yaml;
use document::{Code, Doc, DocWriter, Error, Result, Value};

/// How deep a place is: the declaration, its `database` and `collections`, a collection, a pattern, a rule of a field.
const TOP: usize = 0;
const SECTION: usize = 1;
const PATTERN: usize = 3;
const RULE: usize = 4;

pub(super) struct Merge {
    pub(super) edits: Vec<Edit>,
    pub(super) rules: Vec<String>,
    /// What the new text must say.
    pub(super) wanted: Doc<'static>,
}

/// The two sides and what is known so far.
struct Walk<'a> {
    file: &'a str,
    old: &'a Layout<'a>,
    added: &'a Layout<'a>,
    declared: Declared,
    edits: Vec<Edit>,
    rules: Vec<String>,
}

/// Where a map stands, and its names from the outside in.
#[derive(Clone)]
struct Place {
    depth: usize,
    path: Vec<String>,
}

impl Merge {
    pub(super) fn new(
        file: &str,
        (old, old_layout): (&Node, &Layout<'_>),
        (added, added_layout): (&Node, &Layout<'_>),
        declared: Declared,
    ) -> Result<Merge> {
        let mut walk =
            Walk { file, old: old_layout, added: added_layout, declared, edits: Vec::new(), rules: Vec::new() };
        let (NodeContent::Map(ours), NodeContent::Map(theirs)) = (&old.content, &added.content) else {
            return Err(Error::new(
                Code::BadValue,
                format!("{file} is no declaration: it begins with `database: <name>`"),
            ));
        };
        same_database(file, ours, theirs)?;
        let wanted = walk.map((old, ours), theirs, &Place { depth: TOP, path: Vec::new() })?;
        Ok(Merge { edits: walk.edits, rules: walk.rules, wanted })
    }

    /// Of a declaration that is all there is.
    pub(super) fn of_all(added: &Node) -> Result<Merge> {
        let mut rules = Vec::new();
        if let NodeContent::Map(top) = &added.content
            && let Some(collections) = top.find("collections")
        {
            names(&Place { depth: TOP, path: Vec::new() }, collections, &mut rules);
        }
        match added.to_value() {
            Value::Document(wanted) => Ok(Merge { edits: Vec::new(), rules, wanted }),
            _ => Err(Error::new(Code::BadValue, "the proposed rule is no declaration")),
        }
    }
}

impl Walk<'_> {
    /// What two maps say together. Entries that only the second has are written into the first.
    fn map(&mut self, (node, old): (&Node, &Entries), added: &Entries, place: &Place) -> Result<Doc<'static>> {
        let mut wanted = DocWriter::new();
        for entry in old.iter() {
            let value = match added.find(&entry.key) {
                Some(other) => self.both(entry, other, &place.inside(&entry.key))?,
                None => entry.value.to_value(),
            };
            wanted.append(&entry.key, &value);
        }
        let new: Vec<&MapEntry> = added.iter().filter(|entry| old.find(&entry.key).is_none()).collect();
        for entry in &new {
            names(place, entry, &mut self.rules);
            wanted.append(&entry.key, &entry.value.to_value());
        }
        if !new.is_empty() {
            self.insert(node, old, &new, place);
        }
        Ok(wanted.finish())
    }

    /// What an entry says that both have.
    fn both(&mut self, old: &MapEntry, added: &MapEntry, place: &Place) -> Result<Value<'static>> {
        let inner = match (&old.value.content, &added.value.content) {
            _ if place.depth == SECTION && place.is("database") => return Ok(old.value.to_value()),
            (NodeContent::Map(ours), NodeContent::Map(theirs)) => Some((ours, theirs)),
            (_, NodeContent::Map(_)) if old.value.is_empty() && place.depth < RULE => {
                return self.fill(old, added, place);
            }
            _ => None,
        };
        let is_rule = place.depth >= RULE || place.is_rule_of_collection();
        match inner {
            Some((ours, theirs)) if !is_rule => self.map((&old.value, ours), theirs, place).map(Value::Document),
            _ if is_rule && self.declared == Declared::Refuse => Err(self.taken(old, place)),
            Some((ours, theirs)) => {
                self.add_rule(place);
                self.map((&old.value, ours), theirs, &Place { depth: RULE, ..place.clone() }).map(Value::Document)
            }
            None if is_rule => self.replace(old, added, place),
            None => Err(self.not_a_map(old, place)),
        }
    }

    /// An entry without a value gets one: `computed:` with nothing below.
    fn fill(&mut self, old: &MapEntry, added: &MapEntry, place: &Place) -> Result<Value<'static>> {
        let is_written = old.value.spot.is_some_and(|spot| spot.start < spot.end);
        let (Some(indent), false, NodeContent::Map(entries)) = (self.old.indent(old), is_written, &added.value.content)
        else {
            return Err(self.not_a_map(old, place));
        };
        let at = self.old.behind_comments(old.spot.map_or(0, |spot| spot.end), indent + 1);
        let new: Vec<&MapEntry> = entries.iter().collect();
        new.iter().for_each(|entry| names(place, entry, &mut self.rules));
        self.insert_lines(at, &new, indent + self.old.step, place);
        Ok(added.value.to_value())
    }

    /// A value inside a rule becomes another.
    fn replace(&mut self, old: &MapEntry, added: &MapEntry, place: &Place) -> Result<Value<'static>> {
        self.add_rule(place);
        let (was, wanted) = (old.value.to_value(), added.value.to_value());
        if was == wanted {
            return Ok(was);
        }
        let is_one_word = matches!(old.value.content, NodeContent::Scalar(_)) || self.old.is_flow(&old.value);
        let Some(spot) = old.value.spot.filter(|spot| is_one_word && spot.start < spot.end) else {
            return Err(Error::new(
                Code::BadValue,
                format!("`{}` in {}{} is written over several lines", place.path.join("."), self.file, line(old)),
            )
            .with_hint("change it by hand to what the printed declaration says"));
        };
        let until = spot.start + self.old.slice(spot.start, spot.end).trim_end().len();
        let text = yaml::flow(&wanted);
        self.edits.push(Edit { at: spot.start, until, depth: place.depth, text });
        Ok(wanted)
    }

    fn add_rule(&mut self, place: &Place) {
        let rule = place.rule().filter(|rule| !self.rules.contains(rule));
        self.rules.extend(rule);
    }

    fn insert(&mut self, node: &Node, old: &Entries, new: &[&MapEntry], place: &Place) {
        if self.old.is_flow(node) {
            return self.insert_in_braces(node, old, new, place);
        }
        let Some(last) = old.last() else { return };
        let indent = self.old.indent_of(old).unwrap_or_default();
        let at = self.old.behind_comments(self.old.end_of(last), indent);
        self.insert_lines(at, new, indent, place);
    }

    fn insert_lines(&mut self, at: usize, new: &[&MapEntry], indent: usize, place: &Place) {
        let lines: String = new.iter().map(|entry| written::in_lines(self.added, entry, indent, self.old)).collect();
        // The text's last line may have no end: then the new last one has none either.
        let is_open = at == self.old.text.len() && !self.old.text.ends_with('\n');
        let text = match is_open {
            true => format!("{}{}", self.old.newline, lines.trim_end_matches(['\r', '\n'])),
            false => lines,
        };
        self.edits.push(Edit::insert(at, place.depth, text));
    }

    fn insert_in_braces(&mut self, node: &Node, old: &Entries, new: &[&MapEntry], place: &Place) {
        let inside: Vec<String> = new.iter().map(|entry| written::in_braces(entry)).collect();
        let inside = inside.join(", ");
        let edit = match old.last() {
            Some(last) => Edit::insert(self.old.end_of(last), place.depth, format!(", {inside}")),
            None => {
                let at = node.spot.map_or(0, |spot| spot.start + 1);
                let gap = if self.old.slice(at, self.old.text.len()).starts_with(' ') { "" } else { " " };
                Edit::insert(at, place.depth, format!(" {inside}{gap}"))
            }
        };
        self.edits.push(edit);
    }

    fn taken(&self, old: &MapEntry, place: &Place) -> Error {
        let name = place.rule().unwrap_or_else(|| place.path.join("."));
        Error::new(Code::BadValue, format!("{} declares `{name}` already{}", self.file, line(old)))
            .with_hint("keep it, or change it by hand; `pleach plan` shows what a change would do")
    }

    fn not_a_map(&self, old: &MapEntry, place: &Place) -> Error {
        let name = place.path.join(".");
        Error::new(Code::BadValue, format!("`{name}` in {}{} is {}, not a map", self.file, line(old), old.value.kind()))
            .with_hint("remove the value, so that rules can stand under it")
    }
}

impl Place {
    fn inside(&self, key: &str) -> Place {
        let mut path = self.path.clone();
        path.push(key.to_owned());
        Place { depth: self.depth + 1, path }
    }

    fn is(&self, name: &str) -> bool {
        self.path.last().is_some_and(|last| last == name)
    }

    /// Whether this is a pattern that a collection has once: its block is the rule.
    fn is_rule_of_collection(&self) -> bool {
        self.depth == PATTERN && self.path.last().is_some_and(|name| !is_per_field(name))
    }

    /// The rule that this is, or is inside of. The path begins with `collections`.
    fn rule(&self) -> Option<String> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).skip_while(|part| *part == "collections").collect();
        match path.as_slice() {
            [collection, pattern, ..] if !is_per_field(pattern) => Some(format!("{collection}.{pattern}")),
            [collection, _, field, ..] => Some(format!("{collection}.{field}")),
            _ => None,
        }
    }
}

fn is_per_field(pattern: &str) -> bool {
    Pattern::named(pattern)
        .is_some_and(|pattern| matches!(&pattern.status, Status::There(definition) if definition.per == Per::Field))
}

/// The rules in an entry of a map at that place.
fn names(place: &Place, entry: &MapEntry, rules: &mut Vec<String>) {
    let inside = place.inside(&entry.key);
    let is_rule = inside.depth >= RULE || inside.is_rule_of_collection();
    match &entry.value.content {
        _ if is_rule => rules.extend(inside.rule().filter(|rule| !rules.contains(rule))),
        NodeContent::Map(entries) => entries.iter().for_each(|entry| names(&inside, entry, rules)),
        _ => {}
    }
}

fn same_database(file: &str, ours: &Entries, theirs: &Entries) -> Result<()> {
    let name = |entries: &Entries| entries.find("database").map(|entry| entry.value.to_value());
    match (name(ours), name(theirs)) {
        (Some(Value::String(ours)), Some(Value::String(theirs))) if ours.as_str() != theirs.as_str() => {
            Err(Error::new(
                Code::BadValue,
                format!("{file} is for the database `{}`, the rule for `{}`", ours.as_str(), theirs.as_str()),
            )
            .with_hint("name a file of that database with --declare; it is made if it is not there"))
        }
        _ => Ok(()),
    }
}

fn line(entry: &MapEntry) -> String {
    entry.spot.map_or_else(String::new, |spot| format!(", line {}", spot.line))
}
