"""The agreement of client and service on bodies that are Arrow streams."""

from __future__ import annotations

ARROW = "application/vnd.apache.arrow.stream"
"""Media type of an Arrow stream."""

MEMBERS = "reticent"
"""Key of the schema's metadata that holds ``subject`` or ``subjects`` as a JSON object."""


def unnamed(width: int) -> list[str]:
    """Return the names that columns have where rows have none.

    Example:
        >>> unnamed(2)
        ['x0', 'x1']
    """
    return [f"x{number}" for number in range(width)]
