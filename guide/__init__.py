"""The site of the documentation: pages of docs/ and a reference that is generated from the code."""
