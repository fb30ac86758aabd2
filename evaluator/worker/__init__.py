"""The worker: claims attempts from a site, runs their lane, reports every stage. No Django here."""
