"""The papers' tables and figures, one file each: configuration in; JSON, Markdown and PNG out.

Not part of the wheel: run from the root of a clone, as ``python -m papers.certified.figures``.
"""
