mod unbounded_array;
