"""The first schema: the tables that ``reticent.ledger.schema`` describes.

A new ledger is made from these tables and gets this version. A later schema comes with a migration
from the one before, which brings older ledgers up to date.
"""

from __future__ import annotations

revision = "tree"
down_revision = None
branch_labels = None
depends_on = None
