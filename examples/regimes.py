# %% [markdown]
# # Regimes that thirty shops share
#
# Thirty shops report their weekly sales, with many gaps. In some weeks the whole town is in a
# slump: sales are a little lower and more erratic. In the figures of one shop that drowns in noise.
# Which weeks were slumps, how much does one cost, and what did the shops sell that did not report?

# %%
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import hylift as hl

SHOPS, WEEKS, DROP = 30, 60, 0.6
rng = np.random.default_rng(1)

# %% [markdown]
# ## The data
# We make them up, so that the truth is known. A slump goes on with probability 0.86 and begins with
# probability 0.06. Every shop has its own usual level; 40 % of all reports are missing.

# %%
slump = np.zeros(WEEKS, dtype=bool)
for week in range(1, WEEKS):
    slump[week] = rng.random() < (0.86 if slump[week - 1] else 0.06)
usual = rng.normal(10, 3, SHOPS)
spread = np.where(slump, 1.5, 1.0)
sold = usual[:, None] - DROP * slump + spread * rng.normal(size=(SHOPS, WEEKS))

shops = [f"shop{number:02}" for number in range(SHOPS)]
everything = pd.DataFrame(
    {
        "shop": np.repeat(shops, WEEKS),
        "week": np.tile(np.arange(WEEKS), SHOPS),
        "value": sold.ravel(),
    }
)
is_reported = rng.random(len(everything)) < 0.6
reports, gaps = everything[is_reported], everything[~is_reported]
print(f"{len(reports)} reports, {len(gaps)} gaps, {slump.sum()} of {WEEKS} weeks in a slump")

# %% [markdown]
# ## The model
# A regime is one Boolean a week, the same for all shops. Neighbouring weeks tend to agree: weights
# are log-odds, and 2.3 makes a week about ten times as likely to be like the one before as not.
# Neither the usual levels nor the size of the drop are known; the two spreads are, and so is how
# regimes come and go. Sales that nobody reported are hidden reals, like all else that is unknown.

# %%
model = hl.parse("""
    week = {0, ..., 59}
    Slump(week)
    usual(shop): real
    drop: real
    sales(shop, week): real

    -0.1  Slump(t)
    2.3   Slump(t) <=> Slump(t+1)
    normal(usual(s) | 10, 9)
    normal(drop | 1, 1)
    normal(sales(s, t) | usual(s) - drop*Slump(t), 1 + 1.25*Slump(t))
""")
graph = hl.ground(model, {"sales": reports})
print(graph)

# %% [markdown]
# ## Inference
# Every usual level depends on all 60 regimes, so exact inference would need 2⁶⁰ Gaussians, and
# refuses. `hl.Gibbs` draws each regime given everything else, and all reals at once given the
# regimes; its notes say how far four independent chains agree. Mean field is faster, but treats all
# unknowns as independent of each other, and so is too sure of the drop and of when a slump ends. We
# run it too, and ask what one shop alone would have told.

# %%
posterior = hl.infer(graph, hl.Gibbs(chains=4, draws=500), tasks="marginals", seed=0)
print(posterior.solution.result, *posterior.solution.notes, sep="\n")
quick = hl.infer(graph, hl.MeanField(), tasks="marginals", seed=0)
one_shop = hl.ground(model, {"sales": reports[reports["shop"] == "shop00"]})
alone = hl.infer(one_shop, hl.Gibbs(chains=4, draws=500), tasks="marginals", seed=0)

# %% [markdown]
# ## How good is the answer?
# The Brier score is the mean of (probability - truth)²: 0 at best, 0.25 for someone who always says
# one half. Of 90 % intervals about 90 % should hold the truth. Levels of 30 shops are few, so that
# their share is a rough one.


# %%
def regime(found: hl.Posterior) -> np.ndarray:
    """The probability of a slump, week by week."""
    return found.table("Slump").to_pandas().sort_values("week")["prob"].to_numpy()


def covered(table: pd.DataFrame) -> str:
    """How many truths lie in their 90 % intervals."""
    return f"{table['value'].between(table['q05'], table['q95']).mean():.0%}"


levels = pd.DataFrame({"shop": shops, "value": usual})
for label, found in (("one shop", alone), ("all, mean field", quick), ("all, Gibbs", posterior)):
    prob, cost = regime(found), found.marginal("drop")
    print(
        f"{label:15} weeks right {np.mean((prob > 0.5) == slump):.0%}, "
        f"Brier score {np.mean((prob - slump) ** 2):.3f}, drop {cost.mean:.2f} ± {cost.std:.2f}"
    )
for label, found in (("mean field", quick), ("Gibbs", posterior)):
    in_gaps = found.table("sales").to_pandas().merge(gaps)
    of_shops = found.table("usual").to_pandas().merge(levels)
    print(
        f"{label:10} 90 % intervals hold {covered(in_gaps)} of gaps, {covered(of_shops)} of levels"
    )

# %%
figure = Figure(figsize=(8, 5.4), layout="constrained")
above, below = figure.subplots(2, sharex=True, height_ratios=[2, 1])
for name, line in everything.groupby("shop"):
    told = line["value"].where(is_reported[line.index])  # lines are broken where nobody reported
    color, width, label = (
        ("#0072B2", 1.6, "one shop") if name == "shop00" else ("#CCCCCC", 0.7, None)
    )
    above.plot(line["week"], told, ".-", markersize=3, color=color, linewidth=width, label=label)
above.set_ylabel("sales")
above.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
for axes in (above, below):
    axes.bar(
        np.flatnonzero(slump), 1, width=1, transform=axes.get_xaxis_transform(),
        color="#FBE3B5", zorder=0, label="true slump",
    )  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)
below.plot(regime(alone), color="#0072B2", linestyle="--", label="from one shop")
below.plot(regime(posterior), color="#333333", label="from all shops")
below.set(xlabel="week", ylabel="probability of a slump", ylim=(-0.03, 1.03))
below.legend(ncols=3, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
figure.savefig("regimes.png", dpi=150)
