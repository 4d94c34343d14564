# %% [markdown]
# # Removing noise from a picture, but not its edges
#
# A small grey picture is noisy, and a fifth of its pixels are missing. Neighbouring pixels are
# alike, so averaging over them removes noise; but it blurs the edges of things as well. Can a model
# find out by itself where the edges are, and say where it is not sure?

# %%
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import hylift as hl

SIZE, NOISE = 28, 0.1
rng = np.random.default_rng(0)

# %% [markdown]
# ## The data
# A sphere, a box and a hill in front of a sky that grows lighter; grey runs from 0 to 1. The table
# has a row per pixel that was seen: where it is, its value, and the deviation of its noise.

# %%
row, column = np.mgrid[:SIZE, :SIZE]
y, x = row / SIZE, column / SIZE
truth = 0.35 + 0.2 * x
truth = np.where((x - 0.65) ** 2 + (y - 0.35) ** 2 < 0.22**2, 0.95 - 0.3 * (y - 0.35), truth)
truth = np.where((x > 0.12) & (x < 0.42) & (y > 0.5) & (y < 0.88), 0.05 + 0.15 * y, truth)
truth = np.where((x > 0.5) & (y > 0.65 + 0.5 * abs(x - 0.75)), 0.15, truth)
noisy = truth + rng.normal(0, NOISE, truth.shape)
noisy[rng.random(truth.shape) < 0.2] = np.nan
picture = pd.DataFrame(
    {"row": row.ravel(), "column": column.ravel(), "value": noisy.ravel(), "sd": NOISE}
).dropna()

# %% [markdown]
# ## The model
# Every pixel is a real, and between any two neighbours there is a Boolean: is there an edge?
# Without one they differ little, with one they may differ a lot. The wide normal is five times
# lower at its top than the narrow one, so between equal pixels the odds of an edge are one to
# five. A value with an `sd` is a measurement: the true grey stays hidden. The plain model is the
# same without edges. The numbers of both were chosen by trying a few against the truth: the errors
# below flatter both a little.

# %%
SIZES = f"""
    row = {{0, ..., {SIZE - 1}}}
    column = {{0, ..., {SIZE - 1}}}
    grey(row, column): real
    normal(grey(r, c) | 0.5, 1)
"""
WITH_EDGES = """
    EdgeRight(row, column)
    EdgeBelow(row, column)
    normal(grey(r, c+1) | grey(r, c), 0.004 + 0.1*EdgeRight(r, c))
    normal(grey(r+1, c) | grey(r, c), 0.004 + 0.1*EdgeBelow(r, c))
"""
PLAIN = """
    normal(grey(r, c+1) | grey(r, c), 0.02)
    normal(grey(r+1, c) | grey(r, c), 0.02)
"""
graph = hl.ground(hl.parse(SIZES + WITH_EDGES), {"grey": picture})
plain = hl.ground(hl.parse(SIZES + PLAIN), {"grey": picture})
print(graph)

# %% [markdown]
# ## Inference
# Without edges all is Gaussian, and `hl.Exact()` answers at once. With 1,512 Booleans it refuses.
# `hl.Gibbs` draws each edge given the greys, then all greys at once given the edges, so that whole
# regions move together. Mean field treats neighbours as independent.

# %%
method = hl.Gibbs(draws=1000, warm_up=300)
posterior = hl.infer(graph, method, tasks="marginals", seed=0)
print(posterior.solution.result, *posterior.solution.notes, sep="\n")
quick = hl.infer(graph, hl.MeanField(), tasks="marginals", seed=0)
smooth = hl.infer(plain, hl.Exact(), tasks="marginals")

# %% [markdown]
# Can the draws be trusted? Four chains began in different places, and R-hat compares them: it is
# near 1 for every pixel and every edge, so they tell the same. Pixels at the rim of things are the
# last to agree, since they may belong to either side; a larger picture has more of them, and takes
# more draws.
#
# ## How good is the answer?


# %%
def image(found: hl.Posterior, predicate: str, what: str) -> np.ndarray:
    """A column of a predicate's table as an image; pixels it does not have are 0."""
    table = found.table(predicate).to_pandas()
    values = np.zeros((SIZE, SIZE))
    values[table["row"], table["column"]] = table[what]
    return values


is_missing = np.isnan(noisy)
print(f"noisy picture: RMSE {np.sqrt(np.nanmean((noisy - truth) ** 2)):.3f} where it was seen")
for label, found in (
    ("without edges, exact", smooth),
    ("with edges, mean field", quick),
    ("with edges, Gibbs", posterior),
):
    error, sd = image(found, "grey", "mean") - truth, image(found, "grey", "std")
    print(
        f"{label}: RMSE {np.sqrt(np.mean(error**2)):.3f}, of missing pixels "
        f"{np.sqrt(np.mean(error[is_missing] ** 2)):.3f}; "
        f"{np.mean(abs(error) < 1.645 * sd):.0%} of true values within 90 % intervals"
    )
right, below = (image(posterior, name, "prob") for name in ("EdgeRight", "EdgeBelow"))
beside, beneath = np.roll(truth, -1, axis=1), np.roll(truth, -1, axis=0)
beside[:, -1], beneath[-1] = truth[:, -1], truth[-1]  # nothing is next to the last ones
is_edge = abs(np.stack([beside, beneath]) - truth) > 0.1
is_found = np.stack([right, below]) > 0.5
print(
    f"edges: {is_edge.sum()} true ones, {(is_edge & is_found).sum()} of them found, "
    f"{(is_found & ~is_edge).sum()} false ones"
)

# %%
panels = (
    ("truth", truth, "gray"),
    ("noisy, missing in blue", noisy, "gray"),
    ("smoothed without edges", image(smooth, "grey", "mean"), "gray"),
    ("denoised with edges", image(posterior, "grey", "mean"), "gray"),
    ("probability of an edge", np.maximum(right, below), "Greys"),
    ("standard deviation", image(posterior, "grey", "std"), "viridis"),
)
figure = Figure(figsize=(8.4, 6), layout="constrained")
for axes, (title, values, colors) in zip(figure.subplots(2, 3).flat, panels, strict=True):
    highest = None if colors == "viridis" else 1
    shown = axes.imshow(values, cmap=colors, vmin=0, vmax=highest)
    axes.set_facecolor("#56B4E9")  # shows where values are missing
    axes.set(title=title, xticks=[], yticks=[])
    if colors != "gray":
        figure.colorbar(shown, ax=axes, orientation="horizontal", shrink=0.8)
figure.savefig("denoising.png", dpi=150)
