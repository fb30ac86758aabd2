"""The bridge between the two worlds: frozen records, JSON in and out. No torch, no Django."""
