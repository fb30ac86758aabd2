"""Changes across rows: one function a change, keyword-only, one transaction."""
