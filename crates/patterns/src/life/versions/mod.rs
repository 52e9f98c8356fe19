//! The life of versions of documents: [`change`] says what a changed declaration means for documents that are stored, [`take_back`]
//! brings those back whose version is given up, [`readers`] has fields computed anew that read what versions change, [`migration`]
//! brings old documents up in the background, and [`figures`] counts them.

pub(crate) mod change;
pub(crate) mod figures;
pub(crate) mod migration;
pub(crate) mod readers;
pub(crate) mod take_back;
