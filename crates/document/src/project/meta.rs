//! `{ $meta: … }` in a projection: which metadata there is here, which is only missing, and which is refused.

use super::parse::Dialect;
use super::tree::Compute;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::pipeline::expr::Names;
use crate::pipeline::expr::misc::text_score;
use crate::value::Value;

pub(super) fn parse(argument: &Value<'_>, dialect: Dialect, names: &mut Names) -> Result<Compute> {
    let Value::String(what) = argument else {
        return Err(Error::new(Code::Location(17307), "$meta only supports string arguments"));
    };
    let unavailable = |what: &str| {
        let message = format!("query requires {what} metadata, but it is not available");
        Err(Error::new(Code::Location(40218), message))
    };
    match what.as_str() {
        "sortKey" if dialect == Dialect::Find => Ok(Compute::SortKey(None)),
        "textScore" => Ok(Compute::Expr(text_score(names))),
        "geoNearDistance" => unavailable("$geoNear distance"),
        "geoNearPoint" => unavailable("$geoNear point"),
        "indexKey" | "recordId" | "sortKey" => Err(Error::not_implemented(format!("{{ $meta: {what:?} }}"))),
        "randVal"
        | "searchHighlights"
        | "searchScore"
        | "searchScoreDetails"
        | "timeseriesBucketMinTime"
        | "timeseriesBucketMaxTime" => Ok(Compute::Nothing),
        other => Err(Error::new(Code::Location(17308), format!("Unsupported argument to $meta: {other}"))),
    }
}
