# %% [markdown]
# # What does each shop sell, when some weeks are odd?
#
# Ten shops report their sales of twenty weeks. Most weeks are near the usual level of the shop;
# some are far off, after a mistyped report or a street festival. How much sales vary in ordinary
# weeks is not known either. What is the level of each shop, and which weeks were odd?

# %%
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import hylift as hl

# %% [markdown]
# ## The data
#
# One table with a row for each shop and week. We make it up, so that the truth is known: an unknown
# variance, levels around 50, and one week in ten that is off by another 30 or so.


# %%
def simulate(seed):
    """Shops, weeks with sales, and the variance in ordinary weeks."""
    rng = np.random.default_rng(seed)
    shops = pd.DataFrame({"shop": [f"shop{n}" for n in range(10)], "level": rng.normal(50, 10, 10)})
    weeks = shops.merge(pd.DataFrame({"week": np.arange(1, 21)}), how="cross")
    noise = rng.uniform(1, 100)
    weeks["odd"] = rng.random(len(weeks)) < 0.1
    weeks["sales"] = rng.normal(weeks.level, np.sqrt(noise + 30**2 * weeks.odd))
    return shops, weeks, noise


shops, weeks, noise = simulate(0)
print(weeks[["shop", "week", "sales"]].round(1).head(3).to_string(index=False))

# %% [markdown]
# ## The model
#
# `noise` has no prior but its interval. A week is odd with probability 0.1: its log-odds are -2.2.

# %%
model = hl.parse("""
    Odd(shop, week)
    level(shop): real
    sales(shop, week): real
    noise: real[1, 100]

    -2.2  Odd(s, t)
    normal(level(s) | 50, 10^2)
    normal(sales(s, t) | level(s), noise + 30^2*Odd(s, t))
""")
graph = hl.ground(model, {"sales": weeks[["shop", "week", "sales"]]})
posterior = hl.infer(graph)
print(posterior)
print(posterior.marginal("noise"))

# %% [markdown]
# The noise is integrated numerically, the level of each shop on a lattice, and what each week
# contributes is a sum of two Gaussians: nothing is drawn, and nothing has to converge. The word
# *unchecked* is for the noise: no theorem bounds the error of its nodes, only the change on more of
# them does, as the notes say.

# %%
print(*posterior.solution.notes, sep="\n")

# %% [markdown]
# ## How good is it?
#
# A mean is drawn away by odd weeks. The median is not, but does not know how sure it may be.

# %%
levels = posterior.to_pandas("level").merge(shops, on="shop")
odd = posterior.to_pandas("Odd").astype({"week": int}).merge(weeks, on=["shop", "week"])
by_shop = weeks.groupby("shop").sales.agg(["mean", "median"]).loc[levels.shop]
covered = levels.level.between(levels.q05, levels.q95)
errors = [
    np.sqrt(np.mean((np.asarray(estimate) - levels.level) ** 2))
    for estimate in (levels["mean"], by_shop["mean"], by_shop["median"])
]
print("error of model, mean, median:", *(f"{error:.2f}" for error in errors))
print(f"90 % intervals that hold: {covered.sum()} of {len(levels)}")
found = odd.prob > 0.5
print(f"odd weeks found: {(found & odd.odd).sum()} of {odd.odd.sum()}")
print(f"false alarms: {(found & ~odd.odd).sum()}")
low, high = posterior.marginal("noise").quantile([0.05, 0.95])
print(f"variance of ordinary weeks: {low:.0f} to {high:.0f}, truth {noise:.0f}")

# %% [markdown]
# An odd week can hide among the ordinary ones. Over twenty such data sets the 90 % intervals should
# hold nine times in ten, which `python -m benchmarks gallery` counts.

# %%
figure = Figure(figsize=(10.5, 4.2), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[1.6, 1])
at = pd.Series(np.arange(len(levels)), levels.shop)
marks = left.scatter(
    odd.shop.map(at) + (odd.week - 10.5) / 30, odd.sales, c=odd.prob, s=14, cmap="cividis_r",
    edgecolor="black", linewidth=0.3, vmin=0, vmax=1,
)  # fmt: skip
figure.colorbar(marks, ax=left, label="probability that a week is odd")
left.vlines(at, levels.q05, levels.q95, color="#D55E00", linewidth=3, label="level, 90 %")
left.plot(at, levels.level, "_", color="black", markersize=16, label="true level")
left.set_xticks(at, at.index, rotation=45)
left.set_ylabel("sales of a week")
left.set_title("Sales, and what is usual", loc="left", pad=24)
left.legend(ncols=2, frameon=False, loc="lower left", bbox_to_anchor=(0, 0.98))

grid = np.linspace(1, 100, 400)
right.fill_between(grid, posterior.marginal("noise").pdf(grid), color="#0072B2", alpha=0.3)
right.axvline(noise, color="black", linewidth=1, label="truth")
right.axvline(weeks.groupby("shop").sales.var().mean(), color="#E69F00", label="variance of all")
right.set(xlabel="variance in ordinary weeks", ylabel="density")
right.set_title("The unknown noise", loc="left", pad=24)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
figure.savefig("shops.png", dpi=150)
