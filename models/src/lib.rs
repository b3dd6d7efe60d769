//! Trained weights of the cost model, embedded.
