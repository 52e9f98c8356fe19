//! BSON values as literals of a language.

use document::Value;

/// How a language writes what differs.
pub(crate) struct Style {
    pub(crate) null: &'static str,
    pub(crate) yes: &'static str,
    pub(crate) no: &'static str,
    pub(crate) nan: &'static str,
    pub(crate) infinity: &'static str,
    /// A double without a fraction, which some languages would take for a whole number.
    pub(crate) whole_double: fn(f64) -> String,
    pub(crate) long: fn(i64) -> String,
    pub(crate) decimal: fn(&str) -> String,
    pub(crate) object_id: fn(&str) -> String,
    /// Milliseconds since 1970.
    pub(crate) date: fn(i64) -> String,
    pub(crate) regex: fn(&str, &str) -> String,
    pub(crate) name: fn(&str) -> String,
    /// Whether a document has spaces inside its braces.
    pub(crate) spaced: bool,
}

const WIDTH: usize = 100;

/// `value` as a literal; what does not fit on a line is broken up, `indent` spaces in.
pub(crate) fn render(value: &Value<'_>, style: &Style, indent: usize) -> String {
    let line = one_line(value, style);
    if line.len() + indent <= WIDTH {
        return line;
    }
    let inner = " ".repeat(indent + 2);
    let outer = " ".repeat(indent);
    match value {
        Value::Document(doc) => {
            let fields = doc.iter().map(|(name, value)| {
                format!("{inner}{}: {},\n", (style.name)(name.as_str()), render(&value, style, indent + 2))
            });
            format!("{{\n{}{outer}}}", fields.collect::<String>())
        }
        Value::Array(array) => {
            let items = array.iter().map(|item| format!("{inner}{},\n", render(&item, style, indent + 2)));
            format!("[\n{}{outer}]", items.collect::<String>())
        }
        _ => line,
    }
}

pub(crate) fn one_line(value: &Value<'_>, style: &Style) -> String {
    let joined = |items: Vec<String>| items.join(", ");
    match value {
        Value::Missing | Value::Null | Value::Undefined => style.null.to_owned(),
        Value::Bool(true) => style.yes.to_owned(),
        Value::Bool(false) => style.no.to_owned(),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => (style.long)(*number),
        Value::Double(number) if number.is_nan() => style.nan.to_owned(),
        Value::Double(number) if number.is_infinite() => {
            format!("{}{}", if *number < 0.0 { "-" } else { "" }, style.infinity)
        }
        Value::Double(number) if number.fract() == 0.0 => (style.whole_double)(*number),
        Value::Double(number) => format!("{number:?}"),
        Value::Decimal(number) => (style.decimal)(&number.to_string()),
        Value::String(text) | Value::Symbol(text) | Value::Code(text) => quoted(text.as_str()),
        Value::ObjectId(id) => (style.object_id)(&id.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        Value::DateTime(millis) => (style.date)(*millis),
        Value::Regex { pattern, options } => (style.regex)(pattern.as_str(), options.as_str()),
        Value::Document(doc) if doc.is_empty() => "{}".to_owned(),
        Value::Document(doc) => {
            let field = |(name, value): (document::Text<'_>, Value<'_>)| {
                format!("{}: {}", (style.name)(name.as_str()), one_line(&value, style))
            };
            let space = if style.spaced { " " } else { "" };
            format!("{{{space}{}{space}}}", joined(doc.iter().map(field).collect()))
        }
        Value::Array(array) => format!("[{}]", joined(array.iter().map(|item| one_line(&item, style)).collect())),
        // Declarations hold no others.
        other => quoted(&format!("{other:?}")),
    }
}

/// A string in double quotes: the escapes are those of JSON, which all languages here read.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            letter if letter.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// `template` with each `‹word›` replaced, once: what is put in is not looked at again.
pub(crate) fn filled(template: &str, words: &[(&'static str, String)]) -> String {
    let mut out = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('‹') {
        let (word, after) = after.split_once('›').unwrap_or((after, ""));
        out.push_str(before);
        out.push_str(words.iter().find(|(name, _)| *name == word).map_or("", |(_, text)| text));
        rest = after;
    }
    out + rest
}
