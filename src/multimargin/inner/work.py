"""What things cost, in one unit: the time of one multiply-add of coordinate descent.

Whether another method pays, and how long one call may take, is decided by counting this work, never by a
clock: so a fit takes the same path on a fast and on a busy machine. ``benchmarks/checks/work_units.py``
measures these numbers again.
"""

from __future__ import annotations

# Multiply-adds of other methods that take as long as one unit.
INTERIOR_POINT = 3.0  # Cholesky factors and inverses of class blocks
LEAP = 4.0  # products and Cholesky factors of Newton's systems
# Steps that these methods usually take.
INTERIOR_POINT_STEPS = 12
LEAP_STEPS = 60

# One descent takes at most as many units as all before it, or this many: about half a second. After that the
# outer loop may switch to another set or method. The limit is so many times larger if the block is the whole
# problem and no other method could finish it.
LEAST_DESCENT = 1_000_000_000
WHOLE_PROBLEM = 4

# Kernel values: multiplications for a value beside one per feature; how many integer ones take as long as one
# floating-point multiplication; and how many take as long as touching memory for one value the first time.
KERNEL_VALUE = 20
INTEGERS = 4
FIRST_TOUCH = 100
# Of a growing set: how often rounds need a kernel value between a support vector and another sample, and how
# many multiplications take as long as adding a kept value to the gradient, in the classes that need it.
USES = 8
READ = 20

# Multiplications of one native call, of scores for each thread: so few that Ctrl-C is heard within a second.
KERNEL_ROWS_CALL = 2e10
SCORES_CALL = 1e10
