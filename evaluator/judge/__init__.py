"""The trusted side: owns tensors, references, clock and verdict; never loads a candidate."""
