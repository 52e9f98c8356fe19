//! Streams of documents: what stages consume and give.

use crate::env::Env;
use crate::error::Result;
use crate::raw::Doc;

/// A stream of documents.
pub trait Stream: Send {
    fn next(&mut self) -> Result<Option<Doc<'static>>>;
    /// Called when nobody will ask for a while (between two getMores): let go of snapshots and iterators; forward it.
    fn pause(&mut self);
}

pub type Rows = Box<dyn Stream>;

/// No documents.
pub fn empty() -> Rows {
    from_documents(Vec::new())
}

/// These documents.
pub fn from_documents(documents: Vec<Doc<'static>>) -> Rows {
    Box::new(Documents(documents.into_iter()))
}

struct Documents(std::vec::IntoIter<Doc<'static>>);

impl Stream for Documents {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        Ok(self.0.next())
    }

    fn pause(&mut self) {}
}

/// Hands every document of `input` to `take`, asking now and then whether to stop. For stages that must see all first.
pub(super) fn drain(input: &mut dyn Stream, env: &Env, mut take: impl FnMut(Doc<'static>) -> Result<()>) -> Result<()> {
    const BETWEEN_CHECKS: usize = 256;
    let mut seen = 0_usize;
    while let Some(doc) = input.next()? {
        seen += 1;
        if seen.is_multiple_of(BETWEEN_CHECKS) {
            (env.interrupt)()?;
        }
        take(doc)?;
    }
    Ok(())
}
