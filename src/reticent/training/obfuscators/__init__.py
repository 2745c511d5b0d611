"""Published obfuscators: one file per regulariser, combined by a list of names."""

from reticent.training.obfuscators.rows import (
    PUBLISHED_ROWS,
    REGULARISERS,
    ObfuscatorConfig,
    train_obfuscator,
)

__all__ = ["PUBLISHED_ROWS", "REGULARISERS", "ObfuscatorConfig", "train_obfuscator"]
