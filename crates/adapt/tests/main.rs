//! Tests of the control loop.
