//! Operators that MongoDB knows and this server does not have: refused by name, never taken for a typing error.

use super::{ExprDef, Form};
use crate::error::Error;

macro_rules! refused {
    ($constant:ident, $name:literal, $help:literal) => {
        pub(super) const $constant: ExprDef = ExprDef {
            name: $name,
            help: $help,
            form: Form::Special(|_, _| Err(Error::not_implemented(concat!("The expression ", $name)))),
        };
    };
}

refused!(FUNCTION, "$function", "Not supported: it runs JavaScript.");
refused!(TO_HASHED_INDEX_KEY, "$toHashedIndexKey", "Not supported: there are no hashed indexes.");
