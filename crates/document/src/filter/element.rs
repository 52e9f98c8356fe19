//! `$exists` and `$type`.

use super::parse::FilterOperator;
use super::types::TypeSet;
use super::{FilterDef, FilterParser, FilterPlace, LeafTest, Test};
use crate::error::{Error, Result};
use crate::raw::DocWriter;
use crate::value::Value;
use std::sync::Arc;

pub(super) const EXISTS: FilterDef = FilterDef {
    name: "$exists",
    help: "Matches documents that have the field, null included, or with false those that do not.",
    parse: FilterPlace::Field(|operator, _| {
        Ok(Some(match operator.argument.is_truthy() {
            true => Test::Exists,
            false => Test::Not(Box::new(Test::Exists)),
        }))
    }),
};

pub(super) const TYPE: FilterDef = FilterDef {
    name: "$type",
    help: "Matches values, or elements of arrays, of the given BSON types.",
    parse: FilterPlace::Field(parse_type),
};

fn parse_type(operator: &FilterOperator<'_>, _: &mut FilterParser<'_>) -> Result<Option<Test>> {
    let types = TypeSet::parse(&operator.argument)?;
    if types.is_empty() {
        return Err(Error::failed_to_parse(format!("{} must match at least one type", operator.path)));
    }
    Ok(Some(Test::Leaf(Arc::new(Type { types, argument: operator.argument.clone().into_owned() }))))
}

#[derive(Debug)]
struct Type {
    types: TypeSet,
    argument: Value<'static>,
}

impl LeafTest for Type {
    fn matches(&self, value: &Value<'_>) -> Result<bool> {
        Ok(self.types.contains(value))
    }

    fn rank(&self) -> u8 {
        22
    }

    fn write(&self, query: &mut DocWriter) {
        query.append("$type", &self.argument);
    }
}
