"""Models to be released: embedders, obfuscators, heads."""
