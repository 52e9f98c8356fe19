//! A positive and a negative fixture of each symptom, and those of the contract's sentences.

mod by_traffic;
mod copy_by_hand;
mod counter_by_hand;
mod few_huge_documents;
mod many_small_documents;
mod odd_collections;
mod odd_data;
mod old_shapes;
mod repeated_aggregation;
mod repeated_discriminator;
mod second_read;
mod several_kinds;
mod unbounded_array;
mod window_by_hand;
