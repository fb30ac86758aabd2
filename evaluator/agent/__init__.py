"""What a model is told and how its answers are read. Pure: no network, no Django, no torch."""
