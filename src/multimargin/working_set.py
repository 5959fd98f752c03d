"""The rules that choose working sets, under their public name."""

from .methods.working_sets import *  # noqa: F403
