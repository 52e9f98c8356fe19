//! The patterns, one file each: parse a block of the declaration and lower it to rules.
