# %% [markdown]
# # Which sensors are broken, and how warm is each room?
#
# A building of 40 rooms has 120 thermometers. Some are broken and report nonsense, some report
# nothing, and a few rooms have no reading at all. Which thermometers should be replaced, and how
# warm is it in each room, those without a reading included?

# %%
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import hylift as hl

# %% [markdown]
# ## The data
#
# Two tables, as they would come from a facility's database: which rooms are next to each other, and
# the readings. We make them up, so that the truth is known in the end. The gateway of four rooms in
# a corner is down, and one reading in ten is lost.

# %%
rng = np.random.default_rng(0)
plan = pd.DataFrame(
    [(f"{letter}{y}", x, y) for x, letter in enumerate("ABCDEFGH") for y in range(1, 6)],
    columns=["room", "x", "y"],
)
plan["truth"] = 20 + 3 * np.sin(plan.x / 2.5) * np.cos(plan.y / 2.5)
plan["truth"] += rng.normal(0, 0.3, len(plan))

pairs = plan.merge(plan, how="cross", suffixes=("", "_other"))
right, up = pairs.x_other - pairs.x, pairs.y_other - pairs.y
next_to = pairs.loc[(right + up == 1) & (right >= 0) & (up >= 0), ["room", "room_other"]]

sensors = plan.sample(120, replace=True, random_state=0, ignore_index=True)
sensors["sensor"] = [f"s{number}" for number in range(len(sensors))]
sensors["broken"] = rng.random(len(sensors)) < 0.15
sensors["value"] = np.where(
    sensors.broken, rng.normal(20, 8, len(sensors)), rng.normal(sensors.truth, 0.5)
)
lost = (rng.random(len(sensors)) < 0.1) | ((sensors.x > 5) & (sensors.y < 3))
readings = sensors[~lost]
print(f"{len(sensors)} sensors, {len(readings)} of them with a reading, such as")
print(readings[["sensor", "room", "value"]].round(1).head(3).to_string(index=False))

# %% [markdown]
# ## The model
#
# One rule a line, and each holds for all sensors and rooms:
#
# - about 12 % of the sensors are broken: a weight of -2 is a log-odds;
# - rooms have around 20 degrees, give or take 3;
# - rooms next to each other differ by a degree or so;
# - a sensor that works reads the temperature of its room with an error of half a degree, and a
#   broken one reads anything around 20, give or take 8 degrees.

# %%
model = hl.parse("""
    NextTo(room, room)
    In(sensor, room)
    Broken(sensor)
    reading(sensor): real
    temperature(room): real

    -2  Broken(s)
    normal(temperature(r) | 20, 3^2)
    NextTo(a, b) * normal(temperature(a) | temperature(b), 1)
    In(s, r) * normal(reading(s) | temperature(r)*!Broken(s) + 20*Broken(s), 0.5^2 + 8^2*Broken(s))
""")

# %% [markdown]
# All sensors go in, those that reported nothing too: what they would have read is one more unknown.
# `closed` says that both relations are known completely: rooms that the table does not list are not
# neighbours.

# %%
graph = hl.ground(
    model,
    {
        "NextTo": next_to,
        "In": sensors[["sensor", "room"]],
        "reading": readings[["sensor", "value"]],
    },
    closed=["NextTo", "In"],
)
print(graph)

# %% [markdown]
# ## The answer
#
# Each of 120 sensors may be broken or not: too many combinations for an exact answer. `hl.Gibbs`
# fits here: it draws all temperatures at once, which matters because neighbours hang together, and
# its notes say whether its four chains agree.

# %%
posterior = hl.infer(graph, hl.Gibbs(draws=1000), seed=0)
print(posterior.solution.result, *posterior.solution.notes, sep="\n")

rooms = posterior.table("temperature").to_pandas().merge(plan, on="room")
suspects = posterior.table("Broken").to_pandas().merge(sensors, on="sensor")
worst = suspects.nlargest(5, "prob")[["sensor", "room", "value", "prob"]]
print(worst.round(2).to_string(index=False))
of_silent = suspects.prob[~suspects.sensor.isin(readings.sensor)]
print(f"silent sensors: broken with {of_silent.min():.3f} to {of_silent.max():.3f}")

# %% [markdown]
# Nothing is known of a silent sensor, so its probability is the prior one, 1/(1 + e²) = 0.119; that
# the draws differ from it shows how far they can be trusted.
#
# ## How good is it?
#
# In practice nobody would know; here we made the data. The usual shortcut is the mean of the
# readings of a room, or of all readings where a room has none. The median is more robust.


# %%
def error(estimate):
    return np.sqrt(np.mean((estimate - rooms.truth) ** 2))


by_room = readings.groupby("room").value
mean = rooms.room.map(by_room.mean()).fillna(readings.value.mean())
median = rooms.room.map(by_room.median()).fillna(readings.value.median())
covered = rooms.truth.between(rooms.q05, rooms.q95)
silent = ~rooms.room.isin(readings.room)
called = suspects.prob > 0.5
print(f"error of the model:        {error(rooms['mean']):.2f} degrees")
print(f"error of means, medians:   {error(mean):.2f}, {error(median):.2f} degrees")
print(f"90 % intervals that hold:  {covered.sum()} of {len(rooms)} rooms")
print(f"  in rooms without reading: {covered[silent].sum()} of {silent.sum()} rooms")
print(f"broken sensors found:      {(called & suspects.broken).sum()} of {suspects.broken.sum()}")
print(f"false alarms:              {(called & ~suspects.broken).sum()}")

# %% [markdown]
# A broken sensor that is silent, or happens to read what its room has, cannot be found; it does
# little harm. One building is one draw of luck, and it was made about as smooth as the third rule
# says: intervals are as honest as the model.

# %%
figure = Figure(figsize=(10.5, 4.2), layout="constrained")
building, scatter = figure.subplots(1, 2, width_ratios=[1.5, 1])
tiles = building.pcolormesh(
    rooms.pivot(index="y", columns="x", values="mean"), cmap="cividis", edgecolor="white"
)
figure.colorbar(tiles, ax=building, label="estimated temperature")
for x, y in rooms.loc[silent, ["x", "y"]].to_numpy():
    label = {"fontsize": 7, "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1}}
    building.text(x + 0.5, y - 0.15, "no reading", ha="center", va="center", **label)
rank = suspects.groupby("room").cumcount()  # sensors of a room stand in rows of three
at = np.array([suspects.x + 0.2 + 0.3 * (rank % 3), suspects.y - 0.87 + 0.23 * (rank // 3)])
building.scatter(*at[:, ~called], s=14, c="white", edgecolor="black", linewidth=0.5, label="sensor")
building.scatter(
    *at[:, called], s=70, c="#D55E00", marker="X", edgecolor="white", label="probably broken"
)
building.set_xticks(np.arange(8) + 0.5, "ABCDEFGH")
building.set_yticks(np.arange(5) + 0.5, range(1, 6))
building.set_title("The building", loc="left")
building.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=2, frameon=False)

scatter.axline((20, 20), slope=1, color="#8C8C8C", linewidth=1)
scatter.plot(rooms.truth, mean, "x", color="#E69F00", label="mean of readings")
scatter.vlines(rooms.truth, rooms.q05, rooms.q95, color="#0072B2", linewidth=1.5)
scatter.plot(rooms.truth, rooms["mean"], "o", color="#0072B2", markersize=4, label="model, 90 %")
scatter.set(xlabel="true temperature of a room", ylabel="estimate")
scatter.set_title("Against the truth", loc="left")
scatter.spines[["top", "right"]].set_visible(False)
scatter.legend(frameon=False)
figure.savefig("sensors.png", dpi=150)
