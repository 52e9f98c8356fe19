//! `$mod`.

use super::number::truncated;
use super::parse::{FilterOperator, FilterParser};
use super::{FilterDef, FilterPlace, LeafTest, Test};
use crate::error::{Error, Result};
use crate::raw::DocWriter;
use crate::value::Value;
use std::sync::Arc;

pub(super) const MOD: FilterDef = FilterDef {
    name: "$mod",
    help: "Matches numbers that leave the given remainder when divided by the given divisor.",
    parse: FilterPlace::Field(parse),
};

fn parse(operator: &FilterOperator<'_>, _: &mut FilterParser<'_>) -> Result<Option<Test>> {
    let Value::Array(items) = &operator.argument else {
        return Err(Error::bad_value("malformed mod, needs to be an array"));
    };
    let (Some(divisor), Some(remainder)) = (items.get(0), items.get(1)) else {
        return Err(Error::bad_value("malformed mod, not enough elements"));
    };
    if items.get(2).is_some() {
        return Err(Error::bad_value("malformed mod, too many elements"));
    }
    let divisor = whole("divisor", &divisor)?;
    let remainder = whole("remainder", &remainder)?;
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    Ok(Some(Test::Leaf(Arc::new(Mod { divisor, remainder }))))
}

fn whole(role: &str, value: &Value<'_>) -> Result<i64> {
    if !value.is_number() {
        return Err(Error::bad_value(format!("malformed mod, {role} not a number")));
    }
    truncated(value).ok_or_else(|| {
        let finite = match value {
            Value::Double(number) => number.is_finite(),
            Value::Decimal(number) => !number.is_nan() && !number.is_infinite(),
            _ => true,
        };
        let why = match finite {
            true => "Out of bounds coercing to integral value",
            false => "Unable to coerce NaN/Inf to integral type",
        };
        Error::bad_value(format!("malformed mod, {role} value is invalid :: caused by :: {why}"))
    })
}

#[derive(Debug)]
struct Mod {
    divisor: i64,
    remainder: i64,
}

impl LeafTest for Mod {
    fn matches(&self, value: &Value<'_>) -> Result<bool> {
        // Wrapping: the smallest number modulo -1 is 0.
        Ok(truncated(value).is_some_and(|number| number.wrapping_rem(self.divisor) == self.remainder))
    }

    fn rank(&self) -> u8 {
        11
    }

    fn write(&self, query: &mut DocWriter) {
        let pair = [Value::Int64(self.divisor), Value::Int64(self.remainder)];
        query.append("$mod", &Value::Array(pair.into_iter().collect()));
    }
}
