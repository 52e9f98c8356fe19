//! `$bitsAllSet`, `$bitsAnySet`, `$bitsAllClear`, `$bitsAnyClear`.

use super::number::{non_negative, non_negative_int, truncated};
use super::parse::FilterOperator;
use super::{FilterDef, FilterPlace, LeafTest, Test};
use crate::error::{Error, Result};
use crate::raw::DocWriter;
use crate::value::{Decimal128, Value, show};
use std::sync::Arc;

pub(super) const ALL_CLEAR: FilterDef = FilterDef {
    name: "$bitsAllClear",
    help: "Matches numbers and binary values with all the given bits clear.",
    parse: FilterPlace::Field(|operator, _| parse(operator, "$bitsAllClear", Want::AllClear)),
};

pub(super) const ALL_SET: FilterDef = FilterDef {
    name: "$bitsAllSet",
    help: "Matches numbers and binary values with all the given bits set.",
    parse: FilterPlace::Field(|operator, _| parse(operator, "$bitsAllSet", Want::AllSet)),
};

pub(super) const ANY_CLEAR: FilterDef = FilterDef {
    name: "$bitsAnyClear",
    help: "Matches numbers and binary values with at least one of the given bits clear.",
    parse: FilterPlace::Field(|operator, _| parse(operator, "$bitsAnyClear", Want::AnyClear)),
};

pub(super) const ANY_SET: FilterDef = FilterDef {
    name: "$bitsAnySet",
    help: "Matches numbers and binary values with at least one of the given bits set.",
    parse: FilterPlace::Field(|operator, _| parse(operator, "$bitsAnySet", Want::AnySet)),
};

fn parse(operator: &FilterOperator<'_>, name: &'static str, want: Want) -> Result<Option<Test>> {
    let argument = &operator.argument;
    let mut positions: Vec<usize> = match argument {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| match non_negative_int(&index.to_string(), &item) {
                Ok(position) => Ok(usize::try_from(position).unwrap_or_default()),
                Err(message) => Err(Error::bad_value(format!("Failed to parse bit position. {message}"))),
            })
            .collect::<Result<_>>()?,
        Value::Binary { bytes, .. } => {
            let bytes = bytes.as_slice();
            (0..bytes.len() * 8).filter(|position| bit_of(bytes, *position)).collect()
        }
        number if number.is_number() => {
            let mask = non_negative(name, number).map_err(Error::failed_to_parse)?;
            (0..63).filter(|position| mask >> position & 1 == 1).collect()
        }
        other => {
            return Err(Error::bad_value(format!(
                "{} takes an Array, a number, or a BinData but received: {name}: {}",
                operator.path,
                show::element(other)
            )));
        }
    };
    positions.sort_unstable();
    positions.dedup();
    Ok(Some(Test::Leaf(Arc::new(Bits { name, want, positions, argument: argument.clone().into_owned() }))))
}

#[derive(Clone, Copy, Debug)]
enum Want {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

#[derive(Debug)]
struct Bits {
    name: &'static str,
    want: Want,
    positions: Vec<usize>,
    argument: Value<'static>,
}

impl Bits {
    fn test(&self, bit: impl Fn(usize) -> bool) -> bool {
        let mut positions = self.positions.iter().copied();
        match self.want {
            Want::AllSet => positions.all(bit),
            Want::AllClear => !positions.any(bit),
            Want::AnySet => positions.any(bit),
            Want::AnyClear => !positions.all(bit),
        }
    }
}

impl LeafTest for Bits {
    fn matches(&self, value: &Value<'_>) -> Result<bool> {
        let number = match value {
            Value::Binary { bytes, .. } => {
                let bytes = bytes.as_slice();
                return Ok(self.test(|position| bit_of(bytes, position)));
            }
            Value::Int32(number) => i64::from(*number),
            Value::Int64(number) => *number,
            // Only doubles that are whole have bits.
            Value::Double(number) => match truncated(value) {
                Some(whole) if number.fract() == 0.0 => whole,
                _ => return Ok(false),
            },
            Value::Decimal(number) => rounded(*number),
            _ => return Ok(false),
        };
        // Above bit 63 the sign goes on.
        Ok(self.test(|position| number >> position.min(63) & 1 == 1))
    }

    fn rank(&self) -> u8 {
        match self.want {
            Want::AllSet => 14,
            Want::AllClear => 15,
            Want::AnySet => 16,
            Want::AnyClear => 17,
        }
    }

    fn write(&self, query: &mut DocWriter) {
        query.append(self.name, &self.argument);
    }
}

/// Bits are counted from the first byte's lowest; beyond the end they are clear.
fn bit_of(bytes: &[u8], position: usize) -> bool {
    bytes.get(position / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
}

/// As the server reads a decimal: half to even, and the smallest integer for all that is out of range or no number.
fn rounded(number: Decimal128) -> i64 {
    let mut context = dec::Context::<dec::Decimal128>::default();
    context.set_rounding(dec::Rounding::HalfEven);
    let whole = context.round(number.to_dec());
    truncated(&Value::Decimal(Decimal128::from_dec(whole))).unwrap_or(i64::MIN)
}
