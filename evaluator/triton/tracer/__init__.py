"""What runs inside the sandbox, beside the candidate: the standard library and triton alone."""
