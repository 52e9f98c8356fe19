//! Maintained links: what a change of a source or a host means for the field that a link keeps.
