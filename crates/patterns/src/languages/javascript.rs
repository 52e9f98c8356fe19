//! JavaScript: how the shell, which waits by itself, and the Node.js driver write things.

use crate::languages::literals::{Style, quoted};

/// What differs between the two.
pub(crate) struct Flavor {
    pub(crate) style: Style,
    pub(crate) prologue: fn(&str) -> String,
    pub(crate) epilogue: &'static str,
    /// Before each call that the server answers.
    pub(crate) wait: &'static str,
    pub(crate) function: &'static str,
    /// The last argument of a call in a transaction; the shell's session has collections of its own.
    pub(crate) option: &'static str,
    /// The bytes of the hex digits `text`.
    pub(crate) hex: &'static str,
    /// What renames a collection.
    pub(crate) rename: &'static str,
    /// What runs a command of the database.
    pub(crate) command: &'static str,
}

pub(crate) const MONGOSH: Flavor = Flavor {
    style: Style {
        whole_double: |number| format!("Double({number:?})"),
        long: |number| format!("NumberLong(\"{number}\")"),
        decimal: |text| format!("NumberDecimal(\"{text}\")"),
        object_id: |hex| format!("ObjectId(\"{hex}\")"),
        ..JAVASCRIPT
    },
    prologue: |db| {
        format!(
            "// mongosh \"mongodb://…/?replicaSet=…\" this-file.js\n\
             const session = db.getMongo().startSession();\n\
             const database = session.getDatabase({});\n\
             const collection = (name) => database.getCollection(name);\n\
             const transaction = (steps) => session.withTransaction(steps);\n",
            quoted(db)
        )
    },
    epilogue: "",
    wait: "",
    function: "function",
    option: "",
    hex: "HexData(0, text)",
    rename: "renameCollection",
    command: "runCommand",
};

pub(crate) const NODE: Flavor = Flavor {
    style: Style {
        whole_double: |number| format!("new Double({number:?})"),
        long: |number| format!("Long.fromString(\"{number}\")"),
        decimal: |text| format!("Decimal128.fromString(\"{text}\")"),
        object_id: |hex| format!("new ObjectId(\"{hex}\")"),
        ..JAVASCRIPT
    },
    prologue: |db| {
        format!(
            "// npm install mongodb; MONGODB_URI=\"mongodb://…/?replicaSet=…\" node this-file.js\n\
             const {{ Binary, Decimal128, Double, Long, MongoClient, ObjectId }} = require(\"mongodb\");\n\
             const client = new MongoClient(process.env.MONGODB_URI || \"mongodb://127.0.0.1:27017\");\n\
             const session = client.startSession();\n\
             const database = client.db({});\n\
             const collection = (name) => database.collection(name);\n\
             const transaction = (steps) => session.withTransaction(steps);\n",
            quoted(db)
        )
    },
    epilogue: "if (require.main === module) createIndexes().finally(() => client.close());\n",
    wait: "await ",
    function: "async function",
    option: ", { session }",
    hex: "new Binary(Buffer.from(text, \"hex\"))",
    rename: "rename",
    command: "command",
};

const JAVASCRIPT: Style = Style {
    null: "null",
    yes: "true",
    no: "false",
    nan: "NaN",
    infinity: "Infinity",
    whole_double: |number| format!("{number:?}"),
    long: |number| number.to_string(),
    decimal: |text| text.to_owned(),
    object_id: |hex| hex.to_owned(),
    date: |millis| format!("new Date({millis})"),
    regex: |pattern, options| format!("new RegExp({}, {})", quoted(pattern), quoted(options)),
    name: |name| match name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$')
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
    {
        true => name.to_owned(),
        false => quoted(name),
    },
    spaced: true,
};

/// A collection's name, as part of the name of a function.
pub(crate) fn capital(word: &str) -> String {
    let plain: String = word.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    let mut letters = plain.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}", first.to_ascii_uppercase(), letters.as_str()))
}
