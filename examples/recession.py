# %% [markdown]
# # What do a few losses say about a recession?
#
# Three of eight banks have published some of their losses. How deep is the recession, how are
# the markets that nobody reported on, and what revenue should be expected of banks that are
# still silent? And does the same question stay cheap with 200 banks?

# %%
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import hylift as hl

# %% [markdown]
# ## The model
#
# Everything is measured in standard units: 0 is usual. A recession lowers markets and revenues,
# and a bank's loss on a kind of loans is high where the market is low and where the bank earns
# little. There is one `recession`, one `market` per kind of loans, one `revenue` per bank, and
# one `loss` for each pair. (The model is akin to one that papers on lifted inference use,
# `examples/models/rgm.mln`, which says with pairs of Gaussians what goes with what, and not what
# causes what.)

# %%
model = hl.parse("""
    recession: real
    market(loans): real
    revenue(bank): real
    loss(loans, bank): real

    normal(recession | 0, 1)
    normal(market(x) | -recession, 0.5)
    normal(revenue(b) | -recession, 0.5)
    normal(loss(x, b) | -market(x) - revenue(b), 1)
""")

# %% [markdown]
# ## A bad year
#
# We play the world: a recession of 1.5, and what follows from it. Each reporting bank publishes
# its losses on four kinds of loans.

# %%
rng = np.random.default_rng(0)
depth, spread = 1.5, np.sqrt(0.5)


def play(loans, banks, num_reporting):
    """True revenues, and a table of the losses that were reported."""
    market = pd.Series(rng.normal(-depth, spread, len(loans)), loans)
    revenue = pd.Series(rng.normal(-depth, spread, len(banks)), banks)
    pairs = [(x, b) for b in banks[:num_reporting] for x in rng.choice(loans, 4, replace=False)]
    reports = pd.DataFrame(pairs, columns=["loans", "bank"])
    expected = -reports.loans.map(market) - reports.bank.map(revenue)
    return revenue, reports.assign(value=rng.normal(expected, 1).round(1))


loans = ["homes", "cards", "cars", "shops", "farms", "ships", "hotels", "energy", "trade", "study"]
banks = ["Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple"]
revenue, reports = play(loans, banks, num_reporting=3)
print(reports.pivot(index="bank", columns="loans", values="value").to_string(na_rep="."))

# %% [markdown]
# Loans and banks are listed, because some are in no report. All is Gaussian, so `hl.infer` takes
# exact inference, and the answers can be trusted as far as the rules.

# %%
things = {"loans": loans, "bank": banks}
before = hl.infer(hl.ground(model, things))
after = hl.infer(hl.ground(model, {**things, "loss": reports}))
print(after, *after.solution.notes, sep="\n")
for atom in ("recession", "market(homes)", "revenue(Alder)", "revenue(Maple)"):
    then, now = before.marginal(atom), after.marginal(atom)
    print(
        f"{atom:15} {then.mean:5.2f} ± {then.std:.2f} before, {now.mean:5.2f} ± {now.std:.2f} after"
    )

# %% [markdown]
# ## Against a shortcut, and against the truth
#
# A loss is twice the recession on average, so half the mean of the reports is an estimate too.
# Its usual standard error takes the twelve reports for independent. They are not, since they
# share banks and markets; the model knows, and is less sure.

# %%
shortcut, its_error = reports.value.mean() / 2, reports.value.std() / np.sqrt(len(reports)) / 2
found = after.marginal("recession")
table = after.table("revenue").to_pandas().set_index("bank")
held = revenue[table.index].between(table.q05, table.q95)
print(f"recession: truth {depth}, shortcut {shortcut:.2f} ± {its_error:.2f}", end=", ")
print(f"model {found.mean:.2f} ± {found.std:.2f}")
print(f"90 % intervals that hold the true revenue: {held.sum()} of {len(held)}")

# %% [markdown]
# ## Two hundred banks
#
# With 100 kinds of loans and 200 banks there are 20,000 losses. Nearly all are alike: nothing is
# known that tells one silent bank from another. *Lifting* finds such look-alikes and solves each
# class once. It changes the time, not the answer: `lift="none"` gives the same numbers.

# %%
many = {"loans": [f"x{i}" for i in range(100)], "bank": [f"b{i}" for i in range(200)]}
_, more_reports = play(many["loans"], many["bank"], num_reporting=6)
graph = hl.ground(model, {**many, "loss": more_reports})
print(hl.lift(graph))
for label, method, lift in (
    ("messages, lifted", hl.GaBP(), "exact"),
    ("messages, one by one", hl.GaBP(), "none"),
    ("exact, one by one", hl.Exact(), "none"),
):
    result = hl.infer(graph, method, lift=lift)
    one = result.marginal("recession")
    seconds = result.solution.seconds
    print(f"{label:21} {seconds:5.2f} s, recession {one.mean:.6f} ± {one.std:.3f}")

# %% [markdown]
# Gaussian belief propagation has exact means. Its deviations are approximate where the graph has
# loops, here 15 % too wide. Exact inference is quick, since all is Gaussian, so it is the one to
# take; lifting pays where a method takes many steps, as messages and variational methods do.

# %%
figure = Figure(figsize=(10.5, 4.4), layout="constrained")
left, right = figure.subplots(1, 2)
x = np.linspace(-3, 3.5, 300)
for label, posterior, color, dash in (
    ("before", before, "#0072B2", "-"),
    ("after 12 reports", after, "#E69F00", "--"),
):
    density = posterior.marginal("recession").pdf(x)
    left.plot(x, density, dash, color=color, label=label)
    left.fill_between(x, density, color=color, alpha=0.15, linewidth=0)
left.axvline(depth, color="black", linewidth=1, linestyle=":", label="truth")
left.set(xlabel="recession", ylabel="density", ylim=(0, None))
left.set_title("The recession", loc="left", pad=24)
left.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False)

truth = {f"revenue({bank})": value for bank, value in revenue.items()}
hl.plot_forest({"before": before, "after": after}, "revenue(*)", ax=right, truth=truth)
right.set_title("Revenues; only Alder, Birch and Cedar reported", loc="left", pad=24)
figure.savefig("recession.png", dpi=150)
