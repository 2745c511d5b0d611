"""The reference of errors: their codes, which are the exit statuses too, and what they mean."""

from __future__ import annotations

import inspect

from reticent.core import errors


def classes() -> list[type[errors.ReticentError]]:
    """Every error, by its code."""
    named = [*vars(errors).values(), errors.NotFittedYet]  # made when it is first asked for
    own = {
        each for each in named if isinstance(each, type) and issubclass(each, errors.ReticentError)
    }
    return sorted(own, key=lambda each: each.code)


def page() -> str:
    """Every error, a heading each."""
    parts = [_INTRODUCTION]
    for each in classes():
        above = [base.__name__ for base in each.__bases__ if base is not Exception]
        kind = f"Is also: {', '.join(f'`{name}`' for name in above)}." if above else ""
        meaning = inspect.cleandoc(each.__doc__ or "").split("\n\n")[0]
        parts += [
            f"## {each.__name__}",
            "",
            f"Code and exit status {each.code}. {' '.join(meaning.split())} {kind}".strip(),
            "",
        ]
    return "\n".join(parts) + "\n"


_INTRODUCTION = """# Errors

Every error that this project raises on purpose is a `reticent.core.errors.ReticentError` with a
code of its own. The code is the exit status of the command line. A message says what was expected,
what was got and what to do, and never shows a private value. Two more exit statuses: 70 for an
internal error, 130 for a command that was interrupted. A withheld answer is a result and never an
error.
"""
