//! Which names of databases, collections and fields a rule may use: MongoDB's own limits, and the names that Pleach keeps for
//! itself.

use document::value::Path;

/// Why it cannot be a database of rules.
pub(crate) fn database(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a database name is not empty".to_owned());
    }
    if let Some(bad) = name.chars().find(|c| "/\\. \"$*<>:|?\0".contains(*c)) {
        return Err(format!("a database name does not contain {bad:?}"));
    }
    if name.len() > 63 {
        return Err("a database name has at most 63 bytes".to_owned());
    }
    match name {
        "admin" | "config" | "local" => Err(format!("`{name}` is MongoDB's own database")),
        _ => Ok(()),
    }
}

/// Why it cannot be a collection that a rule reads or writes.
pub(crate) fn collection(database: &str, name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a collection name is not empty".to_owned());
    }
    if let Some(bad) = name.chars().find(|c| "$\0".contains(*c)) {
        return Err(format!("a collection name does not contain {bad:?}"));
    }
    if name.starts_with('.') || name.ends_with('.') || name.contains("..") {
        return Err("a collection name has no empty parts between its dots".to_owned());
    }
    if name.starts_with("system.") {
        return Err("collections under `system.` are MongoDB's own".to_owned());
    }
    if name == "pleach" || name.starts_with("pleach.") {
        return Err("collections under `pleach.` hold Pleach's bookkeeping".to_owned());
    }
    match database.len() + 1 + name.len() > 255 {
        true => Err("database and collection name together have at most 255 bytes".to_owned()),
        false => Ok(()),
    }
}

/// The path of a field, or why it is none.
pub(crate) fn path(dotted: &str) -> Result<Path, String> {
    if dotted.starts_with('$') {
        return Err(format!("a field is named without `$`: `{}`", dotted.trim_start_matches('$')));
    }
    if dotted.len() > 1024 {
        return Err("the path is longer than 1024 bytes".to_owned());
    }
    Path::field_path(dotted).map_err(|error| error.message().trim_end_matches('.').replace('\0', "\\0"))
}

/// One name of a field, without dots.
pub(crate) fn field(name: &str) -> Result<(), String> {
    match name.contains('.') {
        true => Err(format!("`{name}` has a dot")),
        false => path(name).map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused() {
        for (name, reason) in [
            ("shop", ""),
            ("", "not empty"),
            ("a.b", "'.'"),
            ("a b", "' '"),
            ("admin", "MongoDB's own"),
            (&"x".repeat(64), "63 bytes"),
        ] {
            check(database(name), name, reason);
        }
        for (name, reason) in [
            ("orders", ""),
            ("app.orders", ""),
            ("", "not empty"),
            ("a$b", "'$'"),
            ("a\0", "'\\0'"),
            (".a", "empty parts"),
            ("a..b", "empty parts"),
            ("system.views", "MongoDB's own"),
            ("pleach.catalog", "bookkeeping"),
            (&"x".repeat(252), "255 bytes"),
        ] {
            check(collection("shop", name), name, reason);
        }
        for (name, reason) in [
            ("a.b.c", ""),
            ("", "empty string"),
            ("a.", "end with"),
            ("a..b", "empty"),
            ("$a", "without `$`: `a`"),
            ("a.$b", "start with '$'"),
            ("a\0", "'\\0'"),
        ] {
            check(path(name).map(|_| ()), name, reason);
        }
    }

    fn check(result: Result<(), String>, name: &str, reason: &str) {
        match (result, reason) {
            (Ok(()), "") => {}
            (Err(message), reason) if !reason.is_empty() && message.contains(reason) => {}
            (result, _) => panic!("{name}: {result:?}, wanted {reason:?}"),
        }
    }
}
