//! The variables of a command's `let`: constants, evaluated once, before anything is read.

use document::pipeline::expr::{self, Names, Scope, check_bindable};
use document::{Code, Doc, Env, Error, Result};

/// The names that programs of the command may use.
pub(crate) fn bind(variables: Option<&Doc<'_>>, env: &Env) -> Result<Names> {
    let mut names = Names::new();
    for (name, value) in variables.into_iter().flat_map(Doc::iter) {
        check_bindable(name.as_str()).map_err(|error| error.context("Invalid 'let' parameter :: caused by :: "))?;
        let expr = expr::parse(&value, &mut names)?;
        if expr.reads().is_none_or(|paths| !paths.is_empty()) {
            return Err(Error::new(
                Code::Location(4_890_500),
                "Command let Expression tried to access a field, but this is not allowed because Command let Expressions run before the query examines any documents.",
            ));
        }
        let value = expr.eval(&mut Scope::new(Doc::empty(), env))?.into_owned();
        names.bind_constant(name.as_str(), value);
    }
    Ok(names)
}
