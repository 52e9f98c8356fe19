//! Code that moves the items of an array into documents of their own, once: what `apply` does for `lift`.

use crate::languages::javascript::Flavor;
use crate::languages::literals::quoted;
use crate::print::Kept;
use crate::rule::{LinkKey, Rule};

/// What a rule lifts, and how items find their host.
pub(super) struct Lifting {
    array: String,
    by: Vec<String>,
    local: String,
}

impl Lifting {
    pub(super) fn of(rule: &Rule) -> Option<Lifting> {
        let (array, link) = (rule.lift.as_ref()?.dotted(), rule.link()?);
        let LinkKey::Path(by) = &link.foreign else { return None };
        let by = by.path.parts.iter().map(|part| part.name.to_string()).collect();
        Some(Lifting { array, by, local: link.local.path.dotted() })
    }

    /// The item with its key. `spread` takes over what is at a path of the item, the whole of it at the empty one.
    fn child(&self, spread: impl Fn(&str) -> String) -> String {
        let mut child = "key".to_owned();
        for (depth, name) in self.by.iter().enumerate().rev() {
            let way: Vec<&str> = self.by.iter().take(depth).map(String::as_str).collect();
            child = format!("{{ {}, {}: {child} }}", spread(&way.join(".")), quoted(name));
        }
        child
    }
}

/// The function in JavaScript; empty if the rule lifts nothing.
pub(super) fn javascript(rule: &Kept, flavor: &Flavor, name: impl Fn(&str, &Kept) -> String) -> String {
    let Some(lifting) = &rule.lift else { return String::new() };
    let Flavor { wait, function, option, .. } = flavor;
    let (host, source) = (quoted(&rule.host), quoted(rule.source.as_deref().unwrap_or_default()));
    let (array, first) = (quoted(&lifting.array), quoted(&format!("{}.0", lifting.array)));
    let spread = |way: &str| match way {
        "" => "...item".to_owned(),
        way => format!("...at(item, {})", quoted(way)),
    };
    let child = lifting.child(spread);
    let arrow = if wait.is_empty() { "() =>" } else { "async () =>" };
    let (lift, fill, local) = (name("lift", rule), name("fill", rule), quoted(&lifting.local));
    format!(
        "// Once, for the documents that are there: their items become documents.\n\
         {function} {lift}() {{\n\
         \x20 for (const _id of {wait}collection({host}).distinct(\"_id\", {{ {first}: {{ $exists: true }} }})) {{\n\
         \x20   {wait}transaction({arrow} {{\n\
         \x20     const host = {wait}collection({host}).findOne({{ _id }}{option});\n\
         \x20     const key = at(host, {local});\n\
         \x20     const children = (at(host, {array}) ?? []).map((item) => ({child}));\n\
         \x20     if (children.length > 0) {wait}collection({source}).insertMany(children{option});\n\
         \x20     {wait}collection({host}).updateOne({{ _id }}, {{ $unset: {{ {array}: \"\" }} }}{option});\n\
         \x20     {wait}{fill}(session, host);\n\
         \x20   }});\n  }}\n}}\n"
    )
}

/// The same in Python.
pub(super) fn python(rule: &Kept, name: impl Fn(&str, &Kept) -> String) -> String {
    let Some(lifting) = &rule.lift else { return String::new() };
    let (host, source) = (quoted(&rule.host), quoted(rule.source.as_deref().unwrap_or_default()));
    let (array, first) = (quoted(&lifting.array), quoted(&format!("{}.0", lifting.array)));
    let spread = |way: &str| match way {
        "" => "**item".to_owned(),
        way => format!("**(at(item, {}) or {{}})", quoted(way)),
    };
    let child = lifting.child(spread).replace("{ ", "{").replace(" }", "}");
    let (lift, fill, local) = (name("lift", rule), name("fill", rule), quoted(&lifting.local));
    format!(
        "\n\n# Once, for the documents that are there: their items become documents.\n\
         def {lift}():\n\
         \x20   def one(_id):\n\
         \x20       def steps(session):\n\
         \x20           host = db[{host}].find_one({{\"_id\": _id}}, session=session)\n\
         \x20           key = at(host, {local})\n\
         \x20           children = [{child} for item in at(host, {array}) or []]\n\
         \x20           if children:\n\
         \x20               db[{source}].insert_many(children, session=session)\n\
         \x20           db[{host}].update_one({{\"_id\": _id}}, {{\"$unset\": {{{array}: \"\"}}}}, session=session)\n\
         \x20           {fill}(session, host)\n\
         \n\
         \x20       transaction(steps)\n\
         \n\
         \x20   for _id in db[{host}].distinct(\"_id\", {{{first}: {{\"$exists\": True}}}}):\n\
         \x20       one(_id)\n"
    )
}
