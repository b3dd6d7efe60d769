//! Scatter plots of predicted against measured times.
