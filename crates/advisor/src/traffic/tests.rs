//! Sources and shapes.
