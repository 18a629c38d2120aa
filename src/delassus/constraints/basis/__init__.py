"""Building blocks of constraints: rows, link motions, frames, time-varying references."""
