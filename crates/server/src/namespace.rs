//! Names of databases and collections: what MongoDB allows, and its words where it does not.

use document::op::Namespace;
use document::{Code, Error, Result, Value};

/// The longest `database.collection`, in bytes.
const MAX_NAMESPACE: usize = 255;
const MAX_DATABASE: usize = 63;

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidNamespace, message)
}

/// Checks the `$db` of a command.
pub(crate) fn check_database(db: &str) -> Result<()> {
    if db.contains('.') {
        return Err(invalid(format!("'.' is an invalid character in the database name: {db}")));
    }
    let forbidden = |letter: char| matches!(letter, '/' | '\\' | ' ' | '"' | '\0');
    if db.is_empty() || db.len() > MAX_DATABASE || db.contains(forbidden) {
        return Err(invalid(format!("Invalid database name: '{db}'")));
    }
    Ok(())
}

/// The collection that a command names in its first field.
pub(crate) fn of_command(db: &str, name: &Value<'_>) -> Result<Namespace> {
    let Some(collection) = name.as_str() else {
        return Err(Error::bad_value(format!("collection name has invalid type {}", name.type_name())));
    };
    parse(db, collection)
}

/// As [`of_command`], for commands that only read.
pub(crate) fn to_read(db: &str, name: &Value<'_>) -> Result<Namespace> {
    let ns = of_command(db, name)?;
    if ns.db.contains('$') || ns.collection.contains('$') {
        return Err(invalid(format!("Invalid collection name specified '{ns}")));
    }
    Ok(ns)
}

/// As [`to_read`], with the code that `count` and `distinct` give to a name that is none.
pub(crate) fn to_count(db: &str, name: &Value<'_>) -> Result<Namespace> {
    match name {
        Value::String(_) => to_read(db, name),
        _ => Err(invalid(format!("collection name has invalid type {}", name.type_name()))),
    }
}

/// As [`of_command`], for commands that may make the collection.
pub(crate) fn to_write(db: &str, name: &Value<'_>) -> Result<Namespace> {
    let ns = of_command(db, name)?;
    check_writable(&ns)?;
    Ok(ns)
}

/// Whether documents may be written under that name.
pub(crate) fn check_writable(ns: &Namespace) -> Result<()> {
    if ns.db.contains('$') {
        return Err(invalid(format!("Invalid namespace: {ns}")));
    }
    if ns.collection.contains('$') {
        return Err(invalid(format!("Invalid collection name: {}", ns.collection)));
    }
    if &*ns.collection == crate::profiler::COLLECTION {
        return Err(invalid(format!("cannot write to {ns}")));
    }
    if ns.collection.starts_with("system.") && !matches!(&*ns.collection, "system.js" | "system.users" | "system.views")
    {
        return Err(invalid(format!("Invalid system namespace: {ns}")));
    }
    if ns.db.len() + 1 + ns.collection.len() > MAX_NAMESPACE {
        return Err(invalid(format!("Fully qualified namespace is too long. Namespace: {ns} Max: {MAX_NAMESPACE}")));
    }
    Ok(())
}

/// A collection of `db`, checked as far as every command does.
pub(crate) fn parse(db: &str, collection: &str) -> Result<Namespace> {
    if collection.is_empty() {
        return Err(invalid(format!("Invalid namespace specified '{db}.'")));
    }
    if collection.contains('\0') {
        return Err(invalid("namespaces cannot have embedded null characters"));
    }
    if collection.starts_with('.') {
        return Err(invalid(format!("Collection names cannot start with '.': {collection}")));
    }
    Ok(Namespace::new(db, collection))
}

/// `database.collection`, as `renameCollection` writes it.
pub(crate) fn parse_full(full: &str) -> Result<Namespace> {
    match full.split_once('.') {
        Some((db, collection)) if check_database(db).is_ok() && !collection.is_empty() => parse(db, collection),
        _ => Err(invalid(format!("Invalid namespace specified '{full}'"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_in_mongodbs_words() {
        let long = "x".repeat(300);
        let rows: &[(&str, &str, &str)] = &[
            ("d", "", "Invalid namespace specified 'd.'"),
            ("d", "a\0b", "namespaces cannot have embedded null characters"),
            ("d", ".a", "Collection names cannot start with '.': .a"),
            ("d", "a$b", "Invalid collection name: a$b"),
            ("d$", "a", "Invalid namespace: d$.a"),
            ("d", "system.foo", "Invalid system namespace: d.system.foo"),
            ("d", &long, &format!("Fully qualified namespace is too long. Namespace: d.{long} Max: 255")),
        ];
        for (db, collection, message) in rows {
            let error = to_write(db, &Value::from(*collection)).unwrap_err();
            assert_eq!((error.code(), error.message()), (Code::InvalidNamespace, *message));
        }
        assert_eq!(
            to_read("d", &Value::from("a$b")).unwrap_err().message(),
            "Invalid collection name specified 'd.a$b"
        );
        assert_eq!(of_command("d", &Value::Int32(3)).unwrap_err().message(), "collection name has invalid type int");
        assert_eq!(to_write("d", &Value::from("a..b")).unwrap().to_string(), "d.a..b");
        for db in ["", "a b", "a/b", &"x".repeat(64)] {
            assert_eq!(check_database(db).unwrap_err().message(), format!("Invalid database name: '{db}'"));
        }
        assert!(check_database("a.b").unwrap_err().message().starts_with("'.' is an invalid character"));
        assert!(check_database(&"x".repeat(63)).is_ok());
    }
}
