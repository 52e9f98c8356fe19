//! What a user lacks, from MongoDB's refusal: MongoDB names the command, people grant roles.

/// What to ask for after `not authorized on shop to execute command { find: "orders", … }`; `None` if the text is another.
pub(crate) fn hint(message: &str) -> Option<String> {
    if message.ends_with("requires authentication") {
        return Some("put user and password into the connection string: mongodb://user:password@host/".to_owned());
    }
    let (_, refused) = message.split_once("not authorized on ")?;
    let (db, command) = refused.split_once(" to execute command { ")?;
    let role = match command.split(':').next()? {
        "find" | "aggregate" | "count" | "distinct" | "listCollections" | "listIndexes" | "collStats" => "read",
        "insert" | "update" | "delete" | "findAndModify" | "create" | "createIndexes" | "drop" | "dropIndexes"
        | "renameCollection" => "readWrite",
        "collMod" | "dropDatabase" | "validate" | "compact" => "dbAdmin",
        _ => return None,
    };
    Some(format!("give the user of the connection string the role {role} on {db}"))
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn the_role_follows_from_the_command() {
        for (message, role) in [
            (
                "not authorized on shop to execute command { find: \"orders\", $db: \"shop\" }",
                Some("role read on shop"),
            ),
            ("not authorized on shop to execute command { update: \"orders\" }", Some("role readWrite on shop")),
            ("not authorized on a-b to execute command { collMod: \"x\" }", Some("role dbAdmin on a-b")),
            ("not authorized on shop to execute command { shutdown: 1 }", None),
            ("there is no such thing", None),
        ] {
            let told = hint(message);
            assert_eq!(told.is_some(), role.is_some(), "{message}");
            assert!(role.is_none_or(|role| told.unwrap().ends_with(role)), "{message}");
        }
        assert!(hint("command pleach requires authentication").unwrap().contains("user:password"));
    }
}
