//! Python, as programs for PyMongo write things.

use crate::languages::literals::{Style, quoted};

/// The years 1 to 9999: what a `datetime` can hold.
const FIRST_DATETIME: i64 = -62_135_596_800_000;
const BEHIND_DATETIMES: i64 = 253_402_300_800_000;

pub(crate) const STYLE: Style = Style {
    null: "None",
    yes: "True",
    no: "False",
    nan: "float(\"nan\")",
    infinity: "float(\"inf\")",
    whole_double: |number| format!("{number:?}"),
    long: |number| format!("Int64({number})"),
    decimal: |text| format!("Decimal128(\"{text}\")"),
    object_id: |hex| format!("ObjectId(\"{hex}\")"),
    date: |millis| match (FIRST_DATETIME..BEHIND_DATETIMES).contains(&millis) {
        true => format!("EPOCH + timedelta(milliseconds={millis})"),
        false => format!("DatetimeMS({millis})"),
    },
    regex: |pattern, options| format!("Regex({}, {})", quoted(pattern), quoted(options)),
    name: quoted,
    spaced: false,
};

/// A collection's name, as part of the name of a function.
pub(crate) fn plain(word: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' };
    word.chars().map(letter).collect()
}
