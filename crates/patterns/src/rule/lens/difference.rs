//! What a client's write changes in a document of which it sees only a part: the difference of two documents, put into a third.

use document::pipeline::expr::Names;
use document::update::Update;
use document::{Array, ArrayWriter, Doc, DocWriter, Result, Value};

/// How one document becomes another.
#[derive(Clone, Debug)]
pub enum Change {
    Nothing,
    /// By paths that are set and removed.
    Paths {
        set: Vec<(String, Value<'static>)>,
        unset: Vec<String>,
    },
    /// Some field has a name that no path can say.
    Whole(Doc<'static>),
}

impl Change {
    /// Whether it concerns this field.
    pub fn concerns(&self, field: &str) -> bool {
        let is_in = |path: &str| path.split('.').next() == Some(field);
        match self {
            Change::Nothing => false,
            Change::Paths { set, unset } => {
                set.iter().any(|(path, _)| is_in(path)) || unset.iter().any(|path| is_in(path))
            }
            Change::Whole(_) => true,
        }
    }

    /// The update that does it.
    pub fn update(&self) -> Result<Update> {
        let spec = match self {
            Change::Whole(doc) => doc.clone(),
            Change::Nothing => crate::mql::document([("$set", Value::Document(Doc::empty()))]),
            Change::Paths { set, unset } => {
                let (mut sets, mut unsets) = (DocWriter::new(), DocWriter::new());
                set.iter().for_each(|(path, value)| _ = sets.append(path, value));
                unset.iter().for_each(|path| _ = unsets.append(path, &Value::Int32(1)));
                let mut spec = DocWriter::new();
                if !set.is_empty() {
                    spec.append("$set", &Value::Document(sets.finish()));
                }
                if !unset.is_empty() {
                    spec.append("$unset", &Value::Document(unsets.finish()));
                }
                spec.finish()
            }
        };
        Update::parse(&Value::Document(spec), &[], &mut Names::new())
    }
}

/// `newest` with what differs between `before` and `after`. What is in neither of them is kept.
pub(super) fn merged(newest: &Doc<'_>, before: &Doc<'_>, after: &Doc<'_>) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(newest.as_bytes().len() + after.as_bytes().len());
    for (name, own) in newest.iter() {
        let name = name.as_str();
        if let Some(value) = merged_value(Some(own), before.get(name), after.get(name)) {
            writer.append(name, &value);
        }
    }
    for (name, new) in after.iter().filter(|(name, _)| !newest.contains(name.as_str())) {
        if let Some(value) = merged_value(None, before.get(name.as_str()), Some(new)) {
            writer.append(name.as_str(), &value);
        }
    }
    writer.finish()
}

fn merged_value(
    newest: Option<Value<'_>>,
    before: Option<Value<'_>>,
    after: Option<Value<'_>>,
) -> Option<Value<'static>> {
    if before == after {
        return newest.map(Value::into_owned);
    }
    if newest == before {
        return after.map(Value::into_owned);
    }
    // What is removed goes with all that is in it: its client would see the rest.
    Some(match (newest, before, after?) {
        (Some(Value::Document(newest)), before, Value::Document(after)) => {
            let before = match before {
                Some(Value::Document(before)) => before,
                _ => Doc::empty(),
            };
            Value::Document(merged(&newest, &before, &after))
        }
        (Some(Value::Array(newest)), Some(Value::Array(before)), Value::Array(after)) => {
            Value::Array(merged_items(&newest, &before, &after))
        }
        (_, _, after) => after.into_owned(),
    })
}

/// Items by their places; those behind what the client sees stay behind it.
fn merged_items(newest: &Array<'_>, before: &Array<'_>, after: &Array<'_>) -> Array<'static> {
    let mut writer = ArrayWriter::new();
    for (index, new) in after.iter().enumerate() {
        let item = match before.get(index) {
            Some(before) => merged_value(newest.get(index), Some(before), Some(new)),
            None => Some(new.into_owned()),
        };
        if let Some(item) = item {
            writer.push(&item);
        }
    }
    for item in newest.iter().skip(before.count()) {
        writer.push(&item);
    }
    writer.finish()
}

/// What makes one document the other.
pub(super) fn of_documents(from: &Doc<'static>, to: &Doc<'static>) -> Change {
    let (mut set, mut unset) = (Vec::new(), Vec::new());
    match collect(from, to, "", &mut set, &mut unset) {
        false => Change::Whole(to.clone()),
        true if set.is_empty() && unset.is_empty() => Change::Nothing,
        true => Change::Paths { set, unset },
    }
}

/// Collects differing paths; false if one of them cannot be said.
fn collect(
    from: &Doc<'_>,
    to: &Doc<'_>,
    at: &str,
    set: &mut Vec<(String, Value<'static>)>,
    unset: &mut Vec<String>,
) -> bool {
    let path = |name: &str| match at.is_empty() {
        true => name.to_owned(),
        false => format!("{at}.{name}"),
    };
    let is_sayable = |name: &str| !name.is_empty() && !name.contains('.') && !name.starts_with('$');
    for (name, _) in from.iter().filter(|(name, _)| !to.contains(name.as_str())) {
        if !is_sayable(name.as_str()) {
            return false;
        }
        unset.push(path(name.as_str()));
    }
    for (name, value) in to.iter() {
        let (name, own) = (name.as_str(), from.get(name.as_str()));
        if own.as_ref() == Some(&value) {
            continue;
        }
        if !is_sayable(name) {
            return false;
        }
        if let (Some(Value::Document(own)), Value::Document(value)) = (&own, &value) {
            let (sets, unsets) = (set.len(), unset.len());
            if collect(own, value, &path(name), set, unset) {
                continue;
            }
            set.truncate(sets);
            unset.truncate(unsets);
        }
        set.push((path(name), value.into_owned()));
    }
    true
}
