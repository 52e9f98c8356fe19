//! Values of every BSON type, dense where comparison is hard: type boundaries, precision limits, prefixes, nesting.

use bson::{Binary, Bson, DateTime, DbPointer, Decimal128, JavaScriptCodeWithScope, Regex, Timestamp};
use bson::{doc, oid::ObjectId, spec::BinarySubtype};

use crate::json;
use crate::random::Random;

/// Edge values first, then random ones, all different, about `count` in all.
pub fn for_order(count: usize, seed: u64) -> Vec<Bson> {
    let mut random = Random::new(seed);
    let mut all = numbers();
    all.extend(scalars());
    let edges = all.clone();
    all.extend(nested(&edges, &mut random));
    while all.len() < count {
        let value = arbitrary(&edges, &mut random);
        all.push(value);
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|value| seen.insert(bytes(value)) && is_writable(value));
    all
}

fn bytes(value: &Bson) -> Vec<u8> {
    doc! { "v": value.clone() }.to_vec().unwrap_or_default()
}

/// False for what Extended JSON cannot say: the sign of NaN.
fn is_writable(value: &Bson) -> bool {
    json::parse_value(&json::line(value)).is_ok_and(|read| bytes(&read) == bytes(value))
}

/// Numbers of all four types around every limit that comparison or conversion could trip over.
pub fn numbers() -> Vec<Bson> {
    let mut all = Vec::new();
    for number in [0, 1, -1, 2, -2, 9, 10, 100, 127, 128, 255, 256, 32767, 65536, i32::MAX, i32::MIN, i32::MAX - 1] {
        all.extend([Bson::Int32(number), Bson::Int64(number.into()), Bson::Double(number.into())]);
        all.extend(decimal(&number.to_string()));
    }
    for power in [31, 32, 52, 53, 54, 60, 62] {
        for offset in [-2, -1, 0, 1, 2, 3] {
            let number = (1i64 << power) + offset;
            for number in [number, -number] {
                all.extend([Bson::Int64(number), Bson::Double(number as f64)]);
                all.extend(decimal(&number.to_string()));
                all.extend(decimal(&format!("{number}.5")));
            }
        }
    }
    for number in [i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1, 1_000_000_007, 123_456_789_012_345_678] {
        all.extend([Bson::Int64(number), Bson::Double(number as f64)]);
        all.extend(decimal(&number.to_string()));
    }
    for number in DOUBLES.split_whitespace().filter_map(|text| text.parse::<f64>().ok()) {
        for number in [number, -number] {
            all.push(Bson::Double(number));
            all.push(Bson::Double(f64::from_bits(number.to_bits().wrapping_add(1))));
            all.extend(decimal(&format!("{number:e}")));
            all.extend(decimal(&format!("{number}").chars().take(40).collect::<String>()));
        }
    }
    all.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(Bson::Double));
    for text in DECIMALS.split_whitespace() {
        all.extend(decimal(text));
        all.extend(decimal(&format!("-{text}")));
    }
    all
}

const DOUBLES: &str = "\
    0.0 5e-324 2.2250738585072009e-308 2.2250738585072014e-308 1e-300 1e-100 1e-17 1e-10 0.001 0.1 0.2 \
    0.30000000000000004 0.3 0.5 0.9999999999999999 1.0000000000000002 1.1 1.5 2.5 3.14 99.99 1e10 1e15 1e16 \
    1e17 9.2233720368547748e18 9.2233720368547758e18 9.2233720368547778e18 1.8446744073709552e19 1e20 1e22 \
    1e23 1e100 1e300 1.7976931348623157e308";

const DECIMALS: &str = "\
    0 0.0 0E+3 0E-6176 0E+6111 NaN Infinity 1E-6176 1E-6175 1E-400 1E-324 4E-324 5E-324 4.9E-324 \
    2.2250738585072014E-308 1E-50 0.1 0.10 0.100000000000000005551115123125782702 \
    0.1000000000000000055511151231257827 0.3 0.30 0.3000000000000000166 0.5 0.50 1.0 1.00 \
    1.000000000000000000000000000000001 1.1 1.10 1.5 2.5 1E+1 10.0 1E+3 1000.0 1E+19 9.223372036854775807E+18 \
    9223372036854775807.1 9223372036854775808 9223372036854775808.5 9223372036854775809 18446744073709551616 \
    9007199254740993.0 9007199254740992.0001 1.797693134862315708145274237317044E+308 1.7976931348623157E+308 \
    1.7976931348623158E+308 1.8E+308 1E+309 1E+400 1E+6000 9.999999999999999999999999999999999E+6144 \
    9.999999999999999999999999999999999E+33 1234567890123456789012345678901234 \
    0.1234567890123456789012345678901234";

fn decimal(text: &str) -> Option<Bson> {
    text.parse::<Decimal128>().ok().map(Bson::Decimal128)
}

/// One or more of every other type.
pub fn scalars() -> Vec<Bson> {
    let mut all =
        vec![Bson::MinKey, Bson::MaxKey, Bson::Null, Bson::Undefined, Bson::Boolean(false), Bson::Boolean(true)];
    all.extend(TEXTS.iter().map(|text| Bson::String((*text).to_owned())));
    all.push(Bson::String("x".repeat(300)));
    all.extend(["", "a", "b", "é", "ab"].map(|text| Bson::Symbol(text.to_owned())));
    for length in [0usize, 1, 2, 3, 16, 127, 128, 255, 256, 300] {
        for fill in [0u8, 1, 127, 128, 255] {
            all.push(binary(BinarySubtype::Generic, vec![fill; length]));
        }
    }
    for subtype in [1u8, 3, 4, 5, 6, 128, 255].map(BinarySubtype::from) {
        for bytes in [vec![0; 16], vec![255; 16], (0..16).collect()] {
            all.push(binary(subtype, bytes));
        }
        if !matches!(subtype, BinarySubtype::Uuid | BinarySubtype::UuidOld) {
            all.push(binary(subtype, b"ab".to_vec()));
        }
    }
    for byte in [0u8, 1, 127, 128, 255] {
        all.push(ObjectId::from_bytes([byte; 12]).into());
    }
    for last in [0u8, 1, 255] {
        all.push(ObjectId::from_bytes([0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]).into());
    }
    for millis in [0, 1, -1, 999, 1000, -1000, 1_700_000_000_000, i64::MAX, i64::MIN, i64::MAX - 1, 1 << 53, -(1 << 53)]
    {
        all.push(DateTime::from_millis(millis).into());
    }
    for (time, increment) in
        [(0, 0), (0, 1), (1, 0), (1, 1), (0, u32::MAX), (u32::MAX, 0), (u32::MAX, u32::MAX), (1 << 31, 5)]
    {
        all.push(Timestamp { time, increment }.into());
    }
    for (pattern, options) in
        [("", ""), ("", "i"), ("a", ""), ("a", "i"), ("a", "im"), ("a", "x"), ("a.", ""), ("b", ""), ("é", "")]
    {
        all.extend(regex(pattern, options));
    }
    all.extend(["", "a", "b", "ab", "function() {}"].map(|code| Bson::JavaScriptCode(code.to_owned())));
    for (code, scope) in [
        ("", doc! {}),
        ("a", doc! {}),
        ("a", doc! { "x": 1 }),
        ("a", doc! { "x": 2 }),
        ("b", doc! {}),
        ("a", doc! { "w": 3 }),
    ] {
        all.push(JavaScriptCodeWithScope { code: code.to_owned(), scope }.into());
    }
    // Only such as `$cmp` and an index order alike: the first looks at the identifier first, the second at the name.
    for (namespace, last) in [("", 0u8), ("a", 0), ("a", 1), ("b", 1), ("b", 2), ("a.b", 9)] {
        let mut id = [7; 12];
        id[11] = last;
        all.extend(db_pointer(namespace, ObjectId::from_bytes(id)));
    }
    all
}

const TEXTS: &[&str] = &[
    "",
    "\0",
    "\0\0",
    "\0a",
    "a",
    "a\0",
    "a\0b",
    "a\u{1}",
    "aa",
    "ab",
    "b",
    "A",
    "Z",
    "_",
    "0",
    "1",
    "10",
    "9",
    " ",
    "é",
    "e\u{301}",
    "ß",
    "Ω",
    "\u{7f}",
    "\u{80}",
    "\u{7ff}",
    "\u{800}",
    "\u{d7ff}",
    "\u{e000}",
    "\u{ffff}",
    "\u{10000}",
    "\u{10ffff}",
    "日本",
    "日本語",
    "😀",
    "a😀",
    "null",
];

fn binary(subtype: BinarySubtype, bytes: Vec<u8>) -> Bson {
    Binary { subtype, bytes }.into()
}

fn regex(pattern: &str, options: &str) -> Option<Bson> {
    Some(Regex { pattern: pattern.try_into().ok()?, options: options.try_into().ok()? }.into())
}

/// A type that the library gives no constructor for: read it from its bytes.
fn db_pointer(namespace: &str, id: ObjectId) -> Option<Bson> {
    let mut body = b"\x0cv\0".to_vec();
    body.extend(i32::try_from(namespace.len() + 1).ok()?.to_le_bytes());
    body.extend(namespace.as_bytes());
    body.push(0);
    body.extend(id.bytes());
    body.push(0);
    let mut bytes = i32::try_from(body.len() + 4).ok()?.to_le_bytes().to_vec();
    bytes.extend(body);
    let document = bson::Document::from_reader(bytes.as_slice()).ok()?;
    document.get("v").cloned().filter(|value| matches!(value, Bson::DbPointer(DbPointer { .. })))
}

/// Documents and arrays that differ in a type, a name, a length or a value, in every place.
fn nested(edges: &[Bson], random: &mut Random) -> Vec<Bson> {
    let mut all: Vec<Bson> = vec![
        doc! {}.into(),
        doc! { "": 1 }.into(),
        doc! { "a": 1 }.into(),
        doc! { "a": 1i64 }.into(),
        doc! { "a": 1.0 }.into(),
        doc! { "a": 2 }.into(),
        doc! { "b": 1 }.into(),
        doc! { "b": 0 }.into(),
        doc! { "a": "1" }.into(),
        doc! { "b": Bson::Null }.into(),
        doc! { "a": Bson::Null }.into(),
        doc! { "a": Bson::Undefined }.into(),
        doc! { "a": 1, "b": 1 }.into(),
        doc! { "b": 1, "a": 1 }.into(),
        doc! { "a": 1, "b": 2 }.into(),
        doc! { "aa": 1 }.into(),
        doc! { "a": {} }.into(),
        doc! { "a": { "b": 1 } }.into(),
        doc! { "a": { "b": 1, "c": 1 } }.into(),
        doc! { "a": [] }.into(),
        doc! { "a": [1] }.into(),
        doc! { "é": 1 }.into(),
        doc! { "a": Bson::MinKey }.into(),
        doc! { "a": Bson::MaxKey }.into(),
        doc! { "0": 1 }.into(),
        doc! { "a": true }.into(),
        Bson::Array(vec![]),
        vec![1].into(),
        vec![1, 2].into(),
        vec![2].into(),
        vec![1, 1].into(),
        vec![Bson::Null].into(),
        vec![Bson::Undefined].into(),
        vec![Bson::Array(vec![])].into(),
        vec![doc! {}].into(),
        vec![doc! { "a": 1 }].into(),
        vec!["a"].into(),
        vec![Bson::MinKey].into(),
        vec![Bson::MaxKey].into(),
        vec![Bson::from(vec![1])].into(),
        (0..12).collect::<Vec<i32>>().into(),
        (0..11).collect::<Vec<i32>>().into(),
    ];
    for _ in 0..60 {
        let edge = random.pick(edges).cloned().unwrap_or(Bson::Null);
        all.push(doc! { "a": edge.clone() }.into());
        all.push(vec![edge].into());
    }
    all
}

fn arbitrary(edges: &[Bson], random: &mut Random) -> Bson {
    let edge = |random: &mut Random| random.pick(edges).cloned().unwrap_or(Bson::Null);
    match random.below(9) {
        0 => Bson::Double(f64::from_bits(random.number())),
        1 => Bson::Int64(random.number() as i64 >> random.below(64)),
        2 => {
            let number = random.number() as i64 >> random.below(64);
            decimal(&format!("{number}E{}", random.below(40) as i64 - 20)).unwrap_or(Bson::Null)
        }
        3 => {
            let number = Bson::Double((random.number() as i64 >> random.below(64)) as f64 / 1024.0);
            match random.below(2) {
                0 => number,
                _ => decimal(&format!("{}", number.as_f64().unwrap_or(0.0))).unwrap_or(number),
            }
        }
        4 => (0..random.below(6))
            .map(|_| *random.pick(&['a', 'b', '\0', 'é', '\u{ffff}', '😀']).unwrap_or(&'a'))
            .collect::<String>()
            .into(),
        5 => {
            let bytes = (0..random.below(20)).map(|_| random.number() as u8).collect();
            binary(BinarySubtype::Generic, bytes)
        }
        6 => (0..random.below(3))
            .map(|_| (*random.pick(&["a", "b", "c"]).unwrap_or(&"a"), edge(random)))
            .map(|(key, value)| (key.to_owned(), value))
            .collect::<bson::Document>()
            .into(),
        7 => (0..random.below(3)).map(|_| edge(random)).collect::<Vec<_>>().into(),
        _ => doc! { "a": { "b": edge(random) }, "c": edge(random) }.into(),
    }
}
