"""The reference shows what this package defines, not what its classes inherit from others."""


def skip(app, what, name, obj, skip, options):
    home = getattr(obj, "__module__", None)
    if callable(obj) and home is not None and not home.startswith("multimargin"):
        return True
    if name in ("set_params", "native", "pairwise", "bounded", "needs_bias"):
        return True
    return None


def setup(app):
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
