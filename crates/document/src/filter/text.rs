//! `$text`: a search that an index answers ([`crate::text`]).

use super::{FilterDef, FilterPlace, Node};
use crate::error::Error;
use crate::text::{Search, TextNode};
use std::sync::Arc;

pub(super) const TEXT: FilterDef = FilterDef {
    name: "$text",
    help: "Matches documents that a text index finds by words and phrases.",
    parse: FilterPlace::Document(|argument, parser| match parser.inside_element {
        true => Err(Error::bad_value("$text can only be applied to the top-level document")),
        false => Ok(Node::Whole(Arc::new(TextNode::new(Search::parse(argument)?)))),
    }),
};
