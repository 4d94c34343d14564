# %% [markdown]
# # How long does each road take, and who is slow?
#
# A carrier knows of each delivery which road segments it took, who drove, and how many minutes it
# took in all. How long does each segment take, and which drivers are slow?

# %%
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import hylift as hl

# %% [markdown]
# ## The data
#
# Two tables: deliveries, and the segments that each of them used, with a row for each. We make them
# up, so that the truth is known: a slow driver takes a quarter longer.


# %%
def simulate(seed, num_deliveries=500, num_segments=40, num_drivers=12):
    """Segments and drivers with their truths, deliveries, and the segments that these used."""
    rng = np.random.default_rng(seed)
    segments = pd.DataFrame({"segment": [f"road{n}" for n in range(num_segments)]})
    segments["truth"] = rng.normal(6, 2, num_segments)
    drivers = pd.DataFrame({"driver": [f"driver{n}" for n in range(num_drivers)]})
    drivers["slow"] = rng.random(num_drivers) < 0.2
    deliveries = drivers.sample(num_deliveries, replace=True, random_state=rng, ignore_index=True)
    deliveries["delivery"] = deliveries.index

    # A route is a walk along up to six segments in a row.
    size = rng.integers(2, 7, num_deliveries)
    delivery = np.repeat(np.arange(num_deliveries), size)
    step = np.arange(len(delivery)) - np.repeat(np.cumsum(size) - size, size)
    place = (rng.integers(0, num_segments, num_deliveries)[delivery] + step) % num_segments
    uses = pd.DataFrame({"delivery": delivery, "segment": segments.segment.to_numpy()[place]})

    total = np.bincount(delivery, segments.truth.to_numpy()[place])
    deliveries["minutes"] = rng.normal(total * (1 + 0.25 * deliveries.slow), 4)
    return segments, drivers, deliveries, uses


segments, drivers, deliveries, uses = simulate(0)
print(deliveries[["delivery", "driver", "minutes"]].round(1).head(3).to_string(index=False))
print(uses.head(3).to_string(index=False))

# %% [markdown]
# ## The model
#
# The third rule says it all: the time of a delivery is the sum over its segments, and a quarter
# more with a slow driver, give or take 4 minutes.

# %%
model = hl.parse("""
    Uses(delivery, segment)
    By(delivery, driver)
    Slow(driver)
    minutes(segment): real
    time(delivery): real

    bernoulli(Slow(x) | 0.2)
    normal(minutes(s) | 6, 2^2)
    By(d, x) * normal(time(d) | (1 + 0.25*Slow(x)) * (SUM s: Uses(d, s) * minutes(s)), 4^2)
""")
evidence = {
    "Uses": uses,
    "By": deliveries[["delivery", "driver"]],
    "time": deliveries[["delivery", "minutes"]],
}
graph = hl.ground(model, evidence, closed=["Uses", "By"])
posterior = hl.infer(graph)
print(graph)
print(posterior)

# %% [markdown]
# Twelve drivers can be slow or not in 4,096 ways, and given each of them the segments are jointly
# Gaussian: that is cheap enough to be exact.
#
# ## How good is it?
#
# A spreadsheet would divide the time of a delivery by its number of segments, and average that over
# the deliveries that used a segment.

# %%
found = posterior.to_pandas("minutes").merge(segments, on="segment")
slow = posterior.to_pandas("Slow").merge(drivers, on="driver")
each = uses.merge(deliveries, on="delivery")
each["share"] = each.minutes / each.groupby("delivery").segment.transform("size")
plain = found.segment.map(each.groupby("segment").share.mean())
for what, estimate in (("model", found["mean"]), ("spreadsheet", plain)):
    error = np.sqrt(np.mean((estimate - found.truth) ** 2))
    print(f"error of {what}: {error:.2f} minutes")
covered = found.truth.between(found.q05, found.q95)
print(f"90 % intervals that hold: {covered.sum()} of {len(found)}")
print(f"drivers judged right: {((slow.prob > 0.5) == slow.slow).sum()} of {len(slow)}")

# %%
figure = Figure(figsize=(10.5, 4.2), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[1.3, 1])
left.axline((6, 6), slope=1, color="#8C8C8C", linewidth=1)
left.vlines(found.truth, found.q05, found.q95, color="#0072B2", linewidth=1.5)
left.plot(found.truth, found["mean"], "o", color="#0072B2", markersize=4, label="model, 90 %")
left.plot(found.truth, plain, "x", color="#E69F00", label="spreadsheet")
left.set(xlabel="true minutes of a segment", ylabel="estimate")
left.set_title("Segments", loc="left")
left.legend(frameon=False, loc="upper left")

per_driver = each.assign(usual=each.segment.map(found.set_index("segment")["mean"]))
per_driver = per_driver.groupby(["driver", "delivery"]).agg(
    minutes=("minutes", "first"), usual=("usual", "sum")
)
ratio = per_driver.groupby("driver").sum()
ratio = (ratio.minutes / ratio.usual).reindex(slow.driver).to_numpy()
order = np.argsort(ratio)
right.scatter(
    ratio[order], np.arange(len(slow)), c=slow.prob.to_numpy()[order], cmap="coolwarm",
    vmin=0, vmax=1, s=70, edgecolor="black", zorder=2,
)  # fmt: skip
right.axvline(1, color="#8C8C8C", linewidth=1)
right.axvline(1.25, color="#8C8C8C", linewidth=1, linestyle="--")
names = np.where(slow.slow, slow.driver + " (slow)", slow.driver)[order]
right.set_yticks(np.arange(len(slow)), names)
right.set(xlabel="time taken, as a multiple of what roads need")
right.set_title("Drivers: red ones are probably slow", loc="left")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("deliveries.png", dpi=150)
