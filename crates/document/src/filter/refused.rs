//! Operators of MongoDB that the embedded store does not have: known by name, refused with the code of a server that
//! lacks what they need.

use super::{FilterDef, FilterPlace};
use crate::code::Code;
use crate::error::{Error, Result};

pub(super) const WHERE: FilterDef = FilterDef {
    name: "$where",
    help: "Refused: would run JavaScript.",
    parse: FilterPlace::Document(|_, parser| match parser.inside_element {
        true => Err(Error::bad_value("$where can only be applied to the top-level document")),
        false => Err(Error::bad_value("$where is not supported by Pleach: it has no JavaScript engine")
            .with_hint("write the condition with $expr")),
    }),
};

pub(super) const NEAR: FilterDef = near("$near");
pub(super) const NEAR_SPHERE: FilterDef = near("$nearSphere");
pub(super) const GEO_NEAR: FilterDef = near("$geoNear");
pub(super) const GEO_WITHIN: FilterDef = shape("$geoWithin");
pub(super) const WITHIN: FilterDef = shape("$within");
pub(super) const GEO_INTERSECTS: FilterDef = shape("$geoIntersects");

const fn near(name: &'static str) -> FilterDef {
    FilterDef {
        name,
        help: "Refused: would search a geospatial index.",
        parse: FilterPlace::Field(|operator, _| {
            refuse(Code::NoQueryExecutionPlans, format!("unable to find index for $geoNear query: {}", operator.name))
        }),
    }
}

const fn shape(name: &'static str) -> FilterDef {
    FilterDef {
        name,
        help: "Refused: would compare geometric shapes.",
        parse: FilterPlace::Field(|operator, _| refuse(Code::NotImplemented, operator.name.to_owned())),
    }
}

fn refuse<T>(code: Code, what: String) -> Result<T> {
    Err(Error::new(code, format!("{what} is not supported by the embedded store")))
}
