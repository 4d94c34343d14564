# %% [markdown]
# # Groundwater in forty wells, one month ahead
#
# Forty wells tap the same ground. Their levels rise and fall together with wet and dry years, and
# each also goes its own way. Readings are a bit off, and a third of them was never taken. What will
# next month's reading be, and how sure can one be?

# %%
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import hylift as hl

WELLS, MONTHS = 40, 60
rng = np.random.default_rng(0)

# %% [markdown]
# ## The data
# A common water table wanders from month to month; each well adds a level of its own, which tends
# back to its mean, and a constant offset. Well07 was out of order for a year and a half.

# %%
table = np.cumsum(rng.normal(0, 0.5, MONTHS))
own = np.zeros((WELLS, MONTHS))
own[:, 0] = rng.normal(0, 1, WELLS)
for month in range(1, MONTHS):
    own[:, month] = 0.9 * own[:, month - 1] + rng.normal(0, 0.4, WELLS)
level = table + own + rng.normal(0, 2, (WELLS, 1))

wells = [f"well{number:02}" for number in range(WELLS)]
everything = pd.DataFrame(
    {
        "well": np.repeat(wells, MONTHS),
        "month": np.tile(np.arange(MONTHS), WELLS),
        "value": (level + rng.normal(0, 0.3, level.shape)).ravel(),
    }
)
is_read = rng.random(len(everything)) < 0.67
is_read &= ~((everything["well"] == "well07") & everything["month"].between(30, 47))
readings = everything[is_read]
print(f"{len(readings)} readings of {len(everything)}")

# %% [markdown]
# ## The model
# The same in rules. `t+1` is the month after `t`. The readings are a data frame with the columns
# well, month and value; what it does not have is hidden.

# %%
model = hl.parse("""
    month = {0, ..., 59}
    table(month): real
    own(well, month): real
    offset(well): real
    reading(well, month): real

    normal(table(t) | 0, 0.25)  where t = 0
    normal(table(t+1) | table(t), 0.25)
    normal(own(w, t) | 0, 1)  where t = 0
    normal(own(w, t+1) | 0.9*own(w, t), 0.16)
    normal(offset(w) | 0, 4)
    normal(reading(w, t) | table(t) + own(w, t) + offset(w), 0.09)
""")
graph = hl.ground(model, {"reading": readings})
print(graph)

# %% [markdown]
# ## Filtering
# All is real and Gaussian, so `hl.kalman_filter` is exact: it walks through the months, predicts
# each one from those before it, and then learns from its readings. It takes any such model, with
# things that all wells share (the water table) and things without a time (the offsets), and needs
# no matrices from you. `predictions()` has what was expected of each reading before it was known.

# %%
filtered = hl.kalman_filter(graph, "month")
print(filtered)
ahead = filtered.predictions("reading").to_pandas()

# %% [markdown]
# ## How good are the predictions?
# Of the 90 % intervals about 90 % should hold the reading that came. The baseline is what most
# would do: expect the last reading of the same well again. A reading that was never taken is
# predicted as well (we made the data, so we know what it would have been). In the long gap of
# well07 the other wells tell where the water table went. Such figures hold where the model does:
# here the data were made by it, with the same variances. On your own data, make this check first.

# %%
hidden = filtered.table("reading").to_pandas()[["well", "month", "predicted_mean", "predicted_sd"]]
hidden = hidden.set_axis(["well", "month", "mean", "sd"], axis="columns")
expected = pd.concat([ahead[["well", "month", "mean", "sd"]], hidden])
scored = everything.assign(is_read=is_read, level=level.ravel()).merge(expected)
scored["last"] = scored["value"].where(scored["is_read"]).groupby(scored["well"]).ffill()
scored["last"] = scored.groupby("well")["last"].shift()
scored["error"] = abs(scored["value"] - scored["mean"])

later = scored[scored["last"].notna()]  # from the second reading of a well on
for label, some in (
    ("readings", later[later["is_read"]]),
    ("gaps", later[~later["is_read"]]),
    ("gap of well07", later[(later["well"] == "well07") & later["month"].between(30, 47)]),
):
    print(
        f"{label:13} {len(some):4}: RMSE {np.sqrt(np.mean(some['error'] ** 2)):.2f}, of the last "
        f"reading {np.sqrt(np.mean((some['value'] - some['last']) ** 2)):.2f}; "
        f"{np.mean(some['error'] < 1.645 * some['sd']):.0%} within 90 % intervals"
    )

# %%
figure = Figure(figsize=(8, 5.4), layout="constrained")
both = figure.subplots(2, sharex=True)
for axes, name in zip(both, ("well07", "well21"), strict=True):
    one = scored[scored["well"] == name]
    axes.fill_between(
        one["month"], one["mean"] - 1.645 * one["sd"], one["mean"] + 1.645 * one["sd"],
        color="#56B4E9", alpha=0.35, linewidth=0, label="90 % interval, one month ahead",
    )  # fmt: skip
    axes.plot(one["month"], one["mean"], color="#0072B2", label="expected reading")
    axes.plot(one["month"], one["level"], color="#E69F00", linestyle="--", label="true level")
    axes.plot(one["month"], one["value"].where(one["is_read"]), "o", color="#333333",
              markersize=3.5, label="reading")  # fmt: skip
    axes.set(ylabel=f"level of {name}")
    axes.spines[["top", "right"]].set_visible(False)
both[1].set_xlabel("month")
both[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4, frameon=False, fontsize=9)
figure.savefig("wells.png", dpi=150)
