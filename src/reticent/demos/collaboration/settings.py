"""What the three processes agree on: files, names and sizes."""

from __future__ import annotations

from dataclasses import dataclass

EPSILON = 4.0
"""Of one released row: any two records of the schema are neighbours."""

KEY_VARIABLE = "RETICENT_DEMO_KEY"
"""Environment variable that hands a process its API key; a command line could be read by others."""

BUNDLE, MODEL = "embedding", "income"
"""Names of the bundle that devices download, and of the model that answers them."""

BUNDLES, MODELS, DEVICE = "bundles", "models", "device"
"""Folders of the server and of the device."""

OWNER_KEY, RECEIPT_KEY = "owner", "service"
"""Names of key files: who signed bundle and model, and who signs anchors."""

EXPORT, SENT, DEVICE_RESULT, AUDIT_RESULT, ANCHOR = (
    "export.jsonl",
    "sent.json",
    "device.json",
    "audit.json",
    "anchor.json",
)
"""Files that the device leaves for the auditor, and what each process found."""


@dataclass(frozen=True)
class CollaborationSettings:
    """Sizes of the demonstration.

    Attributes:
        public: public rows that the encoder is fitted on.
        participants: rows that are released once, for the server to learn from.
        asked: held-out rows that the device asks about.
        seed: of training; the noise is never seeded.
    """

    public: int = 2400
    participants: int = 4000
    asked: int = 800
    seed: int = 0
