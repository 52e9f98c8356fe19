//! Arithmetic on BSON numbers: which type the result has, when int32 becomes int64, when it is an error.
