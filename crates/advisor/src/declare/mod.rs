//! Declarations as YAML that `pleach check` accepts. What does not pass the check is not printed.

pub mod reference;

use document::Value;
use patterns::declare;
use patterns::languages::yaml;

/// A name or path as YAML reads it back.
pub fn word(text: &str) -> String {
    yaml::word(text)
}

/// A value on one line.
pub fn flow(value: &Value<'_>) -> String {
    yaml::flow(value)
}

/// `{ a: 1, b: [x] }` of parts that are written already.
pub fn map(parts: &[(&str, String)]) -> String {
    let parts: Vec<String> = parts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{{ {} }}", parts.join(", "))
}

pub fn words<'w>(names: impl IntoIterator<Item = &'w str>) -> String {
    let names: Vec<String> = names.into_iter().map(word).collect();
    format!("[{}]", names.join(", "))
}

/// One rule of a collection: `<pattern>: <field>: <body>`.
pub fn field_rule(database: &str, collection: &str, pattern: &str, field: &str, body: &str) -> Option<String> {
    checked(format!(
        "database: {}\ncollections:\n  {}:\n    {pattern}:\n      {}: {body}\n",
        word(database),
        word(collection),
        word(field)
    ))
}

/// One rule of a whole collection: the lines of its block.
pub fn collection_rule(database: &str, collection: &str, pattern: &str, lines: &[String]) -> Option<String> {
    let lines: String = lines.iter().map(|line| format!("      {line}\n")).collect();
    checked(format!("database: {}\ncollections:\n  {}:\n    {pattern}:\n{lines}", word(database), word(collection)))
}

/// The text, if it is a declaration without errors.
pub fn checked(text: String) -> Option<String> {
    declare::from_yaml("advise", &text).declaration.is_some().then_some(text)
}

/// `products` as `product`.
pub fn singular(name: &str) -> String {
    let last = name.rsplit(['.', '_', '-']).next().unwrap_or(name);
    match last {
        _ if last.ends_with("ies") => format!("{}y", last.trim_end_matches("ies")),
        _ if last.ends_with("ss") => last.to_owned(),
        _ => last.strip_suffix('s').unwrap_or(last).to_owned(),
    }
}
