//! `$exists` and `$type`.

use super::{FilterDef, Place, Test};

pub(super) const EXISTS: FilterDef = FilterDef {
    name: "$exists",
    help: "Matches documents that have the field, null included, or with false those that do not.",
    parse: Place::Field(|operator, _| {
        Ok(Some(match operator.argument.is_truthy() {
            true => Test::Exists,
            false => Test::Not(Box::new(Test::Exists)),
        }))
    }),
};
