//! `arrayFilters`: which elements a `$[identifier]` stands for.

use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::pipeline::expr::Names;
use crate::raw::{Doc, DocWriter};
use crate::value::{Value, show};

#[derive(Clone, Debug)]
pub(super) struct ArrayFilter {
    id: String,
    filter: Filter,
    used: bool,
}

impl ArrayFilter {
    /// Whether this is the filter of that identifier; it then counts as used.
    pub(super) fn claim(&mut self, id: &str) -> bool {
        let own = self.id == id;
        self.used |= own;
        own
    }

    pub(super) fn matches(&self, element: &Value<'_>, env: &Env) -> Result<bool> {
        let mut wrapped = DocWriter::new();
        wrapped.append(&self.id, element);
        self.filter.matches(&wrapped.finish(), env)
    }
}

pub(super) fn parse(sources: &[Doc<'_>], names: &mut Names) -> Result<Vec<ArrayFilter>> {
    let mut filters: Vec<ArrayFilter> = Vec::with_capacity(sources.len());
    for source in sources {
        let filter = parse_one(source, names)?;
        if filters.iter().any(|other| other.id == filter.id) {
            return Err(Error::failed_to_parse(format!(
                "Found multiple array filters with the same top-level field name {}",
                filter.id
            )));
        }
        filters.push(filter);
    }
    Ok(filters)
}

/// Every filter must have been claimed by some path of the update.
pub(super) fn refuse_unused(filters: &[ArrayFilter], update: &Doc<'_>) -> Result<()> {
    match filters.iter().find(|filter| !filter.used) {
        None => Ok(()),
        Some(unused) => Err(Error::failed_to_parse(format!(
            "The array filter for identifier '{}' was not used in the update {}",
            unused.id,
            show::document(update)
        ))),
    }
}

fn parse_one(source: &Doc<'_>, names: &mut Names) -> Result<ArrayFilter> {
    let filter = refuse_expressions(source, "in this context")
        .and_then(|()| Filter::parse(source, names))
        .map_err(|error| error.context("Error parsing array filter :: caused by :: "))?;
    let mut id = None;
    collect_identifier(source, &mut id)?;
    let Some(id) = id else {
        return Err(Error::failed_to_parse("Cannot use an expression without a top-level field name in arrayFilters"));
    };
    let lower_first = id.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if !lower_first || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Error::bad_value(format!(
            "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '{id}'"
        )));
    }
    Ok(ArrayFilter { id, filter, used: false })
}

/// In the order of the source: the message names the first two.
fn collect_identifier(filter: &Doc<'_>, id: &mut Option<String>) -> Result<()> {
    for (name, value) in filter.iter() {
        if let ("$and" | "$or" | "$nor", Value::Array(parts)) = (name.as_str(), &value) {
            for part in parts.iter() {
                if let Value::Document(part) = &part {
                    collect_identifier(part, id)?;
                }
            }
        } else if !name.as_str().starts_with('$') {
            let first = name.as_str().split('.').next().unwrap_or_default();
            match id {
                Some(id) if id != first => {
                    return Err(Error::failed_to_parse(format!(
                        "Error parsing array filter :: caused by :: Expected a single top-level field name, found '{id}' and '{first}'"
                    )));
                }
                _ => *id = Some(first.to_owned()),
            }
        }
    }
    Ok(())
}

/// Refuses `$expr` where MongoDB does; `place` completes the sentence.
pub(super) fn refuse_expressions(filter: &Doc<'_>, place: &str) -> Result<()> {
    for (name, value) in filter.iter() {
        match (name.as_str(), &value) {
            ("$expr", _) => {
                return Err(Error::new(Code::QueryFeatureNotAllowed, format!("$expr is not allowed {place}")));
            }
            ("$and" | "$or" | "$nor", Value::Array(parts)) => {
                for part in parts.iter() {
                    if let Value::Document(part) = &part {
                        refuse_expressions(part, place)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}
