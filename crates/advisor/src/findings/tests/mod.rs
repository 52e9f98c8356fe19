mod copy_by_hand;
mod counter_by_hand;
mod unbounded_array;
mod window_by_hand;
