"""The untrusted side: runs beside the candidate, standard library only, tells no verdicts."""
