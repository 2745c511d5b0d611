"""The tree of all pages that stands beside every page, resolved once and not for each of them.

Sphinx resolves the whole tree again for every page, and the tree has all pages: a third of a build.
Only two things differ between pages: what links are relative to, and which entries are marked as
leading to the page.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.environment.adapters.toctree import global_toctree_for_doc
from sphinx.util.osutil import relative_uri

_ENTRY = re.compile(
    r'<li class="(toctree-l\d+)"><a class="(reference internal)" href="([^"]+)">(.*?)</a>(<ul>)?'
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the hook, before the theme's own."""
    app.connect("html-page-context", share, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def share(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Gives the template of a page a ``toctree`` that says the same and is quicker."""
    builder = app.builder
    if not isinstance(builder, StandaloneHTMLBuilder) or "toctree" not in context:
        return
    whole: dict[tuple[tuple[str, Any], ...], str] = app.__dict__.setdefault("_whole_trees", {})

    def toctree(**options: Any) -> str:
        key = tuple(sorted(options.items()))
        if key not in whole:
            whole[key] = _resolved(builder, options)
        return marked(
            whole[key],
            here=builder.get_target_uri(page),
            leading=set(map(builder.get_target_uri, ancestors(page, app.env.toctree_includes))),
        )

    def chosen(**options: Any) -> str:
        # Other trees are folded but for the page's own branch, or name sections.
        shared = options.get("titles_only") and not options.get("collapse", True)
        tree: str = toctree(**options) if shared else plain(**options)
        return tree

    plain, context["toctree"] = context["toctree"], chosen


def _resolved(builder: StandaloneHTMLBuilder, options: dict[str, Any]) -> str:
    tree = global_toctree_for_doc(
        builder.env, builder.config.root_doc, builder, tags=builder.tags, **options
    )
    fragment: str = builder.render_partial(tree)["fragment"]
    return fragment


def ancestors(page: str, below: dict[str, list[str]]) -> set[str]:
    """``page``, and all pages that it stands below.

    Example:
        >>> sorted(ancestors("c", {"a": ["b"], "b": ["c", "d"], "e": []}))
        ['a', 'b', 'c']
    """
    found: set[str] = set()
    waiting = [page]
    while waiting:
        last = waiting.pop()
        if last not in found:
            found.add(last)
            waiting += [parent for parent, pages in below.items() if last in pages]
    return found


def marked(tree: str, *, here: str, leading: set[str]) -> str:
    """The tree as seen from a page.

    Args:
        tree: HTML, with links relative to the root.
        here: address of the page, relative to the root.
        leading: addresses of the page and of those that it stands below.

    Example:
        >>> entry = '<li class="toctree-l1"><a class="reference internal" href="a/b.html">B</a>'
        >>> marked(entry, here="a/c.html", leading=set())
        '<li class="toctree-l1"><a class="reference internal" href="b.html">B</a>'
        >>> marked(entry, here="a/b.html", leading={"a/b.html"})
        '<li class="toctree-l1 current"><a class="current reference internal" href="#">B</a>'
    """

    def seen(entry: re.Match[str]) -> str:
        level, kind, target, title, below = entry.groups()
        own, leads = target == here, target in leading
        list_item = f'<li class="{level}{" current" if leads else ""}">'
        link = "#" if own else relative_uri(here, target)
        anchor = f'<a class="{"current " if own else ""}{kind}" href="{link}">{title}</a>'
        return list_item + anchor + _list(below or "", current=leads and not own)

    entries = _ENTRY.sub(seen, tree)
    return _list(entries, current=' current">' in entries)


def _list(html: str, *, current: bool) -> str:
    """``html``, whose first list is marked if it has an entry that is."""
    return html.replace("<ul>", '<ul class="current">', 1) if current else html
