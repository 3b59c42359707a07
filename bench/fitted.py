"""Lines through measured costs."""

from collections.abc import Sequence

from mqnamesrv.costs import Line

LEAST_WEIGHT = 0.01  # of the largest cost: smaller ones count as if they were as large


def fitted(points: Sequence[tuple[float, float]]) -> Line:
    """Return the line with the least squares of relative errors, of which neither part is below 0.

    Relative ones, since sizes lie decades apart: absolute errors would have the largest size decide alone."""
    rounded = tuple((size, float(f"{cost:.5g}")) for size, cost in points)
    most = max(cost for _, cost in points)
    if most == 0:
        return Line(0.0, 0.0, rounded)
    weighed = [(size, cost, max(cost, LEAST_WEIGHT * most) ** -2) for size, cost in points]
    total = sum(weight for _, _, weight in weighed)
    mean_size = sum(size * weight for size, _, weight in weighed) / total
    mean_cost = sum(cost * weight for _, cost, weight in weighed) / total
    spread = sum(weight * (size - mean_size) ** 2 for size, _, weight in weighed)
    each = sum(weight * (size - mean_size) * (cost - mean_cost) for size, cost, weight in weighed) / spread
    fixed = mean_cost - each * mean_size
    if each < 0:
        fixed, each = mean_cost, 0.0
    elif fixed < 0:
        each = sum(weight * size * cost for size, cost, weight in weighed)
        fixed, each = 0.0, each / sum(weight * size**2 for size, _, weight in weighed)
    return Line(float(f"{fixed:.5g}"), float(f"{each:.5g}"), rounded)
