"""Reference implementations. The catalogue reads them as text; the judge executes that text."""
