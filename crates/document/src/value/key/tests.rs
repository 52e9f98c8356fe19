//! The encoding against [`order::compare`]: on values ordered by a real server, and on generated ones.

use super::*;
use crate::raw::{Array, ArrayWriter, Blob, DocWriter, Text};
use crate::value::{Decimal128, order};
use proptest::prelude::*;
use std::cmp::Ordering;

fn encoded(value: &Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(value, &mut bytes);
    bytes
}

/// Encodes, decodes in both directions and checks that exactly the same value comes back.
fn check_round_trip(value: &Value<'_>) {
    let (mut bytes, mut types) = (Vec::new(), TypeBits::new());
    encode_typed(value, &mut bytes, &mut types);
    assert_eq!(length(&bytes, false), Some(bytes.len()), "{value:?}");
    let (back, taken) = decode(&bytes, false, &mut types.reader()).unwrap_or_else(|| panic!("{value:?} {bytes:?}"));
    assert_eq!((&back, taken), (value, bytes.len()));
    invert_from(&mut bytes, 0);
    assert_eq!(length(&bytes, true), Some(bytes.len()), "{value:?}");
    let (back, taken) = decode(&bytes, true, &mut types.reader()).unwrap();
    assert_eq!((&back, taken), (value, bytes.len()));
}

#[test]
fn agrees_with_the_order_of_a_real_server() {
    let text = include_str!("../../../tests/data/order.json");
    let classes: Vec<Vec<serde_json::Value>> = serde_json::from_str(text).unwrap();
    let values: Vec<(usize, Value<'static>, Vec<u8>)> = classes
        .into_iter()
        .enumerate()
        .flat_map(|(class, members)| members.into_iter().map(move |member| (class, member)))
        .map(|(class, member)| {
            let value = Value::from(bson::Bson::try_from(member).unwrap());
            let bytes = encoded(&value);
            (class, value, bytes)
        })
        .collect();
    let mut pairs = 0;
    for (at, (class, value, bytes)) in values.iter().enumerate() {
        check_round_trip(value);
        // All neighbours, and a spread of everything else: order is transitive.
        let near = values.iter().skip(at).take(8);
        let far = values.iter().skip(at).step_by(61);
        for (other_class, other, other_bytes) in near.chain(far) {
            let expected = match (value, other) {
                // `$cmp` looks at the length of a DBPointer's namespace only; matching and indexes look at the text too.
                (Value::DbPointer { namespace: a, .. }, Value::DbPointer { namespace: b, .. }) => {
                    class.cmp(other_class).then_with(|| a.as_bytes().cmp(b.as_bytes()))
                }
                _ => class.cmp(other_class),
            };
            assert_eq!(order::compare(value, other), expected, "compare {value:?} with {other:?}");
            assert_eq!(bytes.cmp(other_bytes), expected, "encodings of {value:?} and {other:?}");
            pairs += 1;
        }
    }
    assert!(pairs > 10_000, "{pairs} pairs");
}

#[test]
fn equal_values_have_equal_bytes_whatever_their_type() {
    let decimal = |text: &str| Value::Decimal(text.parse::<Decimal128>().unwrap());
    let classes = [
        vec![Value::Int32(1), Value::Int64(1), Value::Double(1.0), decimal("1"), decimal("1.00")],
        vec![Value::Int32(0), Value::Double(-0.0), decimal("-0E+7"), decimal("0.000")],
        vec![Value::Double(f64::NAN), decimal("NaN"), Value::Double(-f64::NAN)],
        vec![Value::Double(f64::INFINITY), decimal("Infinity")],
        vec![Value::Int64(i64::MAX), decimal("9223372036854775807"), decimal("9.223372036854775807E+18")],
        vec![Value::Int64(i64::MIN), Value::Double(-9_223_372_036_854_775_808.0), decimal("-9223372036854775808")],
        vec![Value::Double(0.5), decimal("0.50")],
        vec![Value::from("text"), Value::Symbol(Text::from("text"))],
        vec![Value::Missing, Value::Undefined],
    ];
    for class in &classes {
        for value in class {
            assert_eq!(encoded(value), encoded(&class[0]), "{value:?}");
        }
    }
}

#[test]
fn common_keys_are_short_and_have_no_type_bits() {
    for (value, expected) in [
        (Value::Int32(0), 1),
        (Value::Int32(1), 3),
        (Value::Int32(1000), 4),
        (Value::Int32(-123_457), 5),
        (Value::Int32(i32::MAX), 7),
        (Value::from("abc"), 5),
        (Value::ObjectId([7; 12]), 13),
        (Value::Bool(true), 1),
    ] {
        let (mut bytes, mut types) = (Vec::new(), TypeBits::new());
        encode_typed(&value, &mut bytes, &mut types);
        assert_eq!((bytes.len(), types.as_bytes()), (expected, &[][..]), "{value:?}");
    }
}

#[test]
fn torn_bytes_decode_to_nothing() {
    for value in [
        Value::from("abc"),
        Value::Int64(i64::MAX - 1),
        Value::Document(Doc::from(bson::doc! {"a": [1, {"b": "c"}]})),
        Value::Binary { subtype: 0, bytes: Blob::from(vec![1; 300]) },
    ] {
        let bytes = encoded(&value);
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut], false, &mut TypeReader::new(&[])).is_none(), "{value:?} cut at {cut}");
            assert!(length(&bytes[..cut], false).is_none(), "{value:?} cut at {cut}");
        }
    }
}

/// Values of every type, often equal or close to each other.
pub(crate) fn any_value() -> impl Strategy<Value = Value<'static>> {
    let long = prop_oneof![
        -3..4i64,
        any::<i64>(),
        (0..64u32, -2..3i64).prop_map(|(shift, off)| (1i64 << shift).wrapping_add(off))
    ];
    let number = prop_oneof![
        (-3..4i32).prop_map(Value::Int32),
        any::<i32>().prop_map(Value::Int32),
        long.clone().prop_map(Value::Int64),
        long.clone().prop_map(|n| Value::Double(n as f64)),
        long.clone().prop_map(|n| Value::Double(n as f64 / 8.0)),
        any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
        long.prop_map(|n| Value::Decimal(Decimal128::from_i64(n))),
        (any::<i64>(), -30..30i32).prop_map(|(n, exponent)| decimal(n, exponent)),
        (-300..300i64, -3..3i32).prop_map(|(n, exponent)| decimal(n, exponent)),
        (any::<i64>(), -6176..6112i32).prop_map(|(n, exponent)| decimal(n, exponent)),
        any::<[u8; 16]>().prop_map(|bytes| Value::Decimal(Decimal128::from_bytes(bytes))),
    ];
    let text = prop_oneof!["[ab\0]{0,4}", "\\PC{0,3}"].prop_map(Text::from);
    let name = "[ab]{0,2}";
    let scalar = prop_oneof![
        6 => number,
        2 => text.clone().prop_map(Value::String),
        1 => text.clone().prop_map(Value::Symbol),
        1 => text.clone().prop_map(Value::Code),
        1 => prop_oneof![
            Just(Value::MinKey),
            Just(Value::Undefined),
            Just(Value::Null),
            Just(Value::MaxKey),
            any::<bool>().prop_map(Value::Bool)
        ],
        1 => any::<i64>().prop_map(Value::DateTime),
        1 => any::<u64>().prop_map(Value::Timestamp),
        1 => any::<[u8; 12]>().prop_map(Value::ObjectId),
        1 => (0..3u8, proptest::collection::vec(any::<u8>(), 0..4))
            .prop_map(|(subtype, bytes)| Value::Binary { subtype, bytes: Blob::from(bytes) }),
        1 => ("[ab]{0,2}", "[im]{0,1}").prop_map(|(pattern, options)| Value::Regex {
            pattern: Text::from(pattern),
            options: Text::from(options)
        }),
        1 => (text, any::<[u8; 12]>()).prop_map(|(namespace, id)| Value::DbPointer { namespace, id }),
    ];
    scalar.prop_recursive(3, 12, 4, move |inner| {
        let fields = proptest::collection::vec((name, inner.clone()), 0..4);
        let doc = fields.prop_map(|fields| {
            let mut writer = DocWriter::new();
            for (name, value) in fields {
                writer.append(&name, &value);
            }
            writer.finish()
        });
        prop_oneof![
            doc.clone().prop_map(Value::Document),
            ("[ab]{0,2}", doc).prop_map(|(code, scope)| Value::CodeWithScope { code: Text::from(code), scope }),
            proptest::collection::vec(inner, 0..4).prop_map(|items| Value::Array(
                items
                    .into_iter()
                    .fold(ArrayWriter::new(), |mut writer, item| {
                        writer.push(&item);
                        writer
                    })
                    .finish()
            )),
        ]
    })
}

fn decimal(coefficient: i64, exponent: i32) -> Value<'static> {
    Value::Decimal(Decimal128::from_parts(coefficient < 0, u128::from(coefficient.unsigned_abs()), exponent))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bytes_compare_as_values_do(a in any_value(), b in any_value()) {
        prop_assert_eq!(encoded(&a).cmp(&encoded(&b)), order::compare(&a, &b));
    }

    #[test]
    fn every_value_comes_back(value in any_value()) {
        check_round_trip(&value);
    }

    #[test]
    fn compound_keys_compare_field_by_field(a in any_value(), b in any_value(), c in any_value(), d in any_value()) {
        let key = |first: &Value<'_>, second: &Value<'_>| {
            let mut bytes = encoded(first);
            invert_from(&mut bytes, 0);
            encode(second, &mut bytes);
            bytes
        };
        let expected = order::compare(&a, &c).reverse().then_with(|| order::compare(&b, &d));
        prop_assert_eq!(key(&a, &b).cmp(&key(&c, &d)), expected);
        let arrays = [Array::from_iter([a.clone(), b.clone()]), Array::from_iter([a, b, c])].map(Value::Array);
        prop_assert_eq!(encoded(&arrays[0]).cmp(&encoded(&arrays[1])), Ordering::Less);
    }
}
