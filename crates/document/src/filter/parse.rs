//! From a query document to a [`Node`]: which names are fields, which are operators, and which documents are values.

use super::{FILTERS, FilterDef, FilterPlace, Node, Test};
use crate::error::{Error, Result};
use crate::pipeline::expr::Names;
use crate::raw::Doc;
use crate::value::{Path, Value};

/// The state of one parse.
pub struct FilterParser<'n> {
    pub names: &'n mut Names,
    /// Inside an `$elemMatch`: `$expr` and others that need the whole document are refused there.
    pub inside_element: bool,
}

/// An operator under a field, with what stands around it.
pub struct FilterOperator<'v> {
    pub path: &'v str,
    pub name: &'v str,
    pub argument: Value<'v>,
    /// The document it stands in: `$regex` looks there for `$options`.
    pub siblings: &'v Doc<'v>,
}

impl<'n> FilterParser<'n> {
    pub fn new(names: &'n mut Names) -> FilterParser<'n> {
        FilterParser { names, inside_element: false }
    }

    /// A whole query document: the conjunction of its fields.
    pub fn document(&mut self, query: &Doc<'_>) -> Result<Node> {
        let mut nodes = Vec::new();
        for (name, value) in query.iter() {
            let name = name.as_str();
            if name.starts_with('$') {
                nodes.push(self.document_operator(name, &value)?);
                continue;
            }
            match &value {
                Value::Document(operators) if is_operator_document(operators, References::Whole) => {
                    let path = Path::new(name);
                    for test in self.operators(name, operators)? {
                        add_field(&mut nodes, &path, test);
                    }
                }
                Value::Regex { pattern, options } => {
                    let test = super::regex::from_value(pattern, options)?;
                    nodes.push(Node::field(name, Test::Leaf(test)));
                }
                _ => nodes.push(Node::field(name, super::compare::equality(&value)?)),
            }
        }
        Ok(Node::all_of(nodes))
    }

    fn document_operator(&mut self, name: &str, argument: &Value<'_>) -> Result<Node> {
        match find(name).map(|def| def.parse) {
            Some(FilterPlace::Document(parse)) => parse(argument, self),
            _ if name == "$not" => Err(Error::bad_value(
                "unknown top level operator: $not. If you are trying to negate an entire expression, use $nor.",
            )),
            _ => Err(Error::bad_value(format!(
                "unknown top level operator: {name}. If you have a field name that starts with a '$' symbol, consider using $getField or $setField."
            ))),
        }
    }

    /// The operators under one field.
    pub fn operators(&mut self, path: &str, operators: &Doc<'_>) -> Result<Vec<Test>> {
        let mut tests = Vec::new();
        for (name, argument) in operators.iter() {
            let operator = FilterOperator { path, name: name.as_str(), argument, siblings: &operators.borrow() };
            if let Some(test) = self.operator(&operator)? {
                tests.push(test);
            }
        }
        Ok(tests)
    }

    pub fn operator(&mut self, operator: &FilterOperator<'_>) -> Result<Option<Test>> {
        match find(operator.name).map(|def| def.parse) {
            Some(FilterPlace::Field(parse)) => parse(operator, self),
            _ if operator.name == "$where" => Err(Error::bad_value("$where cannot be applied to a field")),
            _ => Err(Error::bad_value(format!("unknown operator: {}", operator.name))),
        }
    }
}

/// Tests that stand side by side become nodes side by side, so that a planner sees each.
fn add_field(nodes: &mut Vec<Node>, path: &Path, test: Test) {
    match test {
        Test::All(tests) => tests.into_iter().for_each(|test| add_field(nodes, path, test)),
        test => nodes.push(Node::Field { path: path.clone(), test }),
    }
}

pub(super) fn find(name: &str) -> Option<&'static FilterDef> {
    FILTERS.binary_search_by(|def| def.name.cmp(name)).ok().and_then(|at| FILTERS.get(at)).copied()
}

/// Which documents are taken for database references, that is for values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum References {
    /// Those with `$ref` and `$id`.
    Whole,
    /// Those with any of `$ref`, `$id`, `$db`.
    Partial,
}

/// Whether the document is operators (its first name begins with `$`) and not a value.
pub(super) fn is_operator_document(doc: &Doc<'_>, references: References) -> bool {
    match doc.borrow().iter().next() {
        Some((name, _)) if name.as_bytes().first() == Some(&b'$') => !is_reference(doc, references),
        _ => false,
    }
}

fn is_reference(doc: &Doc<'_>, references: References) -> bool {
    let (reference, id, db) = (doc.contains("$ref"), doc.contains("$id"), doc.contains("$db"));
    match references {
        References::Whole => reference && id,
        References::Partial => reference || id || db,
    }
}
