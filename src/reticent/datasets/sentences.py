"""Short remarks of customers, written for this package, for examples on text without a download."""

from __future__ import annotations

from itertools import product

import numpy as np

from reticent.datasets.table import Table, last_fifth_held_out

_SUBJECTS = {
    "delivery": ("the parcel", "the courier", "my order", "the shipment", "the package"),
    "price": ("the price", "the bill", "the fee", "the discount", "what I paid"),
    "quality": ("the fabric", "the zip", "the screen", "the battery", "the finish"),
    "support": ("the agent", "the hotline", "the reply", "the chat", "the shop assistant"),
}
_PRAISE = {
    "delivery": (
        "came a day early",
        "was left with a neighbour as I asked",
        "arrived in one piece",
    ),
    "price": ("was lower than in town", "was exactly what the page said", "left room for a second"),
    "quality": ("still looks new", "feels better than I hoped", "survived a whole winter"),
    "support": ("solved it in five minutes", "was patient with my father", "knew what to do"),
}
_BLAME = {
    "delivery": ("came a week late", "was left in the rain", "never arrived"),
    "price": ("was higher than in town", "was not what the page said", "doubled overnight"),
    "quality": ("broke on the second day", "feels cheaper than I hoped", "faded within a month"),
    "support": ("kept me waiting for an hour", "was rude to my father", "had no idea what to do"),
}
_OPENINGS = ("", "this time ", "honestly, ", "to be fair, ", "as last year, ")
_ENDS = {
    True: (".", ", and I told my friends.", ", so I will order again.", ", thank you."),
    False: (".", ", and I told my friends.", ", so I want my money back.", ", what a pity."),
}
TOPICS = tuple(_SUBJECTS)
"""What a remark is about."""


def load_sentences() -> Table:
    """Return 2,400 remarks of customers, put together from phrases that were written for this
    package, a fifth of them held out.

    They are easier than what people write: of three phrases at least one tells the topic and one
    the opinion. Whatever is private about text is not in them.

    Returns:
        Rows of two columns, the remark and its topic, one of ``TOPICS``. A label is 1 if the
        customer is pleased.

    Example:
        >>> table = load_sentences()
        >>> table.train_rows[0, 1], int(table.train_labels[0])
        ('support', 0)
    """
    found = [
        (f"{opening}{subject} {said}{end}", topic, int(pleased))
        for topic, subjects in _SUBJECTS.items()
        for pleased, phrases in ((False, _BLAME), (True, _PRAISE))
        for opening, subject, said, end in product(
            _OPENINGS, subjects, phrases[topic], _ENDS[pleased]
        )
    ]
    rows = np.array([(text, topic) for text, topic, _ in found], dtype=object)
    labels = np.array([pleased for _, _, pleased in found], dtype=np.int64)
    train, test = last_fifth_held_out(len(found))
    return Table(
        name="sentences",
        columns=("text", "topic"),
        train_rows=rows[train],
        train_labels=labels[train],
        test_rows=rows[test],
        test_labels=labels[test],
        class_names=("not pleased", "pleased"),
        origin="written for this package",
    )
