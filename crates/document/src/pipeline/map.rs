//! Running a function of one document over a stream: how `$project`, `$addFields`, `$unset` and `$replaceRoot` start.

use super::{Rows, Run, Stream, Transform};
use crate::env::Env;
use crate::error::Result;
use crate::raw::Doc;
use crate::text::carried::carry;
use std::sync::Arc;

/// The documents of `input`, each turned by `transform`.
pub(super) fn map<T: Transform + Send + Sync + 'static>(transform: Arc<T>, input: Rows, run: &Run) -> Rows {
    Box::new(Mapped { transform, input, env: run.env.clone() })
}

struct Mapped<T> {
    transform: Arc<T>,
    input: Rows,
    env: Env,
}

impl<T: Transform + Send + Sync> Stream for Mapped<T> {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        match self.input.next()? {
            Some(doc) => self.transform.apply(&doc.borrow(), &self.env).map(|made| Some(carry(&doc, made))),
            None => Ok(None),
        }
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}
