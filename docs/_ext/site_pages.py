"""Corrections of what Sphinx would show.

The reference has what this package defines, not what its classes inherit from others. The page of decisions
gets a list of its pages, which on a code host would be shown as text.
"""

import inspect

HIDDEN = ("set_params", "native", "pairwise", "bounded", "needs_bias")
PAGES = "\n```{toctree}\n:hidden:\n:glob:\n\n[!R]*\n```\n"


def skip(app, what, name, obj, skip, options):
    home = getattr(obj, "__module__", None)
    foreign = callable(obj) and home is not None and not home.startswith("multimargin")
    return True if foreign or name in HIDDEN else None


def signature(app, what, name, obj, options, given, returned):
    """Of a class that is made by ``__new__`` with any keywords: those of ``__init__``."""
    if what != "class" or not given or "**" not in given:
        return None
    known = inspect.signature(obj.__init__)
    parameters = list(known.parameters.values())[1:]
    plain = [one.replace(annotation=one.empty) for one in parameters]
    return str(inspect.Signature(plain)), returned


def list_decisions(app, docname, source):
    if docname == "decisions/README":
        source[0] += PAGES


def setup(app):
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-signature", signature)
    app.connect("source-read", list_decisions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
